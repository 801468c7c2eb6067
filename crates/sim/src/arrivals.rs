// SPDX-License-Identifier: Apache-2.0
//! Open-loop load on one worker: packets arrive at scheduled times, independent of the worker's progress.
//!
//! Traffic classes fill bounded receive rings in virtual time. The worker's real code runs, and virtual time
//! advances by the cost of its steps. A packet that arrives during a poll iteration can be received before
//! that iteration ends. A packet's latency is the time from its arrival to the transmit doorbell after it was
//! queued, plus a fixed time for I/O. Losses are counted by reason.

mod capacity;
mod class;
mod draw;
mod harness;
mod links;
mod observer;
mod report;
mod source;

pub use capacity::{WARM_UP, capacity_pps};
pub use class::{Capture, Class, Load, Marks, Pattern, Switch};
pub use draw::{Draw, Popularity};
pub use harness::{Case, Harness, Pressure, measure};
pub use observer::Observer;
pub use report::{ArrivalTimes, ClassReport, Report, Spans};
