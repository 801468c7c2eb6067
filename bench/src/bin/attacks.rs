// SPDX-License-Identifier: Apache-2.0
//! Effect of crafted packets on established flows, compared with the effect of ordinary new flows. The
//! crafted packets touch every mask of an access list. `crates/worker/tests/storms.rs` tests how many records
//! are displaced by new flows.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use fastrand::Rng;
use frame::Frame;
use port::Queue;
use port::mem::{self, LoopQueue};
use shunt_bench::paper::{AccessList, FiveTuple};
use shunt_bench::rig::Rig;
use shunt_bench::{
    Bar, ExpressOption, Figure, GAP_LIMIT, Loop, Plan, Sources, allowed_cpus, compare, pin_to,
};

#[path = "attacks/explosion.rs"]
mod explosion;

/// Number of records of each LUT, and number of path records.
const RECORDS: usize = 256;

/// Number of established flows. Each flow has a record.
const FLOWS: usize = 160;

/// The attacker sends one of every `SHARE` packets.
const SHARE: usize = 10;

/// Number of distinct packets of the attacker.
const ATTACKS: usize = 2_048;

/// Number of poll iterations before the measurement, in which LUTs learn the flows.
const WARM_UP: usize = 500;

/// Number of poll iterations per window, which takes a few tenths of a millisecond.
const TURNS: u32 = 100;

/// Number of poll iterations in each of the two runs under callgrind.
const COUNTED: [u32; 2] = [700, 1_400];

/// Number of packets per poll iteration.
const BURST: usize = 32;

/// Measures attacks; writes target/report/attacks.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of window pairs.
    #[arg(long, default_value_t = 200)]
    windows: usize,
    /// Forward one kind of traffic for this many poll iterations without output, for callgrind.
    #[arg(long)]
    turns: Option<u32>,
    /// The kind of traffic: `quiet`, `after`, `crafted` or `ordinary`.
    #[arg(long, default_value = "crafted")]
    traffic: String,
    /// Use path records (on) instead of the fast-forwarding path (off).
    #[arg(long, default_value = "off")]
    express: ExpressOption,
}

/// Rules, and the traffic of each kind.
struct Attack {
    list: String,
    flows: String,
    kinds: BTreeMap<&'static str, Vec<Vec<u8>>>,
    express: ExpressOption,
}

impl Attack {
    fn new(express: ExpressOption) -> Result<Self, Box<dyn Error>> {
        let sources = Sources::best("acl1_1k")?;
        let rules = explosion::sayable(&AccessList::parse(&sources.rules));
        let mut rng = Rng::with_seed(1);
        let step = (rules.len() / FLOWS).max(1);
        let flows: Vec<FiveTuple> =
            rules.iter().step_by(step).take(FLOWS).map(|rule| explosion::hitting(&mut rng, rule)).collect();
        let list = AccessList { address_bits: 32, rules: rules.clone() };
        let normal = |packet: &FiveTuple| list.first(packet).is_none();
        let mut crafted = explosion::crafted(&mut rng, &rules);
        rng.shuffle(&mut crafted);
        let crafted: Vec<FiveTuple> = crafted.into_iter().filter(normal).take(ATTACKS).collect();
        let ordinary = std::iter::repeat_with(|| explosion::ordinary(&mut rng));
        let ordinary: Vec<FiveTuple> = ordinary.filter(normal).take(crafted.len()).collect();
        let packets = |tuples: &[FiveTuple]| tuples.iter().map(explosion::bytes).collect::<Vec<_>>();
        // Each attack packet is surrounded by packets of established flows.
        let mixed = |others: &[FiveTuple]| {
            let mut flows = flows.iter().cycle().copied();
            let group =
                |other: &FiveTuple| flows.by_ref().take(SHARE - 1).chain([*other]).collect::<Vec<_>>();
            packets(&others.iter().flat_map(group).collect::<Vec<_>>())
        };
        let kinds = BTreeMap::from([
            ("crafted", mixed(&crafted)),
            ("ordinary", mixed(&ordinary)),
            ("quiet", packets(&flows)),
            ("attack", packets(&crafted)),
        ]);
        Ok(Self { list: sources.name, flows: explosion::flows(&rules), kinds, express })
    }

