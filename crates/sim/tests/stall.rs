// SPDX-License-Identifier: Apache-2.0
//! Costs, and how long packets wait while everything is deleted under them.

use pipeline::Step;
use sim::cost::stall::run;
use sim::cost::{Plan, Rig, churn, measure};

/// A row for every step that the mix takes, and their sum is within 20 % of real time. Other programs on the machine may
/// leave too few windows whole, so there are several tries.
#[test]
fn every_step_has_a_cost_and_the_costs_add_up() {
    let mut mix = Rig::mix().unwrap();
    let steps =
        [Step::Turn, Step::Receive, Step::Admit, Step::Finish, Step::Transmit, Step::Change, Step::Swap];
    let tables = [0, 1].into_iter().flat_map(|t| [Step::Extract(t), Step::Lookup(t), Step::Execute(t)]);
    let all: Vec<Step> = steps.into_iter().chain(tables).collect();
    let adds_up = (0..5).any(|_| {
        let costs = measure(&mut mix, Plan { windows: 200, turns: 64, warm_up: 10 });
        println!("{costs}");
        for step in &all {
            assert!(costs.rows().iter().any(|row| row.step == *step && row.units > 0), "{step:?} is missing");
        }
        costs.agreement.windows >= 10 && (0.8..=1.2).contains(&costs.agreement.ratio())
    });
    assert!(adds_up);
}

/// A wildcard delete of all entries: no turn is long in virtual time, and each packet is judged by the rules before it
/// or by those after it, by the latter once the barrier is answered.
#[test]
fn deleting_everything_stalls_nothing_and_leaves_no_stale_verdict() {
    let report = run(20_000, Plan { windows: 40, turns: 64, warm_up: 4 }).unwrap();
    println!("{report}");
    assert!(report.turns.virtual_max_ns < 200_000.0, "{report}");
    assert!(report.turns.virtual_max_ns > 0.0 && report.turns.count > 0);
    assert!(report.by_old > 0 && report.by_new > 0, "{report}");
    assert!(report.is_lawful(), "{report}");
}

/// Flow-mods as fast as they can be done, of each sort: no turn is long in virtual time.
#[test]
fn flow_mods_stall_nothing() {
    let report = churn::run(5_000, Plan { windows: 40, turns: 64, warm_up: 4 }).unwrap();
    assert_eq!(report.phases.len(), 5);
    for phase in &report.phases {
        println!("{}: {} flow-mods, {:?}", phase.name, phase.mods, phase.turns);
        assert!(phase.turns.count > 0 && phase.turns.virtual_max_ns > 0.0, "{phase:?}");
        assert!(phase.turns.virtual_max_ns < 100_000.0, "{phase:?}");
    }
}
