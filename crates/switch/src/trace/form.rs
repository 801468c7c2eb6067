// SPDX-License-Identifier: Apache-2.0
//! A trace as it goes over the control socket, and as `--json` prints it.

use serde::{Deserialize, Serialize};

/// An imagined packet: either fields or bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// Fields in flow syntax, such as `in_port=1,tcp,nw_src=10.0.0.1`; also `nw_ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<String>,
    /// The frame's bytes in hexadecimal, from the destination MAC on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// The port it comes in by; 1 where nothing says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<u32>,
}

/// What would become of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The port it comes in by.
    pub in_port: u32,
    /// The packet in flow syntax.
    pub packet: String,
    /// Its bytes in hexadecimal.
    pub hex: String,
    /// The version of the rules: how many operations made them what they are.
    pub version: u64,
    /// The tables, in the order in which it went through them.
    pub tables: Vec<Table>,
    /// Uses of groups, in order.
    pub groups: Vec<Group>,
    /// Copies sent by ports, in order.
    pub outputs: Vec<Output>,
    /// Copies for the controller, in order.
    pub packet_ins: Vec<PacketIn>,
    /// Whether every entry that it hit is low-latency.
    pub low_latency: bool,
    /// The first table in which it hit a normal entry, or none.
    pub normal_from: Option<u8>,
    /// Whether the fast-forwarding path could carry it all the way.
    pub fast: bool,
    /// Why, or why not, or under which condition.
    pub fast_why: String,
    /// `forwarded`, `consumed` (controller only) or `dropped`.
    pub outcome: String,
    /// The reason's name, if it is dropped.
    pub reason: Option<String>,
    /// What became of it, in a sentence.
    pub why: String,
    /// Copies that were not made beside that, each as `reason: sentence`.
    pub copies_dropped: Vec<String>,
    /// What the switch would learn, and what a trace cannot tell.
    pub notes: Vec<String>,
}

/// A lookup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The table.
    pub table: u8,
    /// The engine that serves it.
    pub engine: String,
    /// Entries in it.
    pub entries: usize,
    /// The index by which the entry was asked for, in a linear table.
    pub index: Option<u32>,
    /// The entry hit.
    pub rule: Option<Rule>,
    /// The packet's values of the fields that the entry matches.
    pub values: Vec<String>,
    /// Entries of higher rank that failed by the least.
    pub near: Vec<Near>,
    /// Entries of higher rank that were looked at for these.
    pub looked_at: usize,
    /// What changed between this lookup and the next, as `field: before -> after`.
    pub changes: Vec<String>,
    /// Metadata register as it comes to the table, in hexadecimal.
    pub metadata: String,
    /// How the fast-forwarding path passes the table: `lut`, `shared`, or not at all: `closed`.
    pub way: String,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its cookie, in hexadecimal.
    pub cookie: String,
    /// Its priority.
    pub priority: u16,
    /// Whether it is low-latency.
    pub low_latency: bool,
    /// Its match in flow syntax; empty: all packets.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its actions and instructions in flow syntax.
    pub actions: String,
}

impl Rule {
    /// The entry on a line.
    #[must_use]
    pub fn line(&self) -> String {
        let low_latency = if self.low_latency { ",low_latency" } else { "" };
        let comma = if self.matching.is_empty() { "" } else { "," };
        format!(
            "cookie={}, priority={}{low_latency}{comma}{} actions={}",
            self.cookie, self.priority, self.matching, self.actions
        )
    }
}

/// An entry that was nearly hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Near {
    /// The entry.
    pub rule: Rule,
    /// What excluded it, each as `wants ..., the packet has ...`.
    pub excluded: Vec<String>,
}

/// A use of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its number.
    pub group: u32,
    /// Its type.
    pub kind: String,
    /// The buckets used, by their places from 0.
    pub buckets: Vec<usize>,
}

/// A copy sent by a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The port's number.
    pub port: u32,
    /// Its name.
    pub name: String,
    /// The egress queue.
    pub queue: u32,
    /// What is different from the packet that came in.
    pub changes: Vec<String>,
    /// Its bytes in hexadecimal.
    pub hex: String,
}

/// A copy for the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketIn {
    /// The table of the entry that sent it.
    pub table: u8,
    /// `no_match`, `action` or `invalid_ttl`.
    pub reason: String,
    /// Bytes that go to the controller.
    pub bytes: usize,
}
