// SPDX-License-Identifier: Apache-2.0
//! Requests and answers of the control socket.

use super::latency::LaneLatency;
use crate::live_trace::Live;
use config::edit::{MirrorEdit, PortEdit};
use config::packet::PacketForm;
use config::stateless_form::{GatesForm, StatelessForm};
use flow::{PortNo, QueueId, TableId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Asks for the ports and their counters. The answer is [`Ports`].
    Ports,
    /// Asks for the tables that have entries or had lookups. The answer is [`Tables`].
    Tables,
    /// Asks for the counters of all packets. The answer is [`CountersReport`].
    Counters,
    /// Asks for the latencies of frames in the switch. The answer is
    /// [`LatencyBuckets`](super::LatencyBuckets).
    Latencies,
    /// Asks for the learned MAC addresses. The answer is [`Macs`].
    Macs,
    /// Asks for all flows. The answer has parts of type [`FlowPart`].
    Flows {
        /// Form in which the flows are sent.
        form: FlowForm,
    },
    /// Asks for the controllers and their connections. The answer is [`ControllersReport`].
    Controllers,
    /// Asks for the state of the fast-forwarding path. The answer is [`Ffp`].
    Ffp,
    /// Asks for the state of the express path. The answer is [`ExpressReport`].
    Express,
    /// Asks for the state of the port caches. The answer is [`CacheReport`].
    Cache,
    /// Asks for the state of the device, if one forwards. The answer is [`DeviceReport`].
    Device,
    /// Asks for the condition of the store, if the datapath has one. The answer is [`StoreReport`].
    Store,
    /// Asks for the mirrors and their counters. The answer is [`MirrorsReport`](super::MirrorsReport).
    Mirrors,
    /// Asks for the state of the stateless forwarder. The answer is [`StatelessReport`].
    Stateless,
    /// Sets or removes the gates of Tag-and-Forward. The answer is [`Changes`] with zeros, sent when the
    /// change is active on all workers.
    Gates {
        /// New gates, or `null` to remove the gates.
        #[serde(deserialize_with = "Option::deserialize")]
        gates: Option<GatesForm>,
        /// New list of trusted ports, which lead to other switches. `None` keeps the current list.
        trusted: Option<Vec<i64>>,
    },
    /// Sends a piece of a flow file. After the last piece, the whole file is loaded in one operation. The
    /// answer to the last piece is [`Changes`]; earlier pieces get no answer.
    Load {
        /// Text of the piece. A piece may end in the middle of a line.
        text: String,
        /// Whether this is the last piece.
        last: bool,
    },
    /// Traces a given packet. The answer is [`config::trace::TraceForm`].
    Trace {
        /// Packet to trace.
        packet: PacketForm,
    },
    /// Traces real packets as the workers forward them. The answer has parts of type
    /// [`crate::live_trace::Real`] and ends with [`crate::live_trace::LiveSummary`].
    TraceLive {
        /// Filter and limits of the trace.
        live: Live,
    },
    /// Asks for the levels and the form of the log, which belongs to the process. The answer is
    /// [`LogReport`](crate::log::LogReport).
    Log,
    /// Sets the level of a module of the log. The answer is [`LogReport`](crate::log::LogReport).
    SetLog {
        /// Name of the module.
        module: String,
        /// Level: `off`, `error`, `warn`, `info`, `debug` or `trace`.
        level: String,
    },
    /// Deletes all flows and restores the default flow. The answer is [`Changes`].
    Clear,
    /// Reads the configuration file again and applies what changed. The answer is
    /// [`ReloadReport`](super::ReloadReport), sent when all changes are active.
    Reload,
    /// Hands over to a new program. The answer is that of `Reload`; afterwards, the connection ends.
    Upgrade {
        /// Absolute path of the program. `None` stands for the path of the running one.
        program: Option<PathBuf>,
    },
    /// Adds, removes or changes a port. The answer is that of `Reload`.
    Port {
        /// The change.
        edit: PortEdit,
    },
    /// Adds or removes a mirror. The answer is that of `Reload`.
    Mirror {
        /// The change.
        edit: MirrorEdit,
    },
    /// Asks for the configuration file. The answer is [`ConfigurationFile`].
    Configuration,
}

