// SPDX-License-Identifier: Apache-2.0
//! Switches and traffic for all parts of the benchmark: a scenario's rules, and its flows by kind.

use flow::PortNo;
use std::error::Error;
use std::net::Ipv6Addr;
use std::sync::Arc;

use fastrand::Rng;
use pipeline::LaneLimits;
use shunt_bench::scenario::{Draw, Flow, Kind, Options, PORTS, Popularity, Scenario};
use shunt_bench::{EXPRESS_RECORDS, LUT_ENTRIES, Sources};
use sim::arrivals::{Class, Load, Marks, Pattern, Switch};
use tables::compile::Maker;

/// Number of repeating normal flows. Packets are drawn from them by Zipf's law.
const REPEATING: usize = 1_000;

/// Number of first-seen normal flows, which repeat too rarely to be learned.
const FIRST_SEEN: usize = 30_000;

/// Number of new low-latency flows that send rarely.
pub const SLOW_FLOWS: usize = 20;

/// Number of low-latency flows that are learned during the measurement: the slow flows, a new flow, and a
/// flow with separate rules.
const OTHERS: usize = SLOW_FLOWS + 2;

/// Limits on the packets queued in a worker: the defaults of the switch.
const LANES: LaneLimits = LaneLimits { normal: 2_048, unknown: 1_024, hold: 256 };

/// Capacity of a port's receive ring in packets, as drivers configure it.
const RING: usize = 1_024;

/// Time from the wire to the ring plus time from the doorbell to the wire, in nanoseconds.
pub const IO_NS: f64 = 2_000.0;

/// Port on which packets return to the worker.
pub const BACK: u32 = PORTS + 2;

/// Names of the classes.
pub const KNOWN: &str = "low-latency, learned";
pub const SINGLE: &str = "low-latency, single-value";
pub const NEW: &str = "low-latency, new";
pub const SLOW: &str = "low-latency, new and slow";
pub const NORMAL: &str = "normal";

/// Kind of normal flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normal {
    /// Repeating flows.
    Repeating,
    /// Flows that are seen for the first time.
    FirstSeen,
}

impl Normal {
    /// All kinds of normal flows.
    pub const ALL: [Self; 2] = [Self::Repeating, Self::FirstSeen];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeating => "repeating normal flows",
            Self::FirstSeen => "first-seen normal flows",
        }
    }
}

/// Rules and packets of a scenario.
pub struct Traffic {
    rules: String,
    /// Text of the rules that match only one low-latency flow, or an empty text.
    added: String,
    low: Arc<[Vec<u8>]>,
    new: Arc<[Vec<u8>]>,
    slow: Arc<[Vec<u8>]>,
    single: Arc<[Vec<u8>]>,
    repeating: Arc<[Vec<u8>]>,
    first_seen: Arc<[Vec<u8>]>,
}

impl Traffic {
    /// Creates traffic with `rules` rules in each of tables 1 and 2. It has `low_flows` low-latency flows
    /// that are learned before the measurement. Their packets follow Zipf's law and have 64 bytes.
    pub fn new(kind: Kind, rules: usize, low_flows: usize) -> Result<Self, Box<dyn Error>> {
        let list = if rules > 1_000 { "acl1_10k" } else { "acl1_1k" };
        let normal_flows = REPEATING + FIRST_SEEN;
        let options = Options { normal_flows, ..Options::new(kind, rules, low_flows + OTHERS) };
        let Scenario { rules, flows } = Scenario::new(&options, &Sources::best(list)?)?;
        let (low, normal) = flows.split_at(low_flows + OTHERS);
        let packets = |flows: &[Flow]| flows.iter().map(|flow| flow.packet.clone()).collect();
        // Only scenario `server` has headers at fixed offsets, and thus a flow with separate rules.
        let (known, others) = low.split_at(low_flows);
        let (single, slow) = others[1..].split_at(1);
        let has_rule = kind == Kind::Server;
        let added = if has_rule { single.iter().map(single_value).collect() } else { String::new() };
        Ok(Self {
            rules,
            added,
            low: packets(known),
            new: packets(&others[..1]),
            slow: packets(slow),
            single: packets(if has_rule { single } else { &[] }),
            repeating: packets(&normal[..REPEATING]),
            first_seen: packets(&normal[REPEATING..]),
        })
    }

