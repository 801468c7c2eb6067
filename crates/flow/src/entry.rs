// SPDX-License-Identifier: Apache-2.0
//! Flow entries and the messages that change them.

use crate::{Action, Field, Instructions, Match, PortNo, port_no};
use std::sync::Arc;

/// Stable number of an entry: the same as long as it lives, reused only when nothing refers to it any more.
pub type EntryId = u32;

/// Flags of a flow-mod (OFPFF_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryFlags {
    /// Report when the entry goes.
    pub send_flow_removed: bool,
    /// Refuse an entry that overlaps another of the same priority.
    pub check_overlap: bool,
    /// Modify and add reset the counters.
    pub reset_counts: bool,
    /// Do not keep a packet count.
    pub no_packet_counts: bool,
    /// Do not keep a byte count.
    pub no_byte_counts: bool,
}

/// An entry of a table. Of several entries that match a packet, the one of highest priority is hit; of these the one
/// that was added first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// Its number.
    pub id: EntryId,
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Which packets it is for.
    pub matching: Match,
    /// What it does. Many entries do the same and share it.
    pub instructions: Arc<Instructions>,
    /// Seconds without a packet after which it goes; 0: never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; 0: never.
    pub hard_timeout_s: u16,
    /// The controller's mark.
    pub cookie: u64,
    /// Its flags.
    pub flags: EntryFlags,
    /// Packets that hit only such entries are low-latency.
    pub low_latency: bool,
}

/// What a flow-mod does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Command {
    /// Add an entry; an identical one (same table, match, priority) is replaced.
    #[default]
    Add,
    /// Change the instructions of all entries that the match covers.
    Modify,
    /// Change the instructions of the entry with this match and priority.
    ModifyStrict,
    /// Delete all entries that the match covers.
    Delete,
    /// Delete the entry with this match and priority.
    DeleteStrict,
}

/// A request to change tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// What to do.
    pub command: Command,
    /// In which table; none means all, for deletes only.
    pub table: Option<u8>,
    /// The entry's priority, for add and the strict commands.
    pub priority: u16,
    /// Its match, or what must cover its match.
    pub matching: Match,
    /// Its instructions, for add and modify.
    pub instructions: Instructions,
    /// Seconds without a packet after which it goes; 0: never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; 0: never.
    pub hard_timeout_s: u16,
    /// Its cookie, for add; the cookie to compare with for the other commands.
    pub cookie: u64,
    /// Bits of `cookie` that entries must have for modify and delete; 0: all qualify.
    pub cookie_mask: u64,
    /// Flags.
    pub flags: EntryFlags,
    /// Deletes only entries with an output to this port; none: any.
    pub out_port: Option<u32>,
    /// Deletes only entries with this group; none: any.
    pub out_group: Option<u32>,
    /// Whether the entry is low-latency; none: the cookie decides.
    pub low_latency: Option<bool>,
}

impl FlowMod {
    /// The ports that it matches or sends to.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let matched = self.matching.get(Field::InPort).map(|condition| condition.value as PortNo);
        let actions = self.instructions.apply.iter().chain(&self.instructions.write);
        let sent = actions.filter_map(|action| match action {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        });
        matched.into_iter().chain(sent).filter(|port| port_no::is_real(*port))
    }
}

/// Priority of ovs-ofctl's entries that name none.
pub const DEFAULT_PRIORITY: u16 = 0x8000;

impl Default for FlowMod {
    fn default() -> Self {
        Self {
            command: Command::Add,
            table: Some(0),
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
