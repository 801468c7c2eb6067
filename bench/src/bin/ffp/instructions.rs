// SPDX-License-Identifier: Apache-2.0
//! Number of instructions per low-latency packet on the fast-forwarding path or with path records, compared
//! with tables of the paper's kind. Callgrind counts them, without AVX-512.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use shunt_bench::scenario::Kind;
use shunt_bench::{Bar, Cached, Figure};

use crate::course::BURST;

/// Number of rules in each of the two large tables.
const RULES: usize = 1_000;

/// Number of poll iterations of each of the two runs.
const TURNS: [u32; 2] = [500, 1_000];

/// Returns the upper limit of the ratio. The short keys of the scenario `vehicles` gain nothing from a
/// cache.
fn bar(kind: Kind) -> Option<Bar> {
    (kind == Kind::Vehicles).then_some(Bar::AtMost(1.02))
}

/// Counts all scenarios whose names begin with `case`.
pub fn run(case: &str, ways: &[Cached]) -> Result<(), Box<dyn Error>> {
    for kind in Kind::ALL {
        let name = format!("{}, {RULES} rules, 64-byte packets, bursts of {BURST}", kind.name());
        if !name.starts_with(case) {
            continue;
        }
        let Some(peer) = count(kind, &["--paper"])? else {
            writeln!(io::stderr(), "ffp: instructions are not counted, because valgrind is not installed")?;
            return Ok(());
        };
        for cached in ways {
            let express = if *cached == Cached::Express { "on" } else { "off" };
            let Some(ours) = count(kind, &["--express", express])? else { return Ok(()) };
            let figure = format!("instructions a packet {} against paper-kind tables", cached.words());
            let made = Figure::of_rounds(&figure, &name, "instructions", &[(ours, peer)], bar(kind));
            let made = made.ok_or("nothing was counted")?;
            made.append(Path::new("target/report"), "ffp")?;
            let ratio = made.ratio.unwrap_or_default();
            writeln!(
                io::stdout(),
                "{figure}, {name}: {ours:.1} by {peer:.1}, {ratio:.3}: {:?}",
                made.verdict
            )?;
        }
    }
    Ok(())
}

/// Returns the number of instructions per packet, or `None` if valgrind is not installed. The difference of
/// two runs excludes set-up.
fn count(kind: Kind, way: &[&str]) -> Result<Option<f64>, Box<dyn Error>> {
    let (program, mut counts) = (std::env::current_exe()?, [0.0; TURNS.len()]);
    for (count, turns) in counts.iter_mut().zip(TURNS) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&program).args(way);
        command.args(["--case", &format!("{}, {RULES} rules,", kind.name()), "--turns", &turns.to_string()]);
        let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = text.split("Collected :").nth(1).and_then(|rest| rest.split_whitespace().next());
        *count = collected.and_then(|number| number.parse().ok()).ok_or_else(|| {
            format!("callgrind reported no instruction count:{}", text.lines().last().unwrap_or_default())
        })?;
    }
    let packets = f64::from(TURNS[1] - TURNS[0]) * BURST as f64;
    Ok(Some((counts[1] - counts[0]) / packets))
}
