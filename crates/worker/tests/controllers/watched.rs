// SPDX-License-Identifier: Apache-2.0
//! A set of workers, and a reference that executes the same operations and fails on invalid ones.

use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PortCounters, TableCounters, Totals,
};
use flow::{EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;
use reference::Reference;
use worker::WorkerSet;

pub struct Watched {
    pub set: WorkerSet,
    pub reference: Reference,
    /// Version of the last operation.
    pub version: RuleVersion,
}

impl DataPlane for Watched {
    fn submit(&mut self, operation: Operation) -> RuleVersion {
        if let Err(problem) = self.reference.apply(&operation) {
            panic!("{problem}: {operation:?}");
        }
        self.version = self.set.submit(operation);
        self.version
    }

    fn applied(&mut self) -> RuleVersion {
        self.set.applied()
    }

    fn counted_until(&mut self) -> Nanos {
        self.set.counted_until()
    }

    fn parked(&self) -> usize {
        self.set.parked()
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        self.set.entry_counters(id)
    }

    fn release(&mut self, id: EntryId) {
        self.set.release(id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        self.set.table_counters(table)
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        self.set.group_counters(id)
    }

    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters> {
        self.set.meter_counters(id)
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        self.set.port_counters(port)
    }

    fn totals(&mut self) -> Totals {
        self.set.totals()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.set.next_event()
    }

    fn recycle(&mut self, frame: Frame) {
        self.set.recycle(frame);
    }
}
