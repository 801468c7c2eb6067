// SPDX-License-Identifier: Apache-2.0
//! Cost of adding 10,000 rules per second to a table of 10,000 rules while low-latency packets arrive, for
//! each consistency mode of the LUTs. Reports the worker's time per rule and the largest additional delay of
//! a packet, in virtual time (`sim::cost::updates`).

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use clap::Parser;
use shunt_bench::{Figure, allowed_cpus, pin_to};
use sim::cost::MeasurePlan;
use sim::cost::updates::{Case, Report, UpdateRules, run};
use worker::Consistency;

/// Writes target/report/consistency.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of rules in the table before the run.
    #[arg(long, default_value_t = 10_000)]
    rules: usize,
    /// Number of rules added in total, and per second.
    #[arg(long, default_value_t = 10_000)]
    adds: usize,
    /// Number of runs of each case.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run only cases whose names contain this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Print the costs of each step.
    #[arg(long)]
    verbose: bool,
}

/// Name and unit of a figure, its upper limit, and its value in a report.
type Line = (&'static str, &'static str, Option<f64>, fn(&Report) -> f64);

const FIGURES: [Line; 5] = [
    ("most that a rule delays a packet, virtual time", "us", Some(20.0), |report| report.delay_max_ns / 1e3),
    ("wrong verdicts", "packets", Some(0.0), |report| report.wrong as f64),
    ("worker time per rule, at once", "ns", None, |report| report.at_once_ns),
    ("worker time per rule, at later hits", "ns", None, |report| report.later_ns),
    ("packets all the way over the path", "%", None, |report| {
        100.0 * report.fast as f64 / report.packets as f64
    }),
];

/// Number of records of a LUT, number of flows with a record, and number of rules added at once.
const SIZES: [(usize, usize, usize); 3] = [(4_096, 3_000, 1), (4_096, 3_000, 16), (65_536, 45_000, 1)];

/// Minimum number of windows without preemption; a round with fewer is repeated.
const WINDOWS_LEAST: usize = 40;
/// Maximum number of attempts per round.
const ROUNDS_TRIED: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    for rules in [UpdateRules::AccessList, UpdateRules::Routes] {
        for (lut_entries, flows, together) in SIZES {
            for consistency in Consistency::ALL {
                let (name, before) = (rules.name(), arguments.rules);
                let case = format!(
                    "{consistency}: {name} of {before}, {together} at a time, {flows} flows, LUT of {lut_entries}"
                );
                if !case.contains(&arguments.case) {
                    continue;
                }
                let (added, rate, plan) = (arguments.adds, arguments.adds as u64, MeasurePlan::default());
                let options =
                    Case { rules, before, added, rate, together, flows, lut_entries, consistency, plan };
                let mut reports = Vec::new();
                for _ in 0..ROUNDS_TRIED * arguments.rounds {
                    let report = run(&options)?;
                    if report.costs.agreement.windows >= WINDOWS_LEAST {
                        reports.push(report);
                    }
                    if reports.len() == arguments.rounds {
                        break;
                    }
                }
                tell(&case, &reports, arguments.verbose)?;
            }
        }
    }
    Ok(())
}

fn tell(case: &str, reports: &[Report], verbose: bool) -> Result<(), Box<dyn Error>> {
    let last = reports.last().ok_or("costs could not be measured in any round")?;
    if verbose {
        writeln!(io::stdout(), "{}{:?}", last.costs, last.luts)?;
    }
    writeln!(io::stdout(), "{case} ({}, {:.1} Mpps):", last.engine, last.packets_per_s / 1e6)?;
    for (name, unit, limit, value) in FIGURES {
        let values: Vec<f64> = reports.iter().map(value).collect();
        let figure = Figure::limited(name, case, unit, &values, limit).ok_or("no rounds")?;
        figure.append(Path::new("target/report"), "consistency")?;
        let Figure { ours, low, high, .. } = figure;
        writeln!(io::stdout(), "  {name}: {ours:.1} {unit} ({low:.1} to {high:.1})")?;
    }
    Ok(())
}
