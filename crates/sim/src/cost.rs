// SPDX-License-Identifier: Apache-2.0
//! Cost of each processing step of a worker, measured in the run that uses it. The costs drive the virtual
//! clock.
//!
//! A worker reports each step to its [`CostProbe`]. In some windows, the probe assigns real time to the
//! steps, from which a [`CostTable`] is computed. In other windows the probe only counts steps, and the table
//! converts the counts into virtual time. Preemption by other programs does not affect virtual time.

pub mod churn;
mod measure;
mod names;
mod probe;
mod rig;
mod slots;
pub mod stall;
mod table;
pub mod updates;

pub use measure::{CostSource, MeasurePlan, Workload, measure, measure_all};
pub use names::{step_name, step_named};
pub use pipeline::ProbeStep;
pub use probe::CostProbe;
pub use rig::{CostError, Rig};
pub use slots::STEPS;
pub use table::{Agreement, CostTable, Row};
