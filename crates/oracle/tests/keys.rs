// SPDX-License-Identifier: Apache-2.0
//! Keys of the express path under random rules. Two packets must have equal keys if and only if they have the
//! same ingress port, the same examined fields, and the same examined bits. `KEY_CASES` sets the number of
//! rule sets (default: 120), `ORACLE_SEED` the first seed.

use oracle::{KeyCoverage, run_key_case};

/// Minimum number of rule sets in a run for coverage to be checked.
const CASES: u64 = 120;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn keys_are_equal_exactly_for_packets_of_one_flow() {
    let (cases, first) = (number("KEY_CASES", CASES), number("ORACLE_SEED", 1));
    let mut coverage = KeyCoverage::default();
    for seed in first..first + cases {
        match run_key_case(seed) {
            Ok(case) => coverage += case,
            Err(breach) => panic!("{breach}"),
        }
    }
    println!("{cases} rule sets: {coverage:?}");
    if cases < CASES {
        return;
    }
    let KeyCoverage { plans, two_lines, too_long, pairs, equal, unlike, .. } = coverage;
    let KeyCoverage { by_port, by_presence, by_one_bit, rules, rules_matched, rules_unclear, .. } = coverage;
    assert!(two_lines * 50 > plans && too_long * 5 < plans, "long keys are tried, but most fit");
    assert!(equal * 10 > pairs && equal * 2 < pairs, "both equal and different packets");
    assert!(unlike * 5 > equal, "packets of one flow differ in their headers");
    assert!(by_port * 100 > pairs, "packets differ only in their ports");
    assert!(by_presence * 50 > pairs && by_one_bit * 50 > pairs, "small differences");
    assert!(rules_matched * 10 > rules, "packets match rules");
    assert!(rules_unclear * 20 < rules, "keys nearly always show whether a packet matches a rule");
}