    /// Creates a worker that repeatedly receives one kind of traffic. `after` is the traffic of the
    /// established flows alone, after an attack.
    fn rig(&self, kind: &str) -> Result<Rig, Box<dyn Error>> {
        let packets = |kind: &str| self.kinds.get(kind).ok_or(format!("there is no traffic `{kind}`"));
        let steady = packets(if kind == "after" { "quiet" } else { kind })?;
        let frames = steady.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
        let mut queues: Vec<Box<dyn Queue>> =
            vec![Box::new(LoopQueue::new(1, frames)), Box::new(LoopQueue::new(2, Vec::new()))];
        let (attacker, mut handle) = mem::pair(3, 1, BURST);
        queues.extend(attacker.into_iter().map(|queue| Box::new(queue) as Box<dyn Queue>));
        let (lut_entries, express_records) = match self.express {
            ExpressOption::On => (0, RECORDS),
            ExpressOption::Off => (RECORDS, 0),
        };
        let base = worker::WorkerSetConfig::default();
        let config = worker::WorkerSetConfig { lut_entries, express_records, ..base };
        let mut rig = Rig::with_queues(&config, queues, &self.flows, None)?;
        rig.warm_up(WARM_UP);
        if kind == "after" {
            for burst in packets("attack")?.chunks(BURST) {
                if !burst.iter().all(|packet| handle.push(0, packet)) {
                    return Err("the attacker's port is full".into());
                }
                rig.turn();
            }
        }
        Ok(rig)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let attack = Attack::new(arguments.express)?;
    if let Some(turns) = arguments.turns {
        let mut rig = attack.rig(&arguments.traffic)?;
        for _ in 0..turns {
            rig.turn();
        }
        return Ok(());
    }
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let plan = Plan { attempts_max: 20 * arguments.windows, ..Plan::new(arguments.windows) };
    let words = if arguments.express == ExpressOption::On { ", path records" } else { "" };
    let cases = [
        ("flows after an explosion of masks, by before", "after", "quiet", format!("{}{words}", attack.list)),
        (
            "flows and an explosion of masks, by flows and ordinary new ones",
            "crafted",
            "ordinary",
            format!("{}, one packet in {SHARE} new{words}", attack.list),
        ),
    ];
    for (name, ours, peer, case) in cases {
        let contender = |kind| -> Result<_, Box<dyn Error>> {
            let mut rig = attack.rig(kind)?;
            // An iteration is long, because it polls three ports.
            Ok(Loop::new(TURNS, move || rig.turn()).gap_limit(2 * GAP_LIMIT))
        };
        let found = compare(&plan, &mut contender(ours)?, &mut contender(peer)?)?;
        tell(&Figure::new(name, &case, "Mpps/CPU-s", &found, Bar::AtLeast(0.98)))?;
        match (instructions(ours, arguments.express)?, instructions(peer, arguments.express)?) {
            (Some(ours), Some(peer)) => {
                let count = Figure::limited(
                    name,
                    &format!("{case}, instructions"),
                    "ratio",
                    &[ours / peer],
                    Some(1.02),
                );
                let figure = count.ok_or("nothing was counted")?;
                figure.append(Path::new("target/report"), "attacks")?;
                writeln!(
                    io::stdout(),
                    "{name}, {case}: {ours:.0} and {peer:.0} instructions a packet, ratio {:.3} {:?}",
                    figure.ours,
                    figure.verdict,
                )?;
            }
            _ => writeln!(
                io::stderr(),
                "attacks: instructions are not counted, because valgrind is not installed"
            )?,
        }
    }
    Ok(())
}

/// Returns the number of instructions per packet, counted by callgrind, or `None` if valgrind is not
/// installed. The difference of two runs excludes set-up.
fn instructions(traffic: &str, express: ExpressOption) -> Result<Option<f64>, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut counts = [0.0; COUNTED.len()];
    for (count, turns) in counts.iter_mut().zip(COUNTED) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&program);
        command.args(["--traffic", traffic, "--express", express.word(), "--turns", &turns.to_string()]);
        let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = text.split("Collected :").nth(1).and_then(|rest| rest.split_whitespace().next());
        *count = collected.and_then(|number| number.parse().ok()).ok_or_else(|| {
            format!("callgrind reported no instruction count:{}", text.lines().last().unwrap_or_default())
        })?;
    }
    let packets = f64::from(COUNTED[1] - COUNTED[0]) * BURST as f64;
    Ok(Some((counts[1] - counts[0]) / packets))
}

fn tell(figure: &Figure) -> Result<(), Box<dyn Error>> {
    figure.append(Path::new("target/report"), "attacks")?;
    writeln!(
        io::stdout(),
        "{}, {}: {:.2} and {:.2} {}, ratio {:.3} ({:.3} to {:.3}) {:?}",
        figure.figure,
        figure.case,
        figure.ours,
        figure.peer.unwrap_or_default(),
        figure.unit,
        figure.ratio.unwrap_or_default(),
        figure.low,
        figure.high,
        figure.verdict,
    )?;
    Ok(())
}
