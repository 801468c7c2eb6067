// SPDX-License-Identifier: Apache-2.0
//! Measurement of one contender without a peer, as an absolute figure.
//!
//! On a shared machine, such a figure depends on the load as much as on the code, so it is not used for
//! comparisons.

use crate::{Contender, Error, Plan, median, median_interval};

/// Result for one contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// Median figure of the undisturbed windows.
    pub median: f64,
    /// Lower end of the median's 95 % interval (order statistics).
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// Number of undisturbed windows.
    pub runs: usize,
    /// Number of windows excluded because of preemption.
    pub set_aside: usize,
}

/// Measures one contender until as many windows are undisturbed as `plan` has pairs. The caller pins the
/// thread first ([`crate::pin_to`]).
///
/// # Errors
/// Returns an error if the contender fails or does no work, or if every window was disturbed.
pub fn measure(plan: &Plan, contender: &mut dyn Contender) -> Result<Alone, Error> {
    for _ in 0..plan.warm_up {
        contender.window()?;
    }
    let mut values = Vec::with_capacity(plan.pairs);
    let mut attempts = 0;
    while values.len() < plan.pairs && attempts < plan.attempts_max {
        attempts += 1;
        let window = contender.window()?;
        let value = plan.measure.of(&window);
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::Value { side: "ours", value });
        }
        if window.gaps == 0 {
            values.push(value);
        }
    }
    let disturbed = || Error::AllDisturbed { attempts };
    let interval = median_interval(&values).ok_or_else(disturbed)?;
    Ok(Alone {
        median: median(&values).ok_or_else(disturbed)?,
        low: interval.low,
        high: interval.high,
        runs: values.len(),
        set_aside: attempts - values.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    #[test]
    fn disturbed_windows_are_excluded_and_repeated() {
        let mut turn = 0;
        let mut contender = || {
            turn += 1;
            // The speed varies from 2 to 5 million units per second. Every third window is disturbed.
            let gaps = u64::from(turn % 3 == 0);
            let units = if gaps > 0 { 1 } else { 2_000 + turn % 4 * 1_000 };
            Ok(Window { units, cpu_ns: 1_000_000, wall_ns: 1_000_000, gaps, stolen_ns: gaps })
        };
        let found = measure(&Plan::new(40), &mut contender).unwrap();
        assert_eq!((found.runs, found.set_aside), (40, 19));
        assert!((found.median - 3.5).abs() < 1e-9 && found.low >= 2.0 && found.high <= 5.0, "{found:?}");
        let mut idle = || Ok(Window { units: 0, cpu_ns: 9, wall_ns: 9, gaps: 0, stolen_ns: 0 });
        assert!(measure(&Plan::new(40), &mut idle).is_err());
        let mut loud = || Ok(Window { units: 1, cpu_ns: 9, wall_ns: 9, gaps: 1, stolen_ns: 9 });
        let error = measure(&Plan::new(4), &mut loud).unwrap_err().to_string();
        assert!(error.contains("none of 12 windows"), "{error}");
    }
}
