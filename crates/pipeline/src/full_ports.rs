// SPDX-License-Identifier: Apache-2.0
//! Ports that have as many learned addresses as their `mac_limit` allows.
//!
//! NORMAL learns no further source at such a port, so packets can leave by a path record although their
//! source is unknown. The control side recomputes the ports with each operation that changes learned
//! addresses or limits.

use actions::TokenBucket;
use flow::{Nanos, PortNo};
use std::sync::Arc;

/// Minimum time between two reports of a port, in nanoseconds.
const REPORT_INTERVAL_NS: u64 = 1_000_000_000;

/// Ports at which NORMAL learns no more addresses.
#[derive(Debug, Default)]
pub struct FullPorts {
    /// Sorted by port number.
    ports: Vec<(PortNo, RefusalReports)>,
}

/// Rate limit of a port's reports of sources that are not learned. All workers share it.
#[derive(Clone, Debug)]
pub struct RefusalReports(Option<Arc<TokenBucket>>);

impl RefusalReports {
    /// Never admits a report. Search workers use it.
    pub const NEVER: Self = Self(None);

    /// Admits one report per second.
    #[must_use]
    pub fn each_second() -> Self {
        Self(Some(Arc::new(TokenBucket::new(REPORT_INTERVAL_NS, 1))))
    }

    /// Charges a report. Returns whether it may be sent.
    pub(crate) fn admit(&self, now: Nanos) -> bool {
        self.0.as_ref().is_some_and(|bucket| bucket.take(now))
    }
}

impl FullPorts {
    /// Creates the list. Port numbers must be in ascending order.
    #[must_use]
    pub fn new(ports: Vec<(PortNo, RefusalReports)>) -> Self {
        debug_assert!(ports.is_sorted_by(|one, other| one.0 < other.0), "ports are sorted");
        Self { ports }
    }

    /// Returns the rate limit of the port's reports, or `None` if the port is not full.
    pub(crate) fn reports_of(&self, port: PortNo) -> Option<&RefusalReports> {
        let at = self.ports.binary_search_by_key(&port, |(number, _)| *number).ok()?;
        self.ports.get(at).map(|(_, reports)| reports)
    }
}
