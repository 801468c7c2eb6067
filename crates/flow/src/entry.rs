// SPDX-License-Identifier: Apache-2.0
//! Flow entries, and the flow-mod messages that change them.

use crate::{Action, EntryId, Field, GroupId, Instructions, Match, PortNo, TableId, port_no};
use std::sync::Arc;

/// Flags of a flow-mod (OFPFF_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryFlags {
    /// Report the entry's removal to the controller.
    pub send_flow_removed: bool,
    /// Refuse the entry if it overlaps another of the same priority.
    pub check_overlap: bool,
    /// Reset the counters on modify and add.
    pub reset_counts: bool,
    /// Do not keep a packet count.
    pub no_packet_counts: bool,
    /// Do not keep a byte count.
    pub no_byte_counts: bool,
}

/// Entry of a flow table. A packet hits the matching entry with the highest priority. Among equal priorities,
/// it hits the one added first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// Identifier of the entry.
    pub id: EntryId,
    /// Number of the entry's table, 0 to 255.
    pub table: TableId,
    /// Priority. A packet hits the matching entry with the highest priority.
    pub priority: u16,
    /// Condition on the packets that hit this entry.
    pub matching: Match,
    /// Instructions for these packets. Entries with equal instructions share one allocation.
    pub instructions: Arc<Instructions>,
    /// Idle timeout in seconds, or 0 for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds after the entry was added, or 0 for none.
    pub hard_timeout_s: u16,
    /// Value chosen by the controller, which the switch does not interpret.
    pub cookie: u64,
    /// Flags of the flow-mod that added the entry.
    pub flags: EntryFlags,
    /// Whether the entry is low-latency. A packet is low-latency as long as every entry that it hits is
    /// low-latency.
    pub low_latency: bool,
}

impl FlowEntry {
    /// Returns the flow-mod that adds an equal entry. `low_latency` is the mark in the flow-mod, or `None`
    /// for a flow-mod without one. It can differ from the entry's mark, which may have been learned.
    #[must_use]
    pub fn flow_mod(&self, low_latency: Option<bool>) -> FlowMod {
        FlowMod {
            command: FlowModCommand::Add,
            table: Some(self.table),
            priority: self.priority,
            matching: self.matching.clone(),
            instructions: Instructions::clone(&self.instructions),
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            cookie: self.cookie,
            flags: self.flags,
            low_latency,
            ..FlowMod::default()
        }
    }
}

/// Command of a flow-mod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlowModCommand {
    /// Add an entry. An entry with the same table, match and priority is replaced.
    #[default]
    Add,
    /// Change the instructions of every entry whose match is covered by this match.
    Modify,
    /// Change the instructions of the entry with this match and priority.
    ModifyStrict,
    /// Delete every entry whose match is covered by this match.
    Delete,
    /// Delete the entry with this match and priority.
    DeleteStrict,
}

/// Request to add, modify or delete flow entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// Command of the request.
    pub command: FlowModCommand,
    /// Table to change. `None` means all tables, and only deletes may use it.
    pub table: Option<TableId>,
    /// Priority of the entry, for add and for the strict commands.
    pub priority: u16,
    /// Match of the entry. Non-strict commands select all entries whose match it covers.
    pub matching: Match,
    /// Instructions, for add and modify.
    pub instructions: Instructions,
    /// Idle timeout in seconds, or 0 for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds after the entry was added, or 0 for none.
    pub hard_timeout_s: u16,
    /// For add, the entry's cookie. For other commands, the cookie to compare with under `cookie_mask`.
    pub cookie: u64,
    /// Bits of `cookie` that an entry must share to be modified or deleted. If 0, every entry qualifies.
    pub cookie_mask: u64,
    /// Flags of the entry.
    pub flags: EntryFlags,
    /// For deletes: only entries that output to this port. `None` means no restriction.
    pub out_port: Option<PortNo>,
    /// For deletes: only entries that use this group. `None` means no restriction.
    pub out_group: Option<GroupId>,
    /// Whether the entry is low-latency. If `None`, the cookie decides.
    pub low_latency: Option<bool>,
}

impl FlowMod {
    /// Returns the entry that this flow-mod adds, with ID 0, or `None` for a flow-mod of all tables. `share`
    /// returns a shared copy of the instructions. An entry without a mark in the flow-mod is not low-latency.
    #[must_use]
    pub fn into_entry(self, share: impl FnOnce(Instructions) -> Arc<Instructions>) -> Option<FlowEntry> {
        Some(FlowEntry {
            id: EntryId(0),
            table: self.table?,
            priority: self.priority,
            matching: self.matching,
            instructions: share(self.instructions),
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            cookie: self.cookie,
            flags: self.flags,
            low_latency: self.low_latency.unwrap_or(false),
        })
    }

    /// Returns the real ports that the flow-mod matches or sends to.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let matched = self.matching.get(Field::InPort).map(|condition| PortNo(condition.value as u32));
        let actions = self.instructions.apply.iter().chain(&self.instructions.write);
        let sent = actions.filter_map(|action| match action {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        });
        matched.into_iter().chain(sent).filter(|port| port_no::is_real(*port))
    }
}

/// Priority of entries that ovs-ofctl adds without a given priority.
pub const DEFAULT_PRIORITY: u16 = 0x8000;

impl Default for FlowMod {
    fn default() -> Self {
        Self {
            command: FlowModCommand::Add,
            table: Some(TableId(0)),
            priority: DEFAULT_PRIORITY,
            matching: Match::any(),
            instructions: Instructions::default(),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: 0,
            cookie_mask: 0,
            flags: EntryFlags::default(),
            out_port: None,
            out_group: None,
            low_latency: None,
        }
    }
}
