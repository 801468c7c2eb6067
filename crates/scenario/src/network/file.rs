// SPDX-License-Identifier: Apache-2.0
//! Structure of the `[network]` section of a scenario file.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    pub plan: Option<String>,
    pub forwarding: Option<String>,
    pub state: Option<String>,
    pub warm_up: Option<String>,
    pub ring: Option<i64>,
    pub delay: Option<String>,
    pub rate_bps: Option<i64>,
    pub queue: Option<i64>,
    pub detection: Option<String>,
    pub traffic: Traffic,
    pub failure: Vec<FailureSection>,
    pub renumber: Option<Renumber>,
    pub require: Require,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub pairs: Option<Vec<[String; 2]>>,
    pub sample: Option<i64>,
    pub flows: Option<i64>,
    pub packets: Option<i64>,
    pub interval: Option<String>,
    pub bytes: Option<i64>,
    pub paths: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSection {
    pub at: Option<String>,
    pub lasting: Option<String>,
    pub every: Option<String>,
    pub link: Option<[String; 2]>,
    pub port: Option<i64>,
    pub node: Option<String>,
    pub each: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renumber {
    pub at: Option<String>,
    pub step: Option<String>,
    pub spread: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Require {
    pub delivered: Option<f64>,
    pub protected_links: Option<f64>,
    pub protected_switches: Option<f64>,
    pub exercised: bool,
}
