// SPDX-License-Identifier: Apache-2.0
//! Low-latency traffic beside normal traffic, in virtual time by costs measured in the same run; writes
//! target/report/lanes.jsonl.

#[path = "lanes/overload.rs"]
mod overload;
#[path = "lanes/report.rs"]
mod report;
#[path = "lanes/traffic.rs"]
mod traffic;

use std::error::Error;

use clap::{Parser, ValueEnum};
use shunt_bench::scenario::Kind;
use shunt_bench::{allowed_cpus, pin_to};
use sim::cost::Plan;

/// Without options: everything.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Only scenarios whose names begin so.
    #[arg(long, default_value = "")]
    case: String,
    /// Rules of each of the two large tables.
    #[arg(long, default_value_t = 1_000)]
    rules: usize,
    /// How often costs are measured and packets sent; a figure is the rounds' median.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Windows in which costs are measured.
    #[arg(long, default_value_t = 400)]
    windows: usize,
    /// Print costs, and what became of each class.
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Normal traffic of more than the worker can carry.
    Overload,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let plan = Plan { windows: arguments.windows, ..Plan::default() };
    let asked = |part| arguments.part.is_none_or(|only| only == part);
    for kind in Kind::ALL.into_iter().filter(|kind| kind.name().starts_with(&arguments.case)) {
        if asked(Part::Overload) {
            overload::run(kind, arguments.rules, arguments.rounds, plan, arguments.verbose)?;
        }
    }
    Ok(())
}
