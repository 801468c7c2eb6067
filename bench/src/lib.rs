// SPDX-License-Identifier: Apache-2.0
//! Comparison of two contenders on a noisy machine.
//!
//! On a shared machine, absolute speeds of identical runs differ by a factor of two. The ratio of two
//! contenders that run within a few milliseconds of each other is stable. Both therefore run in many short
//! windows on the same core, in pairs and in random order. Each pair gives one ratio. Pairs with preemption
//! are excluded and counted. The result is the median ratio with a 95 % interval, and a verdict against a
//! target.
//!
//! Begin with [`compare`]. [`Figure::append`] writes the result to a report file for the tables of
//! docs/figures.md. The crate must not contain code that a switch needs.

mod alone;
mod cached;
pub mod cases;
mod clock;
mod compare;
mod data;
mod error;
mod figure;
pub mod paper;
#[path = "../../crates/engines/tests/engines/ranges.rs"]
mod ranges;
pub mod rig;
pub mod scenario;
mod stats;
mod table;
mod window;
mod wrapped;

pub use alone::{Alone, measure};
pub use cached::{Cached, EXPRESS_RECORDS, ExpressOption, LUT_ENTRIES};
pub use clock::{ThreadCpu, allowed_cpus, pin_to, task_cpu_ns};
pub use compare::{Bar, Comparison, Plan, Pool, Side, Verdict, compare};
pub use data::{Sources, read_text, whole};
pub use error::Error;
pub use figure::{Figure, read};
pub use stats::{Interval, median, median_interval};
pub use table::markdown;
pub use window::{Contender, GAP_LIMIT, Loop, Measure, Program, Stopwatch, Window};
