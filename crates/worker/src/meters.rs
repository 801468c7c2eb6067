// SPDX-License-Identifier: Apache-2.0
//! The control side of meters: one state for all workers.

use flow::meter::Meter;
use model::MeterCounters;
use pipeline::{MeterState, MeterTable, Update};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All meters.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    meters: BTreeMap<u32, Arc<MeterState>>,
}

impl Meters {
    /// Adds or replaces a meter; it counts from 0, with full buckets.
    pub fn set(&mut self, meter: &Meter) {
        self.meters.insert(meter.id, Arc::new(MeterState::new(meter)));
    }

    /// Takes a meter away.
    pub fn remove(&mut self, id: u32) {
        self.meters.remove(&id);
    }

    /// Appends the meters to each worker's parts.
    pub fn updates(&self, parts: &mut [Vec<Update>]) {
        let meters = self.meters.iter().map(|(id, state)| (*id, Arc::clone(state))).collect();
        let table = Arc::new(MeterTable::new(meters));
        for parts in parts {
            parts.push(Update::SwapMeters(Arc::clone(&table)));
        }
    }

    /// A meter's counters.
    pub fn counters(&self, id: u32) -> Option<MeterCounters> {
        let state = self.meters.get(&id)?;
        Some(MeterCounters { total: state.count(), bands: state.bands() })
    }
}
