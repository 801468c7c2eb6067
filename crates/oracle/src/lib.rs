// SPDX-License-Identifier: Apache-2.0
//! The oracle: random tables, packets and updates through real workers, compared with the reference.
//!
//! It checks the equivalence rule of ARCHITECTURE.md. Begin with [`run_case`], then read `drive`, which makes
//! a case, and `linearizable`, which checks it.
//!
//! The seed determines a case. In one thread and in virtual time, the driver pushes packets into in-memory
//! ports, changes rules through the model, and runs poll iterations of the workers and the control thread in
//! random order. Workers log the order of their steps ([`log`]).
//!
//! The checker derives the serial order from the logs, compares it with the driver's list of arrivals, and
//! runs the reference in this order. It compares the packets on each port, the order within each flow,
//! packet-ins, learned addresses, and the counters of entries, tables, groups, ports and egress queues. It
//! also checks expiry times and flow-removed messages. In some cases a resource is scarce ([`room`]); every
//! loss must then be accounted for.

mod coverage;
mod drive;
mod features;
mod key_coverage;
mod linearizable;
mod log;
mod offload;
mod path_use;
mod room;
mod rules;
mod templates;
mod variants;
mod views;

use pipeline::{BypassLimits, LaneLimits};
use port_cache::PortCacheConfig;
use worker::{Consistency, Quanta};

pub use coverage::{ChangeCounts, Coverage};
pub use key_coverage::KeyCoverage;
pub use path_use::{PathUse, TableUse};

/// Parameters of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseOptions {
    /// Number of packets.
    pub packets: usize,
    /// Whether most packets repeat a flow whose path can have a record. The rules then change less often, and
    /// most entries that lead to another table only rewrite MAC addresses and the TTL.
    pub repeats: bool,
    /// Number of workers, each with a queue of every port.
    pub workers: usize,
    /// Number of records of each LUT of the fast-forwarding path. 0 disables the path.
    pub lut_entries: usize,
    /// Number of path records of each worker. 0 disables the express path.
    pub express_records: usize,
    /// When the express path is bypassed.
    pub express_bypass: BypassLimits,
    /// Limits and searcher of the port cache; `None` turns it off.
    pub port_cache: Option<PortCacheConfig>,
    /// Consistency mode of the LUTs.
    pub consistency: Consistency,
    /// Limits on the number of packets queued in a worker.
    pub lanes: LaneLimits,
    /// Budgets for processing the backlog.
    pub quanta: Quanta,
    /// Whether ports have random VLANs, storm limits and MAC limits, which change while packets pass.
    pub vlans: bool,
}

impl CaseOptions {
    /// Returns the parameters of a case with one worker and random rules, but without packets.
    fn without_packets() -> Self {
        Self {
            packets: 0,
            repeats: false,
            workers: 1,
            lut_entries: 0,
            express_records: 0,
            express_bypass: BypassLimits::USUAL,
            port_cache: None,
            consistency: Consistency::Auto,
            lanes: LaneLimits::default(),
            quanta: Quanta::default(),
            vlans: false,
        }
    }
}

/// Number of LUT records that suffices for all values of a case.
const CALM_LUT_ENTRIES: usize = 256;

/// A violation of the equivalence rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, {workers} worker(s): {what}")]
pub struct Breach {
    /// Seed of the case.
    pub seed: u64,
    /// Number of workers of the case.
    pub workers: usize,
    /// Description of the violation.
    pub what: String,
}

/// Runs one case.
///
/// # Errors
/// Returns the first violation of the equivalence rule.
pub fn run_case(seed: u64, options: CaseOptions) -> Result<Coverage, Breach> {
    let breach = |what| Breach { seed, workers: options.workers, what };
    let record = drive::Driver::new(seed, options).run().map_err(breach)?;
    let coverage = linearizable::check_linearizable(record).map_err(breach)?;
    let offered = if options.lut_entries == 0 { 0 } else { coverage.packets };
    let calm = drive::is_calm(seed) && options.lut_entries >= CALM_LUT_ENTRIES;
    let path = if calm { coverage.path.clone() } else { PathUse::default() };
    Ok(Coverage { offered, calm: usize::from(calm), path, ..coverage })
}

/// Runs one case that checks keys of the express path under random rules: the keys of packets against the key
/// plan, and the plan against the rules.
///
/// # Errors
/// Returns the first wrong key, or the first difference between the plan and the rules.
pub fn run_key_case(seed: u64) -> Result<KeyCoverage, Breach> {
    let options = CaseOptions { vlans: seed % 5 == 2, ..CaseOptions::without_packets() };
    let case = drive::Driver::new(seed, options).run_keys();
    case.map_err(|what| Breach { seed, workers: options.workers, what })
}
