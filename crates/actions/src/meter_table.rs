// SPDX-License-Identifier: Apache-2.0
//! Meters by number. All workers share them.

use crate::MeterState;
use flow::MeterId;
use std::sync::Arc;

/// All meters, sorted by number.
#[derive(Clone, Debug, Default)]
pub struct MeterTable {
    meters: Vec<(MeterId, Arc<MeterState>)>,
}

impl MeterTable {
    /// Creates a table of meters, which must be sorted by number.
    #[must_use]
    pub fn new(meters: Vec<(MeterId, Arc<MeterState>)>) -> Self {
        debug_assert!(meters.is_sorted_by_key(|(id, _)| *id));
        Self { meters }
    }

    /// Returns the meter of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, id: MeterId) -> Option<&MeterState> {
        let at = self.meters.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.meters[at].1)
    }
}
