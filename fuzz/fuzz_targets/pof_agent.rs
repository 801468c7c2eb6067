// SPDX-License-Identifier: Apache-2.0
//! Drives a POF agent over a model by choices: messages of two controllers (valid, refused or damaged) in
//! either dialect, time, packet-ins, congestion and new connections. `storm` does the checks. The test
//! `random` of crate `pof_agent` drives it with random bytes. The target prints the number of messages after
//! each million.
#![no_main]

#[path = "../../crates/pof_agent/tests/agent/choices.rs"]
mod choices;
#[path = "../../crates/model/tests/common/mod.rs"]
mod common;
#[path = "../../crates/pof_agent/tests/agent/messages.rs"]
mod messages;
#[path = "../../crates/pof_agent/tests/agent/rig.rs"]
mod rig;
#[path = "../../crates/pof_agent/tests/agent/storm.rs"]
mod storm;

use choices::Choices;
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::{AtomicU64, Ordering};
use storm::Storm;

const REPORT_EVERY: u64 = 1_000_000;

static MESSAGES: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let sent = Storm::new(&mut choices).run(&mut choices).messages;
    let before = MESSAGES.fetch_add(sent, Ordering::Relaxed);
    if before / REPORT_EVERY != (before + sent) / REPORT_EVERY {
        eprintln!("{} messages", before + sent);
    }
});
