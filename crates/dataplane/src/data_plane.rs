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
//! 2. `submit` of `EntryChange::Remove` takes the entry out of its table. Packets may hit it, and are
//!    counted, until that version is active.
//! 3. The caller waits for that version, takes the events that were reported before, and reads the final
//!    counters.
//! 4. [`DataPlane::release`] ends the life of the ID. Only now may another entry get it.
//!
//! # Errors
//! Operations cannot fail: the caller checks each request first (validity, references, limits), as the
//! comments of [`Operation`] demand. An implementation asserts these conditions in debug builds, and ignores
//! an invalid part otherwise. A method that gets an unknown entry ID returns counters of 0.

use crate::counters::{
    EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals,
};
use crate::event::Event;
use flow::{EntryId, Nanos, Operation, PortNo};
use frame::Frame;

/// A data plane: applies operations in order, and reports counters and events. The module's documentation
/// states the rules that hold for all methods.
pub trait DataPlane {
    // Operations.

    /// Submits an operation after all earlier ones. Returns its version: 1 for the first operation, then
    /// counting up.
    ///
    /// May compile tables, so the call can take milliseconds for thousands of entries. Takes as many
    /// operations as the caller submits: operations that the workers cannot take yet are parked.
    fn submit(&mut self, operation: Operation) -> u64;

    /// Returns the highest version that is active on all workers, or 0 before the first one: no packet is
    /// processed by an older version any longer. Never decreases.
    fn applied(&mut self) -> u64;

    /// Returns the number of submitted operations that wait for space in the queues to the workers. The
    /// caller reads no further requests while the number is above the caller's limit.
    fn parked(&self) -> usize;

    /// Runs a bounded part of the background work that controllers do not see, such as installing compiled
    /// tables. The version stays the same. The caller calls it on each poll, with the current time.
    fn tick(&mut self, _now: Nanos) {}

    // Counters. They may lag behind the packets by one burst, except that all packets of a version are
    // counted when the next version is active.

    /// Returns an entry's counters, summed over the workers. Valid from the submission of its addition until
    /// its release.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters;

    /// Releases an entry. The caller guarantees that its removal is active and that all events reported
    /// before are taken. Its counters are lost, and its ID may be reused.
    fn release(&mut self, id: EntryId);

    /// Returns a table's counters since the start.
    fn table_counters(&mut self, table: u8) -> TableCounters;

    /// Returns a group's counters since it was added or replaced, or `None` if the group does not exist.
    fn group_counters(&mut self, id: u32) -> Option<GroupCounters>;

    /// Returns a meter's counters since it was added or replaced, or `None` if the meter does not exist.
    fn meter_counters(&mut self, id: u32) -> Option<MeterCounters>;

    /// Returns a port's counters, or `None` if the data plane does not have the port. Devices are read by the
    /// workers, so these counters may be older than a burst.
    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters>;

    /// Returns a port's egress queues in order of their numbers; empty if the port has none.
    fn queues(&mut self, _port: PortNo) -> Vec<PortQueue> {
        Vec::new()
    }

    /// Returns the counters of all packets since the start.
    fn totals(&mut self) -> Totals;

    // Events.

    /// Takes the next event, or `None` if no worker has reported one. Events of one worker come in the order
    /// in which it reported them. There is no order among workers.
    fn next_event(&mut self) -> Option<Event>;

    /// Takes back the frame of a packet-in. The caller returns each frame once; until then it occupies the
    /// stock of frames for the controller, and packet-ins are dropped when the stock is empty.
    fn recycle(&mut self, frame: Frame);
}
