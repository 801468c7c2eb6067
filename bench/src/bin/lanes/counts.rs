// SPDX-License-Identifier: Apache-2.0
//! Cost of normal packets with path and lanes enabled, compared with Shunt's tables alone. Callgrind measures
//! instructions and simulated misses of the last-level cache.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use frame::Frame;
use port::Queue;
use port::mem::LoopQueue;
use shunt_bench::rig::{Limited, Rig};
use shunt_bench::scenario::Kind;
use wire::capture::CaptureReader;

use crate::export::capture;
use crate::report::against;
use crate::traffic::{self, Normal, Traffic};

/// Returns the number of poll iterations of each of the two runs. Repeating flows are learned before the
/// shorter run ends. First-seen flows do not repeat.
fn turns(which: Normal) -> [u32; 2] {
    match which {
        Normal::Repeating => [1_200, 1_600],
        Normal::FirstSeen => [400, 800],
    }
}

/// Number of packets per poll iteration. The worker treats a full burst as overload, so this is one packet
/// less.
const BURST: usize = 31;

/// Simulated caches: the first-level caches of a core, and its share of the last-level cache.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// Upper limit of the cost ratio of normal packets.
fn bar(which: Normal) -> f64 {
    match which {
        Normal::Repeating => 1.02,
        Normal::FirstSeen => 1.08,
    }
}

/// A run whose cost is counted.
#[derive(Debug, Args)]
pub struct Counted {
    /// File of the rules.
    rules: PathBuf,
    /// Capture of the packets.
    packets: PathBuf,
    /// Configuration to count: the fast-forwarding path with lanes, or the tables alone.
    #[arg(long)]
    side: Side,
    /// Number of bursts to forward.
    #[arg(long)]
    turns: u32,
}

/// Configuration whose cost is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// With fast-forwarding path and lanes.
    Ours,
    /// Shunt's tables alone.
    Tables,
}

/// Forwards bursts with the rules of one file and the packets of another, without output. Run under
/// callgrind.
pub fn turn(counted: &Counted) -> Result<(), Box<dyn Error>> {
    let rules = fs::read_to_string(&counted.rules)?;
    let mut set: Vec<Frame> = Vec::new();
    let mut reader = CaptureReader::open(&counted.packets)?;
    while let Some(packet) = reader.next_packet()? {
        set.push(Frame::from_bytes(packet.bytes));
    }
    let config = if counted.side == Side::Ours { traffic::ours(false) } else { traffic::tables() };
    let queues = (1..=traffic::BACK).map(|number| {
        let queue = LoopQueue::new(number, std::mem::take(&mut set));
        Box::new(Limited { queue, burst: BURST }) as Box<dyn Queue>
    });
    let mut rig: Rig = Rig::with_queues(&config, queues.collect(), &rules, None)?;
    for _ in 0..counted.turns {
        rig.turn();
    }
    Ok(())
}

/// Counts the cost in one scenario.
pub fn run(kind: Kind, rules: usize) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, 1)?;
    let folder = std::env::temp_dir().join(format!("shunt-lanes-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let found = count(&traffic, kind, rules, &folder);
    fs::remove_dir_all(&folder)?;
    found
}

fn count(traffic: &Traffic, kind: Kind, rules: usize, folder: &Path) -> Result<(), Box<dyn Error>> {
    let rules_file = folder.join("rules");
    fs::write(&rules_file, traffic.rules())?;
    for which in Normal::ALL {
        let packets_file = folder.join("packets");
        let [begin, end] = turns(which);
        let packets = traffic.packets(which, (end as usize + 1) * BURST);
        capture(&packets_file, packets.into_iter())?;
        let counted =
            |side, turns| Counted { rules: rules_file.clone(), packets: packets_file.clone(), side, turns };
        let case = format!("{}, {rules} rules, {}", kind.name(), which.name());
        let (Some(ours), Some(tables)) = (
            costs([begin, end], |turns| counted(Side::Ours, turns))?,
            costs([begin, end], |turns| counted(Side::Tables, turns))?,
        ) else {
            writeln!(io::stderr(), "lanes: nothing is counted, because valgrind is not installed")?;
            return Ok(());
        };
        for (at, what) in ["instructions", "last-level misses"].into_iter().enumerate() {
            let figure = format!("{what} of a normal packet, against own tables alone");
            against(&figure, &case, what, &[(ours[at], tables[at])], Some(bar(which)))?;
        }
    }
    Ok(())
}

/// Returns instructions and misses per packet, or `None` if valgrind is not installed. The difference of two
/// runs excludes set-up.
fn costs(turns: [u32; 2], counted: impl Fn(u32) -> Counted) -> Result<Option<[f64; 2]>, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut counts = [[0.0; 2]; 2];
    for (count, turns) in counts.iter_mut().zip(turns) {
        let Counted { rules, packets, side, turns } = counted(turns);
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"]).args(CACHES);
        command.arg(&program).args(["count", "--turns", &turns.to_string()]);
        command.args(["--side", if side == Side::Ours { "ours" } else { "tables" }]);
        command.arg(&rules).arg(&packets);
        let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let fault = || format!("callgrind reported no counts:{}", text.lines().last().unwrap_or_default());
        *count = parse(&text).ok_or_else(fault)?;
    }
    let packets = f64::from(turns[1] - turns[0]) * BURST as f64;
    Ok(Some([0, 1].map(|at| (counts[1][at] - counts[0][at]) / packets)))
}

/// Returns the instruction count and the last-level cache misses (instruction fetches, reads and writes).
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
