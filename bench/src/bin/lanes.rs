// SPDX-License-Identifier: Apache-2.0
//! Low-latency traffic together with normal traffic, in virtual time with costs measured in the same run.
//! Writes target/report/lanes.jsonl.

#[path = "lanes/approaches.rs"]
mod approaches;
#[path = "lanes/counts.rs"]
mod counts;
#[path = "lanes/export.rs"]
mod export;
#[path = "lanes/mixed.rs"]
mod mixed;
#[path = "lanes/overload.rs"]
mod overload;
#[path = "lanes/report.rs"]
mod report;
#[path = "lanes/round_trip.rs"]
mod round_trip;
#[path = "lanes/traffic.rs"]
mod traffic;

use std::error::Error;

use clap::{Parser, Subcommand, ValueEnum};
use shunt_bench::scenario::Kind;
use shunt_bench::{Cached, ExpressOption, allowed_cpus, pin_to};
use sim::cost::MeasurePlan;

/// Number of poll iterations before each window of the cost measurement. They bring a switch's tables and
/// records back into the CPU caches, because the windows of the compared switches alternate.
const LEAD_TURNS: usize = 200;

/// Measures the lanes: all parts, unless options select some.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Run only scenarios whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Number of rules in each of the two large tables.
    #[arg(long, default_value_t = 1_000)]
    rules: usize,
    /// Number of rounds. Each round measures costs and sends packets; a figure is the median of the rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Number of windows in which costs are measured.
    #[arg(long, default_value_t = 800)]
    windows: usize,
    /// Number of low-latency packets in the round-trip measurement of each scenario.
    #[arg(long, default_value_t = 1_000_000)]
    packets: u64,
    /// Measure the lanes with the express path (on) or without it (off). Without the option, `mixed` and
    /// `approaches` have rows for both, and other parts have no express path.
    #[arg(long)]
    express: Option<ExpressOption>,
    /// Print the costs, and the results of each class.
    #[arg(long)]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Forward traffic without output, for callgrind.
    Count(counts::Counted),
    /// Write the first scenario as files that `shunt sim` runs.
    Export(export::Export),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Normal traffic above the worker's capacity.
    Overload,
    /// Different shares of low-latency traffic below saturation, compared with tables without the path.
    Mixed,
    /// Instructions and cache misses per normal packet.
    Counts,
    /// Round trips of a very large number of low-latency packets.
    RoundTrip,
    /// Round trips of low-latency and normal packets through switches of different kinds.
    Approaches,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut kinds = Kind::ALL.into_iter().filter(|kind| kind.name().starts_with(&arguments.case));
    let rules = arguments.rules;
    let express = arguments.express == Some(ExpressOption::On);
    let ways = Cached::selected(arguments.express);
    match &arguments.command {
        Some(Command::Count(counted)) => return counts::turn(counted),
        Some(Command::Export(to)) => {
            let kind = kinds.next().ok_or("no scenario's name begins with the value of --case")?;
            return export::write(to, kind, rules, express);
        }
        None => {}
    }
    let cpus = allowed_cpus()?;
    pin_to(*cpus.last().ok_or("no CPU is allowed")?)?;
    let plan =
        MeasurePlan { windows: arguments.windows, turns: 16, lead: LEAD_TURNS, ..MeasurePlan::default() };
    let asked = |part| arguments.part.is_none_or(|only| only == part);
    for kind in kinds {
        if asked(Part::Overload) {
            overload::run(kind, rules, express, arguments.rounds, plan, arguments.verbose)?;
        }
        if asked(Part::Mixed) {
            mixed::run(kind, rules, ways, arguments.rounds, plan, arguments.verbose)?;
        }
        if asked(Part::Counts) {
            counts::run(kind, rules)?;
        }
        if asked(Part::RoundTrip) {
            let size = round_trip::Size { rules, express, packets: arguments.packets };
            round_trip::run(kind, size, &cpus, plan, arguments.verbose)?;
        }
        if asked(Part::Approaches) {
            approaches::run(kind, rules, arguments.rounds, plan)?;
        }
    }
    Ok(())
}
