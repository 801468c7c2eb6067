// SPDX-License-Identifier: Apache-2.0
//! Instructions of an entry: how packets that hit the entry are processed.

use crate::{Action, MeterId, TableId};

/// Instructions of an entry, executed in the order of these fields (OpenFlow 1.3, section 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// Number of the meter applied first.
    pub meter: Option<MeterId>,
    /// Actions applied immediately, in order.
    pub apply: Vec<Action>,
    /// Whether the action set is cleared.
    pub clear: bool,
    /// Actions merged into the action set. An action replaces an earlier action of the same type. A set-field
    /// replaces only a set-field of the same field.
    pub write: Vec<Action>,
    /// Metadata bits to write: value and mask.
    pub metadata: Option<(u64, u64)>,
    /// Next table. If `None`, the action set is executed.
    pub next: Option<Next>,
}

/// Next table of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Look the packet up in this table.
    Table(TableId),
    /// Use the entry at an index of a linear table, without a lookup.
    Direct {
        /// Number of the linear table.
        table: TableId,
        /// Index of the entry in the table.
        index: u32,
    },
}

impl Next {
    /// Returns the number of the next table.
    #[must_use]
    #[inline]
    pub fn table(self) -> TableId {
        match self {
            Self::Table(table) | Self::Direct { table, .. } => table,
        }
    }
}

impl Instructions {
    /// Returns instructions that apply these actions and do nothing else.
    #[must_use]
    pub fn apply(actions: Vec<Action>) -> Self {
        Self { apply: actions, ..Self::default() }
    }

    /// Returns whether packets that hit an entry with these instructions may stay low-latency.
    ///
    /// The result is false for an entry that sends copies and continues with another table. A packet that
    /// hits such an entry may still be dropped later, for instance because of its TTL. Its copies could then
    /// overtake the copies of other packets of the flow, whose lane is known only after their last table.
    #[must_use]
    pub fn may_be_low_latency(&self) -> bool {
        let sends = |action: &Action| matches!(action, Action::Output { .. } | Action::Group(_));
        self.next.is_none() || !self.apply.iter().any(sends)
    }

    /// Returns whether there are no instructions. The packet is then dropped, unless its action set has an
    /// output.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
