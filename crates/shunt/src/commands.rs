// SPDX-License-Identifier: Apache-2.0
//! Implementation of each command.
//!
//! A function here sends a request to a running switch over its control socket, or calls the crate that does
//! the work. It prints the answer with `print`. Begin with [`run`] and [`show`].

use crate::arguments::{
    Check, Flows, GatesCommand, LogCommand, Replay, Run, SearcherName, Show, Sim, Switched, Top,
    TraceArguments, What,
};
use crate::error::CommandError;
use crate::print;
use config::flow_file::{PIECE_BYTES, read_pieces};
use config::packet::{PacketForm, packet_of};
use config::stateless_form::GatesForm;
use config::{Config, DEFAULT_CONTROL, Scope, SearcherKind};
use scenario::{Overrides, Scenario};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switch::control::{
    CacheReport, Changes, Client, ClientError, ControlRequest, ControllersReport, CountersReport,
    DeviceReport, ExpressReport, Ffp, FlowForm, FlowPart, Macs, MirrorsReport, Ports, StatelessReport,
    StoreReport, Tables,
};
use switch::daemon::{self, ConfigSource, DaemonError};
use switch::live_trace::{Live, LiveSummary, Real};
use switch::log::LogReport;
use switch::sandbox;
use switch::upgrade::{Launcher, Successor, Upgrade};

/// Maximum length of a packet's hexadecimal text, in bytes.
const HEX_BYTES: u64 = 512 * 1_024;

type Done = Result<(), CommandError>;

pub fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

pub fn run(run: &Run, control: Option<&Path>) -> Done {
    let successor = Successor::from_environment().map(Arc::new);
    let done = run_as(run, control, successor.clone());
    if let (Some(successor), Err(error)) = (successor, &done) {
        successor.fail(&error.to_string());
    }
    done
}

fn run_as(run: &Run, control: Option<&Path>, successor: Option<Arc<Successor>>) -> Done {
    let prepared = sandbox::prepare_c_library();
    // Privileges are given up before the first thread starts, which is that of the log. The log writes
    // errors.
    let read = Config::read(&run.config)
        .and_then(|text| Config::parse_file(&run.config, &text).map(|configs| (text, configs)));
    let upgrade = match &read {
        Ok((_, configs)) if configs.first().is_some_and(|config| config.process.upgrade) => {
            Upgrade { launcher: Some(Launcher::start().map_err(CommandError::Launcher)?), successor }
        }
        _ => Upgrade { launcher: None, successor },
    };
    let begun = match &read {
        Ok((_, configs)) => sandbox::begin(configs),
        Err(_) => Ok(None),
    };
    switch::log::start().map_err(CommandError::Log)?;
    prepared.map_err(DaemonError::from)?;
    let (text, mut configs) = read?;
    if let Some(note) = begun.map_err(DaemonError::from)? {
        switch::log::say(&format!("shunt: {note}"));
    }
    if let Some(config) = configs.first() {
        switch::log::configure(&config.process.log);
    }
    match (control, &mut configs[..]) {
        (None, _) => {}
        (Some(control), [only]) => only.control = control.into(),
        (Some(_), _) => return Err(CommandError::ControlOfSeveral(run.config.clone())),
    }
    // The path stays valid if the process gets another working directory.
    let path = std::path::absolute(&run.config).unwrap_or_else(|_| run.config.clone());
    let source = ConfigSource { path, text, control: control.map(Into::into) };
    Ok(daemon::run(source, &configs, run.flows.as_deref(), upgrade)?)
}

pub fn check(check: &Check) -> Done {
    let scope = if check.offline { Scope::Build } else { Scope::Machine };
    let configs = Config::load_for(&check.config, scope)?;
    if let (Some(path), [_, _, ..]) = (&check.flows, &configs[..]) {
        return Err(DaemonError::FlowsOfSeveral(path.clone()).into());
    }
    let mut changes = None;
    for config in &configs {
        if !check.offline {
            daemon::check_certificates(config)?;
            daemon::check_access(config)?;
        }
        changes = daemon::check(config, check.flows.as_deref())?;
    }
    let mut out = stdout();
    let ports = print::count(configs.iter().map(|config| config.datapath.ports.len()).sum(), "port");
    let workers = print::count(configs.iter().map(|config| config.workers.len()).sum(), "worker");
    let datapaths = if configs.len() > 1 { format!("{} datapaths, ", configs.len()) } else { String::new() };
    writeln!(out, "{}: OK; {datapaths}{ports}, {workers}", check.config.display())?;
    for note in configs.iter().flat_map(|config| &config.notes) {
        writeln!(out, "note: {note}")?;
    }
    if let (Some(flows), Some(changes)) = (&check.flows, changes) {
        writeln!(out, "{}: OK; {}", flows.display(), print::count(changes.added, "flow"))?;
    }
    Ok(out.flush()?)
}

