// SPDX-License-Identifier: Apache-2.0
//! Virtual clock, arrivals, links, faults, replay, oracle runs.

pub mod arrivals;
pub mod clock;
pub mod cost;
pub mod oracle;
pub mod replay;

pub use clock::VirtualClock;
