// SPDX-License-Identifier: Apache-2.0
//! A traffic class of a scenario: its packets and their arrival times.

use crate::file;
use crate::limits::{PORTS, RATE_PPS};
use crate::packets::{self, Packets};
use config::Mistake;
use config::mistakes::{at, wrong};
use config::value::{duration, in_range};
use flow::PortNo;
use sim::arrivals::{Class, Pattern, Popularity};
use std::path::Path;

/// Minimum rate in packets per second.
const RATE_MIN_PPS: f64 = 1e-3;

/// Maximum number of packets in a burst.
const BURST: i64 = 65_536;
/// Maximum time between two packets of a burst, in ns.
const SPACING_NS: f64 = 1e9;

/// A traffic class. Its rate may be given as a share of the load.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Packets and arrival times. The rate is in packets per second, or is a share if `shared` is set.
    pub class: Class,
    /// Whether the rate is a share of the load.
    pub shared: bool,
}

/// Checks entry `n` of the traffic list. Paths are relative to `folder`.
pub fn traffic(n: usize, t: file::TrafficSection, folder: &Path, seed: u64) -> Result<Traffic, Mistake> {
    let key = |name: &str| format!("traffic[{n}].{name}");
    let name = t.name.clone().ok_or_else(|| wrong(key("name"), "is missing; write name = \"control\""))?;
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        return Err(wrong(key("name"), "is not a name; use 1 to 64 characters"));
    }
    let port = |name: &str, number: i64| {
        at(key(name), in_range(number, 1..=i64::from(PORTS)).map(|number| PortNo(number as u32)))
    };
    let named = t.port.map(|number| port("port", number)).transpose()?;
    let Packets { flows, capture, in_port } = match (&t.pcap, t.packets.is_empty()) {
        (Some(path), true) => {
            let refused = [("flows", t.flows.is_some()), ("bytes", t.bytes.is_some())];
            if let Some((name, _)) = refused.iter().find(|(_, there)| *there) {
                return Err(wrong(key(name), "has no effect with a capture; leave it out"));
            }
            at(key("pcap"), packets::captured(&folder.join(path)))?
        }
        (None, false) => {
            let flows = at(key("flows"), in_range(t.flows.unwrap_or(1), 1..=packets::FLOWS as i64))?;
            let bytes = at(key("bytes"), in_range(t.bytes.unwrap_or(64), packets::BYTES))?;
            // The seed of each class is derived from its index, so that an added class does not change the
            // packets of the classes before it.
            let seed = seed ^ (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            at(key("packets"), packets::made(&t.packets, flows as usize, bytes as usize, seed))?
        }
        (Some(_), false) => {
            return Err(wrong(key("pcap"), "cannot be combined with packets; give one of them"));
        }
        (None, true) => {
            let example = "packets = \"udp,nw_dst=10.0.0.0/24\"";
            return Err(wrong(key("packets"), format!("are missing; write {example}, or name a pcap")));
        }
    };
    let in_port = match (named, in_port) {
        (Some(one), Some(other)) if one != other => {
            return Err(wrong(
                key("port"),
                format!("is {one}, but in_port of the packets is {other}; give one of them"),
            ));
        }
        (one, other) => port("packets", i64::from(one.or(other).map_or(1, |port| port.0)))?,
    };
    let captured_pps = capture.as_ref().map(|capture| capture.rate_pps()).filter(|pps| *pps > 0.0);
    let (rate_pps, shared) = match (t.rate_pps, t.share) {
        (Some(_), Some(_)) => {
            return Err(wrong(key("share"), "cannot be combined with rate_pps; give one of them"));
        }
        (Some(pps), None) => (at(key("rate_pps"), rate(pps))?, false),
        (None, Some(share)) if share > 0.0 && share <= 1.0 => (share, true),
        (None, Some(share)) => {
            return Err(wrong(
                key("share"),
                format!("{share} is out of range; use more than 0 and at most 1, such as 0.2"),
            ));
        }
        (None, None) => match captured_pps {
            Some(pps) => (at(key("pcap"), rate(pps))?, false),
            None => return Err(wrong(key("rate_pps"), "is missing; give rate_pps, or a share of [load]")),
        },
    };
    let begin_ns = match &t.begin {
        Some(text) => at(key("begin"), duration(text))?.0 as f64,
        None => 0.0,
    };
    let class = Class {
        port: in_port,
        popularity: popularity(&t, capture.is_some(), &key)?,
        pattern: pattern(&t, captured_pps.is_some(), &key)?,
        name,
        flows,
        low_latency: [].into(),
        capture,
        rate_pps,
        begin_ns,
        known: t.known,
        comes_back: t.returns_by.map(|number| port("returns_by", number)).transpose()?,
    };
    Ok(Traffic { class, shared })
}

