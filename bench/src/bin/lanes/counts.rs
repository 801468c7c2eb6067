// SPDX-License-Identifier: Apache-2.0
//! What normal packets cost beside the path and the lanes, in instructions and simulated misses of the last cache: against
//! our own tables without either, under callgrind.

use std::error::Error;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use frame::Frame;
use port::Queue;
use port::mem::LoopQueue;
use shunt_bench::rig::{Limited, Rig};
use shunt_bench::scenario::Kind;

use crate::report::against;
use crate::traffic::{LUT_ENTRIES, Normal, Traffic};

/// Turns between which is counted: first-seen flows do not come round in them.
const TURNS: [u32; 2] = [200, 600];

/// Packets of a turn.
const BURST: usize = 32;

/// The caches that are simulated: a core's own, and what it may have of the last one.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// Most that normal packets may cost more.
fn bar(which: Normal) -> f64 {
    match which {
        Normal::Repeating => 1.02,
        Normal::FirstSeen => 1.08,
    }
}

/// Whose cost is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// With the path and the lanes.
    Ours,
    /// Our own tables alone.
    Tables,
}

/// Forwards so many turns and says nothing: for callgrind.
pub fn turn(kind: Kind, rules: usize, which: Normal, side: Side, turns: u32) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, 64)?;
    let switch = traffic.switch(if side == Side::Ours { LUT_ENTRIES } else { 0 }, None);
    let packets = traffic.packets(which, (TURNS[1] as usize + 1) * BURST);
    let mut set: Vec<Frame> = packets.into_iter().map(Frame::from_bytes).collect();
    let queues = (1..=switch.ports).map(|number| {
        let queue = LoopQueue::new(number, std::mem::take(&mut set));
        Box::new(Limited { queue, burst: BURST }) as Box<dyn Queue>
    });
    let mut rig: Rig = Rig::with_queues(&switch.config, queues.collect(), switch.rules, None)?;
    // All that can be learned is; or next to nothing.
    rig.warm_up(if which == Normal::Repeating { 2 * TURNS[1] as usize } else { 1 });
    for _ in 0..turns {
        rig.turn();
    }
    Ok(())
}

/// Counts one scenario.
pub fn run(kind: Kind, rules: usize) -> Result<(), Box<dyn Error>> {
    for which in Normal::ALL {
        let case = format!("{}, {rules} rules, {}", kind.name(), which.name());
        let (Some(ours), Some(tables)) =
            (counted(kind, rules, which, Side::Ours)?, counted(kind, rules, which, Side::Tables)?)
        else {
            writeln!(io::stderr(), "lanes: without valgrind nothing is counted")?;
            return Ok(());
        };
        for (at, what) in ["instructions", "last-level misses"].into_iter().enumerate() {
            let figure = format!("{what} of a normal packet, against own tables alone");
            against(&figure, &case, what, &[(ours[at], tables[at])], Some(bar(which)))?;
        }
    }
    Ok(())
}

/// Instructions and misses of a packet: of runs of two lengths, so that what comes before cancels out. None where there is
/// no valgrind.
fn counted(kind: Kind, rules: usize, which: Normal, side: Side) -> Result<Option<[f64; 2]>, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let named = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let mut counts = [[0.0; 2]; TURNS.len()];
    for (count, turns) in counts.iter_mut().zip(TURNS) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"]).args(CACHES);
        command.arg(&program).args(["--case", kind.name(), "--rules", &rules.to_string()]);
        command.args(["--turns", &turns.to_string()]);
        command.args(["--normal", &named(&|| which.to_possible_value())]);
        command.args(["--side", &named(&|| side.to_possible_value())]);
        let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let fault = || format!("callgrind told no counts: {}", text.lines().last().unwrap_or_default());
        *count = parse(&text).ok_or_else(fault)?;
    }
    let packets = f64::from(TURNS[1] - TURNS[0]) * BURST as f64;
    Ok(Some([0, 1].map(|at| (counts[1][at] - counts[0][at]) / packets)))
}

/// Instructions, and misses of the last cache for instructions, reads and writes together.
fn parse(text: &str) -> Option<[f64; 2]> {
    let after = |mark: &str| text.split(mark).nth(1)?.lines().next();
    let (names, numbers) = (after("Events    :")?, after("Collected :")?);
    let pairs = names.split_whitespace().zip(numbers.split_whitespace());
    let all = pairs.map(|(name, number)| Some((name, number.parse().ok()?)));
    let all = all.collect::<Option<Vec<(&str, f64)>>>()?;
    let sum = |wanted: &[&str]| -> f64 {
        all.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, count)| count).sum()
    };
    Some([sum(&["Ir"]), sum(&["ILmr", "DLmr", "DLmw"])])
}