    /// Returns a switch with these rules, the path and both lanes, and, if `express`, the express path.
    pub fn ours(&self, express: bool) -> Switch<'_> {
        self.switch(ours(express), None)
    }

    /// Returns a switch with the path and one lane, and, if `express`, the express path.
    pub fn one_lane(&self, express: bool) -> Switch<'_> {
        self.switch(worker::WorkerSetConfig { lanes: LaneLimits::NONE, ..ours(express) }, None)
    }

    /// Returns a switch with one lane and only the express path, a cache for all packets alike.
    pub fn one_cache(&self) -> Switch<'_> {
        self.switch(worker::WorkerSetConfig { express_records: EXPRESS_RECORDS, ..tables() }, None)
    }

    /// Returns a switch without path and lanes. The maker, if given, creates the tables.
    pub fn tables(&self, maker: Option<Maker>) -> Switch<'_> {
        self.switch(tables(), maker)
    }

    fn switch(&self, config: worker::WorkerSetConfig, maker: Option<Maker>) -> Switch<'_> {
        Switch {
            rules: &self.rules,
            added: &self.added,
            stateless: None,
            ports: BACK,
            config,
            marks: Marks::default(),
            maker,
        }
    }

    fn class(name: &str, flows: &Arc<[Vec<u8>]>, rate_pps: f64) -> Class {
        Class {
            name: name.into(),
            port: PortNo(1),
            flows: Arc::clone(flows),
            popularity: Popularity::Zipf(1.0),
            pattern: Pattern::Poisson,
            rate_pps,
            begin_ns: 0.0,
            known: false,
            comes_back: None,
            low_latency: [].into(),
            capture: None,
        }
    }

    /// Returns the known low-latency flows.
    pub fn low(&self, rate_pps: f64) -> Class {
        Class { known: true, ..Self::class(KNOWN, &self.low, rate_pps) }
    }

    /// Returns the flow with separate rules, which begins at `begin_ns`. Only scenario `server` has such a
    /// flow.
    pub fn single(&self, rate_pps: f64, begin_ns: f64) -> Class {
        Class { begin_ns, ..Self::class(SINGLE, &self.single, rate_pps) }
    }

    /// Returns a low-latency flow that begins at `begin_ns`.
    pub fn new_flow(&self, rate_pps: f64, begin_ns: f64) -> Class {
        Class { begin_ns, ..Self::class(NEW, &self.new, rate_pps) }
    }

    /// Returns low-latency flows that begin one after another, each sending at a constant rate.
    pub fn slow_flows(&self, rate_pps: f64, begin_ns: f64) -> Class {
        let (popularity, pattern) = (Popularity::InTurn, Pattern::Constant);
        let rate_pps = rate_pps * SLOW_FLOWS as f64;
        Class { begin_ns, popularity, pattern, ..Self::class(SLOW, &self.slow, rate_pps) }
    }

    /// Returns `count` packets of normal flows in order of arrival.
    pub fn packets(&self, which: Normal, count: usize) -> Vec<&[u8]> {
        let Class { popularity, .. } = self.normal(which, 0.0);
        let flows = match which {
            Normal::Repeating => &self.repeating,
            Normal::FirstSeen => &self.first_seen,
        };
        let (mut draw, mut rng) = (Draw::new(flows.len(), popularity), Rng::with_seed(1));
        (0..count).map(|_| flows[draw.flow(&mut rng)].as_slice()).collect()
    }

    pub fn rules(&self) -> String {
        format!("{}{}", self.rules, self.added)
    }

    /// Returns the normal flows of one kind.
    pub fn normal(&self, which: Normal, rate_pps: f64) -> Class {
        match which {
            Normal::Repeating => Self::class(NORMAL, &self.repeating, rate_pps),
            Normal::FirstSeen => {
                let popularity = Popularity::InTurn;
                Class { popularity, ..Self::class(NORMAL, &self.first_seen, rate_pps) }
            }
        }
    }
}

/// Returns a worker configuration with the fast-forwarding path, both lanes and, if `express`, the express
/// path.
pub fn ours(express: bool) -> worker::WorkerSetConfig {
    let express_records = if express { EXPRESS_RECORDS } else { 0 };
    let base = worker::WorkerSetConfig::default();
    worker::WorkerSetConfig { lut_entries: LUT_ENTRIES, express_records, lanes: LANES, ..base }
}

/// Returns a worker configuration without path and lanes.
pub fn tables() -> worker::WorkerSetConfig {
    worker::WorkerSetConfig { lut_entries: 0, ..worker::WorkerSetConfig::default() }
}

/// Returns the suffix of a case's name.
pub fn suffix(express: bool) -> &'static str {
    if express { ", express path on" } else { "" }
}

/// Returns a load of duration `span_ns`, preceded by a warm-up of a tenth of this duration.
pub fn load(classes: Vec<Class>, span_ns: f64, seed: u64) -> Load {
    Load { classes, ring: RING, io_ns: IO_NS, warm_up_ns: span_ns / 10.0, span_ns, seed }
}

/// Returns rules that examine all bits and match only one flow of scenario `server`.
fn single_value(flow: &Flow) -> String {
    let packet = &flow.packet;
    let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let address = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&packet[at..at + 16]);
        Ipv6Addr::from(bytes)
    };
    let (src, dst, proto) = (address(22), address(38), packet[20]);
    let [a, b, c, d, e, f] = flow.next_hop;
    let (from, to) = (number(54), number(56));
    format!(
        "low_latency,table=1,priority=65000,ipv6,ipv6_src={src}/128,ipv6_dst={dst}/128,nw_proto={proto:#x},\
         slice(l4,0,16)={from:#x},slice(l4,16,16)={to:#x},actions=goto_table:2\n\
         low_latency,table=2,priority=228,ipv6,ipv6_dst={dst}/128,\
         actions=set_field:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}->eth_dst,output:{}\n",
        flow.port
    )
}
