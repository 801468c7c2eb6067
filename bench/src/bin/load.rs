// SPDX-License-Identifier: Apache-2.0
//! One million exact entries: load time, memory, and the delay of packets while all entries are deleted at
//! once. Each round runs in a separate process, so that memory is counted from the start.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use clap::Parser;
use serde::{Deserialize, Serialize};
use shunt_bench::Figure;
use sim::cost::{CostSource, MeasurePlan, stall};

/// Loads entries and deletes them while packets flow; writes target/report/load.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of entries.
    #[arg(long, default_value_t = 1_000_000)]
    entries: u32,
    /// Number of rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Run one round. Prints a summary to stderr and the figures as JSON to stdout.
    #[arg(long)]
    one: bool,
}

/// Figures of one round.
#[derive(Debug, Serialize, Deserialize)]
struct Round {
    load_s: f64,
    load_cpu_s: f64,
    entry_bytes: f64,
    virtual_max_us: f64,
    real_max_us: f64,
    submit_ms: f64,
    cost_ratio: f64,
    unlawful: f64,
}

/// Name and unit of a figure, its upper limit, and its value in a round.
type Line = (&'static str, &'static str, Option<f64>, fn(&Round) -> f64);

const FIGURES: [Line; 8] = [
    ("load from flows", "s", Some(10.0), |round| round.load_s),
    ("load from flows, CPU time", "s", None, |round| round.load_cpu_s),
    ("memory", "bytes/entry", None, |round| round.entry_bytes),
    ("longest turn in a delete of all, virtual time", "us", Some(200.0), |round| round.virtual_max_us),
    ("turn that applies a delete of all, real time", "us", None, |round| round.real_max_us),
    ("delete of all, control thread", "ms", None, |round| round.submit_ms),
    ("sum of costs by real time", "ratio", None, |round| round.cost_ratio),
    ("stale or stray verdicts in a delete of all", "packets", Some(0.0), |round| round.unlawful),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.one {
        return one(arguments.entries);
    }
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--one", "--entries", &arguments.entries.to_string()]);
        let output = command.stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("a round failed: {}", output.status).into());
        }
        rounds.push(serde_json::from_slice::<Round>(&output.stdout)?);
    }
    let case = format!("{} exact entries", arguments.entries);
    for (name, unit, limit, value) in FIGURES {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        let figure = Figure::limited(name, &case, unit, &values, limit).ok_or("no rounds")?;
        figure.append(Path::new("target/report"), "load")?;
        writeln!(
            io::stdout(),
            "{name}: {:.3} {unit} ({:.3} to {:.3})",
            figure.ours,
            figure.low,
            figure.high
        )?;
    }
    Ok(())
}

fn one(entries: u32) -> Result<(), Box<dyn Error>> {
    let report =
        stall::run(entries, CostSource::Measured(MeasurePlan { windows: 200, ..MeasurePlan::default() }))?;
    writeln!(io::stderr(), "{report}")?;
    let round = Round {
        load_s: report.load_total().as_secs_f64(),
        load_cpu_s: report.cpu.as_secs_f64(),
        entry_bytes: report.entry_bytes,
        virtual_max_us: report.turns.virtual_max_ns / 1e3,
        real_max_us: report.turns.real_operation_max_ns as f64 / 1e3,
        submit_ms: report.submit.as_secs_f64() * 1e3,
        cost_ratio: report.costs.agreement.ratio(),
        unlawful: if report.is_lawful() { 0.0 } else { (report.stale + report.astray).max(1) as f64 },
    };
    writeln!(io::stdout(), "{}", serde_json::to_string(&round)?)?;
    Ok(())
}
