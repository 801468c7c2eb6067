// SPDX-License-Identifier: Apache-2.0
//! The data plane of a datapath: workers of this process, or a device.

use config::trace::TracedPlane;
use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PlaneRefusal, PortCounters, PortQueue,
    TableCapabilities, TableCounters, Totals,
};
use flow::{EntryChange, EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;
use port::Link;
use std::collections::BTreeMap;
use worker::WorkerSet;

use crate::hardware::DeviceDatapath;

/// The data plane of a datapath.
pub enum Plane {
    /// Workers of this process.
    Workers(Box<WorkerSet>),
    /// A device, with which the daemon exchanges datagrams.
    Device(Box<DeviceDatapath>),
}

impl Plane {
    /// Returns the device, if one forwards the packets.
    pub fn device(&mut self) -> Option<&mut DeviceDatapath> {
        match self {
            Self::Workers(_) => None,
            Self::Device(device) => Some(device),
        }
    }

    /// Returns the links of all ports.
    pub fn port_links(&mut self) -> BTreeMap<PortNo, Link> {
        match self {
            Self::Workers(workers) => workers.port_links(),
            Self::Device(device) => device.links(),
        }
    }
}

impl TracedPlane for Plane {
    fn workers(&mut self) -> Option<&mut WorkerSet> {
        match self {
            Self::Workers(workers) => Some(workers),
            Self::Device(_) => None,
        }
    }
}

/// Calls a method of the data plane that is there.
macro_rules! either {
    ($plane:expr, $method:ident($($argument:expr),*)) => {
        match $plane {
            Plane::Workers(workers) => workers.$method($($argument),*),
            Plane::Device(device) => device.plane.$method($($argument),*),
        }
    };
}

impl DataPlane for Plane {
    fn table_capabilities(&self) -> TableCapabilities {
        either!(self, table_capabilities())
    }

    fn check(&mut self, changes: &[EntryChange], others: &[Operation]) -> Result<(), PlaneRefusal> {
        either!(self, check(changes, others))
    }

    fn submit(&mut self, operation: Operation) -> RuleVersion {
        either!(self, submit(operation))
    }

    fn applied(&mut self) -> RuleVersion {
        either!(self, applied())
    }

    fn parked(&self) -> usize {
        either!(self, parked())
    }

    fn tick(&mut self, now: Nanos) {
        either!(self, tick(now));
    }

    fn counted_until(&mut self) -> Nanos {
        either!(self, counted_until())
    }

    fn next_count(&mut self, now: Nanos) -> Nanos {
        either!(self, next_count(now))
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        either!(self, entry_counters(id))
    }

    fn release(&mut self, id: EntryId) {
        either!(self, release(id));
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        either!(self, table_counters(table))
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        either!(self, group_counters(id))
    }

    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters> {
        either!(self, meter_counters(id))
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        either!(self, port_counters(port))
    }

    fn queues(&mut self, port: PortNo) -> Vec<PortQueue> {
        either!(self, queues(port))
    }

    fn totals(&mut self) -> Totals {
        either!(self, totals())
    }

    fn next_event(&mut self) -> Option<Event> {
        either!(self, next_event())
    }

    fn recycle(&mut self, frame: Frame) {
        either!(self, recycle(frame));
    }
}
