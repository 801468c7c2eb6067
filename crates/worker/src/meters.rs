// SPDX-License-Identifier: Apache-2.0
//! The control side of meters. All workers share one state per meter.

use actions::{MeterState, MeterTable};
use dataplane::{MeterCounters, TrafficCount};
use flow::MeterId;
use flow::meter::Meter;
use pipeline::Update;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All meters by number.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    meters: BTreeMap<MeterId, Arc<MeterState>>,
}

impl Meters {
    /// Adds or replaces a meter. Its counters start at 0, and its token buckets start full. Returns whether
    /// flows through the meter may change their lane, because the new or the old meter remarks packets.
    pub fn set(&mut self, meter: &Meter) -> bool {
        let before = self.meters.insert(meter.id, Arc::new(MeterState::new(meter)));
        meter.remarks() || before.is_some_and(|before| before.remarks())
    }

    /// Removes a meter.
    pub fn remove(&mut self, id: MeterId) {
        self.meters.remove(&id);
    }

    /// Appends the table of meters to each worker's updates.
    pub fn updates(&self, parts: &mut [Vec<Update>]) {
        let meters = self.meters.iter().map(|(id, state)| (*id, Arc::clone(state))).collect();
        let table = Arc::new(MeterTable::new(meters));
        for parts in parts {
            parts.push(Update::SwapMeters(Arc::clone(&table)));
        }
    }

    /// Returns a meter's counters.
    pub fn counters(&self, id: MeterId) -> Option<MeterCounters> {
        let state = self.meters.get(&id)?;
        let count = |(packets, bytes)| TrafficCount { packets, bytes };
        let bands = state.bands().into_iter().map(count).collect();
        Some(MeterCounters { total: count(state.count()), bands })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::MeterId;
    use flow::meter::{Band, MeterBand};

    #[test]
    fn only_meters_that_remark_change_lanes() {
        let mut meters = Meters::default();
        let bands = |band| vec![MeterBand { rate: 1, burst: 1, band }];
        let meter =
            |band| Meter { id: MeterId(1), packets: false, stats: true, burst: true, bands: bands(band) };
        let (drops, remarks) = (meter(Band::Drop), meter(Band::DscpRemark { precedence_level: 1 }));
        assert!(!meters.set(&drops) && !meters.set(&drops), "a new rate does not change lanes");
        assert!(meters.set(&remarks) && meters.set(&remarks));
        assert!(meters.set(&drops) && !meters.set(&drops), "the previous meter remarked packets");
    }
}
