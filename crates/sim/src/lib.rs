// SPDX-License-Identifier: Apache-2.0
//! Virtual clock, arrivals, networks with links and failures, replay, oracle runs.

pub mod arrivals;
pub mod clock;
pub mod cost;
pub mod network;
pub mod oracle;
pub mod replay;

pub use clock::VirtualClock;

/// Makes hashes of keys depend on this seed and nothing else, so that a run comes out the same in every process. Returns
/// whether they do: not if tables were made before by another seed.
pub fn fix_hashes(seed: u64) -> bool {
    tables::hash::Seed::fix(seed)
}
