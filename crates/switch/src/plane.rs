// SPDX-License-Identifier: Apache-2.0
//! The data plane of a datapath: workers of this process, or a device. At the start, operations wait until
//! the workers have been built.

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
use crate::upgrade::InheritedCounters;
use crate::waiting_plane::WaitingPlane;

/// The data plane of a datapath. Its counters continue those of the process before an upgrade.
pub struct Plane {
    forwarder: Forwarder,
    inherited: InheritedCounters,
}

/// What forwards the packets.
enum Forwarder {
    /// Operations that wait for [`Plane::start`].
    Waiting(WaitingPlane),
    /// Workers of this process.
    Workers(Box<WorkerSet>),
    /// A device, with which the daemon exchanges datagrams.
    Device(Box<DeviceDatapath>),
}

impl Plane {
    /// Creates a data plane that keeps all operations until [`Plane::start`].
    pub fn waiting() -> Self {
        let forwarder = Forwarder::Waiting(WaitingPlane::default());
        Self { forwarder, inherited: InheritedCounters::default() }
    }

    /// Replaces the waiting operations by a data plane that has executed none, and submits them to it.
    pub fn start(&mut self, started: Self) {
        let waiting = match std::mem::replace(&mut self.forwarder, started.forwarder) {
            Forwarder::Waiting(waiting) => waiting.into_operations(),
            Forwarder::Workers(_) | Forwarder::Device(_) => {
                debug_assert!(false, "the data plane has been started before");
                Vec::new()
            }
        };
        for (operation, version) in waiting.into_iter().zip(1..) {
            let submitted = self.submit(operation);
            debug_assert_eq!(submitted, RuleVersion(version));
        }
    }

    /// Creates the data plane of workers.
    pub fn of_workers(workers: WorkerSet) -> Self {
        let forwarder = Forwarder::Workers(Box::new(workers));
        Self { forwarder, inherited: InheritedCounters::default() }
    }

    /// Creates the data plane of a device.
    pub fn of_device(device: DeviceDatapath) -> Self {
        let forwarder = Forwarder::Device(Box::new(device));
        Self { forwarder, inherited: InheritedCounters::default() }
    }

    /// Adds the counters of an earlier process to those of this one.
    pub fn inherit(&mut self, counters: InheritedCounters) {
        self.inherited = counters;
    }

    /// Returns the device, if one forwards the packets.
    pub fn device(&mut self) -> Option<&mut DeviceDatapath> {
        match &mut self.forwarder {
            Forwarder::Waiting(_) | Forwarder::Workers(_) => None,
            Forwarder::Device(device) => Some(device),
        }
    }

    /// Returns the links of all ports.
    pub fn port_links(&mut self) -> BTreeMap<PortNo, Link> {
        match &mut self.forwarder {
            Forwarder::Waiting(_) => BTreeMap::new(),
            Forwarder::Workers(workers) => workers.port_links(),
            Forwarder::Device(device) => device.links(),
        }
    }
}

impl TracedPlane for Plane {
    fn workers(&mut self) -> Option<&mut WorkerSet> {
        match &mut self.forwarder {
            Forwarder::Workers(workers) => Some(workers),
            Forwarder::Waiting(_) | Forwarder::Device(_) => None,
        }
    }
}

/// Calls a method of the forwarder.
macro_rules! either {
    ($plane:expr, $method:ident($($argument:expr),*)) => {
        match &$plane.forwarder {
            Forwarder::Waiting(waiting) => waiting.$method($($argument),*),
            Forwarder::Workers(workers) => workers.$method($($argument),*),
            Forwarder::Device(device) => device.plane.$method($($argument),*),
        }
    };
    (mut $plane:expr, $method:ident($($argument:expr),*)) => {
        match &mut $plane.forwarder {
            Forwarder::Waiting(waiting) => waiting.$method($($argument),*),
            Forwarder::Workers(workers) => workers.$method($($argument),*),
            Forwarder::Device(device) => device.plane.$method($($argument),*),
        }
    };
}

impl DataPlane for Plane {
    fn table_capabilities(&self) -> TableCapabilities {
        either!(self, table_capabilities())
    }

    fn check(&mut self, changes: &[EntryChange], others: &[Operation]) -> Result<(), PlaneRefusal> {
        either!(mut self, check(changes, others))
    }

    fn submit(&mut self, operation: Operation) -> RuleVersion {
        self.inherited.note(&operation);
        either!(mut self, submit(operation))
    }

    fn applied(&mut self) -> RuleVersion {
        either!(mut self, applied())
    }

    fn parked(&self) -> usize {
        either!(self, parked())
    }

    fn tick(&mut self, now: Nanos) {
        either!(mut self, tick(now));
    }

    fn counted_until(&mut self) -> Nanos {
        either!(mut self, counted_until())
    }

    fn next_count(&mut self, now: Nanos) -> Nanos {
        either!(mut self, next_count(now))
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        let counters = either!(mut self, entry_counters(id));
        self.inherited.with_entry(id, counters)
    }

    fn release(&mut self, id: EntryId) {
        self.inherited.forget_entry(id);
        either!(mut self, release(id));
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        let counters = either!(mut self, table_counters(table));
        self.inherited.with_table(table, counters)
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        let counters = either!(mut self, group_counters(id))?;
        Some(self.inherited.with_group(id, counters))
    }

    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters> {
        let counters = either!(mut self, meter_counters(id))?;
        Some(self.inherited.with_meter(id, counters))
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        let counters = either!(mut self, port_counters(port))?;
        Some(self.inherited.with_port(port, counters))
    }

    fn queues(&mut self, port: PortNo) -> Vec<PortQueue> {
        let queues = either!(mut self, queues(port));
        self.inherited.with_queues(port, queues)
    }

    fn totals(&mut self) -> Totals {
        let totals = either!(mut self, totals());
        self.inherited.with_totals(totals)
    }

    fn next_event(&mut self) -> Option<Event> {
        either!(mut self, next_event())
    }

    fn recycle(&mut self, frame: Frame) {
        either!(mut self, recycle(frame));
    }
}