/// Returns the path of the control socket: from `--control`, else from the configuration, else the default.
fn socket(control: Option<&Path>, config: Option<&Path>) -> Result<PathBuf, CommandError> {
    Ok(match (control, config) {
        (Some(path), _) => path.to_owned(),
        (None, Some(path)) => match &Config::load(path)?[..] {
            [only] => only.control.clone(),
            several => return Err(several_datapaths(path, several)),
        },
        (None, None) => DEFAULT_CONTROL.into(),
    })
}

fn several_datapaths(path: &Path, configs: &[Config]) -> CommandError {
    let sockets: Vec<String> = configs.iter().map(|config| config.control.display().to_string()).collect();
    CommandError::Several { path: path.into(), sockets: sockets.join(" ") }
}

pub fn connect(control: Option<&Path>, config: Option<&Path>) -> Result<Client, CommandError> {
    Ok(Client::connect(&socket(control, config)?)?)
}

pub fn top(top: &Top, control: Option<&Path>) -> Done {
    let path = socket(control, top.config.as_deref())?;
    let boards = if top.once { Some(1) } else { top.batch };
    crate::top::run(Client::connect(&path)?, &path.display().to_string(), boards)
}

pub fn show(show: &Show, control: Option<&Path>) -> Done {
    let mut client = connect(control, show.config.as_deref())?;
    let client = &mut client;
    match (show.what, show.json) {
        (What::Flows, false) => print_flows(client, FlowForm::Lines),
        (What::Flows, true) => print_flows(client, FlowForm::Rows),
        (What::Ports, json) => answer::<Ports>(client, &ControlRequest::Ports, json, print::ports),
        (What::Tables, json) => answer::<Tables>(client, &ControlRequest::Tables, json, print::tables),
        (What::Counters, json) => {
            answer::<CountersReport>(client, &ControlRequest::Counters, json, print::counters)
        }
        (What::Controllers, json) => answer::<ControllersReport>(
            client,
            &ControlRequest::Controllers,
            json,
            print::controllers::controllers,
        ),
        (What::Macs, json) => answer::<Macs>(client, &ControlRequest::Macs, json, print::macs),
        (What::Ffp, json) => answer::<Ffp>(client, &ControlRequest::Ffp, json, print::ffp),
        (What::Express, json) => {
            answer::<ExpressReport>(client, &ControlRequest::Express, json, print::express::express)
        }
        (What::Cache, json) => {
            answer::<CacheReport>(client, &ControlRequest::Cache, json, print::cache::cache)
        }
        (What::Device, json) => {
            answer::<DeviceReport>(client, &ControlRequest::Device, json, print::device::device)
        }
        (What::Store, json) => {
            answer::<StoreReport>(client, &ControlRequest::Store, json, print::store::store)
        }
        (What::Mirrors, json) => {
            answer::<MirrorsReport>(client, &ControlRequest::Mirrors, json, print::mirrors::mirrors)
        }
        (What::Stateless, json) => {
            answer::<StatelessReport>(client, &ControlRequest::Stateless, json, print::stateless)
        }
    }
}

fn answer<T: DeserializeOwned>(
    client: &mut Client,
    request: &ControlRequest,
    json: bool,
    print: fn(&mut dyn Write, &T) -> io::Result<()>,
) -> Done {
    let mut out = stdout();
    if json {
        let value: Value = client.ask(request)?;
        print::value(&mut out, &value)?;
    } else {
        print(&mut out, &client.ask(request)?)?;
    }
    Ok(out.flush()?)
}

fn print_flows(client: &mut Client, form: FlowForm) -> Done {
    let mut out = stdout();
    let mut written = Ok(());
    let asked = client.ask_parts(&ControlRequest::Flows { form }, |part: FlowPart| {
        written = print::flows(&mut out, &part);
        if written.is_ok() { Ok(()) } else { Err(ClientError::Stopped) }
    });
    written?;
    let _: Map<String, Value> = asked?;
    Ok(out.flush()?)
}

