// SPDX-License-Identifier: Apache-2.0
//! Checks of a scenario of one switch. Begin with [`switch`].

use crate::file;
use crate::limits::{LONGEST_NS, PORTS};
use crate::run::SwitchScenario;
use crate::traffic::{self, Traffic};
use config::flow_file::{FlowFile, PIECE_BYTES, read_pieces};
use config::forwarding::{ForwardingSections, forwarding};
use config::mistakes::{Mistakes, at, wrong};
use config::value::{duration, in_range};
use config::{Mistake, check_pool};
use flow::{Nanos, PortNo};
use model::Model;
use sim::arrivals::{Class, Load, Marks};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use worker::WorkerSet;

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
/// Maximum size of a flow file, in bytes.
const FLOW_FILE_BYTES: usize = 1 << 30;
/// Maximum offered load relative to the switch's capacity.
const FACTOR: f64 = 1_000.0;

/// Checks a scenario of one switch.
pub fn switch(
    path: &Path,
    file: file::ScenarioFile,
    seed: u64,
    mistakes: &mut Mistakes,
) -> Option<SwitchScenario> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let times = times(&file, mistakes);
    let packets = packets(&file, mistakes);
    let ring = mistakes.at("ring", in_range(file.ring.unwrap_or(1_024), 1..=RING));
    let datapath = only(file.datapath, mistakes);
    let settings = datapath.as_ref().and_then(|datapath| switch_settings(datapath, folder, mistakes));
    let costs = file.costs.unwrap_or_default();
    mistakes.take(costs.table());
    let traffic = traffic_classes(file.traffic, folder, seed, mistakes)?;
    let (mut classes, factor) = mistakes.take(rates(file.load, traffic))?;
    let SwitchSettings { config, marks, rules } = settings?;
    let key = if datapath?.rules.is_some() { "datapath.rules" } else { "datapath.flows" };
    let (model, ports) = mistakes.take(model(&rules, key, marks, &classes))?;
    if let Some(cache) = &config.port_cache {
        check_pool("datapath", cache, ports as usize, 1, mistakes);
    }
    for class in &mut classes {
        let low_latency = |frame: &Vec<u8>| {
            let processed = model.trace(class.port, frame).processed;
            // A packet that is dropped before the first table hits no entry and belongs to no lane.
            processed.low_latency && !processed.hits.is_empty()
        };
        class.low_latency = class.flows.iter().map(low_latency).collect();
    }
    let Times { span_ns, io_ns, warm_up_ns } = times?;
    let load = Load { classes, ring: ring? as usize, io_ns, warm_up_ns, span_ns, seed };
    Some(SwitchScenario {
        path: path.into(),
        seed,
        rules,
        ports,
        config,
        marks,
        costs,
        load,
        factor,
        packets,
    })
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

/// Returns the switch, or adds a mistake if there is not exactly one.
fn only(datapaths: Vec<file::SwitchSection>, mistakes: &mut Mistakes) -> Option<file::SwitchSection> {
    match <[file::SwitchSection; 1]>::try_from(datapaths) {
        Ok([one]) => Some(one),
        Err(none) if none.is_empty() => {
            mistakes.wrong("datapath", "there is none; add [[datapath]] with flows or rules");
            None
        }
        Err(many) => {
            let problem = format!("there are {}, but this build simulates one", many.len());
            mistakes.wrong("datapath", problem);
            None
        }
    }
}

/// Forwarding settings of the switch.
struct SwitchSettings {
    config: worker::WorkerSetConfig,
    marks: Marks,
    rules: String,
}

fn switch_settings(
    datapath: &file::SwitchSection,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<SwitchSettings> {
    mistakes.at("datapath.id", in_range(datapath.id.unwrap_or(1), 1..=i64::MAX));
    let file::SwitchSection { low_latency, ffp, express, lanes, port_cache, .. } = datapath;
    let sections = ForwardingSections { low_latency, ffp, express, lanes, port_cache };
    let forwarding = forwarding("datapath", sections, mistakes);
    if port_cache.searcher_cpu().is_some() {
        mistakes.wrong("datapath.port_cache.searcher_cpu", "is for shunt run; omit it");
    }
    let rules = mistakes.take(rules(datapath, folder));
    // Simulated devices send without delay, so `outstanding_bytes` has no effect.
    let forwarding = forwarding?;
    let marks = Marks { cookie: forwarding.low_latency_cookie, learning: forwarding.learning };
    Some(SwitchSettings { config: forwarding.worker_set(), marks, rules: rules? })
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

/// Returns the flows of the switch as text.
fn rules(datapath: &file::SwitchSection, folder: &Path) -> Result<String, Mistake> {
    let path = match (&datapath.flows, &datapath.rules) {
        (Some(_), Some(_)) => {
            return Err(wrong("datapath.rules", "cannot be combined with flows; give one of them"));
        }
        (None, None) => {
            return Err(wrong("datapath.flows", "is missing; name a flow file, or give the flows as rules"));
        }
        (None, Some(rules)) => return Ok(rules.clone()),
        (Some(path), None) => folder.join(path),
    };
    let refuse = |problem: String| wrong("datapath.flows", format!("{}: {problem}", path.display()));
    let mut text = String::new();
    let opened = File::open(&path).map_err(|error| refuse(format!("cannot open the flow file: {error}")))?;
    let read = read_pieces(BufReader::new(opened), PIECE_BYTES, |piece| {
        text.push_str(piece);
        if text.len() > FLOW_FILE_BYTES {
            let sentence = format!("has more than {FLOW_FILE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        Ok(())
    });
    read.map_err(|error| refuse(error.to_string()))?;
    Ok(text)
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

/// Returns the switch's model with its rules, and the number of its ports.
fn model(
    rules: &str,
    key: &str,
    marks: Marks,
    classes: &[Class],
) -> Result<(Model<WorkerSet>, u32), Mistake> {
    let mut file = FlowFile::default();
    file.push(rules);
    // The last line may lack a line feed.
    file.push("\n");
    let mut ports = file.ports();
    ports.extend(classes.iter().flat_map(|class| [Some(class.port), class.comes_back]).flatten());
    let most = ports.last().map_or(1, |port| port.0);
    if most > PORTS {
        return Err(wrong(
            key,
            format!("there is no port {most}; a simulated switch has ports 1 to {PORTS}"),
        ));
    }
    let config = model::ModelConfig { low_latency_cookie: marks.cookie, ..model::ModelConfig::default() };
    let model = file.into_model(config, (1..=most).map(PortNo));
    let model = at(key, model.map_err(|error| error.to_string()))?;
    Ok((model, most))
}
