// SPDX-License-Identifier: Apache-2.0
//! Restarts of the machine, whose monotonic clock then begins again.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::{FlowMod, Nanos, TableId};
use model::KeptChange;
use std::fs;
use std::path::Path;
use store::{Durability, StoreClock};

const SECOND_NS: u64 = 1_000_000_000;

/// Changes the ID of the boot in which a file was written.
fn move_to_another_boot(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[32..48].fill(7);
    seal(&mut bytes);
    fs::write(file, bytes).unwrap();
}

fn add(model: &mut Fake, now: Nanos, priority: u16) {
    model.flow_mod(now, FlowMod { table: Some(TableId(0)), priority, ..FlowMod::default() }).unwrap();
}

/// Returns the priorities and times of addition of the entries.
fn times(model: &Fake) -> Vec<(u16, Nanos)> {
    let entries = model.kept_state().into_iter().filter_map(|change| match change {
        KeptChange::Entry(kept) => Some((kept.entry.priority, kept.created_ns)),
        _ => None,
    });
    entries.collect()
}

#[test]
fn entries_of_an_earlier_boot_keep_their_age_when_the_rules_change_in_the_next() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("boots");
    let config = config(&folder.0, Durability::Off);
    let (handle, mut model) = attached(config.clone(), clock, &Recording::default());
    add(&mut model, START, 1);
    add(&mut model, START + Nanos(60 * SECOND_NS), 2);
    settle(&mut model, &handle);
    drop(model);
    drop(handle);
    let all = files(&folder.0);
    all.iter().filter(|file| !file.ends_with("sequence")).for_each(|file| move_to_another_boot(file));

    let (mut model, opened) = restored(config.clone(), clock);
    // The time since the last change does not count.
    let [first, second] = [(1, START - Nanos(60 * SECOND_NS)), (2, START)];
    assert_eq!(times(&model), [first, second]);
    let (journal, handle) = opened.store.start(|| ()).unwrap();
    model.attach_journal(START, Box::new(journal), Vec::new());
    add(&mut model, START, 3);
    settle(&mut model, &handle);
    drop(model);
    drop(handle);
    let (model, _) = restored(config, clock);
    assert_eq!(times(&model), [first, second, (3, START)]);
}
