// SPDX-License-Identifier: Apache-2.0
//! Comparison in paired windows: the order within a pair is random, and each pair gives one ratio.

use std::fmt;

use crate::{Contender, Error, Measure, Window, median, median_interval};

/// Parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Requested number of undisturbed pairs; a verdict needs at least six.
    pub pairs: usize,
    /// Maximum number of pairs, including disturbed ones.
    pub attempts_max: usize,
    /// Number of uncounted pairs that run first, to warm up caches and clocks.
    pub warm_up: usize,
    /// Seed for the random order of the contenders.
    pub seed: u64,
    /// Figure that is compared.
    pub measure: Measure,
}

impl Plan {
    /// Returns a plan that measures `pairs` pairs of windows as [`Measure::MegaPerCpuSecond`]. Disturbed
    /// pairs are repeated, with at most `3 * pairs` attempts in total.
    #[must_use]
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs,
            attempts_max: pairs.saturating_mul(3),
            warm_up: 3,
            seed: 1,
            measure: Measure::MegaPerCpuSecond,
        }
    }
}

/// Target for the ratio of Shunt's figure to the peer's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Minimum ratio, where more is better.
    AtLeast(f64),
    /// Maximum ratio, where less is better.
    AtMost(f64),
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(ratio) => write!(f, ">= {ratio}"),
            Self::AtMost(ratio) => write!(f, "<= {ratio}"),
        }
    }
}

/// Verdict about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval meets the target.
    Met,
    /// No part of the interval meets the target.
    Missed,
    /// A part of the interval meets the target, or there were too few undisturbed pairs.
    Unclear,
}

/// Result of one contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Median figure of the undisturbed windows.
    pub median: f64,
    /// Number of windows with preemption.
    pub disturbed: usize,
    /// Preempted time in these windows, in nanoseconds.
    pub stolen_ns: u64,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Result of the contender `ours`.
    pub ours: Side,
    /// Result of the contender `peer`.
    pub peer: Side,
    /// Median of the undisturbed pairs' ratios. A ratio is the figure of `ours` divided by that of `peer`.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval (order statistics).
    pub low: f64,
    /// Upper end of the ratio's 95 % interval.
    pub high: f64,
    /// Number of undisturbed pairs.
    pub runs: usize,
    /// Number of pairs excluded because of preemption in one of their windows.
    pub set_aside: usize,
    /// Median ratio including the excluded pairs.
    pub raw_ratio: f64,
    /// Whether there were enough pairs for a 95 % interval.
    pub confident: bool,
}

impl Comparison {
    /// Formats the medians and the ratio:
    /// `1.20 ns against 1.50, ratio 0.800 (0.780 to 0.810), 40 pairs, 2 set aside`.
    #[must_use]
    pub fn in_words(&self, unit: &str) -> String {
        let Self { ours, peer, ratio, low, high, runs, set_aside, .. } = self;
        format!(
            "{:.2} {unit} against {:.2}, ratio {ratio:.3} ({low:.3} to {high:.3}), {runs} pairs, {set_aside} set aside",
            ours.median, peer.median,
        )
    }

    /// Returns the verdict about the ratio's interval.
    #[must_use]
    pub fn verdict(&self, bar: Bar) -> Verdict {
        let (all, some) = match bar {
            Bar::AtLeast(ratio) => (self.low >= ratio, self.high >= ratio),
            Bar::AtMost(ratio) => (self.high <= ratio, self.low <= ratio),
        };
        match (self.confident, all, some) {
            (true, true, _) => Verdict::Met,
            (true, _, false) => Verdict::Missed,
            _ => Verdict::Unclear,
        }
    }
}

/// Runs the windows of both contenders in pairs. The caller pins the thread first ([`crate::pin_to`]).
///
/// # Errors
/// Returns an error if a contender fails or does no work, or if every pair was disturbed.
pub fn compare(plan: &Plan, ours: &mut dyn Contender, peer: &mut dyn Contender) -> Result<Comparison, Error> {
    let mut pool = Pool::default();
    pool.run(plan, ours, peer)?;
    pool.sum_up()
}

