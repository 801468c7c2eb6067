// SPDX-License-Identifier: Apache-2.0
//! Figures of a few rounds, written down and told.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use shunt_bench::Figure;

/// Writes down what rounds found: their median and their whole range, judged against the most it may be.
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
