// SPDX-License-Identifier: Apache-2.0
//! Random messages of all kinds.
#![allow(dead_code, unused_imports, missing_docs, clippy::unwrap_used)]

mod flows;
mod messages;
mod mutate;
mod replies;
mod stateless;

pub use flows::{actions, instructions, matching};
pub use messages::message;
pub use mutate::{mutate, set_length};
pub use stateless::{stateless_change, stateless_reply};

/// Returns a few values from `make`, usually none to three.
pub fn some<T>(rng: &mut fastrand::Rng, mut make: impl FnMut(&mut fastrand::Rng) -> T) -> Vec<T> {
    let count = if rng.u8(..20) == 0 { rng.usize(..12) } else { rng.usize(..4) };
    (0..count).map(|_| make(rng)).collect()
}

/// Returns `None`, or a number that does not stand for "none" on the wire.
pub fn maybe(rng: &mut fastrand::Rng) -> Option<u32> {
    rng.bool().then(|| rng.u32(..u32::MAX))
}

/// Returns a duration that the wire format can express.
pub fn duration(rng: &mut fastrand::Rng) -> u64 {
    rng.u64(..u64::from(u32::MAX) * 1_000_000_000)
}

pub fn data(rng: &mut fastrand::Rng, most: usize) -> Vec<u8> {
    let length = rng.usize(..most);
    (0..length).map(|_| rng.u8(..)).collect()
}

pub fn text(rng: &mut fastrand::Rng, most: usize) -> String {
    let length = rng.usize(..=most);
    (0..length).map(|_| rng.alphanumeric()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the messages of a golden file, as names and bytes.
pub fn golden(file: &str) -> Vec<(String, Vec<u8>)> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    file.lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, hex)| (name.to_owned(), hex.as_bytes().chunks(2).map(byte).collect()))
        .collect()
}
