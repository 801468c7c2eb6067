// SPDX-License-Identifier: Apache-2.0
//! Tests of the daemon's real threads with random packets, while a controller changes random rules, groups,
//! meters and ports.
//!
//! The checks are conservation of packets, the order within each flow, and the rules that each packet met. A
//! rule writes its version into the packets that hit it.
//!
//! `THREADS_SEED` (default 1) sets the first seed. `THREADS_RUNS` (default 2) sets the number of seeds with
//! which each test runs, for 2 and for 3 workers. `THREADS_MS` (default 400) sets the duration of a run in
//! ms.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bell;
mod book;
mod captures;
mod controller;
mod judge;
#[path = "../openflow/lab.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod lab;
#[path = "../openflow/log.rs"]
#[allow(dead_code, reason = "the lab captures a log, but these tests do not read it")]
mod log;
mod packet;
#[path = "../openflow/peer.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod peer;
mod stage;
mod totals;
mod watchdog;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lock that permits only one run at a time, because a slow run could be mistaken for a hang.
static ALONE: Mutex<()> = Mutex::new(());

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Few packets are sent at a time, and every packet must arrive. Workers sleep as soon as possible, and
    /// wake only if another thread wakes them.
    Sleepy,
    /// As many packets are sent as the ports accept, with meters, drops, packet-ins and failing links.
    Storm,
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Seed of the random generator.
    pub seed: u64,
    /// Number of workers.
    pub workers: usize,
    /// Load of the run.
    pub load: Load,
    /// Whether the express path is on. With two workers, lanes are then off, so that every packet reaches the
    /// express path.
    pub express: bool,
    /// Time during which packets and changes are sent.
    pub time: Duration,
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn runs(load: Load, express: bool) -> Vec<Run> {
    let first = variable("THREADS_SEED", 1);
    let time = Duration::from_millis(variable("THREADS_MS", 400));
    let seeds = first..first + variable("THREADS_RUNS", 2);
    let run = |seed| move |workers| Run { seed, workers, load, express, time };
    seeds.flat_map(|seed| [2, 3].map(run(seed))).collect()
}

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn workers_that_sleep_whenever_they_can_lose_and_reorder_nothing() {
    let _alone = alone();
    runs(Load::Sleepy, false).into_iter().for_each(stage::play);
}

#[test]
fn workers_under_overload_account_for_every_packet() {
    let _alone = alone();
    runs(Load::Storm, false).into_iter().for_each(stage::play);
}

#[test]
fn capture_ports_send_the_copies_that_the_rules_require() {
    let _alone = alone();
    runs(Load::Storm, false).into_iter().for_each(captures::play);
}

#[test]
fn path_records_lose_and_reorder_nothing_while_rules_change() {
    let _alone = alone();
    runs(Load::Sleepy, true).into_iter().for_each(stage::play);
}

#[test]
fn path_records_under_overload_account_for_every_packet() {
    let _alone = alone();
    runs(Load::Storm, true).into_iter().for_each(stage::play);
}
