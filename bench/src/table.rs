// SPDX-License-Identifier: Apache-2.0
//! Tables of the README, made from figures.

use std::fmt::Write;

use crate::{Figure, Verdict};

/// The figures as a Markdown table.
#[must_use]
pub fn markdown(figures: &[Figure]) -> String {
    let mut out = String::from(
        "| figure | case | ours | peer | unit | ratio (95 % interval) | pairs | bar | verdict |\n\
         |---|---|--:|--:|---|--:|--:|---|---|\n",
    );
    for figure in figures {
        let verdict = match figure.verdict {
            Verdict::Met => "met",
            Verdict::Missed => "**missed**",
            Verdict::Unclear => "unclear",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {:.3} ({:.3} to {:.3}) | {} | {} | {verdict} |",
            cell(&figure.figure),
            cell(&figure.case),
            three_digits(figure.ours),
            three_digits(figure.peer),
            cell(&figure.unit),
            figure.ratio,
            figure.low,
            figure.high,
            figure.runs,
            cell(&figure.bar),
        );
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// At least three significant digits, no more decimals than that takes.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_every_key() {
        let figure = Figure {
            figure: "lookup".into(),
            case: "a|b".into(),
            ours: 12.345,
            peer: 123.4,
            unit: "Mpps".into(),
            ratio: 0.1,
            low: 0.09,
            high: 0.11,
            runs: 40,
            bar: ">= 1".into(),
            verdict: Verdict::Missed,
        };
        let table = markdown(&[figure]);
        let row = "| lookup | a\\|b | 12.3 | 123 | Mpps | 0.100 (0.090 to 0.110) | 40 | >= 1 | **missed** |";
        assert_eq!(table.lines().nth(2), Some(row));
    }
}
