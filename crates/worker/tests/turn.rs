// SPDX-License-Identifier: Apache-2.0
//! The number of operations that a worker applies per poll iteration is bounded.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::{Action, Field, FieldMatch, FlowMod, Instructions, Match, Nanos, PortNo, TableId};
use model::Model;
use worker::{Worker, WorkerSet, WorkerSetConfig, build};

/// Returns a flow-mod that adds a route to a table. Each number gives a different route.
fn add(table: TableId, number: u32) -> FlowMod {
    let prefix = FieldMatch { field: Field::Ipv4Dst, value: u128::from(number) << 8, mask: 0xffff_ff00 };
    FlowMod {
        table: Some(table),
        matching: Match::new([FieldMatch::exact(Field::EthType, 0x0800), prefix]).unwrap(),
        instructions: Instructions::apply(vec![Action::output(PortNo(1))]),
        ..FlowMod::default()
    }
}

/// Creates tables of 1,000 routes each, and then bundles of changes that the worker has not applied yet.
fn waiting(tables: u8, bundles: u32, size: u32) -> (Model<WorkerSet>, Worker) {
    let config =
        WorkerSetConfig { workers: 1, small_frames: 64, large_frames: 0, ..WorkerSetConfig::default() };
    let (set, mut workers) = build(&config, Vec::new());
    let mut model = Model::new(model::ModelConfig::default(), set, Nanos(0));
    let mut worker = workers.remove(0);
    let mods = (0..tables).flat_map(|table| (0..1_000).map(move |number| add(TableId(table), number)));
    model.bundle(Nanos(0), mods).unwrap();
    while worker.apply() > 0 {}
    for bundle in 0..bundles {
        let numbers = move |n| 1_000 + bundle * size + n;
        let mods = (0..tables).flat_map(|table| (0..size).map(move |n| add(TableId(table), numbers(n))));
        model.bundle(Nanos(0), mods).unwrap();
    }
    (model, worker)
}

#[test]
fn a_few_bundles_of_single_parts_fill_a_poll_iteration() {
    let (mut model, mut worker) = waiting(1, 4, 60);
    let last = model.barrier();
    // Each bundle has 60 parts that change rules, and some that change programs and cells.
    assert_eq!(worker.turn(Nanos(1)).applied, 3);
    assert!(!model.is_applied(last));
    assert_eq!(worker.turn(Nanos(2)).applied, 1);
    assert!(model.is_applied(last));
}

#[test]
fn a_bundle_for_many_tables_swaps_them() {
    let (mut model, mut worker) = waiting(40, 8, 60);
    // Each bundle consists of 40 swaps instead of 2,400 parts. The cost of these swaps exceeds the limit of a
    // poll iteration, so only one bundle is applied at a time.
    assert_eq!(worker.turn(Nanos(1)).applied, 1);
    assert_eq!(model.plane_mut().engine(TableId(39)).0, "exact");
    assert_eq!(worker.turn(Nanos(2)).applied, 1);
}
