// SPDX-License-Identifier: Apache-2.0
//! Median and its confidence interval, without assumptions about the distribution.

/// 95 % confidence interval of a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that such an interval contains the median; below 0.95 only for fewer than six samples.
    pub confidence: f64,
}

const CONFIDENCE: f64 = 0.95;

/// Returns the median, or `None` without samples.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Returns the interval between two order statistics (the inverted sign test): the k-th samples from either
/// end of the n sorted samples. k is the largest number with P(Binomial(n, 1/2) < k) <= 2.5 %. The interval
/// is exact for independent samples of a continuous distribution. With fewer than six samples, it is the
/// whole range, with a lower confidence.
#[must_use]
pub fn median_interval(samples: &[f64]) -> Option<Interval> {
    let sorted = sorted(samples);
    let count = sorted.len();
    let (&lowest, &highest) = (sorted.first()?, sorted.last()?);
    let tail_max = (1.0 - CONFIDENCE) / 2.0;
    let mut interval =
        Interval { low: lowest, high: highest, confidence: 1.0 - 2.0 * binomial_tail(count, 1) };
    for k in 2..=count / 2 {
        let tail = binomial_tail(count, k);
        if tail > tail_max {
            break;
        }
        interval = Interval { low: sorted[k - 1], high: sorted[count - k], confidence: 1.0 - 2.0 * tail };
    }
    Some(interval)
}

impl Interval {
    /// Returns whether there were enough samples for 95 % confidence.
    #[must_use]
    pub fn is_confident(&self) -> bool {
        self.confidence >= CONFIDENCE
    }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns P(Binomial(count, 1/2) < k), computed with logarithms so that 2^-count does not underflow.
#[allow(clippy::cast_precision_loss)] // Sample counts are far below 2^52.
fn binomial_tail(count: usize, k: usize) -> f64 {
    let mut log_term = -(count as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for i in 0..k {
        sum += log_term.exp();
        log_term += (((count - i) as f64) / ((i + 1) as f64)).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(count: u32) -> Vec<f64> {
        (1..=count).rev().map(f64::from).collect()
    }

    #[test]
    fn medians_of_odd_even_and_no_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median_interval(&[]), None);
    }

    /// Compares the ranks with published tables for the sign test (two-sided 5 %): the second of 10 samples,
    /// the tenth of 30, the 40th of 100.
    #[test]
    fn ranks_are_those_of_the_published_tables() {
        for (count, k) in [(6, 1), (8, 1), (9, 2), (10, 2), (11, 2), (20, 6), (30, 10), (50, 18), (100, 40)] {
            let interval = median_interval(&range(count)).unwrap();
            assert_eq!((interval.low, interval.high), (f64::from(k), f64::from(count + 1 - k)), "of {count}");
            assert!(interval.is_confident());
        }
    }

    #[test]
    fn too_few_samples_have_less_confidence_and_say_so() {
        let interval = median_interval(&range(5)).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 5.0));
        assert!((interval.confidence - 0.9375).abs() < 1e-9);
        assert!(!interval.is_confident());
    }

    #[test]
    fn many_samples_do_not_underflow() {
        let interval = median_interval(&range(5001)).unwrap();
        assert!(interval.low > 2400.0 && interval.high < 2602.0, "{interval:?}");
        assert!(interval.is_confident() && interval.confidence < 0.96, "{interval:?}");
    }
}
