// SPDX-License-Identifier: Apache-2.0
//! What each step of a worker costs, measured in the run that uses it: the rates of the virtual clock.
//!
//! A worker tells its [`CostProbe`] of each step. First the probe charges real time to the steps and a [`CostTable`]
//! is made of it; then it only counts, and the table turns what was counted into virtual time, in which no other
//! program takes the core away. Windows of both kinds take turns, so that the table can be held against real time.

pub mod churn;
mod measure;
mod names;
mod probe;
mod rig;
mod slots;
pub mod stall;
mod table;
pub mod updates;

pub use measure::{Costs, Plan, Workload, measure, measure_all};
pub use names::{step_name, step_named};
pub use probe::CostProbe;
pub use rig::{CostError, Rig};
pub use slots::STEPS;
pub use table::{Agreement, CostTable, Row};
