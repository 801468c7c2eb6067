// SPDX-License-Identifier: Apache-2.0
//! Structure of the scenario file as serde reads it.
//!
//! Numbers are read as `i64`, so that this crate can report values out of range.

use crate::costs::CostsSection;
use crate::network::file::NetworkSection;
use config::file::{
    ExpressSection, FfpSection, LanesSection, LowLatencySection, PortCacheSection, one_or_more,
};
use config::stateless_form::StatelessForm;
use config::text::{FORWARDING, Grammar, Key, NUMBER, STATELESS, STRING, TABLES};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioFile {
    pub seed: Option<i64>,
    pub warm_up: Option<String>,
    pub duration: Option<String>,
    pub packets: Option<i64>,
    pub ring: Option<i64>,
    pub io: Option<String>,
    pub costs: Option<CostsSection>,
    pub load: Option<LoadSection>,
    pub network: Option<NetworkSection>,
    pub datapath: Vec<SwitchSection>,
    pub traffic: Vec<TrafficSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSection {
    pub rate_pps: Option<f64>,
    pub factor: Option<f64>,
}

/// Settings of a switch: the forwarding keys of the daemon's configuration, and the switch's flows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSection {
    pub name: Option<String>,
    pub id: Option<i64>,
    pub flows: Option<String>,
    pub rules: Option<String>,
    pub fill: Option<i64>,
    pub push: Option<String>,
    pub stateless: Option<StatelessForm>,
    pub low_latency: LowLatencySection,
    pub ffp: FfpSection,
    pub express: ExpressSection,
    pub lanes: LanesSection,
    pub port_cache: PortCacheSection,
}

impl SwitchSection {
    /// Returns the keys that a network does not accept, each with whether the file has it.
    pub fn unused_in_networks(&self) -> [(&'static str, bool); 10] {
        [
            ("name", self.name.is_some()),
            ("id", self.id.is_some()),
            ("flows", self.flows.is_some()),
            ("rules", self.rules.is_some()),
            ("fill", self.fill.is_some()),
            ("push", self.push.is_some()),
            ("stateless", self.stateless.is_some()),
            ("low_latency", self.low_latency != LowLatencySection::default()),
            ("ffp", self.ffp != FfpSection::default()),
            ("lanes", self.lanes != LanesSection::default()),
        ]
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficSection {
    pub name: Option<String>,
    pub port: Option<i64>,
    #[serde(deserialize_with = "one_or_more")]
    pub packets: Vec<String>,
    pub flows: Option<i64>,
    pub bytes: Option<i64>,
    pub pcap: Option<String>,
    pub popularity: Option<String>,
    pub exponent: Option<f64>,
    pub pattern: Option<String>,
    pub burst: Option<i64>,
    pub spacing_ns: Option<f64>,
    pub rate_pps: Option<f64>,
    pub share: Option<f64>,
    pub begin: Option<String>,
    pub known: bool,
    pub returns_by: Option<i64>,
}

const FRACTION: &str = "a number";
const YES_OR_NO: &str = "true or false";

/// Grammar of scenario files.
pub const SCENARIO: Grammar = &[KEYS, STATELESS, FORWARDING];

const KEYS: &[Key] = &[
    ("seed", NUMBER, "seed = 1"),
    ("warm_up", STRING, "warm_up = \"10ms\""),
    ("duration", STRING, "duration = \"100ms\""),
    ("ring", NUMBER, "ring = 1024"),
    ("io", STRING, "io = \"2us\""),
    ("costs", "\"measured\", the cost of a unit, or a list of steps", "costs = \"measured\""),
    ("costs.step", STRING, "step = \"turn\""),
    ("table", NUMBER, "table = 0"),
    ("again", YES_OR_NO, "again = true"),
    ("time_ns", FRACTION, "time_ns = 150.0"),
    ("unit_ns", FRACTION, "unit_ns = 20.0"),
    ("packets", NUMBER, "packets = 1000000"),
    ("load", "a table", "[load]"),
    ("rate_pps", FRACTION, "rate_pps = 1000000"),
    ("factor", FRACTION, "factor = 0.95"),
    ("datapath", TABLES, "[[datapath]]"),
    ("id", NUMBER, "id = 1"),
    ("datapath.flows", STRING, "flows = \"s1.flows\""),
    ("rules", STRING, "rules = \"priority=1 actions=output:2\""),
    ("fill", NUMBER, "fill = 200000"),
    ("push", STRING, "push = \"push_key(key=0x19,width=64,hops=8)\""),
    ("traffic", TABLES, "[[traffic]]"),
    ("name", STRING, "name = \"control\""),
    ("port", NUMBER, "port = 1"),
    ("traffic.packets", "a string or a list of strings", "packets = \"udp,nw_dst=10.0.0.0/24\""),
    ("traffic.flows", NUMBER, "flows = 100"),
    ("bytes", NUMBER, "bytes = 64"),
    ("pcap", STRING, "pcap = \"in.pcap\""),
    ("popularity", STRING, "popularity = \"zipf\""),
    ("exponent", FRACTION, "exponent = 1.0"),
    ("pattern", STRING, "pattern = \"poisson\""),
    ("burst", NUMBER, "burst = 16"),
    ("spacing_ns", FRACTION, "spacing_ns = 67.2"),
    ("share", FRACTION, "share = 0.2"),
    ("begin", STRING, "begin = \"30ms\""),
    ("known", YES_OR_NO, "known = true"),
    ("returns_by", NUMBER, "returns_by = 3"),
    ("network", "a table", "[network]"),
    ("plan", STRING, "plan = \"plan.json\""),
    ("state", STRING, "state = \"dumped\""),
    ("forwarding", STRING, "forwarding = \"entries\""),
    ("delay", STRING, "delay = \"10us\""),
    ("rate_bps", NUMBER, "rate_bps = 10000000000"),
    ("detection", STRING, "detection = \"1ms\""),
    ("network.queue", NUMBER, "queue = 1000"),
    ("network.traffic", "a table", "[network.traffic]"),
    ("network.traffic.packets", NUMBER, "packets = 10"),
    ("network.traffic.flows", NUMBER, "flows = 4"),
    ("pairs", "a list of pairs of hosts", "pairs = [[\"a\", \"b\"]]"),
    ("sample", NUMBER, "sample = 1000"),
    ("interval", STRING, "interval = \"1ms\""),
    ("paths", NUMBER, "paths = 4"),
    ("failure", TABLES, "[[network.failure]]"),
    ("at", STRING, "at = \"10ms\""),
    ("lasting", STRING, "lasting = \"5ms\""),
    ("every", STRING, "every = \"10ms\""),
    ("link", "a pair of switches", "link = [\"a\", \"b\"]"),
    ("node", STRING, "node = \"a\""),
    ("each", STRING, "each = \"link\""),
    ("renumber", "a table", "[network.renumber]"),
    ("step", STRING, "step = \"10ms\""),
    ("spread", STRING, "spread = \"5ms\""),
    ("require", "a table", "[network.require]"),
    ("delivered", FRACTION, "delivered = 1.0"),
    ("protected_links", FRACTION, "protected_links = 0.85"),
    ("protected_switches", FRACTION, "protected_switches = 0.5"),
    ("exercised", YES_OR_NO, "exercised = true"),
];
