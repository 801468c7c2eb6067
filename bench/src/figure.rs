// SPDX-License-Identifier: Apache-2.0
//! Report files: `target/report/NAME.jsonl`, one JSON object per figure.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Alone, Bar, Comparison, Error, Verdict, median, median_interval};

/// Measured figure, as stored in a report file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name of the figure.
    pub figure: String,
    /// Description of the measured case.
    pub case: String,
    /// Median of the contender `ours`.
    pub ours: f64,
    /// Median of the contender `peer`; null without a peer.
    pub peer: Option<f64>,
    /// Unit of both medians.
    pub unit: String,
    /// Median of the pairs' ratios of `ours` to `peer`; null without a peer.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % confidence interval of the ratio, or of the median if there is no peer.
    pub low: f64,
    /// Upper end of the same interval as `low`.
    pub high: f64,
    /// Number of undisturbed pairs of windows, or of undisturbed windows if there is no peer.
    pub runs: usize,
    /// Target for the ratio: `>= 1.5` or `<= 0.2`; null without a target.
    pub bar: Option<String>,
    /// Verdict about the target; null without a target.
    pub verdict: Option<Verdict>,
}

impl Figure {
    /// Returns the figure of a comparison with a target.
    #[must_use]
    pub fn new(figure: &str, case: &str, unit: &str, found: &Comparison, bar: Bar) -> Self {
        Self {
            figure: figure.into(),
            case: case.into(),
            ours: found.ours.median,
            peer: Some(found.peer.median),
            unit: unit.into(),
            ratio: Some(found.ratio),
            low: found.low,
            high: found.high,
            runs: found.runs,
            bar: Some(bar.to_string()),
            verdict: Some(found.verdict(bar)),
        }
    }

    /// Returns the figure of a comparison without a target.
    #[must_use]
    pub fn beside(figure: &str, case: &str, unit: &str, found: &Comparison) -> Self {
        Self { bar: None, verdict: None, ..Self::new(figure, case, unit, found, Bar::AtLeast(0.0)) }
    }

    /// Returns the figure that compares a prediction (`ours`) with a measurement (`peer`). The target is a
    /// ratio within `off` of 1. `ratio` is the median of the rounds with its interval.
    #[must_use]
    pub fn within(
        figure: &str,
        case: &str,
        unit: &str,
        (ours, peer): (f64, f64),
        (ratio, low, high): (f64, f64, f64),
        (runs, off): (usize, f64),
    ) -> Self {
        let (least, most) = (1.0 - off, 1.0 + off);
        let verdict = match () {
            () if low >= least && high <= most => Verdict::Met,
            () if high < least || low > most => Verdict::Missed,
            () => Verdict::Unclear,
        };
        Self {
            figure: figure.into(),
            case: case.into(),
            ours,
            peer: Some(peer),
            unit: unit.into(),
            ratio: Some(ratio),
            low,
            high,
            runs,
            bar: Some(format!("{least} to {most}")),
            verdict: Some(verdict),
        }
    }

    /// Returns a figure without a peer, target and verdict.
    #[must_use]
    pub fn alone(figure: &str, case: &str, unit: &str, found: &Alone) -> Self {
        Self {
            figure: figure.into(),
            case: case.into(),
            ours: found.median,
            peer: None,
            unit: unit.into(),
            ratio: None,
            low: found.low,
            high: found.high,
            runs: found.runs,
            bar: None,
            verdict: None,
        }
    }

    /// Returns a figure without a peer, with a minimum as its target.
    #[must_use]
    pub fn at_least(figure: &str, case: &str, unit: &str, found: &Alone, limit: f64) -> Self {
        let verdict = match limit {
            _ if found.low >= limit => Verdict::Met,
            _ if found.high < limit => Verdict::Missed,
            _ => Verdict::Unclear,
        };
        let bar = Some(format!(">= {limit} {unit}"));
        Self { bar, verdict: Some(verdict), ..Self::alone(figure, case, unit, found) }
    }

    /// Returns a figure of several runs without a peer, with a maximum as its target. The interval is the
    /// range of the runs. Returns `None` if there are no runs.
    #[must_use]
    pub fn limited(figure: &str, case: &str, unit: &str, runs: &[f64], limit: Option<f64>) -> Option<Self> {
        let found = Alone {
            median: median(runs)?,
            low: runs.iter().copied().fold(f64::INFINITY, f64::min),
            high: runs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: runs.len(),
            set_aside: 0,
        };
        let verdict = |limit| match limit {
            _ if found.high <= limit => Verdict::Met,
            _ if found.low > limit => Verdict::Missed,
            _ => Verdict::Unclear,
        };
        Some(Self {
            bar: limit.map(|limit| format!("<= {limit} {unit}")),
            verdict: limit.map(verdict),
            ..Self::alone(figure, case, unit, &found)
        })
    }

