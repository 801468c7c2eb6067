// SPDX-License-Identifier: Apache-2.0
//! Time for 100,000 flow-mods, compared with Open vSwitch, and the delay of packets during that time.
//!
//! Both switches run in a network namespace and take turns. In a turn, all flows are deleted and then added;
//! the figure is the wall-clock time of the addition. ovs-ofctl waits for a barrier after each flow, but not
//! with `--bundle`. The third client sends all flow-mods and then one barrier. Each client is measured on a
//! separate core, and on the core of the switch.
//!
//! The delay of packets is the longest poll iteration of a worker while flow-mods arrive, in virtual time
//! (`sim::cost::churn`).

#[path = "flow_mods/client.rs"]
mod client;
#[path = "flow_mods/flows.rs"]
mod flows;
#[path = "flow_mods/switches.rs"]
mod switches;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use client::Batch;
use shunt_bench::{Bar, Comparison, Figure, Measure, Plan, Window, allowed_cpus, compare};
use sim::cost::{CostSource, churn};
use switches::{Cores, Switch};

/// Folder for the switches' files. A private file system is mounted on it.
const FOLDER: &str = "/run";

/// Measures every case, or the cases that options select, and writes target/report/flow_mods.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of flows.
    #[arg(long, default_value_t = 100_000)]
    flows: u32,
    /// Number of pairs of measurement windows. A verdict needs at least 6.
    #[arg(long, default_value_t = 6)]
    pairs: usize,
    /// Number of rounds for the figures in virtual time.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run only cases whose names contain this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Set if the program already runs in its namespaces.
    #[arg(long, hide = true)]
    inside: bool,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.inside {
        return Err(enter_namespaces()?.into());
    }
    done(Command::new("mount").args(["-t", "tmpfs", "tmpfs", FOLDER]))?;
    done(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    under_traffic(&arguments)?;
    against_open_vswitch(&arguments)
}

/// Measures the longest poll iterations of a worker while flow-mods arrive.
fn under_traffic(arguments: &Arguments) -> Result<()> {
    let plan = sim::cost::MeasurePlan { windows: 200, ..sim::cost::MeasurePlan::default() };
    let mut rounds: Vec<Vec<churn::Phase>> = Vec::new();
    for _ in 0..arguments.rounds {
        let mut phases: Vec<churn::Phase> = Vec::new();
        churn::run(arguments.flows, CostSource::Measured(plan), &arguments.case, |phase| phases.push(phase))?;
        rounds.push(phases);
    }
    for (at, phase) in rounds.first().into_iter().flatten().enumerate() {
        let of = |value: fn(&churn::Phase) -> f64| -> Vec<f64> {
            rounds.iter().filter_map(|phases| phases.get(at)).map(value).collect()
        };
        let case = format!("{}, {} flow-mods, {} at first", phase.name, phase.mods, phase.engine);
        let virtual_us = of(|phase| phase.turns.virtual_max_ns / 1e3);
        limited("longest turn, virtual time by p99.9 of costs", &case, "us", &virtual_us, Some(100.0))?;
        let real_us = of(|phase| phase.turns.real_operation_max_ns as f64 / 1e3);
        limited("longest turn with an operation, real time, gaps included", &case, "us", &real_us, None)?;
        let ratios = of(|phase| phase.costs.agreement.ratio());
        limited("sum of mean costs by real time", &case, "ratio", &ratios, None)?;
    }
    Ok(())
}

fn limited(figure: &str, case: &str, unit: &str, runs: &[f64], limit: Option<f64>) -> Result<()> {
    let figure = Figure::limited(figure, case, unit, runs, limit).ok_or("no rounds")?;
    figure.append(Path::new("target/report"), "flow_mods")?;
    writeln!(
        io::stdout(),
        "{}, {case}: {:.2} {unit} ({:.2} to {:.2})",
        figure.figure,
        figure.ours,
        figure.low,
        figure.high
    )?;
    Ok(())
}

