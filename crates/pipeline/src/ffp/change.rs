// SPDX-License-Identifier: Apache-2.0
//! Rule changes in the form that a LUT needs, and the changes whose cleanup is in progress.

use flow::EntryId;

/// Number of records examined in one slice of a cleanup.
pub(super) const SLICE: usize = 512;

/// Maximum number of changes in progress in a LUT.
const UNDER_WAY: usize = 16;

/// Mode in which the records of a LUT are kept coherent with the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coherence {
    /// Eager, but lazy while too many changes are in progress.
    #[default]
    Auto,
    /// All records are examined in slices of bounded size, and records that the change concerns are removed.
    /// A hit is checked only against changes in progress. If too many are in progress, all records are
    /// verified at their next hit.
    Eager,
    /// Each record is verified at its next hit against the changes since its last verification.
    Lazy,
    /// Each record is verified at its next hit against the table.
    Generation,
}

/// Effect of a rule change on the records of the table's LUT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clean {
    /// A rule was added.
    Added {
        /// Priority of the rule.
        priority: u16,
        /// The rule in the LUT's layout: values, then masks.
        row: Box<[u64]>,
        /// The rule in the layout of the previous LUT, without the bits that the previous LUT does not
        /// examine. `None` if both layouts are equal.
        before: Option<Box<[u64]>>,
        /// Id of the entry.
        id: EntryId,
        /// Whether the entry is low-latency and matches one value only, so that its record can be made
        /// immediately.
        single: bool,
    },
    /// An entry was removed.
    Removed(EntryId),
    /// An entry became low-latency (`true`) or normal. Its records of the former kind are removed.
    Marked(EntryId, bool),
    /// Many rules changed: every record is verified against the table before it is used again.
    #[default]
    All,
}

/// Changes for which the LUT is still being cleaned. For each change, the records from index
/// [`CleaningSlot::next`] on have not been checked yet and may be outdated.
#[derive(Debug)]
pub(super) struct Cleaning {
    pub slots: [CleaningSlot; UNDER_WAY],
    /// Number of slots that hold a change in progress.
    pub active: usize,
    /// Number of records that may still be examined before the next burst.
    pub budget: usize,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { slots: Default::default(), active: 0, budget: SLICE }
    }
}

#[derive(Debug, Default)]
pub(super) struct CleaningSlot {
    pub clean: Clean,
    /// Index of the first record that has not been examined yet.
    pub next: usize,
    pub active: bool,
}

/// Role of a LUT among the LUTs of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LutRole {
    /// The table's LUT.
    #[default]
    Current,
    /// The previous LUT of the table. It stays in use together with its successor for a while.
    Previous,
}

impl Clean {
    /// Returns the added rule's row in the layout of a LUT.
    pub(super) fn row_for<'a>(&'a self, role: LutRole, row: &'a [u64]) -> &'a [u64] {
        match self {
            Self::Added { before: Some(before), .. } if role == LutRole::Previous => before,
            _ => row,
        }
    }
}
