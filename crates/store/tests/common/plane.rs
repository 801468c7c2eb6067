// SPDX-License-Identifier: Apache-2.0
//! A data plane without packets, which applies every operation at once.

use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PortCounters, TableCounters, Totals,
};
use flow::{EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct FakePlane {
    version: RuleVersion,
    pub events: VecDeque<Event>,
}

impl DataPlane for FakePlane {
    fn submit(&mut self, _: Operation) -> RuleVersion {
        self.version.0 += 1;
        self.version
    }

    fn applied(&mut self) -> RuleVersion {
        self.version
    }

    fn parked(&self) -> usize {
        0
    }

    fn counted_until(&mut self) -> Nanos {
        Nanos::MAX
    }

    fn entry_counters(&mut self, _: EntryId) -> EntryCounters {
        EntryCounters::default()
    }

    fn release(&mut self, _: EntryId) {}

    fn table_counters(&mut self, _: TableId) -> TableCounters {
        TableCounters::default()
    }

    fn group_counters(&mut self, _: GroupId) -> Option<GroupCounters> {
        None
    }

    fn meter_counters(&mut self, _: MeterId) -> Option<MeterCounters> {
        None
    }

    fn port_counters(&mut self, _: PortNo) -> Option<PortCounters> {
        None
    }

    fn totals(&mut self) -> Totals {
        Totals::default()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn recycle(&mut self, _: Frame) {}
}
