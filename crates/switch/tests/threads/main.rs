// SPDX-License-Identifier: Apache-2.0
//! The daemon's real threads under random packets, while a controller changes random rules, groups, meters and ports. What
//! comes out is judged by conservation, by the order of each flow, and by the rules that each packet names: a rule writes
//! its version into the packets that hit it.
//!
//! `THREADS_SEED` (default 1), `THREADS_RUNS` and `THREADS_MS` set where the random numbers begin, how many runs there are
//! for each test and number of workers, and how long each one lasts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bell;
mod book;
mod captures;
mod controller;
mod judge;
#[path = "../openflow/lab.rs"]
#[allow(dead_code, reason = "only what peers need is used")]
mod lab;
#[path = "../openflow/log.rs"]
#[allow(dead_code, reason = "the lab has it")]
mod log;
mod packet;
#[path = "../openflow/peer.rs"]
#[allow(dead_code, reason = "only a well-behaved peer is used")]
mod peer;
mod stage;
mod totals;
mod watchdog;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One run at a time, so that a hang is one.
static ALONE: Mutex<()> = Mutex::new(());

/// What a run may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// So few packets at a time that each must arrive. Workers sleep whenever they can and wake only if woken.
    Sleepy,
    /// As many packets as there is room for; meters, drops, packet-ins and failing links.
    Storm,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Where the random numbers begin.
    pub seed: u64,
    /// Workers.
    pub workers: usize,
    /// What it may do.
    pub load: Load,
    /// How long packets and changes come.
    pub time: Duration,
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn runs(load: Load) -> Vec<Run> {
    let first = variable("THREADS_SEED", 1);
    let time = Duration::from_millis(variable("THREADS_MS", 400));
    let seeds = first..first + variable("THREADS_RUNS", 2);
    seeds.flat_map(|seed| [2, 3].map(|workers| Run { seed, workers, load, time })).collect()
}

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn workers_that_sleep_whenever_they_can_lose_and_reorder_nothing() {
    let _alone = alone();
    runs(Load::Sleepy).into_iter().for_each(stage::play);
}

#[test]
fn workers_under_overload_account_for_every_packet() {
    let _alone = alone();
    runs(Load::Storm).into_iter().for_each(stage::play);
}

#[test]
fn capture_ports_give_every_packet_as_often_as_the_rules_say() {
    let _alone = alone();
    runs(Load::Storm).into_iter().for_each(captures::play);
}