    /// Returns a figure of rounds that each measured Shunt and the peer: the medians of both sides, and the
    /// median of the ratios with its 95 % interval. With fewer than six rounds, the interval is their whole
    /// range. Returns `None` if there are no rounds.
    #[must_use]
    pub fn of_rounds(
        figure: &str,
        case: &str,
        unit: &str,
        rounds: &[(f64, f64)],
        bar: Option<Bar>,
    ) -> Option<Self> {
        let of = |value: fn(&(f64, f64)) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
        let ratios = of(|(ours, peer)| ours / peer);
        let (ratio, interval) = (median(&ratios)?, median_interval(&ratios)?);
        let verdict = |bar| {
            let (all, some) = match bar {
                Bar::AtLeast(least) => (interval.low >= least, interval.high >= least),
                Bar::AtMost(most) => (interval.high <= most, interval.low <= most),
            };
            match (all, some) {
                (true, _) => Verdict::Met,
                (_, false) => Verdict::Missed,
                _ => Verdict::Unclear,
            }
        };
        Some(Self {
            figure: figure.into(),
            case: case.into(),
            ours: median(&of(|(ours, _)| *ours))?,
            peer: Some(median(&of(|(_, peer)| *peer))?),
            unit: unit.into(),
            ratio: Some(ratio),
            low: interval.low,
            high: interval.high,
            runs: rounds.len(),
            bar: bar.map(|bar| bar.to_string()),
            verdict: bar.map(verdict),
        })
    }

    /// Appends the figure to `FOLDER/NAME.jsonl`, and creates the file if needed. Of several lines with the
    /// same figure and case, the last one counts.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn append(&self, folder: &Path, name: &str) -> Result<(), Error> {
        let path = folder.join(format!("{name}.jsonl"));
        let fault = |source| Error::File { path: path.clone(), source };
        let mut line = serde_json::to_string(self).map_err(|error| fault(error.into()))?;
        line.push('\n');
        fs::create_dir_all(folder).map_err(fault)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(fault)?;
        // A single write keeps the lines of two writers apart.
        file.write_all(line.as_bytes()).map_err(fault)
    }
}

