// SPDX-License-Identifier: Apache-2.0
//! Comparisons of simulated contenders.

use std::cell::RefCell;

use super::*;

/// Pseudo-random numbers in 0..1, the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }
}

/// Returns a contender that takes `cost_ns` per unit, multiplied by a random factor of up to 1 + `spread`.
fn contender(cost_ns: f64, spread: f64, seed: u64) -> impl FnMut() -> Result<Window, Error> {
    let mut noise = Noise(seed);
    move || {
        let units = 1_000_000;
        let cpu_ns = cost_ns * 1e6 * (1.0 + spread * noise.next());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Window { units, cpu_ns: cpu_ns as u64, wall_ns: cpu_ns as u64, gaps: 0, stolen_ns: 0 })
    }
}

#[test]
fn ours_twice_as_fast_meets_its_bar() {
    let found = compare(&Plan::new(50), &mut contender(10.0, 0.1, 1), &mut contender(20.0, 0.1, 2)).unwrap();
    assert!(found.low <= found.ratio && found.ratio <= found.high);
    assert!((found.ratio - 2.0).abs() < 0.1, "{found:?}");
    assert!((found.ours.median - 95.2).abs() < 3.0, "{found:?}");
    assert_eq!((found.runs, found.set_aside), (50, 0));
    assert_eq!(found.verdict(Bar::AtLeast(1.8)), Verdict::Met);
}

#[test]
fn ours_slower_misses_its_bar() {
    let found = compare(&Plan::new(50), &mut contender(30.0, 0.1, 1), &mut contender(20.0, 0.1, 2)).unwrap();
    assert_eq!(found.verdict(Bar::AtLeast(1.0)), Verdict::Missed);
    // If the figure is a cost, a ratio of 1.5 misses the target.
    let plan = Plan { measure: Measure::CpuNsPerUnit, ..Plan::new(50) };
    let found = compare(&plan, &mut contender(30.0, 0.1, 1), &mut contender(20.0, 0.1, 2)).unwrap();
    assert!((found.ratio - 1.5).abs() < 0.05, "{found:?}");
    assert_eq!(found.verdict(Bar::AtMost(1.0)), Verdict::Missed);
    assert_eq!(found.verdict(Bar::AtMost(1.7)), Verdict::Met);
}

#[test]
fn equals_in_noise_are_unclear() {
    let found = compare(&Plan::new(50), &mut contender(10.0, 1.5, 1), &mut contender(10.0, 1.5, 2)).unwrap();
    assert!(found.low < 1.0 && found.high > 1.0, "{found:?}");
    assert_eq!(found.verdict(Bar::AtLeast(1.0)), Verdict::Unclear);
    assert_eq!(found.verdict(Bar::AtMost(1.0)), Verdict::Unclear);
}

#[test]
fn a_change_of_speed_that_affects_both_cancels_out() {
    // The machine's speed varies by a factor of up to 2.3 between pairs, but not within a pair.
    let mood = RefCell::new((Noise(7), 0u32, 1.0));
    let shared = |cost_ns: f64| {
        let mood = &mood;
        move || {
            let mut mood = mood.borrow_mut();
            if mood.1.is_multiple_of(2) {
                mood.2 = 1.0 + 1.3 * mood.0.next();
            }
            mood.1 += 1;
            contender(cost_ns * mood.2, 0.0, 1)()
        }
    };
    let found = compare(&Plan::new(30), &mut shared(10.0), &mut shared(10.5)).unwrap();
    assert!((found.ratio - 1.05).abs() < 0.001, "{found:?}");
    assert_eq!(found.verdict(Bar::AtLeast(1.04)), Verdict::Met);
}

#[test]
fn a_bar_inside_the_interval_is_unclear_and_on_its_edge_is_not() {
    let side = Side { median: 1.0, disturbed: 0, stolen_ns: 0 };
    let found = Comparison {
        ours: side,
        peer: side,
        ratio: 1.5,
        low: 1.0,
        high: 2.0,
        runs: 9,
        set_aside: 0,
        raw_ratio: 1.5,
        confident: true,
    };
    assert_eq!(found.verdict(Bar::AtLeast(1.0)), Verdict::Met);
    assert_eq!(found.verdict(Bar::AtLeast(1.01)), Verdict::Unclear);
    assert_eq!(found.verdict(Bar::AtLeast(2.0)), Verdict::Unclear);
    assert_eq!(found.verdict(Bar::AtLeast(2.01)), Verdict::Missed);
    assert_eq!(found.verdict(Bar::AtMost(2.0)), Verdict::Met);
    assert_eq!(found.verdict(Bar::AtMost(1.0)), Verdict::Unclear);
    assert_eq!(found.verdict(Bar::AtMost(0.99)), Verdict::Missed);
    assert_eq!(Comparison { confident: false, ..found }.verdict(Bar::AtLeast(0.5)), Verdict::Unclear);
}

#[test]
fn disturbed_pairs_are_excluded_counted_and_repeated() {
    let mut count = 0;
    let mut steady = contender(10.0, 0.0, 1);
    let mut disturbed = || {
        count += 1;
        let window = steady()?;
        let hit = count % 4 == 0;
        let stolen_ns = if hit { 9 * window.cpu_ns } else { 0 };
        Ok(Window { cpu_ns: window.cpu_ns + stolen_ns, gaps: u64::from(hit), stolen_ns, ..window })
    };
    let plan = Plan { warm_up: 0, ..Plan::new(30) };
    let found = compare(&plan, &mut disturbed, &mut contender(10.0, 0.0, 1)).unwrap();
    assert_eq!((found.runs, found.set_aside), (30, 9));
    assert_eq!((found.ours.disturbed, found.peer.disturbed), (9, 0));
    assert_eq!(found.ours.stolen_ns, 9 * 90_000_000);
    assert!((found.low - 1.0).abs() < 1e-9 && (found.high - 1.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn too_few_pairs_give_no_verdict() {
    let found = compare(&Plan::new(5), &mut contender(10.0, 0.0, 1), &mut contender(20.0, 0.0, 2)).unwrap();
    assert_eq!(found.verdict(Bar::AtLeast(1.5)), Verdict::Unclear);
}

#[test]
fn nothing_undisturbed_and_nothing_done_are_errors() {
    let window = Window { units: 1, cpu_ns: 1, wall_ns: 1, gaps: 1, stolen_ns: 1 };
    let error = compare(&Plan::new(5), &mut || Ok(window), &mut || Ok(window)).unwrap_err();
    assert!(matches!(error, Error::AllDisturbed { attempts: 15 }), "{error}");
    let idle = Window { units: 0, gaps: 0, ..window };
    let error = compare(&Plan::new(5), &mut || Ok(idle), &mut || Ok(window)).unwrap_err();
    assert!(matches!(error, Error::Value { side: "ours", .. }), "{error}");
}

#[test]
fn both_go_first_about_as_often() {
    let mut lot = Lot(1);
    let first = (0..1000).filter(|_| lot.draw()).count();
    assert!((450..550).contains(&first), "{first}");
}