impl ControlRequest {
    /// Returns the names of the request's members other than `id` and `request`.
    pub(super) fn members(&self) -> &'static [&'static str] {
        match self {
            Self::Flows { .. } => &["form"],
            Self::Load { .. } => &["text", "last"],
            Self::Trace { .. } => &["packet"],
            Self::TraceLive { .. } => &["live"],
            Self::Gates { .. } => &["gates", "trusted"],
            Self::Port { .. } | Self::Mirror { .. } => &["edit"],
            Self::Upgrade { .. } => &["program"],
            Self::SetLog { .. } => &["module", "level"],
            Self::Ports
            | Self::Tables
            | Self::Counters
            | Self::Latencies
            | Self::Macs
            | Self::Controllers
            | Self::Ffp
            | Self::Express
            | Self::Cache
            | Self::Device
            | Self::Store
            | Self::Mirrors
            | Self::Stateless
            | Self::Log
            | Self::Clear
            | Self::Reload
            | Self::Configuration => &[],
        }
    }
}

/// The configuration file of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationFile {
    /// Absolute path of the file.
    pub path: String,
    /// ID of the datapath in the file.
    pub datapath: u64,
}

/// Form in which flows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowForm {
    /// Lines in the format of `ovs-ofctl dump-flows`.
    Lines,
    /// Lines of a flow file: meters, groups, then flows.
    File,
    /// JSON objects.
    Rows,
}

/// All ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// Ports in order of their numbers.
    pub ports: Vec<PortRow>,
}

/// Port with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRow {
    /// Port number.
    pub number: u32,
    /// Port name.
    pub name: String,
    /// Whether the link is up and the port is enabled and not blocked.
    pub up: bool,
    /// Whether the link is up.
    pub link_up: bool,
    /// MAC address.
    pub mac: String,
    /// Link speed in Mbit/s, or 0 if unknown.
    pub speed_mbps: u32,
    /// Number of packets received.
    pub rx_packets: u64,
    /// Number of bytes received.
    pub rx_bytes: u64,
    /// Number of packets lost on receive.
    pub rx_dropped: u64,
    /// Number of packets sent.
    pub tx_packets: u64,
    /// Number of bytes sent.
    pub tx_bytes: u64,
    /// Number of packets that were given to the port but not sent.
    pub tx_dropped: u64,
    /// Numbers of lost packets, by the driver's drop reason.
    pub dropped: BTreeMap<String, u64>,
    /// VLANs that NORMAL carries on the port, or `null` for all VLANs with their tags.
    pub vlans: Option<String>,
    /// Whether a storm limit has closed the port.
    pub blocked: bool,
    /// Number of MAC addresses that are learned at the port.
    pub macs: u32,
    /// Number of reports of packets whose source was not learned because of the port's limit. A port reports
    /// at most one per second.
    pub macs_refused: u64,
    /// Egress queues in order of their numbers.
    pub queues: Vec<QueueRow>,
}

/// Egress queue of a port with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Queue number.
    pub queue: QueueId,
    /// Guaranteed rate in kbit/s, or `null` for none.
    pub min_rate_kbps: Option<u32>,
    /// Maximum rate in kbit/s, or `null` for unlimited.
    pub max_rate_kbps: Option<u32>,
    /// Priority of the queue.
    pub priority: u8,
    /// Capacity of the queue in packets per lane.
    pub limit_frames: u16,
    /// Number of packets that wait in the queue.
    pub waiting: usize,
    /// Number of packets that left the queue.
    pub tx_packets: u64,
    /// Number of bytes that left the queue.
    pub tx_bytes: u64,
    /// Number of packets dropped because the queue was full.
    pub dropped: u64,
}

/// All tables in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// Table 0, and the tables that have entries or had lookups.
    pub tables: Vec<TableRow>,
}

/// Table with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// Table number.
    pub table: TableId,
    /// Number of entries.
    pub entries: usize,
    /// Number of packets looked up.
    pub lookups: u64,
    /// Number of packets that hit an entry.
    pub matches: u64,
    /// Name of the lookup engine.
    pub engine: String,
    /// Size of the compiled rules in bytes.
    pub compiled_bytes: usize,
}

