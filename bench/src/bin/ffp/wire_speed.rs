// SPDX-License-Identifier: Apache-2.0
//! 10 Gbit/s of minimum-size packets through three stages of the path on one core: 14.88 Mpps per CPU-second.
//!
//! Figure 11 of the paper shows wire speed from 256 bytes on.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use shunt_bench::scenario::{Kind, Options};
use shunt_bench::{Cached, Contender, Figure, GAP_LIMIT, Loop, Plan, measure, paper};
use tables::compile::Maker;

use crate::course::{BURST, Course, frames_in, scenario};

/// Rate of 64-byte packets on a 10 Gbit/s link, in Mpps. Each packet takes 20 further bytes on the link, for
/// the preamble and the inter-frame gap.
const WIRE_MPPS: f64 = 14.88;

/// Total size in bytes of the received packets' buffers.
const SPREAD_BYTES: usize = 64 << 20;

/// Number of flows. Packets are drawn from them by Zipf's law.
pub const FLOWS: usize = 10_000;

/// Number of bursts per window.
const TURNS: u32 = 300;

/// Number of frames for [`turn`]: few, so that LUTs learn all flows soon.
const FEW_FRAMES: usize = 1_024;

/// Returns the scenarios and rule counts of the cases whose names begin with `case`.
fn cases(case: &str) -> impl Iterator<Item = (String, Kind, usize)> {
    let all = Kind::ALL.into_iter().flat_map(|kind| [1_000, 10_000].map(|rules| (kind, rules)));
    all.filter_map(move |(kind, rules)| {
        let name = format!(
            "{}, {rules} rules, 64-byte packets of {FLOWS} flows by Zipf 1.0 spread over 64 MiB, bursts of {BURST}",
            kind.name()
        );
        name.starts_with(case).then_some((name, kind, rules))
    })
}

/// Measures all scenarios whose names begin with `case`.
pub fn run(case: &str, ways: &[Cached], windows: usize) -> Result<(), Box<dyn Error>> {
    cases(case).try_for_each(|(name, kind, rules)| {
        ways.iter().try_for_each(|cached| one(&name, kind, rules, *cached, windows))
    })
}

/// Forwards `turns` bursts of the first case without output, after the cache has learned its flows. Without
/// a cache, the tables are of the paper's kind.
pub fn turn(case: &str, cached: Cached, turns: u64) -> Result<(), Box<dyn Error>> {
    let (_, kind, rules) = cases(case).next().ok_or_else(|| format!("no case begins with \"{case}\""))?;
    let scenario = scenario(&Options::new(kind, rules, FLOWS))?;
    let maker: Option<Maker> = (cached == Cached::Tables).then_some(paper::maker);
    let mut course = Course::new(&scenario, FEW_FRAMES, cached, maker)?;
    course.prepare()?;
    for _ in 0..turns {
        course.rig.turn();
    }
    Ok(())
}

fn one(name: &str, kind: Kind, rules: usize, cached: Cached, windows: usize) -> Result<(), Box<dyn Error>> {
    let scenario = scenario(&Options::new(kind, rules, FLOWS))?;
    let mut course = Course::new(&scenario, frames_in(SPREAD_BYTES, 60), cached, None)?;
    course.prepare()?;
    let found = {
        let rig = &mut course.rig;
        let mut contender = Loop::new(TURNS, || rig.turn()).gap_limit(GAP_LIMIT * 3);
        contender.window()?;
        measure(&Plan::new(windows), &mut contender)?
    };
    let fast = course.fast_share();
    course.verify()?;
    let unit = "Mpps/CPU-s";
    let words = cached.words();
    let figure = Figure::at_least(&format!("wire speed {words}"), name, unit, &found, WIRE_MPPS);
    figure.append(Path::new("target/report"), "ffp")?;
    writeln!(
        io::stdout(),
        "wire speed, {name}: {:.2} {unit} ({:.2} to {:.2}), {} windows, {} set aside, {:.1} % {words}: {:?}",
        found.median,
        found.low,
        found.high,
        found.runs,
        found.set_aside,
        fast * 100.0,
        figure.verdict,
    )?;
    Ok(())
}
