// SPDX-License-Identifier: Apache-2.0
//! Low-latency flows on the fast-forwarding path or with path records, compared with the same flows in the
//! tables alone. The tables of the peer are of the paper's kind (tries) or Shunt's own.
//!
//! Figures are packets per second at full load (the paper's figure 11) and latency at equal load (its figure
//! 12). The latency of a burst's packets is the time from its reception to the end of its transmission.
//! Bursts arrive at fixed times and keep the peer busy for [`LOAD`] of the time.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use shunt_bench::scenario::{Kind, Options};
use shunt_bench::{Bar, Cached, Comparison, Figure, Loop, Measure, Plan, Window, compare, paper};
use tables::compile::Maker;

use crate::course::{BURST, Course, scenario};
use crate::wire_speed::FLOWS;

/// Packet sizes in bytes, including the FCS.
const SIZES: [usize; 4] = [64, 256, 640, 1_518];

/// Number of packets that are received repeatedly.
const FRAMES: usize = 128 * BURST;

/// Number of bursts per window at full load.
const TURNS: u32 = 100;

/// Number of bursts per window below saturation.
const PACED_TURNS: u32 = 60;

/// Share of the time for which the peer is busy while latency is measured.
const LOAD: f64 = 0.6;

/// A poll iteration that takes longer counts as preempted.
const LIMIT: Duration = Duration::from_micros(120);

/// A switch that the path is compared with.
struct Peer {
    name: &'static str,
    maker: Option<Maker>,
}

const PEERS: [Peer; 2] =
    [Peer { name: "paper-kind tables", maker: Some(paper::maker) }, Peer { name: "own tables", maker: None }];

/// Returns the targets for packets per second and for latency.
fn bars(kind: Kind, peer: &Peer) -> Option<(Bar, Bar)> {
    match (kind, peer.maker) {
        (Kind::Vehicles, _) => Some((Bar::AtLeast(0.98), Bar::AtMost(1.02))),
        (_, Some(_)) => Some((Bar::AtLeast(3.0), Bar::AtMost(0.2))),
        (_, None) => None,
    }
}

/// Names of the report files for 64-byte packets and for all other sizes.
const REPORTS: [&str; 2] = ["ffp", "ffp_sizes"];

/// Measures all cases whose names start with `case`.
pub fn run(case: &str, ways: &[Cached], pairs: usize) -> Result<(), Box<dyn Error>> {
    for kind in Kind::ALL {
        for rules in [1_000, 10_000] {
            for bytes in SIZES {
                let name = format!(
                    "{}, {rules} rules, {bytes}-byte packets of {FLOWS} flows by Zipf 1.0, bursts of {BURST}",
                    kind.name()
                );
                if name.starts_with(case) {
                    let options = Options { bytes, ..Options::new(kind, rules, FLOWS) };
                    ways.iter().try_for_each(|cached| one(&name, &options, *cached, pairs))?;
                }
            }
        }
    }
    Ok(())
}

fn one(name: &str, options: &Options, cached: Cached, pairs: usize) -> Result<(), Box<dyn Error>> {
    let scenario = scenario(options)?;
    let file = REPORTS[usize::from(options.bytes != SIZES[0])];
    let mut ours = Course::new(&scenario, FRAMES, cached, None)?;
    ours.prepare()?;
    for peer in &PEERS {
        let mut theirs = Course::new(&scenario, FRAMES, Cached::Tables, peer.maker)?;
        theirs.prepare()?;
        let bars = bars(options.kind, peer);
        let found = {
            let mut one = Loop::new(TURNS, || ours.rig.turn()).gap_limit(LIMIT);
            let mut other = Loop::new(TURNS, || theirs.rig.turn()).gap_limit(LIMIT);
            compare(&Plan::new(pairs), &mut one, &mut other)?
        };
        let figure = format!("packets/s {} against {} (paper: fig 11)", cached.words(), peer.name);
        report(file, &figure, name, "Mpps/CPU-s", &found, bars.map(|bars| bars.0))?;
        let every = Duration::from_nanos((BURST as f64 * 1e3 / (found.peer.median * LOAD)) as u64);
        let found = {
            let plan = Plan { measure: Measure::CpuNsPerUnit, ..Plan::new(pairs) };
            let mut one = || Ok(paced(&mut ours, every));
            let mut other = || Ok(paced(&mut theirs, every));
            compare(&plan, &mut one, &mut other)?
        };
        let figure = format!("latency {} against {} (paper: fig 12)", cached.words(), peer.name);
        let name = format!("{name} every {:.2} us", every.as_secs_f64() * 1e6);
        report(file, &figure, &name, "ns", &found, bars.map(|bars| bars.1))?;
    }
    ours.verify()
}

/// Runs bursts that arrive at fixed times. The time of a burst is that of the poll iteration that forwards
/// it.
fn paced(course: &mut Course, every: Duration) -> Window {
    let begin = Instant::now();
    let (mut busy, mut gaps, mut stolen) = (Duration::ZERO, 0, Duration::ZERO);
    let mut due = begin;
    for _ in 0..PACED_TURNS {
        let mut poll = Instant::now();
        while poll < due {
            poll = Instant::now();
        }
        course.rig.turn();
        let took = poll.elapsed();
        busy += took;
        due = poll.max(due) + every;
        if took > LIMIT {
            gaps += 1;
            stolen += took;
        }
    }
    let ns = |time: Duration| time.as_nanos() as u64;
    Window {
        units: PACED_TURNS.into(),
        cpu_ns: ns(busy),
        wall_ns: ns(begin.elapsed()),
        gaps,
        stolen_ns: ns(stolen),
    }
}

fn report(
    file: &str,
    figure: &str,
    case: &str,
    unit: &str,
    found: &Comparison,
    bar: Option<Bar>,
) -> Result<(), Box<dyn Error>> {
    let made = match bar {
        Some(bar) => Figure::new(figure, case, unit, found, bar),
        None => Figure::beside(figure, case, unit, found),
    };
    made.append(Path::new("target/report"), file)?;
    writeln!(io::stdout(), "{figure}, {case}: {}: {:?}", found.in_words(unit), made.verdict)?;
    Ok(())
}
