// SPDX-License-Identifier: Apache-2.0
//! Serialized form of traces, for the control socket and for the output of `--json`.

use flow::{GroupId, PortNo, QueueId, RuleVersion, TableId};
use serde::{Deserialize, Serialize};

/// Trace of a packet: its path through the tables and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceForm {
    /// Ingress port.
    pub in_port: PortNo,
    /// Packet in flow syntax.
    pub packet: String,
    /// Bytes of the packet in hexadecimal.
    pub hex: String,
    /// Version of the rules: the number of operations so far.
    pub version: RuleVersion,
    /// Lookups in order.
    pub tables: Vec<TableForm>,
    /// Groups used, in order.
    pub groups: Vec<GroupForm>,
    /// Copies sent to ports, in order.
    pub outputs: Vec<Output>,
    /// Copies sent to the controller, in order.
    pub packet_ins: Vec<PacketInForm>,
    /// Whether every entry hit is low-latency.
    pub low_latency: bool,
    /// First table with a normal entry, if the packet hit one.
    pub normal_from: Option<TableId>,
    /// Whether the fast-forwarding path alone can forward the packet.
    pub fast: bool,
    /// Sentence that explains `fast`.
    pub fast_why: String,
    /// Whether a path record of the entries in `tables` can forward the packet.
    pub express: bool,
    /// Sentence that explains `express`.
    pub express_why: String,
    /// Whether the packet waits in the port cache while its flow has no path record.
    pub port_cache: bool,
    /// Sentence that explains `port_cache`.
    pub port_cache_why: String,
    /// Outcome: `forwarded`, `consumed` (controller only) or `dropped`.
    pub outcome: String,
    /// Name of the drop reason, if the packet is dropped.
    pub reason: Option<String>,
    /// Sentence that explains the outcome.
    pub why: String,
    /// Further copies that were dropped, each as `reason: sentence`.
    pub copies_dropped: Vec<String>,
    /// Notes on what the switch would learn, and on what a trace cannot determine.
    pub notes: Vec<String>,
}

/// A lookup in a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableForm {
    /// Table number.
    pub table: TableId,
    /// Name of the lookup engine.
    pub engine: String,
    /// Number of entries.
    pub entries: usize,
    /// Index of the entry, if the table is linear.
    pub index: Option<u32>,
    /// Entry hit.
    pub rule: Option<Rule>,
    /// Values of the packet in the fields that the entry matches.
    pub values: Vec<String>,
    /// Near misses: entries of higher priority that the packet almost matched.
    pub near: Vec<NearMissForm>,
    /// Number of entries of higher priority that were examined to find near misses.
    pub looked_at: usize,
    /// Changes between this lookup and the next, each as `field: before -> after`.
    pub changes: Vec<String>,
    /// Metadata in hexadecimal, before the lookup.
    pub metadata: String,
    /// Cache mode of the table on the fast-forwarding path: `lut`, `shared`, or `closed` if the path excludes
    /// the table.
    pub way: String,
}

/// Flow entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Cookie in hexadecimal.
    pub cookie: String,
    /// Priority.
    pub priority: u16,
    /// Whether the entry is low-latency.
    pub low_latency: bool,
    /// Match in flow syntax. An empty string matches all packets.
    #[serde(rename = "match")]
    pub matching: String,
    /// Actions and instructions in flow syntax.
    pub actions: String,
}

impl Rule {
    /// Formats the entry as one line.
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

/// Entry that the packet almost matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMissForm {
    /// The entry.
    pub rule: Rule,
    /// Conditions that the packet failed, each as `wants ..., the packet has ...`.
    pub excluded: Vec<String>,
}

/// Use of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupForm {
    /// Group ID.
    pub group: GroupId,
    /// Type of the group.
    pub kind: String,
    /// Indices of the buckets used, from 0.
    pub buckets: Vec<usize>,
}

/// Copy sent to a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Port number.
    pub port: PortNo,
    /// Port name.
    pub name: String,
    /// Egress queue.
    pub queue: QueueId,
    /// Differences from the received packet.
    pub changes: Vec<String>,
    /// Bytes in hexadecimal.
    pub hex: String,
}

/// Copy sent to the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketInForm {
    /// Table of the entry that sent the copy.
    pub table: TableId,
    /// Reason: `no_match`, `action` or `invalid_ttl`.
    pub reason: String,
    /// Number of bytes sent to the controller.
    pub bytes: usize,
}
