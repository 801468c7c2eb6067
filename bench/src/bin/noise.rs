// SPDX-License-Identifier: Apache-2.0
//! Noise of the machine: the same work compared with itself, and with 5 % more work.
//!
//! The interval of the first ratio must contain 1; otherwise the runner favours one side. The interval's
//! width is the smallest difference that this machine can measure. The second comparison must detect the 5 %.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;

use shunt_bench::{Bar, Comparison, Contender, Figure, Loop, Plan, allowed_cpus, compare, pin_to};

const PAIRS: usize = 200;
const TURNS: u32 = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let cpu = *allowed_cpus()?.last().ok_or("no CPU is allowed")?;
    pin_to(cpu)?;
    let plan = Plan::new(PAIRS);
    let same = compare(&plan, &mut work(1_000), &mut work(1_000))?;
    report("against itself", &same, Bar::AtLeast(0.99))?;
    let slower = compare(&plan, &mut work(1_050), &mut work(1_000))?;
    report("5 % more work against the original", &slower, Bar::AtMost(0.97))?;
    Ok(())
}

/// Returns a contender with bursts of 32 units, each a chain of `steps` / 32 dependent multiplications.
fn work(steps: u32) -> impl Contender {
    let mut state = 1u64;
    Loop::new(TURNS, move || {
        for _ in 0..steps {
            state = black_box(state).wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
        }
        32
    })
}

fn report(case: &str, found: &Comparison, bar: Bar) -> Result<(), Box<dyn Error>> {
    let figure = Figure::new("noise", case, "M units/CPU-s", found, bar);
    figure.append(Path::new("target/report"), "noise")?;
    writeln!(
        io::stdout(),
        "noise, {case}: ratio {:.4} ({:.4} to {:.4}), {} pairs, {} set aside (ratio with them {:.4}): {:?}",
        found.ratio,
        found.low,
        found.high,
        found.runs,
        found.set_aside,
        found.raw_ratio,
        found.verdict(bar),
    )?;
    Ok(())
}
