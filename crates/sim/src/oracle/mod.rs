// SPDX-License-Identifier: Apache-2.0
//! The oracle: random tables, packets and updates through real workers, held against the reference by the law.
//!
//! One case is a function of its seed. The driver pushes packets into in-memory ports, changes rules through the
//! model, and turns workers and control thread in random order, all in one thread and in virtual time. Workers log the
//! order they took ([`log`]). The judge builds the serial order from the logs, checks it against the driver's own list
//! of arrivals, runs the reference through it, and compares packets on each port, order within each flow, packet-ins,
//! what was learned, and the counters of entries, tables, groups, ports and egress queues. It judges when entries timed
//! out, and what flow-removed notices say. In a part of the cases something is scarce ([`room`]): then every loss is judged by
//! accounting.

mod coverage;
mod drive;
mod features;
mod judge;
mod log;
mod offload;
mod path_use;
mod room;
mod rules;
mod templates;
mod views;

use pipeline::LaneLimits;
use worker::{Consistency, Quanta};

pub use coverage::{ChangeCounts, Coverage};
pub use path_use::{Passing, PathUse};

/// Sizes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Packets sent.
    pub packets: usize,
    /// Workers, each with a queue of every port.
    pub workers: usize,
    /// Records of each LUT of the fast-forwarding path; 0: without the path.
    pub lut_entries: usize,
    /// How their records are kept right.
    pub consistency: Consistency,
    /// What may wait in a worker.
    pub lanes: LaneLimits,
    /// How much of it is worked off at once.
    pub quanta: Quanta,
}

/// Records of a LUT that has room for all values of a case.
const CALM_LUT_ENTRIES: usize = 256;

/// A breach of the law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, {workers} worker(s): {what}")]
pub struct Breach {
    /// The case.
    pub seed: u64,
    /// Its workers.
    pub workers: usize,
    /// What was found.
    pub what: String,
}

/// Runs one case.
///
/// # Errors
/// The first breach of the law.
pub fn run_case(seed: u64, options: Options) -> Result<Coverage, Breach> {
    let breach = |what| Breach { seed, workers: options.workers, what };
    let record = drive::Driver::new(seed, options).run().map_err(breach)?;
    let coverage = judge::judge(record).map_err(breach)?;
    let offered = if options.lut_entries == 0 { 0 } else { coverage.packets };
    let calm = drive::is_calm(seed) && options.lut_entries >= CALM_LUT_ENTRIES;
    let path = if calm { coverage.path.clone() } else { PathUse::default() };
    Ok(Coverage { offered, calm: usize::from(calm), path, ..coverage })
}
