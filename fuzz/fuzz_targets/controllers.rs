// SPDX-License-Identifier: Apache-2.0
//! Drives a switch with random bytes, three per step. A step is a controller message (valid or mutated), a
//! packet, or the passage of time. `storm` does the checks. The test `controllers` of crate `worker` drives
//! it with random numbers. The target prints the number of messages after each million.
#![no_main]

#[path = "../../crates/openflow/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod common;
#[path = "../../crates/worker/tests/controllers/storm.rs"]
mod storm;
#[path = "../../crates/worker/tests/controllers/tame.rs"]
mod tame;
#[path = "../../crates/worker/tests/controllers/watched.rs"]
mod watched;

use libfuzzer_sys::fuzz_target;
use std::sync::atomic::{AtomicU64, Ordering};
use storm::Storm;

const TOLD_EVERY: u64 = 1_000_000;

static MESSAGES: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let mut storm = Storm::new(&mut fastrand::Rng::with_seed(first.into()));
    for choice in rest.chunks_exact(3) {
        storm.step(u64::from_be_bytes([0, 0, 0, 0, 0, choice[0], choice[1], choice[2]]));
    }
    let sent = storm.finish().messages;
    let before = MESSAGES.fetch_add(sent, Ordering::Relaxed);
    if before / TOLD_EVERY != (before + sent) / TOLD_EVERY {
        eprintln!("{} messages", before + sent);
    }
});
