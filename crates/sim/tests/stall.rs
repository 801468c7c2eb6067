// SPDX-License-Identifier: Apache-2.0
//! Costs, and the delay of packets while rules change. The tests measure them in units of work, which other
//! programs do not affect.

use flow::TableId;
use pipeline::ProbeStep;
use sim::cost::stall::run;
use sim::cost::{CostSource, MeasurePlan, Rig, churn, measure};

/// Maximum amount of work in a poll iteration.
const LONG_UNITS: f64 = 1_500.0;

/// Every step of the mix must have a row, and the sum of the rows must be comparable with real time.
#[test]
fn every_step_has_a_cost() {
    let mut mix = Rig::mix().unwrap();
    let steps = [
        ProbeStep::Turn,
        ProbeStep::Receive,
        ProbeStep::Admit,
        ProbeStep::Finish,
        ProbeStep::Transmit,
        ProbeStep::Change,
        ProbeStep::Swap,
    ];
    let tables = [0, 1].into_iter().flat_map(|t| {
        [ProbeStep::Extract(TableId(t)), ProbeStep::Lookup(TableId(t)), ProbeStep::Execute(TableId(t))]
    });
    let costs = measure(&mut mix, MeasurePlan { windows: 200, turns: 64, lead: 0, warm_up: 10 });
    println!("{costs}");
    for step in steps.into_iter().chain(tables) {
        assert!(costs.rows().iter().any(|row| row.step == step && row.units > 0), "{step:?} is missing");
    }
    assert!(costs.agreement.windows > 0 && costs.agreement.virtual_ns > 0.0);
}

/// All entries are deleted by a wildcard. No poll iteration may have much work. Each packet must be processed
/// either by all rules before the delete or by all rules after it. Once the barrier is answered, only the
/// rules after it may apply.
#[test]
fn deleting_everything_stalls_nothing_and_leaves_no_stale_verdict() {
    let report = run(20_000, CostSource::Even(1.0)).unwrap();
    println!("{report}");
    assert!(report.turns.virtual_max_ns < LONG_UNITS, "{report}");
    assert!(report.turns.virtual_max_ns > 0.0 && report.turns.count > 0);
    assert!(report.by_old > 0 && report.by_new > 0, "{report}");
    assert!(report.is_lawful(), "{report}");
}

/// Operations of each kind are submitted as fast as possible. No poll iteration may have much work.
#[test]
fn flow_mods_stall_nothing() {
    let mut phases = 0;
    churn::run(5_000, CostSource::Even(1.0), "", |phase| {
        phases += 1;
        println!("{} ({}): {} flow-mods, {:?}", phase.name, phase.engine, phase.mods, phase.turns);
        let units = phase.turns.virtual_max_ns;
        assert!(phase.turns.count > 0 && units > 0.0 && units < LONG_UNITS, "{}: {units}", phase.name);
    })
    .unwrap();
    assert_eq!(phases, 14);
}
