// SPDX-License-Identifier: Apache-2.0
//! Fast-forwarding path in the paper's scenarios; writes target/report/ffp.jsonl.

#[path = "ffp/against.rs"]
mod against;
#[path = "ffp/cost.rs"]
mod cost;
#[path = "ffp/course.rs"]
mod course;
#[path = "ffp/instructions.rs"]
mod instructions;
#[path = "ffp/tape.rs"]
mod tape;
#[path = "ffp/wire_speed.rs"]
mod wire_speed;

use std::error::Error;

use clap::{Parser, ValueEnum};
use shunt_bench::{Cached, ExpressOption, allowed_cpus, pin_to};

/// Measures the fast-forwarding path: all parts, unless options select some.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Run only cases whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Windows, or pairs of windows, per figure.
    #[arg(long, default_value_t = 200)]
    windows: usize,
    /// Measure only path records (on), or only the fast-forwarding path (off), instead of both.
    #[arg(long)]
    express: Option<ExpressOption>,
    /// Forward this many bursts of the first wire-speed case without output, for callgrind.
    #[arg(long)]
    turns: Option<u64>,
    /// With `--turns`: forward through tables of the paper's kind.
    #[arg(long, requires = "turns")]
    paper: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Shortest packets at the speed of a 10 Gbit/s link.
    WireSpeed,
    /// A switch with the path, compared with the same switch without the path. The peer has tables of the
    /// paper's kind, or Shunt's own tables.
    Against,
    /// Instructions per packet, compared with tables of the paper's kind.
    Instructions,
    /// Predictions of the cost model, compared with measurements.
    Model,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let ways = Cached::selected(arguments.express);
    if let Some(turns) = arguments.turns {
        let cached = if arguments.paper { Cached::Tables } else { ways[0] };
        return wire_speed::turn(&arguments.case, cached, turns);
    }
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let asked = |part| arguments.part.is_none_or(|only| only == part);
    if asked(Part::WireSpeed) {
        wire_speed::run(&arguments.case, ways, arguments.windows)?;
    }
    if asked(Part::Against) {
        against::run(&arguments.case, ways, arguments.windows)?;
    }
    if asked(Part::Instructions) {
        instructions::run(&arguments.case, ways)?;
    }
    if asked(Part::Model) {
        cost::run(&arguments.case, arguments.windows / 10)?;
    }
    Ok(())
}
