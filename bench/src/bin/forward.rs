// SPDX-License-Identifier: Apache-2.0
//! Forwarding of one worker with in-memory ports: Mpps per CPU-second of the forwarding thread.
//!
//! A unit is a packet received, judged and sent or dropped: the driver's copy into a frame, the pipeline, the outbox,
//! and the frame's way home are all inside. 64-byte packets are 60 bytes and the FCS.

#[path = "forward/cases.rs"]
mod cases;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use shunt_bench::rig::{Case, Rig};
use shunt_bench::{
    Alone, Bar, Contender, Figure, GAP_LIMIT, Loop, Plan, Program, allowed_cpus, compare, measure, pin_to,
};

/// Bursts of a window: about a millisecond.
const TURNS: u32 = 300;

/// Windows of a figure.
const WINDOWS: usize = 300;

/// Pairs of windows of two builds; each window starts a program.
const PAIRS: usize = 100;

const UNIT: &str = "Mpps/CPU-s";

/// Without options: every case, into target/report/forward.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only the case of this name, else those whose names begin with it.
    #[arg(long)]
    case: Option<String>,
    /// Forward this many bursts and say nothing: for strace and callgrind.
    #[arg(long)]
    turns: Option<u64>,
    /// Print one window as JSON: what `--against` runs of both builds.
    #[arg(long)]
    window: bool,
    /// Compare with another build of this program, in paired windows.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let prefix = arguments.case.unwrap_or_default();
    let mut cases = cases::all();
    let whole = cases.iter().any(|case| case.name == prefix);
    cases.retain(|case| if whole { case.name == prefix } else { case.name.starts_with(&prefix) });
    let first = cases.first().ok_or_else(|| format!("no case begins with \"{prefix}\""))?;
    if let Some(turns) = arguments.turns {
        let mut rig = Rig::new(first)?;
        for _ in 0..turns {
            rig.turn();
        }
        return Ok(());
    }
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    if arguments.window {
        let mut contender = contender(first)?;
        contender.window()?;
        let window = contender.window()?;
        writeln!(io::stdout(), "{}", serde_json::to_string(&window)?)?;
        return Ok(());
    }
    for case in &cases {
        match &arguments.against {
            Some(other) => builds(case, other)?,
            None => alone(case)?,
        }
    }
    Ok(())
}

fn contender(case: &Case) -> Result<impl Contender + use<>, Box<dyn Error>> {
    let mut rig = Rig::new(case)?;
    let queues = case.sources.len() as u32;
    // Small bursts get as many packets into a window as large ones.
    let turns = TURNS * 32 / (case.burst as u32 * queues);
    // A turn has a burst of each queue.
    Ok(Loop::new(turns, move || rig.turn()).gap_limit(GAP_LIMIT * queues))
}

/// Measures a case by itself and puts it down in the report.
fn alone(case: &Case) -> Result<(), Box<dyn Error>> {
    let found: Alone = measure(&Plan::new(WINDOWS), &mut contender(case)?)?;
    Figure::alone("forward", &case.name, UNIT, &found).append(Path::new("target/report"), "forward")?;
    writeln!(
        io::stdout(),
        "forward, {}: {:.2} {UNIT} ({:.2} to {:.2}), {} windows, {} set aside",
        case.name,
        found.median,
        found.low,
        found.high,
        found.runs,
        found.set_aside,
    )?;
    Ok(())
}

/// Measures this build against another.
fn builds(case: &Case, other: &Path) -> Result<(), Box<dyn Error>> {
    let run = |program: &Path| {
        Program::new([&program.to_string_lossy(), "--window", "--case", case.name.as_str()].map(String::from))
    };
    let (mut ours, mut peer) = (run(&std::env::current_exe()?), run(other));
    let found = compare(&Plan::new(PAIRS), &mut ours, &mut peer)?;
    writeln!(
        io::stdout(),
        "forward, {}: {:.2} {UNIT} against {:.2}, ratio {:.3} ({:.3} to {:.3}), {} pairs, {} set aside: {:?}",
        case.name,
        found.ours.median,
        found.peer.median,
        found.ratio,
        found.low,
        found.high,
        found.runs,
        found.set_aside,
        found.verdict(Bar::AtLeast(0.98)),
    )?;
    Ok(())
}
