// SPDX-License-Identifier: Apache-2.0
//! The last changes of a table's rules. Records are verified against these changes.

use flow::EntryId;

/// Number of changes that a LUT remembers. It is also the maximum length of a list of extra rules
/// ([`super::lazy`]).
pub(super) const REMEMBERED: usize = 64;

/// Kind of a remembered change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Empty, or an added rule that was removed again.
    #[default]
    Gone,
    Added,
    Removed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub id: EntryId,
    pub priority: u16,
    pub kind: ChangeKind,
}

/// Last changes of a table's rules. The change that made generation `g` is at index `g % REMEMBERED`.
#[derive(Debug)]
pub(super) struct Recent {
    pub changes: [Change; REMEMBERED],
    /// Values and masks of the rule of each change.
    pub rows: Box<[u64]>,
    /// Maximum number of changes against which a record is checked one by one. If there are more, the record
    /// is verified by a table lookup.
    pub list_max: u32,
    /// Place of the record that is checked next for its age.
    pub aging: usize,
}

impl Recent {
    pub fn new(words: usize) -> Self {
        Self {
            changes: [Change::default(); REMEMBERED],
            rows: vec![0; REMEMBERED * 2 * words].into_boxed_slice(),
            list_max: REMEMBERED as u32,
            aging: 0,
        }
    }

    /// Returns the size for rows of `words` words, in bytes.
    pub fn bytes(words: usize) -> usize {
        REMEMBERED * (size_of::<Change>() + 2 * words * 8)
    }

    /// Removes a deleted rule from the lists of all records.
    pub fn forget(&mut self, id: EntryId) {
        for change in &mut self.changes {
            if change.id == id && change.kind == ChangeKind::Added {
                change.kind = ChangeKind::Gone;
            }
        }
    }
}