/// Runs this program again in new namespaces, which remove devices and files at the end. Returns only on
/// failure.
fn enter_namespaces() -> Result<io::Error> {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--mount", "--"]).arg(std::env::current_exe()?);
    Ok(command.args(std::env::args_os().skip(1)).arg("--inside").exec())
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Flows to add: their name in the report, the file for ovs-ofctl, and the encoded flow-mods.
struct Flows {
    name: &'static str,
    file: PathBuf,
    batch: Batch,
}

fn against_open_vswitch(arguments: &Arguments) -> Result<()> {
    let count = arguments.flows;
    let sorts = [("5-tuples", flows::five_tuples(count)), ("of 6 masks", flows::mixed(count))];
    let sorts: Vec<Flows> = sorts
        .into_iter()
        .map(|(name, text)| {
            let file = Path::new(FOLDER).join(name.replace(' ', "-"));
            fs::write(&file, &text)?;
            Ok(Flows { name, file, batch: Batch::new(&text)? })
        })
        .collect::<Result<_>>()?;
    let cpus = allowed_cpus()?;
    let (first, last) = cpus.first().zip(cpus.last()).ok_or("no CPU is allowed")?;
    let apart = Cores { switch: *last, client: *first };
    let together = Cores { switch: *last, client: *last };
    for (place, cores) in [("a core each", apart), ("one core", together)] {
        if place == "a core each" && cpus.len() < 2 {
            continue;
        }
        let folder = Path::new(FOLDER).join(place.replace(' ', "-"));
        let ours = Switch::shunt(&folder, cores)?;
        let peer = Switch::open_vswitch(&folder, cores)?;
        for flows in &sorts {
            let case = format!("{count} flows, {}, {place}", flows.name);
            // Flows with several masks are measured on one core only, to save time.
            let left_out = flows.name != sorts[0].name && place != "one core";
            if left_out || !case.contains(&arguments.case) {
                continue;
            }
            let plan = Plan {
                attempts_max: arguments.pairs,
                warm_up: 0,
                measure: Measure::WallSeconds,
                ..Plan::new(arguments.pairs)
            };
            let by_ofctl = |options: &'static [&str]| {
                move |switch: &Switch| switch.add_by_ofctl(options, &flows.file, count)
            };
            let found = pairs(&plan, &ours, &peer, by_ofctl(&[]))?;
            report("ovs-ofctl add-flows", &case, &found)?;
            let found = pairs(&plan, &ours, &peer, by_ofctl(&["--bundle"]))?;
            report("ovs-ofctl --bundle add-flows", &case, &found)?;
            let found = pairs(&plan, &ours, &peer, |switch| switch.add_pipelined(&flows.batch, count))?;
            report("flow-mods, then one barrier", &case, &found)?;
            limited("flow-mods, then one barrier, alone", &case, "s", &[found.ours.median], Some(1.0))?;
        }
    }
    Ok(())
}

fn pairs(
    plan: &Plan,
    ours: &Switch,
    peer: &Switch,
    window: impl Fn(&Switch) -> Result<Window>,
) -> Result<Comparison> {
    let one = |switch| window(switch).map_err(|error| shunt_bench::Error::Contender(error.to_string()));
    Ok(compare(plan, &mut || one(ours), &mut || one(peer))?)
}

fn report(figure: &str, case: &str, found: &Comparison) -> Result<()> {
    let bar = Bar::AtMost(1.0);
    Figure::new(figure, case, "s", found, bar).append(Path::new("target/report"), "flow_mods")?;
    writeln!(
        io::stdout(),
        "{figure}, {case}: {:.3} s against {:.3} s, ratio {:.3} ({:.3} to {:.3}): {:?}",
        found.ours.median,
        found.peer.median,
        found.ratio,
        found.low,
        found.high,
        found.verdict(bar),
    )?;
    Ok(())
}
