// SPDX-License-Identifier: Apache-2.0
//! Structure of the configuration file, as serde reads it.
//!
//! Numbers are `i64`, so that a value out of range gets an error message of ours instead of serde's.

use crate::stateless_form::StatelessForm;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub control: Option<String>,
    pub simd: Option<String>,
    pub dpdk: Option<Dpdk>,
    #[serde(default)]
    pub worker: Vec<WorkerSection>,
    #[serde(default)]
    pub datapath: Vec<Datapath>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dpdk {
    pub eal: Option<Vec<String>>,
    pub mbufs: Option<i64>,
    pub mtu: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSection {
    pub cpu: Option<i64>,
    pub idle: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datapath {
    pub id: Option<i64>,
    pub control: Option<String>,
    pub flows: Option<String>,
    #[serde(default)]
    pub openflow: OpenFlow,
    #[serde(default)]
    pub low_latency: LowLatency,
    #[serde(default)]
    pub ffp: Ffp,
    #[serde(default)]
    pub lanes: Lanes,
    #[serde(default)]
    pub port_cache: PortCacheSection,
    pub stateless: Option<StatelessForm>,
    #[serde(default)]
    pub port: Vec<PortSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFlow {
    #[serde(default)]
    pub controllers: Vec<String>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub listen: Vec<String>,
    pub fail_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LowLatency {
    pub cookie: Option<String>,
    #[serde(default)]
    pub learn: LearnSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnSection {
    #[serde(default)]
    pub enabled: bool,
    pub min_pps: Option<i64>,
    pub window: Option<String>,
    pub min_timeout: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ffp {
    pub enabled: Option<bool>,
    pub lut_entries: Option<i64>,
    pub consistency: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lanes {
    pub enabled: Option<bool>,
    pub normal: Option<i64>,
    pub unknown: Option<i64>,
    pub hold: Option<i64>,
    pub small_quantum: Option<i64>,
    pub large_quantum: Option<i64>,
    pub quiet: Option<String>,
    pub outstanding_bytes: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortCacheSection {
    pub mode: Option<String>,
    pub entries: Option<i64>,
    pub queue: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSection {
    pub number: Option<i64>,
    pub name: Option<String>,
    pub driver: Option<String>,
    pub device: Option<String>,
    pub workers: Option<Vec<i64>>,
    pub outstanding_bytes: Option<i64>,
    #[serde(default)]
    pub queue: Vec<QueueSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSection {
    pub id: Option<i64>,
    pub min_rate_kbps: Option<i64>,
    pub max_rate_kbps: Option<i64>,
    pub priority: Option<i64>,
    pub limit_frames: Option<i64>,
}

/// Reads a string or a list of strings.
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
