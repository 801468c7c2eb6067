// SPDX-License-Identifier: Apache-2.0
//! Which entries a request is about.

use flow::{Action, FlowEntry, FlowMod, Match};

/// Entries that a statistics request is about; the default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Their table; none: all.
    pub table: Option<u8>,
    /// What covers their match.
    pub matching: Match,
    /// Their cookie, in the bits of the mask.
    pub cookie: u64,
    /// Bits of the cookie that count; 0: none.
    pub cookie_mask: u64,
    /// They output to this port.
    pub out_port: Option<u32>,
    /// They use this group.
    pub out_group: Option<u32>,
}

impl FlowFilter {
    /// True for an entry that the filter is about.
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

/// What beside match and priority an entry must have to be meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qualities {
    cookie: u64,
    cookie_mask: u64,
    out_port: Option<u32>,
    out_group: Option<u32>,
}

impl Qualities {
    /// Of a modify: output port and group do not count.
    pub fn of_modify(m: &FlowMod) -> Self {
        Self { cookie: m.cookie, cookie_mask: m.cookie_mask, out_port: None, out_group: None }
    }

    /// Of a delete.
    pub fn of_delete(m: &FlowMod) -> Self {
        Self { cookie: m.cookie, cookie_mask: m.cookie_mask, out_port: m.out_port, out_group: m.out_group }
    }

    /// True when every entry has them.
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
