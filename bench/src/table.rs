// SPDX-License-Identifier: Apache-2.0
//! Markdown tables for docs/figures.md.

use std::fmt::Write;

use crate::{Figure, Verdict};

/// Formats the figures as a Markdown table.
#[must_use]
pub fn markdown(figures: &[Figure]) -> String {
    let mut out = String::from(
        "| figure | case | ours | peer | unit | ratio (95 % interval) | pairs | bar | verdict |\n\
         |---|---|--:|--:|---|--:|--:|---|---|\n",
    );
    for figure in figures {
        let verdict = match figure.verdict {
            Some(Verdict::Met) => "met",
            Some(Verdict::Missed) => "**missed**",
            Some(Verdict::Unclear) => "unclear",
            None => "-",
        };
        // Without a peer, the interval belongs to the figure `ours`.
        let ratio = match figure.ratio {
            Some(ratio) => format!("{ratio:.3} ({:.3} to {:.3})", figure.low, figure.high),
            None => "-".into(),
        };
        let ours = match figure.ratio {
            Some(_) => three_digits(figure.ours),
            None => {
                let [ours, low, high] = [figure.ours, figure.low, figure.high].map(three_digits);
                format!("{ours} ({low} to {high})")
            }
        };
        // Formatting to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {} | {ours} | {} | {} | {ratio} | {} | {} | {verdict} |",
            cell(&figure.figure),
            cell(&figure.case),
            figure.peer.map_or("-".into(), three_digits),
            cell(&figure.unit),
            figure.runs,
            figure.bar.as_deref().map_or("-".into(), cell),
        );
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Formats a value with at least three significant digits.
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
            peer: Some(123.4),
            unit: "Mpps".into(),
            ratio: Some(0.1),
            low: 0.09,
            high: 0.11,
            runs: 40,
            bar: Some(">= 1".into()),
            verdict: Some(Verdict::Missed),
        };
        let alone = Figure {
            peer: None,
            ratio: None,
            low: 11.5,
            high: 13.25,
            bar: None,
            verdict: None,
            ..figure.clone()
        };
        let table = markdown(&[figure, alone]);
        let row = "| lookup | a\\|b | 12.3 | 123 | Mpps | 0.100 (0.090 to 0.110) | 40 | >= 1 | **missed** |";
        assert_eq!(table.lines().nth(2), Some(row));
        let row = "| lookup | a\\|b | 12.3 (11.5 to 13.2) | - | Mpps | - | 40 | - | - |";
        assert_eq!(table.lines().nth(3), Some(row));
    }
}