/// State of the device that forwards the packets of a datapath.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// `silent` (it does not answer), `wrong size`, `reading` (its entries are read) or `ready`.
    pub state: String,
    /// Error of the system since the last datagram of the device, such as a missing route.
    #[serde(default)]
    pub fault: Option<String>,
    /// PPUs of each table.
    pub tables: Vec<u8>,
    /// Entries of each PPU.
    pub entries: u16,
    /// Number of PPUs and entries that the device reports, if it has not the configured size.
    pub wrong_size: Option<(u8, u16)>,
    /// Number of times that the device had other entries than the rules and was rewritten.
    pub rewrites: u64,
    /// Requests that wait for an answer of the device.
    pub pending: usize,
    /// Counters of the session with the device.
    pub session: BTreeMap<String, u64>,
    /// Counters of the device, as of the last half a second.
    pub counters: BTreeMap<String, u64>,
}

/// State of the fast-forwarding path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ffp {
    /// Capacity of each LUT in records, per worker. If 0, the fast-forwarding path is off.
    pub lut_entries: usize,
    /// Consistency mode of records while rules change: `auto`, `eager`, `lazy` or `generation`.
    pub consistency: String,
    /// Number of packets received.
    pub received: u64,
    /// Number of packets that left by the fast-forwarding path alone.
    pub fast: u64,
    /// Tables on the fast-forwarding path.
    pub tables: Vec<FastTable>,
}

/// State of the express path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpressReport {
    /// Whether the express path is on.
    pub enabled: bool,
    /// Plan of the keys, which also exists while the express path is off.
    pub plan: PlanForm,
    /// Records and counters of each worker.
    pub workers: Vec<ExpressWorker>,
    /// Sums over the workers.
    pub sum: ExpressCounts,
}

/// Plan of the keys by which path records are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanForm {
    /// Number of the plan, which grows with each new plan.
    pub version: u64,
    /// Number of the previous plan, while its records are still used.
    pub previous: Option<u64>,
    /// Tables that packets can reach.
    pub tables: Vec<TableId>,
    /// Bits that the rules of these tables examine, by field.
    pub examined: Vec<ExaminedField>,
    /// Total number of examined bits.
    pub examined_bits: u32,
    /// Length of a key in bytes, or an upper bound if the keys are too long for a record.
    pub key_bytes: usize,
    /// Size of the records that hold the keys, in cache lines: `one line` or `two lines`. The value is `too
    /// long` if no record can hold a key.
    pub record: String,
}

/// A field in which rules examine bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedField {
    /// Name of the field in flow syntax.
    pub field: String,
    /// Examined bits in hexadecimal.
    pub mask: String,
    /// Number of examined bits.
    pub bits: u32,
    /// Whether all bits of the field are examined.
    pub whole: bool,
}

/// Path records of one worker, and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpressWorker {
    /// Number of the worker.
    pub worker: usize,
    /// Whether only a sample of the packets is looked up now, because hardly any packet has a record.
    pub bypassed_now: bool,
    /// Records and counters.
    #[serde(flatten)]
    pub counts: ExpressCounts,
}

/// Records and counters of the express path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpressCounts {
    /// Records in use. Some may be outdated.
    pub records: u64,
    /// Capacity in records; 0 if the express path is off or the keys are too long.
    pub room: u64,
    /// Memory of the records in bytes, without the records of a previous plan.
    pub bytes: u64,
    /// Packets that were forwarded by a record.
    pub hits: u64,
    /// Packets without a record, or with an outdated record.
    pub misses: u64,
    /// Packets that were not looked up because hardly any packet had a record.
    pub bypassed: u64,
    /// Records created for new keys.
    pub learned: u64,
    /// Outdated records that were updated.
    pub renewed: u64,
    /// Outdated records that packets hit, and that were then compared with the rule changes since their
    /// creation.
    pub verified: u64,
    /// Outdated records that were still correct, because no rule change affected them.
    pub upheld: u64,
    /// Records whose paths were copied from records of an earlier plan.
    pub inherited: u64,
    /// Records displaced by a record of another key.
    pub displaced: u64,
    /// Keys that got no record because no place was free.
    pub refused: u64,
}

