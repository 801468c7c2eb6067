// SPDX-License-Identifier: Apache-2.0
//! Switches of a scenario without a network. Begin with [`settings`], then [`SwitchSetup::under`].

use crate::file::SwitchSection;
use crate::limits::PORTS;
use config::flow_file::{FlowFile, PIECE_BYTES, read_pieces};
use config::forwarding::{ForwardingSections, forwarding};
use config::mistakes::{Mistakes, at, wrong};
use config::value::in_range;
use config::{Mistake, check_pool};
use flow::stateless::{StatelessChange, StatelessConfig};
use flow::{Nanos, PortNo};
use model::{Change, Model, ModelConfig};
use sim::arrivals::{Class, Load, Marks, Switch};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use worker::{WorkerSet, WorkerSetConfig};

/// Maximum size of a flow file, in bytes.
const FLOW_FILE_BYTES: usize = 1 << 30;
/// Maximum number of switches in a scenario.
const SWITCHES: usize = 16;
/// Maximum of `fill`, the number of entries that no packet hits.
const FILL: i64 = 1_000_000;

/// A switch with its rules and its arriving packets.
#[derive(Clone, Debug)]
pub struct SimulatedSwitch {
    /// Name in the report.
    pub name: Option<String>,
    /// Flows of the switch in the flow syntax.
    rules: String,
    ports: u32,
    pub config: WorkerSetConfig,
    marks: Marks,
    stateless: Option<StatelessConfig>,
    /// Arriving packets. If the scenario has a load factor, their rates are relative.
    pub load: Load,
}

impl SimulatedSwitch {
    /// Returns the switch as the simulation takes it.
    pub fn switch(&self) -> Switch<'_> {
        Switch {
            rules: &self.rules,
            added: "",
            stateless: self.stateless.as_ref(),
            ports: self.ports,
            config: self.config,
            marks: self.marks,
            maker: None,
        }
    }
}

/// Settings of a switch, without its traffic.
pub struct SwitchSetup {
    /// Path of the switch's table in the file, such as `datapath`.
    key: String,
    name: Option<String>,
    config: WorkerSetConfig,
    marks: Marks,
    rules: String,
    /// Number of entries to add that no packet hits.
    fill: u64,
    /// Name of the key that has the rules.
    rules_key: &'static str,
    stateless: Option<StatelessConfig>,
    push: Option<String>,
}

