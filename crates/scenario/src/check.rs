// SPDX-License-Identifier: Apache-2.0
//! Checks of a scenario without a network. Begin with [`switches`].

use crate::limits::LONGEST_NS;
use crate::run::SwitchScenario;
use crate::traffic::{self, Traffic};
use crate::{file, switch};
use config::Mistake;
use config::mistakes::{Mistakes, at, wrong};
use config::value::{duration, in_range};
use flow::Nanos;
use sim::arrivals::{Class, Load};
use std::path::Path;

/// Maximum number of traffic classes in a scenario.
const TRAFFIC: usize = 64;
/// Maximum of `ring`, the number of packets that can wait to be received.
const RING: i64 = 65_536;
/// Maximum duration of a run, in ns.
const TIME_NS: u64 = LONGEST_NS as u64;
/// Maximum of `io`, the fixed time for input and output of a packet, in ns.
const IO_NS: u64 = 1_000_000_000;
/// Maximum number of packets in a run.
const PACKETS: f64 = 1e11;
/// Maximum offered load relative to the switch's capacity.
const FACTOR: f64 = 1_000.0;

/// Checks a scenario without a network.
pub fn switches(
    path: &Path,
    file: file::ScenarioFile,
    seed: u64,
    mistakes: &mut Mistakes,
) -> Option<SwitchScenario> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let times = times(&file, mistakes);
    let packets = packets(&file, mistakes);
    let ring = mistakes.at("ring", in_range(file.ring.unwrap_or(1_024), 1..=RING));
    let settings = switch::settings(file.datapath, folder, mistakes);
    let costs = file.costs.unwrap_or_default();
    mistakes.take(costs.table());
    let traffic = traffic_classes(file.traffic, folder, seed, mistakes)?;
    let (classes, factor) = mistakes.take(rates(file.load, traffic))?;
    let (settings, Times { span_ns, io_ns, warm_up_ns }) = (settings?, times?);
    let load = Load { classes, ring: ring? as usize, io_ns, warm_up_ns, span_ns, seed };
    let switches: Vec<_> = settings.into_iter().map(|one| one.under(&load, mistakes)).collect();
    let switches = switches.into_iter().collect::<Option<Vec<_>>>()?;
    Some(SwitchScenario { path: path.into(), seed, switches, costs, factor, packets })
}

/// Times of a run, in ns.
struct Times {
    span_ns: f64,
    io_ns: f64,
    warm_up_ns: f64,
}

fn times(file: &file::ScenarioFile, mistakes: &mut Mistakes) -> Option<Times> {
    let mut time = |name: &str, text: &Option<String>, usual: &str, least_ns: u64, most_ns: u64| {
        let text = text.as_deref().unwrap_or(usual);
        let checked = duration(text).and_then(|ns| match ns {
            ns if ns < Nanos(least_ns) => {
                Err("is 0, so nothing would arrive; use \"100ms\", for instance".to_owned())
            }
            ns if ns <= Nanos(most_ns) => Ok(ns.0 as f64),
            _ => Err(format!("\"{text}\" is too long; use at most \"{}ms\"", most_ns / 1_000_000)),
        });
        mistakes.at(name, checked)
    };
    let span_ns = time("duration", &file.duration, "100ms", 1, TIME_NS);
    let io_ns = time("io", &file.io, "0us", 0, IO_NS);
    let warm_up_ns = time("warm_up", &file.warm_up, "10ms", 0, TIME_NS);
    Some(Times { span_ns: span_ns?, io_ns: io_ns?, warm_up_ns: warm_up_ns? })
}

/// Returns the number of packets to arrive, if it is given instead of a duration.
fn packets(file: &file::ScenarioFile, mistakes: &mut Mistakes) -> Option<u64> {
    let packets = file.packets?;
    if file.duration.is_some() {
        mistakes.wrong("packets", "cannot be combined with duration; give one of them");
    }
    mistakes.at("packets", in_range(packets, 1..=PACKETS as i64))
}

/// Checks the traffic classes. Returns `None` if any of them is wrong.
fn traffic_classes(
    list: Vec<file::TrafficSection>,
    folder: &Path,
    seed: u64,
    mistakes: &mut Mistakes,
) -> Option<Vec<Traffic>> {
    if list.is_empty() || list.len() > TRAFFIC {
        let problem = format!("there are {}; give 1 to {TRAFFIC}", list.len());
        mistakes.wrong("traffic", problem);
        return None;
    }
    let (count, names) = (list.len(), list.iter().map(|one| one.name.clone()).collect::<Vec<_>>());
    let mut classes = Vec::with_capacity(count);
    for (n, one) in list.into_iter().enumerate() {
        classes.extend(mistakes.take(traffic::traffic(n, one, folder, seed)));
        if let Some(name) = &names[n]
            && names[..n].iter().any(|other| other.as_ref() == Some(name))
        {
            let problem = format!("\"{name}\" is given twice; give each a different name");
            mistakes.wrong(format!("traffic[{n}].name"), problem);
        }
    }
    (classes.len() == count).then_some(classes)
}

/// Returns the traffic classes with their rates, and the load factor if the scenario gives one. With a load
/// factor, the rates are relative.
fn rates(
    load: Option<file::LoadSection>,
    traffic: Vec<Traffic>,
) -> Result<(Vec<Class>, Option<f64>), Mistake> {
    let shares: f64 = traffic.iter().filter(|one| one.shared).map(|one| one.class.rate_pps).sum();
    let (all_pps, factor) = match load {
        None if shares > 0.0 => {
            return Err(wrong(
                "load",
                "is missing, but traffic has a share of it; add [load] with rate_pps or factor",
            ));
        }
        None => (0.0, None),
        Some(_) if shares == 0.0 => {
            return Err(wrong("load", "has no effect: no traffic has a share of it; leave it out"));
        }
        Some(file::LoadSection { rate_pps: Some(pps), factor: None }) => {
            (at("load.rate_pps", traffic::rate(pps))?, None)
        }
        Some(file::LoadSection { rate_pps: None, factor: Some(factor) }) => {
            if !(factor > 0.0 && factor <= FACTOR) {
                let problem = format!("{factor} is out of range; use more than 0 and at most {FACTOR:.0}");
                return Err(wrong("load.factor", problem));
            }
            if let Some(n) = traffic.iter().position(|one| !one.shared) {
                let problem = "cannot be combined with load.factor; give a share";
                return Err(wrong(format!("traffic[{n}].rate_pps"), problem));
            }
            (1.0, Some(factor))
        }
        Some(_) => return Err(wrong("load", "needs exactly one of rate_pps and factor")),
    };
    if shares > 0.0 && (shares - 1.0).abs() > 1e-6 {
        return Err(wrong("traffic", format!("has shares that add up to {shares}; they must add up to 1")));
    }
    let rated = |one: Traffic| {
        // Divides by the exact sum of all shares, so that a run with the reported total rate has the same
        // rates per class.
        let rate_pps = if one.shared { one.class.rate_pps / shares * all_pps } else { one.class.rate_pps };
        Class { rate_pps, ..one.class }
    };
    let classes: Vec<Class> = traffic.into_iter().map(rated).collect();
    let sum_pps: f64 = classes.iter().map(|class| class.rate_pps).sum();
    if factor.is_none() {
        at("traffic", traffic::rate(sum_pps))?;
    }
    Ok((classes, factor))
}