impl ExpressCounts {
    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.room += other.room;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.bypassed += other.bypassed;
        self.learned += other.learned;
        self.renewed += other.renewed;
        self.verified += other.verified;
        self.upheld += other.upheld;
        self.inherited += other.inherited;
        self.displaced += other.displaced;
        self.refused += other.refused;
    }

    /// Returns the number of packets that reached the express path: hits, misses and bypassed packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.hits + self.misses + self.bypassed
    }
}

/// State of the port caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Mode: `off`, `nonblocking` or `blocking`.
    pub mode: String,
    /// What answers searches: `inline`, `worker` or `lab`. `none` if the mode is `off`.
    pub searcher: String,
    /// Maximum number of pending flows per port, or 0 if the mode is `off`.
    pub entries: u64,
    /// Maximum number of waiting packets per port, apart from the first packet of each flow.
    pub queue: u64,
    /// Maximum number of path records and pending flows per port, or 0 if they are not limited.
    pub records: u64,
    /// Maximum number of bytes of all waiting packets per port.
    pub bytes: u64,
    /// Counters of each worker and port.
    pub ports: Vec<CachePort>,
    /// Sums over the workers and ports.
    pub sum: CacheCounts,
}

/// Port cache of one port at one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePort {
    /// Number of the worker.
    pub worker: usize,
    /// Port number.
    pub port: PortNo,
    /// Counters.
    #[serde(flatten)]
    pub counts: CacheCounts,
}

/// Counters of a port cache. `packets` equals `hits` + `new` + `merged` + `passed` + `uncached` + `dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Flows whose search is in progress, or whose packets are being released.
    pub pending: u64,
    /// Flows that cannot have a path record, and whose packets are not queued for now.
    pub negative: u64,
    /// Waiting packets, apart from the first packet of each flow.
    pub waiting: u64,
    /// Bytes of all waiting packets.
    pub waiting_bytes: u64,
    /// Packets that reached the port cache.
    pub packets: u64,
    /// Packets with a path record.
    pub hits: u64,
    /// Packets that started a search.
    pub new: u64,
    /// Packets that joined the queue of their flow.
    pub merged: u64,
    /// Packets of flows that cannot have a path record.
    pub passed: u64,
    /// Packets that were not queued because their port has too many pending flows, or no memory.
    pub uncached: u64,
    /// Packets that were dropped because there was no space for them.
    pub dropped: u64,
    /// Flows that were released without an answer because there was no space for a packet.
    pub forced: u64,
    /// Searches that were repeated because no answer came in time.
    pub retried: u64,
    /// Packets that were dropped because no answer came in time.
    pub timed_out: u64,
    /// Answers that came too late.
    pub stale: u64,
    /// Searches that were sent to the search worker.
    pub sent: u64,
    /// Searches that the search worker answered in time.
    pub answered: u64,
    /// Answers among them that were found under other rules.
    pub outdated: u64,
    /// Searches that ended without the search worker.
    pub fallen_back: u64,
    /// Packets that left after they had waited.
    pub released: u64,
    /// Path records that were removed because their port had too many.
    pub evicted: u64,
    /// Flows about which the controller was asked.
    pub asked: u64,
    /// Packets that returned to the queue of their flow because the controller had been asked already.
    pub returned: u64,
    /// Packets about which the controller was asked although their port had no space for another flow.
    pub unquenched: u64,
    /// Questions that got no answer of the controller in time.
    pub unanswered: u64,
}

impl CacheCounts {
    /// Adds the counts of another worker or port.
    pub fn add(&mut self, other: &Self) {
        self.pending += other.pending;
        self.negative += other.negative;
        self.waiting += other.waiting;
        self.waiting_bytes += other.waiting_bytes;
        self.packets += other.packets;
        self.hits += other.hits;
        self.new += other.new;
        self.merged += other.merged;
        self.passed += other.passed;
        self.uncached += other.uncached;
        self.dropped += other.dropped;
        self.forced += other.forced;
        self.retried += other.retried;
        self.timed_out += other.timed_out;
        self.stale += other.stale;
        self.sent += other.sent;
        self.answered += other.answered;
        self.outdated += other.outdated;
        self.fallen_back += other.fallen_back;
        self.released += other.released;
        self.evicted += other.evicted;
        self.asked += other.asked;
        self.returned += other.returned;
        self.unquenched += other.unquenched;
        self.unanswered += other.unanswered;
    }
}

