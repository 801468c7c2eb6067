// SPDX-License-Identifier: Apache-2.0
//! The contract between the control plane and a data plane.
//!
//! # Thread
//! The control thread makes all calls. No method blocks, waits for a worker, or performs I/O. The caller may
//! therefore answer a controller between any two calls.
//!
//! # Order
//! - Operations take effect in the order of their submission. Each takes effect as a whole, between two
//!   packets: every packet is processed by exactly one version of the rules.
//! - `submit` returns before the operation is active. It is active when [`DataPlane::applied`] has reached
//!   its version.
//! - An event that a packet caused is available from [`DataPlane::next_event`] before `applied` exceeds the
//!   version by which the packet was processed.
//!
//! # Life of an entry
//! 1. `submit` of `EntryChange::Add` makes the ID known. The ID must be unused until then.
//! 2. `submit` of `EntryChange::Remove` takes the entry out of its table. Until that version is active,
//!    packets may hit the entry and are counted.
//! 3. The caller waits for that version, takes the events that were reported before, and reads the final
//!    counters.
//! 4. [`DataPlane::release`] ends the life of the ID. Only then may another entry get the same ID.
//!
//! # Errors
//! Operations cannot fail: the caller checks each request first (validity, references, limits), as the
//! comments of [`Operation`] require. An implementation asserts these conditions in debug builds. In release
//! builds it ignores an invalid part. A method that gets an unknown entry ID returns counters of 0.

use crate::counters::{
    EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals,
};
use crate::event::Event;
use flow::{EntryId, GroupId, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId};
use frame::Frame;

/// A data plane. It applies operations in order, and reports counters and events. The module's documentation
/// states the rules for all methods.
pub trait DataPlane {
    // Operations.

    /// Submits an operation after all earlier ones. Returns its version: 1 for the first operation, then
    /// counting up.
    ///
    /// The call may compile tables, which can take milliseconds for thousands of entries. The number of
    /// operations is not limited: operations that the workers cannot take yet are parked.
    fn submit(&mut self, operation: Operation) -> RuleVersion;

    /// Returns the highest version that is active on all workers, or 0 before the first version is active.
    /// Packets are no longer processed by older versions. The result never decreases.
    fn applied(&mut self) -> RuleVersion;

    /// Returns the number of submitted operations that wait for space in the queues to the workers. While the
    /// number is above the caller's limit, the caller reads no further requests.
    fn parked(&self) -> usize;

    /// Runs a bounded part of the background work that controllers do not see, such as installing compiled
    /// tables. The version stays the same. The control thread calls this method on each poll, with the
    /// current time.
    fn tick(&mut self, _now: Nanos) {}

    // Counters. Counters of entries and tables include all hits before `counted_until`. Other counters lag
    // behind the packets by at most one burst. When the removal or modification of an entry becomes active,
    // all hits before it have been counted.

    /// Returns a time before which all hits of entries have been counted. Soon after the last packet, all
    /// hits have been counted, and the result is the maximum time.
    fn counted_until(&mut self) -> Nanos;

    /// Returns an entry's counters, summed over the workers. The counters are valid from the submission of
    /// the addition until the release.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters;

    /// Releases an entry. The caller guarantees that the entry's removal is active and that all events
    /// reported before have been taken. The entry's counters are lost, and its ID may be reused.
    fn release(&mut self, id: EntryId);

    /// Returns a table's counters since the start.
    fn table_counters(&mut self, table: TableId) -> TableCounters;

    /// Returns a group's counters since it was added or replaced, or `None` if the group does not exist.
    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters>;

    /// Returns a meter's counters since it was added or replaced, or `None` if the meter does not exist.
    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters>;

    /// Returns a port's counters, or `None` if the data plane does not have the port. Workers read the
    /// counters of devices from time to time, so the result may be out of date by more than one burst.
    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters>;

    /// Returns a port's egress queues in order of their numbers. The list is empty if the port has none.
    fn queues(&mut self, _port: PortNo) -> Vec<PortQueue> {
        Vec::new()
    }

    /// Returns the counters of all packets since the start.
    fn totals(&mut self) -> Totals;

    // Events.

    /// Takes the next event, or `None` if no worker has reported one. Events of one worker come in the order
    /// in which it reported them. There is no order among workers.
    fn next_event(&mut self) -> Option<Event>;

    /// Takes back the frame of a packet-in. The caller returns each frame exactly once. Until then, the frame
    /// is missing from the stock of frames for the controller. Packet-ins are dropped when the stock is
    /// empty.
    fn recycle(&mut self, frame: Frame);
}