pub fn flows(flows: &Flows, control: Option<&Path>) -> Done {
    match flows {
        Flows::Load { file, config } => load(file, control, config.as_deref()),
        Flows::Dump { config } => print_flows(&mut connect(control, config.as_deref())?, FlowForm::File),
        Flows::Clear { config } => {
            let changes: Changes = connect(control, config.as_deref())?.ask(&ControlRequest::Clear)?;
            let (removed, added) =
                (print::count(changes.removed, "flow"), print::count(changes.added, "default flow"));
            say(&format!("{removed} deleted, {added} added"))
        }
    }
}

pub fn gates(gates: &GatesCommand, control: Option<&Path>) -> Done {
    let (request, config) = match gates {
        GatesCommand::Set { gates, down_d, up_d, external_d, server_gate_max, trusted, config } => {
            let form = GatesForm {
                down_d: (*down_d).into(),
                up_d: (*up_d).into(),
                external_d: (*external_d).into(),
                server_gate_max: (*server_gate_max).into(),
                ports: gates.iter().map(|gate| gate_of(gate)).collect::<Result<_, _>>()?,
            };
            let trusted = trusted.as_ref().map(|ports| ports.iter().copied().map(i64::from).collect());
            (ControlRequest::Gates { gates: Some(form), trusted }, config)
        }
        GatesCommand::Clear { config } => (ControlRequest::Gates { gates: None, trusted: None }, config),
        GatesCommand::Show { json, config } => {
            let shown: StatelessReport =
                connect(control, config.as_deref())?.ask(&ControlRequest::Stateless)?;
            let gates = shown.lane.and_then(|stateless| stateless.gates);
            let mut out = stdout();
            match (json, &gates) {
                (true, gates) => print::json(&mut out, gates)?,
                (false, Some(gates)) => print::gates(&mut out, gates)?,
                (false, None) => writeln!(out, "there are no gates")?,
            }
            return Ok(out.flush()?);
        }
    };
    let mut client = connect(control, config.as_deref())?;
    let _: Changes = client.ask(&request)?;
    match request {
        ControlRequest::Gates { gates: Some(form), .. } => {
            let shown: StatelessReport = client.ask(&ControlRequest::Stateless)?;
            let trusts = shown.lane.is_some_and(|stateless| !stateless.trusted.is_empty());
            let note =
                if trusts { "" } else { "; no port is trusted (--trusted), so tagged packets are dropped" };
            say(&format!("{} active{note}", print::count(form.ports.len(), "gate")))
        }
        _ => say("all gates are removed"),
    }
}

pub fn log(command: &LogCommand, control: Option<&Path>) -> Done {
    let (request, config, json) = match command {
        LogCommand::Show { json, config } => (ControlRequest::Log, config, *json),
        LogCommand::Set { module, level, config } => {
            let request = ControlRequest::SetLog { module: module.clone(), level: level.clone() };
            (request, config, false)
        }
    };
    let report: LogReport = connect(control, config.as_deref())?.ask(&request)?;
    if let LogCommand::Set { module, level, .. } = command {
        return say(&format!("the level of {module} is {level}"));
    }
    let mut out = stdout();
    match json {
        true => print::json(&mut out, &report)?,
        false => print::log(&mut out, &report)?,
    }
    Ok(out.flush()?)
}

/// Parses a gate, written as `PORT=NUMBER[:FLAG]`.
fn gate_of(text: &str) -> Result<(i64, i64, String), CommandError> {
    let read = || {
        let (port, gate) = text.split_once('=')?;
        let (number, flag) = gate.split_once(':').unwrap_or((gate, ""));
        Some((port.parse().ok()?, number.parse().ok()?, flag.to_owned()))
    };
    read().ok_or_else(|| {
        CommandError::Gate(format!(
            "\"{text}\" is not a gate; write PORT=NUMBER or PORT=NUMBER:FLAG, such as 1=2:server"
        ))
    })
}

fn load(path: &Path, control: Option<&Path>, config: Option<&Path>) -> Done {
    let mut client = connect(control, config)?;
    let loaded = if path == Path::new("-") {
        client.load(|take| read_pieces(io::stdin().lock(), PIECE_BYTES, take))
    } else {
        let opened =
            File::open(path).map_err(|source| CommandError::OpenFlows { path: path.into(), source })?;
        client.load(|take| read_pieces(BufReader::new(opened), PIECE_BYTES, take))
    };
    let changes: Changes = loaded.map_err(|source| CommandError::Load { path: path.into(), source })?;
    let added = print::count(changes.added, "flow");
    say(&format!("{added} added, {} modified, {} removed", changes.modified, changes.removed))
}

