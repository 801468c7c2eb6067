// SPDX-License-Identifier: Apache-2.0
//! Structure of the configuration file as serde reads it.
//!
//! Numbers are `i64`, so that this crate, and not serde, reports values out of range.

pub use crate::cache::PortCacheSection;
use crate::stateless_form::StatelessForm;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConfigFile {
    #[serde(deserialize_with = "path_or_table")]
    pub control: ControlSection,
    pub simd: Option<String>,
    pub metrics: Option<String>,
    pub metrics_remote: bool,
    pub upgrade: bool,
    pub log: LogSection,
    pub security: SecuritySection,
    pub tls: Option<TlsSection>,
    pub dpdk: Option<DpdkSection>,
    pub worker: Vec<WorkerSection>,
    pub datapath: Vec<DatapathSection>,
}

/// The control sockets: the path of the first, and who may connect to all.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ControlSection {
    pub path: Option<String>,
    pub owner: Option<String>,
    pub group: Option<String>,
    pub mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecuritySection {
    pub user: Option<String>,
    pub seccomp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    pub certificate: Option<String>,
    pub private_key: Option<String>,
    pub ca: Option<String>,
    pub check_address: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogSection {
    pub format: Option<String>,
    pub levels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DpdkSection {
    pub eal: Option<Vec<String>>,
    pub mbufs: Option<i64>,
    pub mtu: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSection {
    pub cpu: Option<i64>,
    pub idle: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DatapathSection {
    pub id: Option<i64>,
    pub control: Option<String>,
    pub flows: Option<String>,
    pub tls: Option<TlsSection>,
    pub openflow: OpenFlowSection,
    pub pof: Option<PofSection>,
    pub low_latency: LowLatencySection,
    pub ffp: FfpSection,
    pub express: ExpressSection,
    pub lanes: LanesSection,
    pub port_cache: PortCacheSection,
    pub stateless: Option<StatelessForm>,
    pub store: Option<StoreSection>,
    pub device: Option<DeviceSection>,
    pub port: Vec<PortSection>,
    pub mirror: Vec<MirrorSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub path: Option<String>,
    pub durable: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DeviceSection {
    pub kind: Option<String>,
    pub address: Option<String>,
    pub bind: Option<String>,
    pub timeout: Option<String>,
    pub tables: Option<Vec<i64>>,
    pub entries: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OpenFlowSection {
    pub controllers: Vec<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub listen: Vec<String>,
    pub fail_mode: Option<String>,
    pub packet_in: PacketInSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PofSection {
    pub controllers: Vec<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub listen: Vec<String>,
    pub dialect: Option<String>,
    pub tables: Option<Vec<i64>>,
    pub device_id: Option<i64>,
    pub miss: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PacketInSection {
    pub quench: Vec<i64>,
    pub quench_timeout: Option<String>,
    pub no_match: Option<RateSection>,
    pub action: Option<RateSection>,
    pub invalid_ttl: Option<RateSection>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RateSection {
    pub rate: Option<i64>,
    pub burst: Option<i64>,
}

/// Table `low_latency` of a datapath.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LowLatencySection {
    pub(crate) cookie: Option<String>,
    pub(crate) learn: LearnSection,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LearnSection {
    pub enabled: bool,
    pub min_pps: Option<i64>,
    pub window: Option<String>,
    pub min_timeout: Option<String>,
}

/// Table `ffp` of a datapath.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FfpSection {
    pub(crate) enabled: Option<bool>,
    pub(crate) lut_entries: Option<i64>,
    pub(crate) consistency: Option<String>,
}

/// Table `express` of a datapath.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpressSection {
    pub(crate) enabled: Option<bool>,
    pub(crate) records: Option<i64>,
}

impl ExpressSection {
    /// Switches the express path on or off, regardless of the file.
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = Some(enabled);
    }
}

/// Table `lanes` of a datapath.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanesSection {
    pub(crate) enabled: Option<bool>,
    pub(crate) normal: Option<i64>,
    pub(crate) unknown: Option<i64>,
    pub(crate) hold: Option<i64>,
    pub(crate) small_quantum: Option<i64>,
    pub(crate) large_quantum: Option<i64>,
    pub(crate) quiet: Option<String>,
    pub(crate) outstanding_bytes: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PortSection {
    pub number: Option<i64>,
    pub name: Option<String>,
    pub driver: Option<String>,
    pub device: Option<String>,
    pub workers: Option<Vec<i64>>,
    pub outstanding_bytes: Option<i64>,
    pub receive_ring: Option<i64>,
    pub vlan_mode: Option<String>,
    pub tag: Option<i64>,
    pub trunks: Option<Vec<i64>>,
    pub storm: StormSection,
    pub mac_limit: Option<i64>,
    pub queue: Vec<QueueSection>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StormSection {
    pub broadcast: Option<RateSection>,
    pub multicast: Option<RateSection>,
    pub unknown_unicast: Option<RateSection>,
    pub action: Option<String>,
    pub reopen: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueSection {
    pub id: Option<i64>,
    pub min_rate_kbps: Option<i64>,
    pub max_rate_kbps: Option<i64>,
    pub priority: Option<i64>,
    pub limit_frames: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MirrorSection {
    pub name: Option<String>,
    pub ingress: Vec<PortReference>,
    pub egress: Vec<PortReference>,
    pub vlans: Vec<i64>,
    pub output_port: Option<PortReference>,
    pub other_traffic: Option<bool>,
    pub file: Option<String>,
    pub snap_bytes: Option<i64>,
    pub max_bytes: Option<i64>,
    pub max_packets: Option<i64>,
}

/// Number or name of a port.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected the number or the name of a port")]
pub(crate) enum PortReference {
    Number(i64),
    Name(String),
}

impl fmt::Display for PortReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "\"{name}\""),
        }
    }
}

/// Reads a string or a list of strings, for `deserialize_with`.
///
/// # Errors
///
/// Returns the error of the parser for values of other types.
pub fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct OneOrMore;

    impl<'de> Visitor<'de> for OneOrMore {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of strings")
        }

        fn visit_str<E>(self, one: &str) -> Result<Self::Value, E> {
            Ok(vec![one.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(next) = list.next_element()? {
                all.push(next);
            }
            Ok(all)
        }
    }

    from.deserialize_any(OneOrMore)
}

/// Reads a path, or a table with a path.
fn path_or_table<'de, D: Deserializer<'de>>(from: D) -> Result<ControlSection, D::Error> {
    struct PathOrTable;

    impl<'de> Visitor<'de> for PathOrTable {
        type Value = ControlSection;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a table")
        }

        fn visit_str<E>(self, path: &str) -> Result<Self::Value, E> {
            Ok(ControlSection { path: Some(path.to_owned()), ..ControlSection::default() })
        }

        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
            ControlSection::deserialize(MapAccessDeserializer::new(table))
        }
    }

    from.deserialize_any(PathOrTable)
}