/// Pairs of windows from several runs, which give one comparison. Each run may have different contenders.
#[derive(Default)]
pub struct Pool {
    tally: Tally,
    rounds: u64,
}

impl Pool {
    /// Runs the next pairs. Returns the median of their ratios, if any pair was undisturbed.
    ///
    /// # Errors
    /// Returns an error if a contender fails or does no work.
    pub fn run(
        &mut self,
        plan: &Plan,
        ours: &mut dyn Contender,
        peer: &mut dyn Contender,
    ) -> Result<Option<f64>, Error> {
        let mut lot = Lot(plan.seed.wrapping_add(self.rounds));
        self.rounds += 1;
        for _ in 0..plan.warm_up {
            run_pair(lot.draw(), ours, peer)?;
        }
        let tally = &mut self.tally;
        let (before, raw_before) = (tally.ratios.len(), tally.raw_ratios.len());
        while tally.ratios.len() - before < plan.pairs
            && tally.raw_ratios.len() - raw_before < plan.attempts_max
        {
            let (window, peer_window) = run_pair(lot.draw(), ours, peer)?;
            tally.add(plan.measure, &window, &peer_window)?;
        }
        Ok(median(&tally.ratios[before..]))
    }

    /// Returns the comparison over all pairs.
    ///
    /// # Errors
    /// Returns an error if every pair was disturbed.
    pub fn sum_up(self) -> Result<Comparison, Error> {
        self.tally.sum_up()
    }
}

fn run_pair(
    ours_first: bool,
    ours: &mut dyn Contender,
    peer: &mut dyn Contender,
) -> Result<(Window, Window), Error> {
    if ours_first {
        let window = ours.window()?;
        return Ok((window, peer.window()?));
    }
    let peer_window = peer.window()?;
    Ok((ours.window()?, peer_window))
}

#[derive(Default)]
struct Tally {
    ours: Tale,
    peer: Tale,
    ratios: Vec<f64>,
    raw_ratios: Vec<f64>,
}

#[derive(Default)]
struct Tale {
    values: Vec<f64>,
    disturbed: usize,
    stolen_ns: u64,
}

impl Tally {
    fn add(&mut self, measure: Measure, ours: &Window, peer: &Window) -> Result<(), Error> {
        let ours_value = positive("ours", measure.of(ours))?;
        let peer_value = positive("peer", measure.of(peer))?;
        let ratio = ours_value / peer_value;
        self.raw_ratios.push(ratio);
        self.ours.note(ours);
        self.peer.note(peer);
        if ours.gaps == 0 && peer.gaps == 0 {
            self.ratios.push(ratio);
            self.ours.values.push(ours_value);
            self.peer.values.push(peer_value);
        }
        Ok(())
    }

    fn sum_up(self) -> Result<Comparison, Error> {
        let attempts = self.raw_ratios.len();
        let disturbed = || Error::AllDisturbed { attempts };
        let interval = median_interval(&self.ratios).ok_or_else(disturbed)?;
        Ok(Comparison {
            ratio: median(&self.ratios).ok_or_else(disturbed)?,
            raw_ratio: median(&self.raw_ratios).ok_or_else(disturbed)?,
            low: interval.low,
            high: interval.high,
            runs: self.ratios.len(),
            set_aside: attempts - self.ratios.len(),
            confident: interval.is_confident(),
            ours: self.ours.sum_up().ok_or_else(disturbed)?,
            peer: self.peer.sum_up().ok_or_else(disturbed)?,
        })
    }
}

impl Tale {
    fn note(&mut self, window: &Window) {
        self.disturbed += usize::from(window.gaps > 0);
        self.stolen_ns += window.stolen_ns;
    }

    fn sum_up(self) -> Option<Side> {
        Some(Side { median: median(&self.values)?, disturbed: self.disturbed, stolen_ns: self.stolen_ns })
    }
}

fn positive(side: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(Error::Value { side, value }) }
}

/// Reproducible random bits (`SplitMix64`).
struct Lot(u64);

impl Lot {
    fn draw(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed >> 63 == 1
    }
}

#[cfg(test)]
mod tests;
