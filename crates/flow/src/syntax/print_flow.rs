// SPDX-License-Identifier: Apache-2.0
//! Prints flow-mods as lines of a flow file, and entries as `ovs-ofctl dump-flows` does.

use crate::entry::DEFAULT_PRIORITY;
use crate::{EntryFlags, FlowEntry, FlowMod, FlowModCommand, Nanos, TableId};
use std::fmt::{self, Display, Formatter, Write as _};

/// Statistics of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryStats {
    /// Time since the entry was added.
    pub duration_ns: Nanos,
    /// Number of packets that hit the entry.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
    /// Number of whole seconds since the entry was last hit, or `None` if unknown.
    pub idle_age_s: Option<u64>,
    /// Whether the low-latency mark was learned.
    pub learned: bool,
}

/// Formats a flow-mod as one line that [`super::parse_flow`] accepts.
#[must_use]
pub fn format_flow(flow: &FlowMod) -> String {
    flow.to_string()
}

/// Formats an entry as one line of `ovs-ofctl dump-flows`. The parser accepts the line as an add and ignores
/// the statistics, which include `low_latency=learned`. `low_latency` is printed if the entry is low-latency
/// by its flag or its cookie.
#[must_use]
pub fn format_entry(entry: &FlowEntry, stats: Option<&EntryStats>) -> String {
    let mut line = format!(" cookie=0x{:x}, ", entry.cookie);
    // Formatting to a string cannot fail.
    let _ = write_entry(&mut line, entry, stats);
    line
}

fn write_entry(line: &mut String, entry: &FlowEntry, stats: Option<&EntryStats>) -> fmt::Result {
    if let Some(stats) = stats {
        let (seconds, millis) =
            (stats.duration_ns / Nanos::SECOND, stats.duration_ns / Nanos::MILLISECOND % 1_000);
        write!(line, "duration={seconds}.{millis:03}s, ")?;
    }
    write!(line, "table={}, ", entry.table)?;
    if let Some(stats) = stats {
        write!(line, "n_packets={}, ", stats.packets)?;
        // As ovs-ofctl prints a count that is not kept.
        match stats.bytes {
            u64::MAX => line.push_str("n_bytes=?, "),
            bytes => write!(line, "n_bytes={bytes}, ")?,
        }
    }
    if entry.idle_timeout_s != 0 {
        write!(line, "idle_timeout={}, ", entry.idle_timeout_s)?;
    }
    if entry.hard_timeout_s != 0 {
        write!(line, "hard_timeout={}, ", entry.hard_timeout_s)?;
    }
    if let Some(age) = stats.and_then(|s| s.idle_age_s) {
        write!(line, "idle_age={age}, ")?;
    }
    for flag in flag_names(entry.flags) {
        write!(line, "{flag} ")?;
    }
    if entry.low_latency {
        let learned = stats.is_some_and(|s| s.learned);
        line.push_str(if learned { "low_latency=learned " } else { "low_latency " });
    }
    let mut separator = "";
    if entry.priority != DEFAULT_PRIORITY {
        write!(line, "priority={}", entry.priority)?;
        separator = ",";
    }
    if !entry.matching.is_any() {
        write!(line, "{separator}{}", entry.matching)?;
    }
    if !line.ends_with(' ') {
        line.push(' ');
    }
    write!(line, "actions={}", entry.instructions)
}

fn flag_names(flags: EntryFlags) -> impl Iterator<Item = &'static str> {
    [
        (flags.send_flow_removed, "send_flow_rem"),
        (flags.check_overlap, "check_overlap"),
        (flags.reset_counts, "reset_counts"),
        (flags.no_packet_counts, "no_packet_counts"),
        (flags.no_byte_counts, "no_byte_counts"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
}

impl Display for FlowModCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Modify => "modify",
            Self::ModifyStrict => "modify_strict",
            Self::Delete => "delete",
            Self::DeleteStrict => "delete_strict",
        })
    }
}

impl Display for FlowMod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let deletes = matches!(self.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        if self.command != FlowModCommand::Add {
            write!(f, "{}", self.command)?;
        }
        let mut separator = if self.command == FlowModCommand::Add { "" } else { " " };
        let mut item = |text: fmt::Arguments<'_>| {
            f.write_str(std::mem::replace(&mut separator, ","))?;
            f.write_fmt(text)
        };
        match (self.command, self.cookie, self.cookie_mask) {
            (FlowModCommand::Add, 0, _) | (_, 0, 0) => {}
            (FlowModCommand::Add, cookie, _) => item(format_args!("cookie=0x{cookie:x}"))?,
            (_, cookie, u64::MAX) => item(format_args!("cookie=0x{cookie:x}/-1"))?,
            (_, cookie, mask) => item(format_args!("cookie=0x{cookie:x}/0x{mask:x}"))?,
        }
        match self.table {
            Some(TableId(0)) if !deletes => {}
            Some(table) => item(format_args!("table={table}"))?,
            None if deletes => {}
            None => item(format_args!("table=255"))?,
        }
        if deletes {
            if let Some(port) = self.out_port {
                item(format_args!("out_port={port}"))?;
            }
            if let Some(group) = self.out_group {
                item(format_args!("out_group={group}"))?;
            }
        } else {
            if self.idle_timeout_s != 0 {
                item(format_args!("idle_timeout={}", self.idle_timeout_s))?;
            }
            if self.hard_timeout_s != 0 {
                item(format_args!("hard_timeout={}", self.hard_timeout_s))?;
            }
            for flag in flag_names(self.flags) {
                item(format_args!("{flag}"))?;
            }
            match self.low_latency {
                Some(true) => item(format_args!("low_latency"))?,
                Some(false) => item(format_args!("low_latency=false"))?,
                None => {}
            }
        }
        if self.priority != DEFAULT_PRIORITY && self.command != FlowModCommand::Delete {
            item(format_args!("priority={}", self.priority))?;
        }
        if !self.matching.is_any() {
            item(format_args!("{}", self.matching))?;
        }
        if deletes {
            return Ok(());
        }
        f.write_str(if separator.is_empty() { "actions=" } else { " actions=" })?;
        write!(f, "{}", self.instructions)
    }
}
