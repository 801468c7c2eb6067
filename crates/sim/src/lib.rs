// SPDX-License-Identifier: Apache-2.0
//! Deterministic simulation of the switch. It drives the real code of worker and model in virtual time.
//!
//! A run depends only on its inputs and its seed. The crate must not use network interfaces, and only
//! [`cost`] may read the real clock. Begin with the module for your task:
//! - [`arrivals`] simulates load, bursts and overload at one worker.
//! - [`network`] simulates networks of switches with links, hosts and failures.
//! - [`replay`] sends a capture through a switch.
//! - [`cost`] measures the cost of each processing step, from which virtual time is derived.

pub mod arrivals;
pub mod clock;
pub mod cost;
pub mod network;
pub mod replay;

pub use clock::VirtualClock;

/// Makes the hashes of lookup keys depend on this seed only. Returns false if tables were already created
/// with another seed.
pub fn fix_hashes(seed: u64) -> bool {
    engines::hash::Seed::fix(seed)
}
