// SPDX-License-Identifier: Apache-2.0
//! What goes over the control socket.

use super::latency::Lane;
use crate::lane_form::{GatesForm, LaneForm};
use crate::trace::{Live, Packet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Ports with their counters; answered by [`Ports`].
    Ports,
    /// Tables that were used; answered by [`Tables`].
    Tables,
    /// Counters of all packets; answered by [`Counters`].
    Counters,
    /// How long frames were in the switch; answered by [`Latencies`](super::Latencies).
    Latencies,
    /// Learned MACs; answered by [`Macs`].
    Macs,
    /// All flows; answered by parts of [`FlowPart`].
    Flows {
        /// In which form.
        form: FlowForm,
    },
    /// The fast-forwarding path; answered by [`Ffp`].
    Ffp,
    /// Port caches. Not in this build.
    Cache,
    /// The stateless lane; answered by [`Stateless`].
    Stateless,
    /// Sets the gates of Tag-and-Forward, or that there are none; answered by [`Changes`] of nothing when they are in force.
    Gates {
        /// The gates; null: none.
        #[serde(deserialize_with = "Option::deserialize")]
        gates: Option<GatesForm>,
        /// Ports that lead to other switches from now on; none: those that do.
        trusted: Option<Vec<i64>>,
    },
    /// A piece of a flow file. The whole comes into force with the last piece, in one operation, and is then answered
    /// by [`Changes`]; earlier pieces are not answered.
    Load {
        /// The text, which may end anywhere.
        text: String,
        /// Whether this is the last piece.
        last: bool,
    },
    /// What would become of a packet; answered by [`crate::trace::Trace`].
    Trace {
        /// The packet.
        packet: Packet,
    },
    /// Real packets, as workers forward them; answered by parts of [`crate::trace::Real`], at last by
    /// [`crate::trace::Summary`].
    TraceLive {
        /// Which.
        live: Live,
    },
    /// Deletes all flows and puts the default ones back; answered by [`Changes`].
    Clear,
}

impl Request {
    /// Names of its members beside `request`.
    pub(super) fn members(&self) -> &'static [&'static str] {
        match self {
            Self::Flows { .. } => &["form"],
            Self::Load { .. } => &["text", "last"],
            Self::Trace { .. } => &["packet"],
            Self::TraceLive { .. } => &["live"],
            Self::Gates { .. } => &["gates", "trusted"],
            Self::Ports
            | Self::Tables
            | Self::Counters
            | Self::Latencies
            | Self::Macs
            | Self::Ffp
            | Self::Cache
            | Self::Stateless
            | Self::Clear => &[],
        }
    }
}

/// Forms of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowForm {
    /// Lines as of `ovs-ofctl dump-flows`.
    Lines,
    /// Lines of a flow file: meters, groups, flows.
    File,
    /// Objects.
    Rows,
}

/// The ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// By number.
    pub ports: Vec<Port>,
}

/// A port with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether packets can pass.
    pub up: bool,
    /// Its MAC address.
    pub mac: String,
    /// Its speed; 0: unknown.
    pub speed_mbps: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets lost on the way in.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets given to the port and not sent.
    pub tx_dropped: u64,
    /// Losses by the driver's names for them.
    pub dropped: BTreeMap<String, u64>,
    /// Its egress queues, by number.
    pub queues: Vec<Queue>,
}

/// An egress queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its number.
    pub queue: u32,
    /// Its guaranteed rate; null: none.
    pub min_rate_kbps: Option<u32>,
    /// Its greatest rate; null: as much as there is.
    pub max_rate_kbps: Option<u32>,
    /// Its priority.
    pub priority: u8,
    /// Packets of each lane that may wait in it.
    pub limit_frames: u16,
    /// Packets that wait in it.
    pub waiting: usize,
    /// Packets that left it.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets for which it had no room.
    pub dropped: u64,
}

/// The tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// Table 0, and those that have entries or were looked up.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its number.
    pub table: u8,
    /// Entries in it.
    pub entries: usize,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
    /// The engine that serves it.
    pub engine: String,
    /// Bytes of its compiled rules.
    pub compiled_bytes: usize,
}

/// The fast-forwarding path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ffp {
    /// Records that each LUT has room for, in each worker; 0: the path is off.
    pub lut_entries: usize,
    /// How records are kept right while rules change: `auto`, `eager`, `lazy` or `generation`.
    pub consistency: String,
    /// Packets received.
    pub received: u64,
    /// Of them, those that went all the way over the path.
    pub fast: u64,
    /// The tables that the path passes.
    pub tables: Vec<FastTable>,
}

/// The stateless lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stateless {
    /// How it is set; none: there is no lane.
    pub lane: Option<LaneForm>,
    /// Packets received.
    pub received: u64,
    /// Of them, those that the lane sent or dropped.
    pub taken: u64,
    /// Packets dropped for reasons that only tagged packets meet, by reason; zeros included.
    pub dropped: BTreeMap<String, u64>,
}