/// Condition of the store that keeps the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReport {
    /// Folder of the store.
    pub path: String,
    /// `complete`, `behind` (changes wait for the disk) or `failing` (the disk refuses changes).
    pub state: String,
    /// Why the store is failing, if it is.
    pub trouble: Option<String>,
    /// Number of the last change.
    pub recorded: u64,
    /// Number of the last change that a restart would restore.
    pub kept: u64,
    /// Number of values that wait to be written.
    pub queued: u64,
    /// Bytes of the logs since the last snapshot.
    pub log_bytes: u64,
    /// Bytes of the last snapshot of this process.
    pub snapshot_bytes: u64,
    /// Number of snapshots of this process.
    pub snapshots: u64,
    /// Number of changes that only a later snapshot can include.
    pub skipped: u64,
    /// Number of values that the format cannot represent, and that a restart loses.
    pub left_out: u64,
}

/// State of the stateless forwarder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatelessReport {
    /// Settings, or `null` if there is no stateless forwarder.
    pub lane: Option<StatelessForm>,
    /// Number of packets received.
    pub received: u64,
    /// Number of packets that the stateless forwarder sent or dropped.
    pub taken: u64,
    /// Number of dropped packets for each drop reason of tagged packets, including reasons without drops.
    pub dropped: BTreeMap<String, u64>,
}

/// State of a table on the fast-forwarding path. Counts are sums over all workers, and 0 if the path has no
/// LUT for the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastTable {
    /// Table number.
    pub table: TableId,
    /// How the fast-forwarding path looks up packets in this table. `lut`: in a LUT. `shared`: in the table
    /// itself. `bypassed`: in the table itself, because measurements showed that the LUT costs more time than
    /// it saves.
    pub way: String,
    /// Number of key bits that a record holds.
    pub key_bits: u32,
    /// Size of the LUTs in bytes.
    pub bytes: usize,
    /// Number of records.
    pub records: u64,
    /// Number of packets that hit a record of a low-latency entry.
    pub hits: u64,
    /// Number of packets that left the fast-forwarding path because they hit a record of a normal entry.
    pub normal_hits: u64,
    /// Number of packets whose key had no record.
    pub misses: u64,
    /// Number of records that were compared with the table before use.
    pub verified: u64,
    /// Number of records that were verified with the list of recent changes, without a lookup in the table.
    pub walked: u64,
    /// Number of records added.
    pub learned: u64,
    /// Number of low-latency records that were replaced by another record.
    pub evicted: u64,
    /// Number of normal records that were replaced by another record.
    pub displaced: u64,
    /// Number of keys that were not added because the LUT was full.
    pub refused: u64,
    /// Number of records removed because rules changed.
    pub cleaned: u64,
    /// Mean time to parse a packet and build its key, in ps. This value and the next two are measured in one
    /// of 1,024 bursts, and are 0 until then.
    pub extract_ps: u64,
    /// Mean time of a lookup in the LUT per packet, in ps.
    pub probe_ps: u64,
    /// Mean time of a lookup in the table per packet, in ps.
    pub lookup_ps: u64,
}

/// Counters of all packets. `received` = `forwarded` + `consumed` + the sum of `dropped` + `held`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountersReport {
    /// Number of packets received from ports.
    pub received: u64,
    /// Number of packets with at least one copy sent to a port.
    pub forwarded: u64,
    /// Number of packets that went to the controller only.
    pub consumed: u64,
    /// Number of received packets that the stateless forwarder sent or dropped.
    pub stateless: u64,
    /// Number of packets waiting in the switch.
    pub held: u64,
    /// Number of times that a low-latency packet waited for earlier packets of its flow.
    pub held_back: u64,
    /// Number of packets without any delivered copy, by drop reason.
    pub dropped: BTreeMap<String, u64>,
    /// Number of copies sent to ports.
    pub copies: u64,
    /// Number of copies dropped while another copy of the same packet was delivered, by drop reason.
    pub copies_dropped: BTreeMap<String, u64>,
    /// Traces of real packets. `recorded`: all traces. `compared`: the traces that were compared with the
    /// rules. `faults`: the compared traces that differ from the rules.
    pub traced: BTreeMap<String, u64>,
    /// Number of messages lost because an OpenFlow controller did not read in time, by kind of message.
    pub controllers_lost: BTreeMap<String, u64>,
    /// Number of lines written to the log of the process.
    pub log_lines_written: u64,
    /// Number of log lines lost, by reason. `log_no_room`: the queue was full. `log_refused`: stderr refused
    /// the line. `log_over_rate`: the limit of lines per second was reached.
    pub log_lines_lost: BTreeMap<String, u64>,
    /// Usage of every limited resource.
    pub limits: Vec<Limit>,
    /// Latencies of frames in the switch, for the lanes `low_latency` and `normal`.
    pub lanes: BTreeMap<String, LaneLatency>,
    /// Number of times that a worker was preempted.
    pub gaps: u64,
    /// Total time for which workers were preempted, in ns.
    pub stolen_ns: u64,
}