/// Reads a report file. Returns the latest line of each figure and case, in the order in which they first
/// appear.
///
/// # Errors
/// Returns an error if the file cannot be read, or if one of its lines is not a figure.
pub fn read(path: &Path) -> Result<Vec<Figure>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.to_path_buf(), source })?;
    let mut figures: Vec<Figure> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let figure: Figure = serde_json::from_str(line).map_err(|source| Error::Line {
            path: path.to_path_buf(),
            line: index + 1,
            source,
        })?;
        let same = |known: &&mut Figure| known.figure == figure.figure && known.case == figure.case;
        match figures.iter_mut().find(same) {
            Some(known) => *known = figure,
            None => figures.push(figure),
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;

    fn found(ratio: f64) -> Comparison {
        let side = Side { median: 3.0, disturbed: 0, stolen_ns: 0 };
        Comparison {
            ours: side,
            peer: side,
            ratio,
            low: ratio - 0.125,
            high: ratio + 0.125,
            runs: 40,
            set_aside: 2,
            raw_ratio: ratio,
            confident: true,
        }
    }

    #[test]
    fn a_line_has_exactly_the_keys_of_the_contract() {
        let figure = Figure::new("lookup", "100 rules", "Mpps/CPU-s", &found(1.0), Bar::AtLeast(2.0));
        let value = serde_json::to_value(&figure).unwrap();
        let keys = |value: &serde_json::Value| {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys
        };
        let mut contract =
            ["figure", "case", "ours", "peer", "unit", "ratio", "low", "high", "runs", "bar", "verdict"];
        contract.sort_unstable();
        assert_eq!(keys(&value), contract);
        assert_eq!(value["verdict"], "missed");
        assert_eq!(value["bar"], ">= 2");
        let alone = Alone { median: 15.0, low: 14.0, high: 16.0, runs: 40, set_aside: 2 };
        let value = serde_json::to_value(Figure::alone("forward", "exact", "Mpps", &alone)).unwrap();
        assert_eq!(keys(&value), contract);
        assert!(["peer", "ratio", "bar", "verdict"].iter().all(|key| value[key].is_null()));
    }

    #[test]
    fn a_limited_figure_is_met_only_if_all_runs_keep_to_it() {
        let of = |runs: &[f64], limit| Figure::limited("wait", "c", "us", runs, limit);
        let verdict = |runs: &[f64]| of(runs, Some(2.0)).unwrap().verdict.unwrap();
        assert_eq!(verdict(&[1.0, 2.0]), Verdict::Met);
        assert_eq!(verdict(&[1.0, 2.5]), Verdict::Unclear);
        assert_eq!(verdict(&[2.25, 2.5]), Verdict::Missed);
        let figure = of(&[3.0, 1.0, 4.0], Some(2.0)).unwrap();
        assert_eq!((figure.ours, figure.low, figure.high, figure.runs), (3.0, 1.0, 4.0, 3));
        assert_eq!(figure.bar.as_deref(), Some("<= 2 us"));
        assert_eq!(of(&[1.0], None).unwrap().verdict, None);
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn a_figure_with_a_least_value_is_met_only_by_its_whole_interval() {
        let of = |low, high| {
            let found = Alone { median: 15.0, low, high, runs: 40, set_aside: 2 };
            Figure::at_least("wire", "c", "Mpps", &found, 14.88)
        };
        assert_eq!(of(14.9, 15.5).verdict, Some(Verdict::Met));
        assert_eq!(of(14.5, 15.5).verdict, Some(Verdict::Unclear));
        assert_eq!(of(14.5, 14.8).verdict, Some(Verdict::Missed));
        assert_eq!(of(14.5, 14.8).bar.as_deref(), Some(">= 14.88 Mpps"));
    }

    #[test]
    fn rounds_give_the_median_of_their_ratios() {
        let rounds = [(1.0, 4.0), (3.0, 6.0), (2.0, 2.0)];
        let of = |bar| Figure::of_rounds("t", "c", "ns", &rounds, Some(bar)).unwrap();
        let figure = of(Bar::AtMost(1.0));
        assert_eq!((figure.ours, figure.peer, figure.ratio), (2.0, Some(4.0), Some(0.5)));
        assert_eq!((figure.low, figure.high, figure.verdict), (0.25, 1.0, Some(Verdict::Met)));
        assert_eq!(of(Bar::AtMost(0.5)).verdict, Some(Verdict::Unclear));
        assert_eq!(of(Bar::AtLeast(1.5)).verdict, Some(Verdict::Missed));
        assert!(Figure::of_rounds("t", "c", "ns", &[], None).is_none());
    }

    #[test]
    fn a_prediction_is_good_only_if_its_whole_interval_is_near() {
        let of = |low, high| {
            Figure::within("t", "c", "ns", (10.0, 10.0), (1.0, low, high), (9, 0.15)).verdict.unwrap()
        };
        assert_eq!(of(0.9, 1.1), Verdict::Met);
        assert_eq!(of(0.8, 1.1), Verdict::Unclear);
        assert_eq!((of(0.5, 0.8), of(1.2, 1.3)), (Verdict::Missed, Verdict::Missed));
        let beside = Figure::beside("t", "c", "ns", &found(1.0));
        assert_eq!((beside.bar, beside.verdict, beside.ratio), (None, None, Some(1.0)));
    }

    #[test]
    fn what_is_written_is_read_and_the_latest_counts() {
        let folder = std::env::temp_dir().join(format!("shunt-bench-figure-{}", std::process::id()));
        let make = |case: &str, ratio| Figure::new("lookup", case, "Mpps", &found(ratio), Bar::AtLeast(1.0));
        let alone = Alone { median: 15.0, low: 14.0, high: 16.0, runs: 40, set_aside: 2 };
        let alone = Figure::alone("lookup", "c", "Mpps", &alone);
        for figure in [make("a", 0.5), make("b", 1.0625), make("a", 2.0), alone.clone()] {
            figure.append(&folder, "x").unwrap();
        }
        let path = folder.join("x.jsonl");
        assert_eq!(read(&path).unwrap(), [make("a", 2.0), make("b", 1.0625), alone]);
        fs::write(&path, "{\"figure\":1}\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("x.jsonl, line 1: not a figure"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
        assert!(read(&path).is_err());
    }
}
