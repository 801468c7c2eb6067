// SPDX-License-Identifier: Apache-2.0
//! Controllers that send random messages of every type, valid and mutated, over several channels at a time.
//! The messages pass through session, agent, model and a worker. The generator and the checks are in `storm`.
//! The fuzz target `controllers` drives the same code with the bytes of a fuzzer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::expect_used)]

#[path = "../../../openflow/tests/common/mod.rs"]
mod common;
mod storm;
mod tame;
mod watched;

use storm::{Counts, Storm};

/// Number of steps of a storm. A storm begins with an empty switch.
const STEPS: usize = 400;
/// Number of messages if the environment variable STORM_MESSAGES is not set.
const MESSAGES: u64 = 100_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn add(sum: &mut Counts, other: &Counts) {
    sum.messages += other.messages;
    sum.mutated += other.mutated;
    sum.refused += other.refused;
    sum.closed += other.closed;
    sum.operations += other.operations;
    sum.barriers += other.barriers;
    sum.packets += other.packets;
    sum.compared += other.compared;
    sum.sent += other.sent;
    for (code, count) in &other.codes {
        *sum.codes.entry(code.clone()).or_default() += count;
    }
}

#[test]
fn random_controller_messages_leave_the_switch_intact() {
    let messages = number("STORM_MESSAGES").unwrap_or(MESSAGES);
    let first = number("STORM_SEED").unwrap_or(1);
    let mut sum = Counts::default();
    let mut storms = 0;
    while sum.messages < messages {
        let seed = first + storms;
        let storm = std::panic::catch_unwind(|| {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut storm = Storm::new(&mut rng);
            (0..STEPS).for_each(|_| storm.step(rng.u64(..)));
            storm.finish()
        });
        let Ok(counts) = storm else { panic!("the storm of STORM_SEED={seed} STORM_MESSAGES=1") };
        add(&mut sum, &counts);
        storms += 1;
        if storms % 10_000 == 0 {
            println!("{storms} storms, {sum:?}");
        }
    }
    println!("{storms} storms, {sum:?}");
    // Checks that the generator is useful: enough requests succeed, enough are refused, and packets are
    // compared.
    assert!(sum.refused > sum.messages / 10 && sum.refused < sum.messages * 9 / 10, "{sum:?}");
    assert!(sum.operations > sum.messages / 20, "{sum:?}");
    assert!(sum.compared > sum.packets / 10 && sum.sent > sum.compared / 10, "{sum:?}");
    assert!(sum.codes.len() >= 40, "{} kinds of refusals: {:?}", sum.codes.len(), sum.codes);
    assert!(sum.closed > 0 && sum.barriers > 0 && sum.mutated > sum.messages / 4, "{sum:?}");
}