/// Checks the switches. Returns `None` if any of them is wrong.
pub fn settings(
    mut datapaths: Vec<SwitchSection>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Vec<SwitchSetup>> {
    let count = datapaths.len();
    if count == 0 {
        mistakes.wrong("datapath", "there is none; add [[datapath]] with flows or rules");
    }
    if count > SWITCHES {
        mistakes.wrong("datapath", format!("there are {count}; give 1 to {SWITCHES}"));
        return None;
    }
    for n in 0..count {
        let (before, from) = datapaths.split_at(n);
        let problem = match &from[0].name {
            None if count > 1 => "is missing; switches that are compared need names".to_owned(),
            Some(name) if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) => {
                "is not a name; use 1 to 64 characters".to_owned()
            }
            Some(name) if before.iter().any(|other| other.name.as_ref() == Some(name)) => {
                format!("\"{name}\" is given twice; give each a different name")
            }
            _ => continue,
        };
        mistakes.wrong(format!("datapath[{n}].name"), problem);
    }
    let keys = (0..count).map(|n| if count == 1 { "datapath".into() } else { format!("datapath[{n}]") });
    let read = datapaths.drain(..).zip(keys).map(|(section, key)| one(section, key, folder, mistakes));
    let read: Vec<Option<SwitchSetup>> = read.collect();
    read.into_iter().collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

fn one(section: SwitchSection, key: String, folder: &Path, mistakes: &mut Mistakes) -> Option<SwitchSetup> {
    mistakes.at(format!("{key}.id"), in_range(section.id.unwrap_or(1), 1..=i64::MAX));
    let SwitchSection { low_latency, ffp, express, lanes, port_cache, .. } = &section;
    let forwarding =
        forwarding(&key, ForwardingSections { low_latency, ffp, express, lanes, port_cache }, mistakes);
    if port_cache.searcher_cpu().is_some() {
        mistakes.wrong(format!("{key}.port_cache.searcher_cpu"), "is for shunt run; omit it");
    }
    let rules_key = if section.rules.is_some() { "rules" } else { "flows" };
    let rules = mistakes.take(rules(&key, &section, folder));
    let fill = mistakes.at(format!("{key}.fill"), in_range(section.fill.unwrap_or(0), 0..=FILL));
    let stateless = match &section.stateless {
        Some(form) => Some(form.checked(&format!("{key}.stateless"), mistakes)?),
        None => None,
    };
    // Simulated devices send without delay, so `outstanding_bytes` has no effect.
    let forwarding = forwarding?;
    let marks = Marks { cookie: forwarding.low_latency_cookie, learning: forwarding.learning };
    let (rules, fill, config) = (rules?, fill?, forwarding.worker_set());
    Some(SwitchSetup {
        key,
        name: section.name,
        config,
        marks,
        rules,
        fill,
        rules_key,
        stateless,
        push: section.push,
    })
}

/// Returns the flows of the switch at `key` as text.
fn rules(key: &str, section: &SwitchSection, folder: &Path) -> Result<String, Mistake> {
    let flows = format!("{key}.flows");
    let path = match (&section.flows, &section.rules) {
        (Some(_), Some(_)) => {
            return Err(wrong(format!("{key}.rules"), "cannot be combined with flows; give one of them"));
        }
        (None, None) => {
            return Err(wrong(flows, "is missing; name a flow file, or give the flows as rules"));
        }
        (None, Some(rules)) => return Ok(rules.clone()),
        (Some(path), None) => folder.join(path),
    };
    let refuse = |problem: String| wrong(flows.clone(), format!("{}: {problem}", path.display()));
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

/// Appends this many entries for UDP flows between hosts of 10.64.0.0/10 and 10.128.0.0/10. They have a
/// higher priority than usual entries. `lab/keyflow.py` fills the tables of running switches in the same way.
fn add_fill(rules: &mut String, count: u64) {
    if count > 0 && !rules.ends_with('\n') {
        rules.push('\n');
    }
    for n in 0..count {
        let (high, low, port) = (n >> 8 & 63, n & 255, 1_024 + (n >> 14));
        let written = writeln!(
            rules,
            "priority=40000,udp,in_port=1,nw_src=10.{}.{low}.1,nw_dst=10.{}.{low}.2,tp_dst={port} actions=drop",
            64 + high,
            128 + high
        );
        debug_assert!(written.is_ok(), "writing to a string never fails");
    }
}

impl SwitchSetup {
    /// Adds the traffic of the scenario, with the headers that this switch's packets have. Returns `None`
    /// after a mistake.
    pub fn under(self, load: &Load, mistakes: &mut Mistakes) -> Option<SimulatedSwitch> {
        let mut load = load.clone();
        if let Some(actions) = &self.push {
            let key = format!("{}.push", self.key);
            mistakes.at(key, load.classes.iter_mut().try_for_each(|class| push(actions, class)))?;
        }
        let (model, ports) = mistakes.take(self.model(&load.classes))?;
        if let Some(cache) = &self.config.port_cache {
            check_pool(&self.key, cache, ports as usize, 1, mistakes);
        }
        for class in &mut load.classes {
            let low_latency = |frame: &Vec<u8>| {
                let trace = model.trace(class.port, frame);
                // A packet that is dropped before the first table hits no entry and belongs to no lane.
                let by_entries = trace.processed.low_latency && !trace.processed.hits.is_empty();
                by_entries || model.worked(&trace).is_some()
            };
            class.low_latency = class.flows.iter().map(low_latency).collect();
        }
        let Self { name, mut rules, config, marks, stateless, .. } = self;
        // The reference interpreter, which determines the lanes, compares packets with each entry. So it
        // works without these entries, which the traffic does not hit.
        add_fill(&mut rules, self.fill);
        Some(SimulatedSwitch { name, rules, ports, config, marks, stateless, load })
    }

    /// Returns the switch's model with its rules, and the number of its ports.
    fn model(&self, classes: &[Class]) -> Result<(Model<WorkerSet>, u32), Mistake> {
        let key = format!("{}.{}", self.key, self.rules_key);
        let mut file = FlowFile::default();
        file.push(&self.rules);
        // The last line may lack a line feed.
        file.push("\n");
        let mut ports = file.ports();
        ports.extend(classes.iter().flat_map(|class| [Some(class.port), class.comes_back]).flatten());
        ports.extend(self.stateless.iter().flat_map(stateless_ports));
        let most = ports.last().map_or(1, |port| port.0);
        if most > PORTS {
            let problem = format!("there is no port {most}; a simulated switch has ports 1 to {PORTS}");
            return Err(wrong(key, problem));
        }
        let config = ModelConfig { low_latency_cookie: self.marks.cookie, ..ModelConfig::default() };
        let model = file.into_model(config, (1..=most).map(PortNo));
        let mut model = at(key, model.map_err(|error| error.to_string()))?;
        if let Some(stateless) = &self.stateless {
            let change = Change::Stateless(StatelessChange::Set(stateless.sections()));
            let changed = model.bundle(Nanos(0), [change]).map_err(|(_, error)| error.to_string());
            at(format!("{}.stateless", self.key), changed)?;
        }
        Ok((model, most))
    }
}

/// Returns the ports that a configuration names.
fn stateless_ports(config: &StatelessConfig) -> Vec<PortNo> {
    let banks = config.banks.iter().flatten().chain(&config.polka);
    let labels = banks.flat_map(|bank| bank.labels.values()).filter_map(|label| match label {
        flow::stateless::Label::Port(port) => Some(*port),
        flow::stateless::Label::Tables => None,
    });
    let gates = config.gates.iter().flat_map(|gates| gates.ports.keys().copied());
    config.trusted.iter().copied().chain(labels).chain(gates).collect()
}

/// Applies actions to the packets of a class, as the switch before this one does.
fn push(actions: &str, class: &mut Class) -> Result<(), String> {
    let mut file = FlowFile::default();
    file.push(&format!("actions={actions},output:2\n"));
    let model = file.into_model(ModelConfig::default(), [PortNo(1), PortNo(2)]);
    let model = model.map_err(|error| error.to_string())?;
    let pushed = class.flows.iter().map(|frame| {
        let mut sent = model.trace(PortNo(1), frame).processed.sent;
        match (sent.pop(), sent.is_empty()) {
            (Some(sent), true) => Ok(sent.bytes),
            _ => Err(format!(
                "does not send one copy of each packet of \"{}\"; use push_key, push_polka, push_tf or push_tf_wide",
                class.name
            )),
        }
    });
    class.flows = pushed.collect::<Result<Vec<_>, String>>().map(Arc::from)?;
    Ok(())
}
