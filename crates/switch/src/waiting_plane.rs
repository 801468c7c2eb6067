// SPDX-License-Identifier: Apache-2.0
//! A queue of operations, for a model that is set up before its data plane exists.

use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PortCounters, TableCounters, Totals,
};
use flow::{EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;

/// Keeps operations until there is a data plane that executes them. No packet is forwarded until then, so
/// there are no counters and no events.
#[derive(Debug, Default)]
pub struct WaitingPlane {
    operations: Vec<Operation>,
}

impl WaitingPlane {
    /// Returns the operations in the order of their versions, beginning with version 1.
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }
}

impl DataPlane for WaitingPlane {
    fn submit(&mut self, operation: Operation) -> RuleVersion {
        self.operations.push(operation);
        RuleVersion(self.operations.len() as u64)
    }

    fn applied(&mut self) -> RuleVersion {
        RuleVersion(0)
    }

    fn parked(&self) -> usize {
        self.operations.len()
    }

    fn counted_until(&mut self) -> Nanos {
        Nanos::MAX
    }

    fn entry_counters(&mut self, _id: EntryId) -> EntryCounters {
        EntryCounters::default()
    }

    fn release(&mut self, _id: EntryId) {
        debug_assert!(false, "no removal is active yet");
    }

    fn table_counters(&mut self, _table: TableId) -> TableCounters {
        TableCounters::default()
    }

    fn group_counters(&mut self, _id: GroupId) -> Option<GroupCounters> {
        None
    }

    fn meter_counters(&mut self, _id: MeterId) -> Option<MeterCounters> {
        None
    }

    fn port_counters(&mut self, _port: PortNo) -> Option<PortCounters> {
        None
    }

    fn totals(&mut self) -> Totals {
        Totals::default()
    }

    fn next_event(&mut self) -> Option<Event> {
        None
    }

    fn recycle(&mut self, _frame: Frame) {}
}