/// How the fast-forwarding path passes a table. Figures are sums over the workers; all are 0 where the path goes by the
/// table itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastTable {
    /// Its number.
    pub table: u8,
    /// `lut`; `shared`: by the table itself; `bypassed`: the same, because a LUT was measured to cost more than it saves.
    pub way: String,
    /// Bits of a value that a record holds.
    pub key_bits: u32,
    /// Bytes of the LUTs.
    pub bytes: usize,
    /// Records there are.
    pub records: u64,
    /// Packets that a low-latency record carried on.
    pub hits: u64,
    /// Packets that left the path by a record of a normal entry.
    pub normal_hits: u64,
    /// Packets whose value had no record.
    pub misses: u64,
    /// Records held against the table before they were used.
    pub verified: u64,
    /// Of these, such that the list of recent changes was enough for.
    pub walked: u64,
    /// Records made.
    pub learned: u64,
    /// Low-latency records that lost their place to another value.
    pub evicted: u64,
    /// Normal records that did.
    pub displaced: u64,
    /// Values for which there was no room.
    pub refused: u64,
    /// Records taken away because rules changed.
    pub cleaned: u64,
    /// Picoseconds that finding headers and building a key takes, a packet; this and the next two are means over
    /// one burst of 1,024. 0: not measured.
    pub extract_ps: u64,
    /// Picoseconds that looking a packet up in the LUT takes.
    pub probe_ps: u64,
    /// Picoseconds that looking a packet up in the table takes.
    pub lookup_ps: u64,
}

/// Counters of all packets: received = forwarded + consumed + the sum of dropped + held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets taken from ports.
    pub received: u64,
    /// Packets of which at least one copy went to a port.
    pub forwarded: u64,
    /// Packets that went to the controller only.
    pub consumed: u64,
    /// Of the received: packets that the stateless lane sent or dropped.
    pub stateless: u64,
    /// Packets waiting in the switch.
    pub held: u64,
    /// Times that a low-latency packet was held back for earlier ones of its flow.
    pub held_back: u64,
    /// Packets of which no copy went anywhere, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Copies given to ports.
    pub copies: u64,
    /// Copies that failed while the packet as a whole did not, by reason.
    pub copies_dropped: BTreeMap<String, u64>,
    /// Traces of real packets: `recorded`, of these `compared` with the rules, of these `faults`.
    pub traced: BTreeMap<String, u64>,
    /// Messages that OpenFlow controllers did not get because they did not read, by kind.
    pub controllers_lost: BTreeMap<String, u64>,
    /// Lines of the process's log that were written.
    pub log_lines_written: u64,
    /// Lines lost because of `log_no_room` in its queue, because stderr refused them (`log_refused`), or because there
    /// were too many in a second (`log_over_rate`).
    pub log_lines_lost: BTreeMap<String, u64>,
    /// What is in use of everything that has a limit.
    pub limits: Vec<Limit>,
    /// How long frames were in the switch, by lane: `low_latency`, `normal`.
    pub lanes: BTreeMap<String, Lane>,
    /// Times that something else had a worker's core.
    pub gaps: u64,
    /// How long that was, ns.
    pub stolen_ns: u64,
}

/// Something that is limited, and what is in use of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Whose it is: a worker, its queue of a port, the LUTs of a table.
    pub of: String,
    /// What is limited.
    pub name: String,
    /// In use.
    pub used: u64,
    /// The most of it; null: as much as there is.
    pub limit: Option<u64>,
}

/// Learned MACs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Macs {
    /// By VLAN and address.
    pub macs: Vec<Mac>,
}

/// A learned MAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mac {
    /// VLAN ID; 0: no VLAN.
    pub vid: u16,
    /// The address.
    pub mac: String,
    /// The port's number.
    pub port: u32,
    /// Whole seconds since it was seen there.
    pub age_s: u64,
}

/// A part of all flows, in one of the forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowPart {
    /// Lines without line ends.
    Lines(Vec<String>),
    /// Objects.
    Rows(Vec<FlowRow>),
}

/// A flow as an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its cookie, in hexadecimal.
    pub cookie: String,
    /// Packets that hit it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it has lived, in milliseconds.
    pub duration_ms: u64,
    /// Seconds without a packet after which it goes; 0: never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; 0: never.
    pub hard_timeout_s: u16,
    /// Whether its packets are low-latency.
    pub low_latency: bool,
    /// Whether that was learned from them.
    pub learned: bool,
    /// Its match in flow syntax; empty: all packets.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its actions and instructions in flow syntax.
    pub actions: String,
}

/// What a request changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Entries added; one that replaced another counts here, the other as removed.
    pub added: usize,
    /// Entries whose instructions changed.
    pub modified: usize,
    /// Entries removed.
    pub removed: usize,
}

/// One line of an answer. Exactly one of `part`, `done` and `error` is there.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub id: Option<u64>,
    pub part: Option<serde_json::Value>,
    pub done: Option<serde_json::Value>,
    pub error: Option<String>,
}
