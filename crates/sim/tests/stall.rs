// SPDX-License-Identifier: Apache-2.0
//! Costs, and how long packets wait while everything is deleted under them.

use pipeline::Step;
use sim::cost::stall::run;
use sim::cost::{Plan, Rig, churn, measure};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What no turn may take.
const LONG_NS: f64 = 100_000.0;

/// One test at a time: another would take the core away from what is measured.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A row for every step that the mix takes, and their sum is within 20 % of real time. Other programs on the machine may
/// leave too few windows whole, so there are several tries.
#[test]
fn every_step_has_a_cost_and_the_costs_add_up() {
    let _alone = alone();
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
    let _alone = alone();
    let report = run(20_000, Plan { windows: 40, turns: 64, warm_up: 4 }).unwrap();
    println!("{report}");
    assert!(report.turns.virtual_max_ns < 200_000.0, "{report}");
    assert!(report.turns.virtual_max_ns > 0.0 && report.turns.count > 0);
    assert!(report.by_old > 0 && report.by_new > 0, "{report}");
    assert!(report.is_lawful(), "{report}");
}

/// Operations of each sort as fast as they can be queued: no turn is long in virtual time, by the 99.9th percentile of each
/// step's cost. Other programs may lengthen the costs of a round, hardly those of eight.
#[test]
fn flow_mods_stall_nothing() {
    let _alone = alone();
    let plan = Plan { windows: 40, turns: 64, warm_up: 4 };
    let mut shortest_ns = BTreeMap::new();
    for _ in 0..8 {
        churn::run(5_000, plan, "", |phase| {
            let virtual_ns = phase.turns.virtual_max_ns;
            println!("{} ({}): {} flow-mods, {:?}", phase.name, phase.engine, phase.mods, phase.turns);
            assert!(phase.turns.count > 0 && virtual_ns > 0.0, "{}", phase.name);
            let shortest_ns = shortest_ns.entry(phase.name).or_insert(virtual_ns);
            *shortest_ns = virtual_ns.min(*shortest_ns);
        })
        .unwrap();
        assert_eq!(shortest_ns.len(), 14);
        if shortest_ns.values().all(|ns| *ns < LONG_NS) {
            return;
        }
    }
    let long: Vec<_> = shortest_ns.iter().filter(|(_, ns)| **ns >= LONG_NS).collect();
    panic!("ns: {long:?}");
}
