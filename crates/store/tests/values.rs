// SPDX-License-Identifier: Apache-2.0
//! Values of unusual size, and many values: they survive a restart, or the store counts what it cannot keep.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessSection};
use flow::{Action, Field, FieldMatch, FlowMod, Instructions, Match, PortNo};
use model::Change;
use std::sync::Arc;
use store::{Durability, StoreClock, StoreConfig};

/// Makes changes, restarts, and compares the states.
fn survives(config: &StoreConfig, clock: StoreClock, change: impl FnOnce(&mut Fake)) {
    let (handle, mut model) = attached(config.clone(), clock, &Recording::default());
    change(&mut model);
    settle(&mut model, &handle);
    let expected = state(&model);
    drop(model);
    drop(handle);
    let (model, opened) = restored(config.clone(), clock);
    assert!(state(&model) == expected, "the states differ: {:?}", opened.report);
    assert_eq!((opened.report.lost, opened.report.problems), (Some(0), Vec::new()));
}

fn to(mac: u32, actions: usize) -> FlowMod {
    FlowMod {
        priority: 1,
        matching: Match::new([FieldMatch::exact(Field::EthDst, mac.into())]).unwrap(),
        instructions: Instructions::apply(vec![Action::output(PortNo(1)); actions]),
        ..FlowMod::default()
    }
}

#[test]
fn a_bank_longer_than_a_message_survives() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("bank");
    survives(&config(&folder.0, Durability::Interval), clock, |model| {
        let id = NodeId::new(Arithmetic::Integer, 60_000).unwrap();
        let labels = (0..20_000).map(|label| (label * 3, Label::Port(PortNo(label % 4 + 1)))).collect();
        let bank = |backup| Bank { id, labels, backups: [(PortNo(1), PortNo(backup))].into() };
        let sections = vec![StatelessSection::Bank(0, Some(bank(2)))];
        model.change(START, Change::Stateless(StatelessChange::Set(sections))).unwrap();
    });
}

#[test]
fn a_transaction_of_many_frames_survives() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("many");
    survives(&config(&folder.0, Durability::Interval), clock, |model| {
        // Later parts have other instructions.
        model.bundle(START, (0..30_000).map(|mac| to(mac, 1 + mac as usize / 1_000))).unwrap();
    });
    // The snapshot that follows has many parts.
    let files = files(&folder.0);
    let is_snapshot = |file: &&std::path::PathBuf| file.to_str().unwrap().contains("/snapshot-");
    assert_eq!(files.iter().filter(is_snapshot).count(), 1, "{files:?}");
}

#[test]
fn a_changed_configuration_replaces_the_kept_stateless_forwarder() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("base");
    let config = config(&folder.0, Durability::Off);
    survives(&config, clock, |model| {
        let trusted = StatelessSection::Trusted([PortNo(1)].into());
        model.change(START, Change::Stateless(StatelessChange::Set(vec![trusted]))).unwrap();
    });
    let stateless = Some(Arc::new(flow::StatelessConfig::default()));
    let (_, opened) = restored(StoreConfig { stateless, ..config.clone() }, clock);
    assert!(!opened.report.is_same_base);
    drop(opened);
    assert!(restored(config, clock).1.report.is_same_base);
}
