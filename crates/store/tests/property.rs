// SPDX-License-Identifier: Apache-2.0
//! Random programs of changes: a restart finds the state of the model.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use store::{Durability, StoreClock};

/// Number of programs.
const PROGRAMS: u64 = 40;
/// Number of changes of a program.
const STEPS: usize = 250;
/// Number of starts with a program.
const STARTS: usize = 4;

#[test]
fn a_restart_finds_the_state_of_the_model() {
    let clock = StoreClock::at(START);
    let (mut snapshots, mut entries) = (0, 0);
    for seed in 0..setting("STORE_PROGRAMS", PROGRAMS) {
        let folder = TestFolder::new("property");
        let config = config(&folder.0, Durability::Off);
        let mut program = Program::new(seed);
        let recording = Recording::default();
        let mut expected: Option<Folded> = None;
        for start in 0..STARTS {
            let (handle, mut model) = attached(config.clone(), clock, &recording);
            if let Some(expected) = &expected {
                assert_eq!(state(&model), *expected, "seed {seed}, start {start}");
            }
            for step in 0..STEPS {
                program.step(&mut model);
                if step % 50 == 0 {
                    settle(&mut model, &handle);
                }
            }
            settle(&mut model, &handle);
            snapshots += handle.status().snapshots;
            assert_eq!((handle.status().skipped, handle.status().left_out), (0, 0));
            let now = state(&model);
            assert_eq!(now, Folded::after(&recording, handle.status().recorded), "seed {seed}");
            entries += now.len();
            expected = Some(now);
        }
    }
    assert!(snapshots > 20 && entries > 1_000, "{snapshots} snapshots, {entries} entries");
}
