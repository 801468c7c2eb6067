// SPDX-License-Identifier: Apache-2.0
//! Reports figures that were measured in several rounds.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use shunt_bench::{Bar, Figure};

/// Reports the median and range of the rounds, with a verdict against an upper limit.
pub fn tell(
    figure: &str,
    case: &str,
    unit: &str,
    rounds: &[f64],
    most: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    let made = Figure::limited(figure, case, unit, rounds, most).ok_or("no round was measured")?;
    made.append(Path::new("target/report"), "lanes")?;
    writeln!(
        io::stdout(),
        "{case}: {figure}: {:.3} {unit} ({:.3} to {:.3}){}",
        made.ours,
        made.low,
        made.high,
        made.verdict.map(|verdict| format!(" {verdict:?}")).unwrap_or_default()
    )?;
    Ok(())
}

/// Reports the ratio to a peer: its median over the rounds, its interval, and a verdict against a limit.
pub fn against(
    figure: &str,
    case: &str,
    unit: &str,
    rounds: &[(f64, f64)],
    most: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    let made = Figure::of_rounds(figure, case, unit, rounds, most.map(Bar::AtMost))
        .ok_or("no round was measured")?;
    made.append(Path::new("target/report"), "lanes")?;
    writeln!(
        io::stdout(),
        "{case}: {figure}: {:.2} {unit} against {:.2}, ratio {:.3} ({:.3} to {:.3}){}",
        made.ours,
        made.peer.unwrap_or_default(),
        made.ratio.unwrap_or_default(),
        made.low,
        made.high,
        made.verdict.map(|verdict| format!(" {verdict:?}")).unwrap_or_default()
    )?;
    Ok(())
}
