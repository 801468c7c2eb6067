// SPDX-License-Identifier: Apache-2.0
//! The contract between the control plane and a data plane.
//!
//! # Thread
//! The control thread makes all calls. No method blocks or waits for a worker or a device, so the caller may
//! answer a controller between any two calls.
//!
//! # Order
//! - Operations take effect in the order of their submission, each as a whole between two packets. Every
//!   packet is processed by exactly one version of the rules.
//! - `submit` returns before the operation is active. It is active when [`DataPlane::applied`] reaches its
//!   version.
//! - An event that a packet caused is available from [`DataPlane::next_event`] before `applied` exceeds the
//!   packet's version.
//!
//! # Life of an entry
//! 1. `submit` of `EntryChange::Add` makes the ID known. The ID must be unused until then.
//! 2. `submit` of `EntryChange::Remove` takes the entry out of its table. Until that version is active,
//!    packets may hit the entry and are counted.
//! 3. The caller waits for that version, takes the events reported before it, and reads the final counters.
//! 4. [`DataPlane::release`] ends the life of the ID. Only then may another entry get the same ID.
//!
//! # Errors
//! Operations cannot fail: the caller first checks validity, references and limits, as the comments of
//! [`Operation`] require, and calls [`DataPlane::check`]. An implementation asserts these conditions in debug
//! builds and ignores invalid parts in release builds. For an unknown entry ID, counters are 0.

use crate::counters::{
    EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals,
};
use crate::event::Event;
use crate::table_capabilities::TableCapabilities;
use flow::{EntryChange, EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;

/// Reason for which a data plane cannot execute an operation, as an error of OpenFlow 1.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneRefusal {
    /// Error type (OFPET_*).
    pub kind: u16,
    /// Error code.
    pub code: u16,
    /// Description for users.
    pub text: String,
}

/// Time in which workers count the hits before it.
const COUNT_PAUSE: Nanos = Nanos(1_000_000);

/// A data plane. It applies operations in order, and reports counters and events. The documentation of the
/// module states the rules for all methods.
pub trait DataPlane {
    /// Returns what the tables can do. The result never changes.
    fn table_capabilities(&self) -> TableCapabilities {
        TableCapabilities::all()
    }

    // Operations.

    /// Checks whether the data plane can execute changes of entries and other operations, which would be
    /// submitted as one. Data planes without limits of their own accept everything.
    ///
    /// # Errors
    /// Returns the error for the controller.
    fn check(&mut self, _changes: &[EntryChange], _others: &[Operation]) -> Result<(), PlaneRefusal> {
        Ok(())
    }

    /// Submits an operation. Returns its version: 1 for the first operation, then counting up.
    ///
    /// The call may compile tables, which can take milliseconds for thousands of entries. Operations that the
    /// workers cannot take yet are parked, without limit.
    fn submit(&mut self, operation: Operation) -> RuleVersion;

    /// Returns the highest version that is active on all workers, or 0 before the first one. The result never
    /// decreases.
    fn applied(&mut self) -> RuleVersion;

    /// Returns the number of submitted operations that wait for space in the queues to the workers. While
    /// this number is above a limit, the caller reads no requests.
    fn parked(&self) -> usize;

    /// Runs a bounded part of the background work, such as installing compiled tables. The version stays the
    /// same. The control thread calls this method on each poll.
    fn tick(&mut self, _now: Nanos) {}

    // Counters. Counters of entries and tables include all hits before `counted_until`, and all hits before
    // an active removal or modification. Other counters lag by at most one burst.

    /// Returns a time before which all hits of entries have been counted. Soon after the last packet, this is
    /// the maximum time.
    fn counted_until(&mut self) -> Nanos;

    /// Returns the time at which [`DataPlane::counted_until`] should be asked again, if it is in the past.
    fn next_count(&mut self, now: Nanos) -> Nanos {
        now.saturating_add(COUNT_PAUSE)
    }

    /// Returns an entry's counters, summed over the workers. They are valid from the submission of the
    /// addition until the release.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters;

    /// Releases an entry, whose ID may then be reused. The entry's removal must be active, and all events
    /// reported before it must have been taken.
    fn release(&mut self, id: EntryId);

    /// Returns a table's counters since the start.
    fn table_counters(&mut self, table: TableId) -> TableCounters;

    /// Returns a group's counters since it was added or replaced, or `None` if the group does not exist.
    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters>;

    /// Returns a meter's counters since it was added or replaced, or `None` if the meter does not exist.
    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters>;

    /// Returns a port's counters, or `None` if the data plane does not have the port. Workers read counters
    /// of devices only from time to time.
    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters>;

    /// Returns a port's egress queues in order of their numbers.
    fn queues(&mut self, _port: PortNo) -> Vec<PortQueue> {
        Vec::new()
    }

    /// Returns the counters of all packets since the start.
    fn totals(&mut self) -> Totals;

    // Events.

    /// Takes the next event, or `None` if there is none. Only events of the same worker are in order.
    fn next_event(&mut self) -> Option<Event>;

    /// Takes back the frame of a packet-in. The caller returns each frame exactly once. Packet-ins are
    /// dropped when the stock of frames for the controller is empty.
    fn recycle(&mut self, frame: Frame);
}