/// Checks a rate in packets per second.
pub fn rate(pps: f64) -> Result<f64, String> {
    if (RATE_MIN_PPS..=RATE_PPS).contains(&pps) {
        return Ok(pps);
    }
    Err(format!("{pps} is out of range; use {RATE_MIN_PPS} to {RATE_PPS:.0} packets per second"))
}

fn popularity(
    t: &file::TrafficSection,
    captured: bool,
    key: &dyn Fn(&str) -> String,
) -> Result<Popularity, Mistake> {
    let usual = if captured { "as_captured" } else { "uniform" };
    let popularity = match t.popularity.as_deref().unwrap_or(usual) {
        "uniform" => Popularity::Uniform,
        "in_turn" => Popularity::InTurn,
        "as_captured" if captured => Popularity::AsCaptured,
        "zipf" => {
            let exponent = t.exponent.unwrap_or(1.0);
            if !(0.0..=8.0).contains(&exponent) {
                return Err(wrong(key("exponent"), format!("{exponent} is out of range; use 0 to 8")));
            }
            return Ok(Popularity::Zipf(exponent));
        }
        other => {
            let known = "\"uniform\", \"in_turn\", \"zipf\", or with a pcap \"as_captured\"";
            return Err(wrong(key("popularity"), format!("\"{other}\" is unknown; use {known}")));
        }
    };
    match t.exponent {
        Some(_) => Err(wrong(key("exponent"), "is for popularity = \"zipf\"; leave it out")),
        None => Ok(popularity),
    }
}

fn pattern(
    t: &file::TrafficSection,
    captured: bool,
    key: &dyn Fn(&str) -> String,
) -> Result<Pattern, Mistake> {
    let usual = if captured { "as_captured" } else { "poisson" };
    let pattern = match t.pattern.as_deref().unwrap_or(usual) {
        "constant" => Pattern::Constant,
        "poisson" => Pattern::Poisson,
        "as_captured" if captured => Pattern::AsCaptured,
        "bursts" => {
            let packets = at(key("burst"), in_range(t.burst.unwrap_or(16), 1..=BURST))? as u32;
            let spacing_ns = t.spacing_ns.unwrap_or(67.2);
            if !(0.0..=SPACING_NS).contains(&spacing_ns) {
                let problem = format!("{spacing_ns} is out of range; use 0 to {SPACING_NS:.0}");
                return Err(wrong(key("spacing_ns"), problem));
            }
            return Ok(Pattern::Bursts { packets, spacing_ns });
        }
        other => {
            let known = "\"constant\", \"poisson\", \"bursts\", or with a pcap of more than one packet \"as_captured\"";
            return Err(wrong(key("pattern"), format!("\"{other}\" is unknown; use {known}")));
        }
    };
    for (name, there) in [("burst", t.burst.is_some()), ("spacing_ns", t.spacing_ns.is_some())] {
        if there {
            return Err(wrong(key(name), "is for pattern = \"bursts\"; leave it out"));
        }
    }
    Ok(pattern)
}
