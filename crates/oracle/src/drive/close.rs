// SPDX-License-Identifier: Apache-2.0
//! Records the final state of a case for the checker.

use super::Driver;
use dataplane::DataPlane;
use flow::{Field, GroupId, SliceBase, TableId};
use keys::ExpressPlan;
use model::{FlowCursor, FlowFilter};
use wire::Depth;

/// Returns whether keys need no header, but bytes after those from which most templates load.
fn is_distant(plan: &ExpressPlan) -> bool {
    let ends_far = |field: &Field| {
        matches!(field, Field::Slice(slice) if slice.base == SliceBase::Packet
            && usize::from(slice.offset_bits) + usize::from(slice.length_bits) > 8 * keys::WINDOW_BYTES)
    };
    plan.reader().is_some_and(|reader| reader.depth() == Depth::None)
        && plan.examined().iter().any(|(field, _)| ends_far(field))
}

impl Driver {
    /// Reads counters, entries and statistics at the end of the case.
    pub(super) fn close(&mut self) {
        let mut cursor = FlowCursor::default();
        while !cursor.is_done() {
            let part = self.model.flows(self.now, &FlowFilter::default(), &mut cursor, 1_000);
            let plane = self.model.plane_mut();
            for flow in part {
                let counters = plane.entry_counters(flow.entry.id);
                self.record.entries.push((flow.entry.id, counters));
            }
        }
        self.workers.iter_mut().for_each(worker::Worker::housekeeping);
        let meters = self.model.meter_ids();
        let plane = self.model.plane_mut();
        self.record.meters =
            meters.into_iter().filter_map(|id| Some((id, plane.meter_counters(id)?))).collect();
        let ports = self.style.port_numbers();
        self.record.ports =
            ports.clone().filter_map(|port| Some((port, plane.port_counters(port)?))).collect();
        self.record.queues = ports.map(|port| (port, plane.queues(port))).collect();
        self.record.tables =
            TableId::of_controllers().map(|table| (table, plane.table_counters(table))).collect();
        self.record.groups = (1..=self.style.groups)
            .map(GroupId)
            .filter_map(|id| Some((id, plane.group_counters(id)?)))
            .collect();
        self.record.totals = plane.totals();
        for (_, lut) in plane.plane.fast_tables() {
            self.record.luts.add(&lut.map(|lut| lut.figures).unwrap_or_default());
        }
        self.record.express = plane.plane.express_figures();
        if is_distant(plane.plane.express_plan()) {
            self.record.distant_hits = self.record.express.hits;
        }
        self.record.misses = plane.plane.miss_figures();
        self.record.operations = std::mem::take(&mut plane.operations);
        self.record.reported = std::mem::take(&mut plane.reported);
        self.record.learned = std::mem::take(&mut plane.learned);
        self.record.storms = std::mem::take(&mut plane.storms);
        self.record.lut_bits = std::mem::take(&mut plane.lut_bits);
        for worker in &mut self.workers {
            let log = std::mem::take(worker.probe());
            self.record.logs.push(log.entries);
            self.record.moments.push(log.moments);
            self.record.hits.push(log.lookups);
            self.record.action_sets.push(log.action_sets);
            self.record.outcomes.push(log.outcomes);
        }
    }
}
