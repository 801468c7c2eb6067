// SPDX-License-Identifier: Apache-2.0
//! Packets that arrive at their own times, whatever the worker does: load, bursts, overload.
//!
//! Classes of traffic fill bounded receive rings in virtual time. The worker's own code runs; what its steps cost is its
//! virtual time, and a packet that arrives while a turn goes on can be received before the turn is over. Each packet's
//! latency is from its arrival to the end of the transmission that took it, and a fixed time of input and output. What
//! is lost is told by name. The same seed, costs and rules give the same result.

mod capacity;
mod class;
mod draw;
mod report;
mod road;
mod source;
mod wires;
mod witness;

pub use capacity::capacity_pps;
pub use class::{Capture, Class, Load, Marks, Pattern, Switch};
pub use draw::{Draw, Popularity};
pub use report::{ClassReport, Report, Spans, Times};
pub use road::{Case, Road, measure};
pub use witness::Witness;
