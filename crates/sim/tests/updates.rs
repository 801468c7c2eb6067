// SPDX-License-Identifier: Apache-2.0
//! Rules are added under low-latency traffic, in each consistency mode of the LUTs. Every packet must be sent
//! to the port that the rules require.

use sim::cost::MeasurePlan;
use sim::cost::updates::{Case, UpdateRules, run};
use worker::Consistency;

fn case(rules: UpdateRules, consistency: Consistency, lut_entries: usize) -> Case {
    let plan = MeasurePlan { windows: 6, turns: 64, lead: 0, warm_up: 2 };
    let (before, added, rate, together, flows) = (1_000, 150, 10_000, 3, 500);
    Case { rules, before, added, rate, together, flows, lut_entries, consistency, plan }
}

#[test]
fn added_rules_leave_no_wrong_verdict() {
    for rules in [UpdateRules::AccessList, UpdateRules::Routes] {
        for consistency in Consistency::ALL {
            for lut_entries in [64, 1_024, 16_384] {
                let report = run(&case(rules, consistency, lut_entries)).unwrap();
                let reported = format!("{} {consistency} {lut_entries}: {report:?}", rules.name());
                assert_eq!(report.wrong, 0, "{reported}");
                assert!(report.packets > 0 && report.luts.hits > 0, "{reported}");
                if lut_entries > 64 {
                    assert!(report.fast * 2 > report.packets as u64, "{reported}");
                    let kept = report.luts.cleaned + report.luts.verified;
                    assert!(kept > 0, "{reported}");
                }
            }
        }
    }
}
