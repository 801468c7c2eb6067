// SPDX-License-Identifier: Apache-2.0
//! What an entry does with a packet that matches it.

use crate::Action;

/// An entry's instructions, executed in the order of the fields here (OpenFlow 1.3, 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// Meter the packet first.
    pub meter: Option<u32>,
    /// Actions done at once, in order.
    pub apply: Vec<Action>,
    /// Empty the action set.
    pub clear: bool,
    /// Actions merged into the action set: a later one replaces an earlier one of its type (set-field: of its field).
    pub write: Vec<Action>,
    /// Metadata bits to write: value and mask.
    pub metadata: Option<(u64, u64)>,
    /// Where to go on; none: the action set is executed.
    pub next: Option<Next>,
}

/// The next table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Look the packet up in this table.
    Table(u8),
    /// Take the entry with this index of a linear table, without a lookup.
    Direct {
        /// The linear table.
        table: u8,
        /// Index of the entry in it.
        index: u32,
    },
}

impl Next {
    /// The table's number.
    #[must_use]
    pub fn table(self) -> u8 {
        match self {
            Self::Table(table) | Self::Direct { table, .. } => table,
        }
    }
}

impl Instructions {
    /// Apply these actions, nothing else.
    #[must_use]
    pub fn apply(actions: Vec<Action>) -> Self {
        Self { apply: actions, ..Self::default() }
    }

    /// Whether packets that these instructions serve may stay low-latency if their entry is marked so. Not if copies are sent
    /// and then another table is next: a packet may end in between for what no table examines (its TTL), and its copies would
    /// overtake those of others of its flow, whose lane is known only at their end.
    #[must_use]
    pub fn may_be_low_latency(&self) -> bool {
        let sends = |action: &Action| matches!(action, Action::Output { .. } | Action::Group(_));
        self.next.is_none() || !self.apply.iter().any(sends)
    }

    /// True when nothing is done: the packet is dropped unless its action set says otherwise.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
