// SPDX-License-Identifier: Apache-2.0
//! Selection of the entries to which a request applies.

use flow::{Action, FlowEntry, FlowMod, GroupId, Match, PortNo, TableId};

/// Filter of a statistics request. The default filter accepts all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Table of the entries. `None` stands for all tables.
    pub table: Option<TableId>,
    /// Match that must cover the match of an entry.
    pub matching: Match,
    /// Cookie value, compared in the bits of `cookie_mask`.
    pub cookie: u64,
    /// Bits of the cookie to compare. 0 accepts any cookie.
    pub cookie_mask: u64,
    /// Port that the entry must output to, if set.
    pub out_port: Option<PortNo>,
    /// Group that the entry must use, if set.
    pub out_group: Option<GroupId>,
}

impl FlowFilter {
    /// Returns whether the filter accepts an entry.
    #[must_use]
    pub fn accepts(&self, entry: &FlowEntry) -> bool {
        self.table.is_none_or(|t| t == entry.table)
            && self.qualities().accept(entry)
            && self.matching.covers(&entry.matching)
    }

    fn qualities(&self) -> Qualities {
        Qualities {
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            out_port: self.out_port,
            out_group: self.out_group,
        }
    }
}

/// Conditions on an entry other than its match and priority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qualities {
    cookie: u64,
    cookie_mask: u64,
    out_port: Option<PortNo>,
    out_group: Option<GroupId>,
}

impl Qualities {
    /// Returns the conditions of a modify command, which ignores output port and group.
    pub fn of_modify(m: &FlowMod) -> Self {
        Self { cookie: m.cookie, cookie_mask: m.cookie_mask, out_port: None, out_group: None }
    }

    /// Returns the conditions of a delete command.
    pub fn of_delete(m: &FlowMod) -> Self {
        Self { cookie: m.cookie, cookie_mask: m.cookie_mask, out_port: m.out_port, out_group: m.out_group }
    }

    /// Returns whether there are no conditions.
    pub fn none_asked(&self) -> bool {
        self.cookie_mask == 0 && self.out_port.is_none() && self.out_group.is_none()
    }

    pub fn accept(&self, entry: &FlowEntry) -> bool {
        let does = |wanted: &dyn Fn(&Action) -> bool| {
            entry.instructions.apply.iter().chain(&entry.instructions.write).any(wanted)
        };
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && self
                .out_port
                .is_none_or(|port| does(&|a| matches!(a, Action::Output { port: p, .. } if *p == port)))
            && self.out_group.is_none_or(|group| does(&|a| *a == Action::Group(group)))
    }
}