/// Usage of a limited resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Owner of the resource: a worker, the queue through which a worker serves a port, an egress queue, or
    /// the LUTs of a table.
    pub of: String,
    /// Name of the resource.
    pub name: String,
    /// Amount in use.
    pub used: u64,
    /// Maximum amount, or `null` for unlimited.
    pub limit: Option<u64>,
}

/// Controllers that the configuration names, and peers that have connected to the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllersReport {
    /// The controllers of the configuration in its order, then peers in the order of their connection.
    pub controllers: Vec<ControllerRow>,
}

/// A controller and its connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerRow {
    /// `openflow` or `pof`.
    pub protocol: String,
    /// Address of the controller.
    pub address: String,
    /// Whether the configuration names the controller, so that the switch connects to it.
    pub configured: bool,
    /// `waiting` (for the next attempt), `connecting`, `handshake` or `connected`.
    pub state: String,
    /// Role of a connected OpenFlow controller: `equal`, `master` or `slave`.
    pub role: Option<String>,
    /// Time of day at which the controller was connected, in seconds since 1970, if it is connected.
    pub since_s: Option<u64>,
    /// Number of attempts and connections that failed or ended, for a controller of the configuration.
    pub failures: u64,
}

/// Learned MAC addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Macs {
    /// MAC addresses in order of VLAN and address.
    pub macs: Vec<MacRow>,
}

/// A learned MAC address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacRow {
    /// VLAN ID, or 0 for no VLAN.
    pub vid: u16,
    /// MAC address.
    pub mac: String,
    /// Port number.
    pub port: PortNo,
    /// Seconds since the last packet with this source, rounded down.
    pub age_s: u64,
}

/// A part of the list of flows, in one of the forms of [`FlowForm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowPart {
    /// Lines without line feeds.
    Lines(Vec<String>),
    /// JSON objects.
    Rows(Vec<FlowRow>),
}

/// A flow as a JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Table number.
    pub table: TableId,
    /// Priority.
    pub priority: u16,
    /// Cookie in hexadecimal.
    pub cookie: String,
    /// Number of packets that hit the flow.
    pub packets: u64,
    /// Number of bytes of these packets.
    pub bytes: u64,
    /// Age of the flow in ms.
    pub duration_ms: u64,
    /// Idle timeout in seconds, or 0 for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds, or 0 for none.
    pub hard_timeout_s: u16,
    /// Whether the entry is low-latency.
    pub low_latency: bool,
    /// Whether the low-latency mark was learned from the flow's packets.
    pub learned: bool,
    /// Match in flow syntax. The empty string matches all packets.
    #[serde(rename = "match")]
    pub matching: String,
    /// Actions and instructions in flow syntax.
    pub actions: String,
}

/// Numbers of entries that a request changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Number of entries added. If an entry replaces another, the new entry counts as added and the replaced
    /// entry as removed.
    pub added: usize,
    /// Number of entries whose instructions changed.
    pub modified: usize,
    /// Number of entries removed.
    pub removed: usize,
}

/// A line of an answer. Exactly one of `part`, `done` and `error` is present.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub id: Option<u64>,
    pub part: Option<serde_json::Value>,
    pub done: Option<serde_json::Value>,
    pub error: Option<String>,
}
