// SPDX-License-Identifier: Apache-2.0
//! Search for the packet rate that a switch sustains.

use crate::arrivals::{Class, ClassReport, Harness, Load, Switch};
use crate::cost::{CostError, CostTable};

/// Maximum share of packets that may be lost for lack of space at a sustained rate.
const LOST_PART: f64 = 1e-4;

/// Maximum time from the last arrival until the switch is empty, as a share of the time during which packets
/// arrive. A longer time means that the backlog has grown.
const LATE_PART: f64 = 0.005;

/// First rate and highest rate that are tried, in packets/s.
const FIRST_PPS: f64 = 1e5;
const MOST_PPS: f64 = 1e9;

/// Numbers of packets per trial: [`ROUGH`] while rates are doubled, and [`FINE`] in all later trials.
const ROUGH: f64 = 5e4;
const FINE: f64 = 2e5;

/// Number of packets of the warm-up before each trial. With the first ten thousands of packets, a worker
/// decides whether it bypasses its express path.
pub const WARM_UP: f64 = 65_536.0;

/// Number of bisection steps after doubling.
const STEPS: u32 = 8;

/// Returns the highest total rate in packets/s that a switch sustains: it loses at most 0.01 % of the packets
/// for lack of space, and its backlog does not grow. The shares of the classes stay the same. Returns 0 if
/// the switch sustains none of the tried rates, or if nothing arrives.
///
/// # Errors
/// Returns an error if a rule is refused.
pub fn capacity_pps(switch: &Switch<'_>, load: &Load, costs: &CostTable) -> Result<f64, CostError> {
    let all_pps: f64 = load.classes.iter().map(|class| class.rate_pps).sum();
    if all_pps <= 0.0 {
        return Ok(0.0);
    }
    let holds = |pps: f64, packets: f64| -> Result<bool, CostError> {
        let span_ns = packets * 1e9 / pps;
        let scaled = |class: &Class| Class {
            rate_pps: class.rate_pps * pps / all_pps,
            begin_ns: 0.0,
            ..class.clone()
        };
        let classes = load.classes.iter().map(scaled).collect();
        let load = Load { classes, warm_up_ns: WARM_UP * 1e9 / pps, span_ns, ..*load };
        let report = Harness::new(switch, &load)?.run(costs);
        let offered: u64 = report.classes.iter().map(|class| class.offered).sum();
        let lost: u64 = report.classes.iter().map(ClassReport::crowded_out).sum();
        let late_ns = report.end_ns - load.end_ns();
        Ok(lost as f64 <= offered as f64 * LOST_PART && late_ns <= span_ns * LATE_PART)
    };
    let mut most_pps = FIRST_PPS;
    while most_pps < MOST_PPS && holds(most_pps, ROUGH)? {
        most_pps *= 2.0;
    }
    let mut holds_pps = most_pps / 2.0;
    // The short trial at this rate may have been too optimistic, so it is repeated with more packets.
    while holds_pps >= FIRST_PPS && !holds(holds_pps, FINE)? {
        most_pps = holds_pps;
        holds_pps /= 2.0;
    }
    if holds_pps < FIRST_PPS {
        holds_pps = 0.0;
    }
    for _ in 0..STEPS {
        let pps = f64::midpoint(holds_pps, most_pps);
        if holds(pps, FINE)? { holds_pps = pps } else { most_pps = pps }
    }
    Ok(holds_pps)
}
