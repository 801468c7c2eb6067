// SPDX-License-Identifier: Apache-2.0
//! Reads at the end of a case what the judge compares.

use super::Driver;
use crate::oracle::rules::LINEAR;
use model::{DataPlane, FlowCursor, FlowFilter};

impl Driver {
    /// Reads what there is at the end.
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
        let plane = self.model.plane_mut();
        self.record.tables = (0..=LINEAR).map(|table| (table, plane.table_counters(table))).collect();
        self.record.groups =
            (1..=self.style.groups).filter_map(|id| Some((id, plane.group_counters(id)?))).collect();
        self.record.totals = plane.totals();
        for (_, lut) in plane.plane.fast_tables() {
            self.record.luts.add(&lut.map(|lut| lut.figures).unwrap_or_default());
        }
        self.record.operations = std::mem::take(&mut plane.operations);
        self.record.reported = std::mem::take(&mut plane.reported);
        self.record.learned = std::mem::take(&mut plane.learned);
        self.record.logs = self.workers.iter_mut().map(|w| std::mem::take(&mut w.probe().entries)).collect();
    }
}
