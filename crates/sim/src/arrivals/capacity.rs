// SPDX-License-Identifier: Apache-2.0
//! How much of a mix a switch carries.

use crate::arrivals::{Class, ClassReport, Load, Road, Switch};
use crate::cost::{CostError, CostTable};

/// Of all packets no more than this part may be lost for lack of room at a rate that is carried.
const LOST_PART: f64 = 1e-4;

/// And what is left when the last has arrived must be worked off within this part of the time in which all arrived: what
/// waits is not carried.
const LATE_PART: f64 = 0.005;

/// The rate that is tried first, packets a second, and the highest.
const FIRST_PPS: f64 = 1e5;
const MOST_PPS: f64 = 1e9;

/// Packets of a try: at first, when rates are doubled, and when they are halved.
const ROUGH: f64 = 5e4;
const FINE: f64 = 2e5;

/// Rates tried after doubling, each halving what is left.
const STEPS: u32 = 8;

/// Packets a second that arrive while a switch loses next to nothing for lack of room, of all classes together, which keep their shares. 0 if
/// it loses some at any rate, or nothing arrives.
///
/// # Errors
/// When a rule is refused.
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
        let load = Load { classes, warm_up_ns: span_ns / 10.0, span_ns, ..*load };
        let report = Road::new(switch, &load)?.run(costs);
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
    // Few packets may have been too few to tell.
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
