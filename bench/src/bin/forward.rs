// SPDX-License-Identifier: Apache-2.0
//! Forwarding of one worker with in-memory ports, in Mpps per CPU-second of the forwarding thread.
//!
//! The time of a packet includes the driver's copy into a frame, the pipeline, the outbox, and the return of
//! the frame to its pool. 64-byte packets are 60 bytes and the FCS.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use engines::hash::Seed;
use rustix::process::{Signal, getpid, kill_process};
use shunt_bench::rig::{Case, Rig};
use shunt_bench::{
    Alone, Bar, Contender, EXPRESS_RECORDS, ExpressOption, Figure, GAP_LIMIT, Loop, Plan, Program,
    allowed_cpus, cases, compare, measure, pin_to,
};

/// Number of bursts per window, which takes about a millisecond.
const TURNS: u32 = 300;

/// Number of windows per figure.
const WINDOWS: usize = 300;

/// Number of pairs of windows when two builds are compared. Each window starts a program.
const PAIRS: usize = 100;

const UNIT: &str = "Mpps/CPU-s";

/// Seed of the key hash when instructions are counted.
const SEED: u64 = 1;

/// Measures every case, or the cases that options select, and writes target/report/forward.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only the case with this name. If no case has this name, run the cases whose names begin with it.
    #[arg(long)]
    case: Option<String>,
    /// Forward this many bursts, and print the number of packets, for strace or instruction counters.
    #[arg(long)]
    turns: Option<u64>,
    /// Send SIGUSR1 to this process before and after the bursts of `--turns`, for a tracer.
    #[arg(long, requires = "turns")]
    marks: bool,
    /// Use no vector instructions beyond those that every CPU has.
    #[arg(long)]
    portable: bool,
    /// Switch the express path on or off in all cases.
    #[arg(long)]
    express: Option<ExpressOption>,
    /// Print the names of the cases and exit.
    #[arg(long)]
    list: bool,
    /// Print one window as JSON; `--against` runs this in both builds.
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
    if let Some(express) = arguments.express {
        let records = if express == ExpressOption::On { EXPRESS_RECORDS } else { 0 };
        cases.iter_mut().for_each(|case| case.express_records = records);
    }
    let whole = cases.iter().any(|case| case.name == prefix);
    cases.retain(|case| if whole { case.name == prefix } else { case.name.starts_with(&prefix) });
    let first = cases.first().ok_or_else(|| format!("no case begins with \"{prefix}\""))?;
    if arguments.list {
        return cases.iter().try_for_each(|case| Ok(writeln!(io::stdout(), "{}", case.name)?));
    }
    pipeline::set_portable(arguments.portable);
    if let Some(turns) = arguments.turns {
        // The number of instructions of a lookup depends on the collisions of its hash.
        Seed::fix(SEED);
        let packets = turn(first, turns, arguments.marks)?;
        writeln!(io::stdout(), "{packets}")?;
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
            Some(other) => builds(case, other, arguments.express)?,
            None => alone(case, arguments.express)?,
        }
    }
    Ok(())
}

/// Forwards `turns` bursts of a case. Returns the number of packets received.
fn turn(case: &Case, turns: u64, marks: bool) -> Result<u64, Box<dyn Error>> {
    let mark = || if marks { kill_process(getpid(), Signal::USR1) } else { Ok(()) };
    let mut rig = Rig::repeatable(case)?;
    mark()?;
    let packets = (0..turns).map(|_| rig.turn()).sum();
    mark()?;
    Ok(packets)
}

fn contender(case: &Case) -> Result<impl Contender + use<>, Box<dyn Error>> {
    let mut rig = Rig::new(case)?;
    let queues = case.sources.len() as u32;
    // With small bursts, a window has more poll iterations and the same number of packets.
    let turns = TURNS * 32 / (case.burst as u32 * queues);
    // One poll iteration receives a burst from each queue.
    Ok(Loop::new(turns, move || rig.turn()).gap_limit(GAP_LIMIT * queues))
}

/// Measures a case without a peer and appends the figure to the report.
fn alone(case: &Case, express: Option<ExpressOption>) -> Result<(), Box<dyn Error>> {
    let found: Alone = measure(&Plan::new(WINDOWS), &mut contender(case)?)?;
    let set = express.map(|express| format!(", express path {}", express.word())).unwrap_or_default();
    let name = format!("{}{set}", case.name);
    Figure::alone("forward", &name, UNIT, &found).append(Path::new("target/report"), "forward")?;
    writeln!(
        io::stdout(),
        "forward, {name}: {:.2} {UNIT} ({:.2} to {:.2}), {} windows, {} set aside",
        found.median,
        found.low,
        found.high,
        found.runs,
        found.set_aside,
    )?;
    Ok(())
}

/// Measures this build against another.
fn builds(case: &Case, other: &Path, express: Option<ExpressOption>) -> Result<(), Box<dyn Error>> {
    let run = |program: &Path| {
        let mut words = vec![program.to_string_lossy().into_owned()];
        words.extend(["--window", "--case", case.name.as_str()].map(String::from));
        // Pass the option only if it is given, because the other build may not have it.
        words.extend(express.map(|express| format!("--express={}", express.word())));
        Program::new(words)
    };
    let (mut ours, mut peer) = (run(&std::env::current_exe()?), run(other));
    let found = compare(&Plan::new(PAIRS), &mut ours, &mut peer)?;
    writeln!(
        io::stdout(),
        "forward, {}: {}: {:?}",
        case.name,
        found.in_words(UNIT),
        found.verdict(Bar::AtLeast(0.98))
    )?;
    Ok(())
}
