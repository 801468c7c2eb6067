// SPDX-License-Identifier: Apache-2.0
//! The fast-forwarding path on the paper's scenarios; writes target/report/ffp.jsonl.

#[path = "ffp/against.rs"]
mod against;
#[path = "ffp/cost.rs"]
mod cost;
#[path = "ffp/course.rs"]
mod course;
#[path = "ffp/tape.rs"]
mod tape;
#[path = "ffp/wire_speed.rs"]
mod wire_speed;

use std::error::Error;

use clap::{Parser, ValueEnum};
use shunt_bench::{allowed_cpus, pin_to};

/// Without options: everything.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Only cases whose names begin so.
    #[arg(long, default_value = "")]
    case: String,
    /// Windows, or pairs of windows, a figure.
    #[arg(long, default_value_t = 200)]
    windows: usize,
    /// Forward this many bursts of the first case of wire speed and say nothing: for callgrind.
    #[arg(long)]
    turns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The shortest packets at 10 Gbit/s.
    WireSpeed,
    /// Against the same switch without the path, with tables of the paper's kind and with our own.
    Against,
    /// The cost model against measurement.
    Model,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if let Some(turns) = arguments.turns {
        return wire_speed::turn(&arguments.case, turns);
    }
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let asked = |part| arguments.part.is_none_or(|only| only == part);
    if asked(Part::WireSpeed) {
        wire_speed::run(&arguments.case, arguments.windows)?;
    }
    if asked(Part::Against) {
        against::run(&arguments.case, arguments.windows)?;
    }
    if asked(Part::Model) {
        cost::run(&arguments.case, arguments.windows / 10)?;
    }
    Ok(())
}
