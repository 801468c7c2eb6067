// SPDX-License-Identifier: Apache-2.0
//! Random storms of messages. `POF_MESSAGES` (default 20,000) sets the number of messages, and `POF_SEED`
//! (default 1) their seed.

use crate::choices::Choices;
use crate::storm::{Storm, Summary};

/// Number of choices in bytes of one storm.
const BYTES: usize = 40_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn the_agent_and_the_model_have_the_same_entries_after_any_messages() {
    let mut random = fastrand::Rng::with_seed(number("POF_SEED", 1));
    let mut all = Summary::default();
    while all.messages < number("POF_MESSAGES", 20_000) {
        let bytes: Vec<u8> = (0..BYTES).map(|_| random.u8(..)).collect();
        let mut choices = Choices(&bytes);
        let Summary { messages, refused, added, compared } = Storm::new(&mut choices).run(&mut choices);
        all.messages += messages;
        all.refused += refused;
        all.added += added;
        all.compared += compared;
    }
    // Many messages must have an effect, and many must be refused.
    let Summary { messages, refused, added, compared } = all;
    assert!(added > messages / 40 && refused > messages / 10 && compared > messages / 500, "{all:?}");
}