fn say(sentence: &str) -> Done {
    let mut out = stdout();
    writeln!(out, "{sentence}")?;
    Ok(out.flush()?)
}

pub fn trace(trace: &TraceArguments, control: Option<&Path>) -> Done {
    if trace.live {
        return trace_live(trace, control);
    }
    let packet = match &trace.pcap {
        Some(capture) => packet_of(capture, trace.packet, trace.in_port.map(Into::into))?,
        None => PacketForm {
            fields: trace.fields.clone(),
            hex: match trace.hex.as_deref() {
                Some("-") => {
                    Some(io::read_to_string(io::stdin().take(HEX_BYTES)).map_err(CommandError::Input)?)
                }
                hex => hex.map(str::to_owned),
            },
            in_port: trace.in_port.map(Into::into),
        },
    };
    let traced = match &trace.flows {
        Some(flows) => config::trace::from_file(flows, &packet)?,
        None => connect(control, trace.config.as_deref())?.ask(&ControlRequest::Trace { packet })?,
    };
    let mut out = stdout();
    if trace.json {
        print::json(&mut out, &traced)?;
    } else {
        print::trace::trace(&mut out, &traced)?;
    }
    Ok(out.flush()?)
}

fn trace_live(trace: &TraceArguments, control: Option<&Path>) -> Done {
    let live = Live {
        filter: trace.fields.clone().unwrap_or_default(),
        count: trace.count,
        timeout_ms: trace.timeout.saturating_mul(1_000),
    };
    let mut client = connect(control, trace.config.as_deref())?;
    let mut out = stdout();
    let mut written = Ok(());
    let asked = client.ask_parts(&ControlRequest::TraceLive { live }, |real: Real| {
        written = if trace.json { print::json(&mut out, &real) } else { print::live::real(&mut out, &real) };
        // Flush after each packet, so that the user sees it immediately.
        written = std::mem::replace(&mut written, Ok(())).and_then(|()| out.flush());
        if written.is_ok() { Ok(()) } else { Err(ClientError::Stopped) }
    });
    written?;
    let summary: LiveSummary = asked?;
    if trace.json {
        print::json(&mut out, &summary)?;
    } else {
        print::live::summary(&mut out, &summary)?;
    }
    out.flush()?;
    if summary.faults > 0 { Err(CommandError::Faults(summary.faults, summary.compared)) } else { Ok(()) }
}

pub fn replay(replay: &Replay) -> Done {
    let options = sim::replay::Options {
        in_port: replay.in_port.map(Into::into),
        ffp: replay.ffp == Switched::On,
        express: replay.express == Switched::On,
        port_cache: replay.port_cache,
        searcher: match replay.searcher {
            SearcherName::Inline => SearcherKind::Own,
            SearcherName::Worker => SearcherKind::Worker,
        },
        engine: replay.engine,
        ..sim::replay::Options::new(&replay.pcap, &replay.flows, &replay.out)
    };
    let summary = sim::replay::replay(&options)?;
    let mut out = stdout();
    write!(out, "{summary}")?;
    out.flush()?;
    if let Some(damage) = &summary.damage {
        // A closed stderr is not a failure, because the summary on stdout also reports the damage.
        let _ = writeln!(io::stderr(), "shunt: {}: the capture ends early: {damage}", replay.pcap.display());
    }
    Ok(())
}

pub fn sim(sim: &Sim) -> Done {
    let mut out = stdout();
    let mut done = Ok(());
    let express = sim.express.map(|express| express == Switched::On);
    let overrides = Overrides { seed: sim.seed, express, port_cache: sim.port_cache };
    match Scenario::load(&sim.scenario, &overrides)? {
        Scenario::Switch(scenario) => {
            let outcomes = scenario.run()?;
            match (sim.json, &outcomes[..]) {
                (true, [one]) => print::json(&mut out, one)?,
                (true, several) => print::json(&mut out, &BTreeMap::from([("switches", several)]))?,
                (false, [one]) => print::sim::outcome(&mut out, one)?,
                (false, several) => print::sim::comparison(&mut out, several)?,
            }
        }
        Scenario::Network(scenario) => {
            let outcome = scenario.run()?;
            match sim.json {
                true => print::json(&mut out, &outcome)?,
                false => print::network::outcome(&mut out, &outcome)?,
            }
            done = match (outcome.right, outcome.missed.is_empty()) {
                (false, _) => Err(CommandError::WrongNetwork),
                (true, false) => Err(CommandError::Missed(outcome.missed.join("; "))),
                (true, true) => Ok(()),
            };
        }
    }
    out.flush()?;
    done
}
