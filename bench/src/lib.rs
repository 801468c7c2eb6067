// SPDX-License-Identifier: Apache-2.0
//! Comparison of two contenders on a loud machine.
//!
//! Absolute speeds of a shared machine differ by a factor of two between identical runs; what two contenders do to each
//! other within a few milliseconds does not. So both run in many short windows on the same core, in pairs, who goes
//! first drawn by lot; each pair gives one ratio. A pair in which the core was taken away is set aside and counted.
//! The result is the median ratio with a 95 % interval, and a verdict against a bar: [`compare`] does all of it, and
//! [`Figure::append`] writes it to a report file, from which the tables of docs/figures.md are made.

mod alone;
mod clock;
mod compare;
mod data;
mod error;
mod figure;
pub mod paper;
pub mod rig;
pub mod scenario;
mod stats;
mod table;
mod window;

pub use alone::{Alone, measure};
pub use clock::{ThreadCpu, allowed_cpus, pin_to, task_cpu_ns};
pub use compare::{Bar, Comparison, Plan, Pool, Side, Verdict, compare};
pub use data::{Sources, read_text, whole};
pub use error::Error;
pub use figure::{Figure, read};
pub use stats::{Interval, median, median_interval};
pub use table::markdown;
pub use window::{Contender, GAP_LIMIT, Loop, Measure, Program, Stopwatch, Window};
