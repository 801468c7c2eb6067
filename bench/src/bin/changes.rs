// SPDX-License-Identifier: Apache-2.0
//! Measures packets with path records while rules change, while all entries are dumped, and while statistics
//! are requested. One thread runs a worker, and a thread on another core works on the model. Writes
//! target/report/changes.jsonl.

#[path = "changes/clock.rs"]
mod clock;
#[path = "changes/control.rs"]
mod control;
#[path = "changes/delays.rs"]
mod delays;
#[path = "changes/parts.rs"]
mod parts;
#[path = "changes/rules.rs"]
mod rules;
#[path = "changes/side.rs"]
mod side;
#[cfg(test)]
#[path = "changes/tests.rs"]
mod tests;
#[path = "changes/traffic.rs"]
mod traffic;

use std::error::Error;

use clap::{Parser, ValueEnum};
use shunt_bench::scenario::Popularity;

/// Measures how the work of the control thread affects packets with path records. Runs all parts, unless an
/// option selects one.
///
/// Needs two CPUs. A quick run, which only checks that all parts work: changes --rounds 2 --seconds 0.2
/// --windows 6 --entries 20000
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Run only this part of the benchmark.
    #[arg(long)]
    part: Option<Part>,
    /// Number of flows; each has a path record.
    #[arg(long, default_value_t = 10_000)]
    flows: usize,
    /// How often each flow sends.
    #[arg(long, default_value = "zipf")]
    popularity: Share,
    /// Number of routes in the parts `changes` and `statistics`.
    #[arg(long, default_value_t = 10_000)]
    routes: usize,
    /// Number of entries that a dump returns.
    #[arg(long, default_value_t = 100_000)]
    entries: usize,
    /// Number of rule changes per second.
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    /// One of this many changes adds a rule on a field that no other rule examines.
    #[arg(long, default_value_t = 100)]
    share: usize,
    /// Number of single-flow statistics requests per second.
    #[arg(long, default_value_t = 1_000)]
    requests: u64,
    /// Rate of the packets whose delays are measured, as a share of the rate that the slower side forwards.
    #[arg(long, default_value_t = 0.5)]
    load: f64,
    /// Number of rounds in which delays are measured. Each round has a window with requests and a window
    /// without them.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Length of a window in which delays are measured, in seconds of the worker's clock.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Number of pairs of windows in which packets per second are measured.
    #[arg(long, default_value_t = 40)]
    windows: usize,
    /// Print the results of each window.
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Share {
    /// Flows send according to Zipf's law with exponent 1.
    Zipf,
    /// Flows send in turn, so that as many rules as possible change between two hits of a record.
    Turn,
}

impl Share {
    fn popularity(self) -> Popularity {
        match self {
            Self::Zipf => Popularity::Zipf(1.0),
            Self::Turn => Popularity::InTurn,
        }
    }

    /// Returns the description for the names of cases.
    fn words(self) -> &'static str {
        match self {
            Self::Zipf => "by Zipf 1.0",
            Self::Turn => "in turn",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Rule changes, compared with no changes.
    Changes,
    /// Rule changes and dumps of all entries, compared with rule changes alone.
    Dump,
    /// Statistics requests, compared with no requests.
    Statistics,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let asked = |part| arguments.part.is_none_or(|only| only == part);
    if asked(Part::Changes) {
        parts::changes(&arguments)?;
    }
    if asked(Part::Dump) {
        parts::dump(&arguments)?;
    }
    if asked(Part::Statistics) {
        parts::statistics(&arguments)?;
    }
    Ok(())
}
