// SPDX-License-Identifier: Apache-2.0
//! Tracepoints of a worker, for instruments such as the oracle's order log and the cost table of the virtual
//! clock.
//!
//! In production the probe is `()`, and every call compiles to nothing. Selected bursts run with a pair of
//! probes, the second of which is an instrument for that burst.

use crate::packet::Packet;
use crate::slab::PacketSlot;
use actions::{OutputList, PendingOutput, PendingOutputs};
use dataplane::{BurstCounters, CacheWait, FoundBy};
use flow::{DropReason, EntryId, Nanos, Outcome, PortNo, RuleVersion, TableId};
use frame::Frame;

/// Path by which a packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The whole fast-forwarding path.
    FastPath,
    /// The tables, at least for a part of the path.
    Tables,
    /// The stateless forwarder.
    Stateless,
    /// A record of the express path.
    Express,
}

/// A step of a worker's loop. Instruments charge time to steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProbeStep {
    /// A turn (poll iteration) of the loop, with or without packets.
    Turn,
    /// Receiving packets from ports. Counted in packets.
    Receive,
    /// Stateless forwarding. Counted in packets.
    Stateless,
    /// Checking and setting up packets. Counted in packets.
    Admit,
    /// Parsing headers, building the keys of path records, and finding where the records probably are.
    /// Counted in packets.
    Express,
    /// Comparing path records, and sending packets that leave directly, before admission. Counted in packets
    /// that leave.
    Leave,
    /// Dropping known normal packets for which the backlog has no room. Counted in packets.
    Surplus,
    /// Giving path records to admitted packets if lanes are on, so that the packets leave, wait for a fence,
    /// or join the backlog. Counted in packets with a path record.
    Assign,
    /// Distributing admitted packets to the lanes' queues, and finishing those that need not wait. Counted in
    /// packets.
    Enqueue,
    /// Running the entries of path records for admitted packets. Counted in packets.
    Recorded,
    /// Making path records. Counted in packets without a path record.
    Learn,
    /// Parsing headers and building a table's keys. Counted in packets.
    Extract(TableId),
    /// Looking up keys in a table's LUT. Counted in packets.
    Probe(TableId),
    /// Verifying records of a table's LUT. Counted in records.
    Verify(TableId),
    /// Looking up keys in a table. Counted in packets.
    Lookup(TableId),
    /// Running instructions of a table's entries, including outputs and copies. Counted in packets.
    Execute(TableId),
    /// Running action sets. Counted in packets.
    Finish,
    /// Giving packets to ports and freeing returned frames. Counted in packets.
    Transmit,
    /// Removing outdated LUT records before a burst. Counted in examined records.
    Clean,
    /// Applying a part of an operation that changes something in place. Counted in changes.
    Change,
    /// Applying a part of an operation that swaps whole objects. Counted in swapped parts.
    Swap,
}

/// An instrument that the worker calls on its own thread. Every function has a default that does nothing.
pub trait Probe {
    /// Whether the functions that are called for single packets do anything.
    const LISTENS: bool = true;

    /// Called after a step: the time since the last mark was spent on `units` units of `step`.
    #[inline]
    fn mark(&mut self, _step: ProbeStep, _units: u32) {}

    /// Called when a packet arrives. `slot` belongs to the packet until the packet has left.
    #[inline]
    fn arrives(&mut self, _slot: PacketSlot, _frame: &Frame) {}

    /// Called when the entry that a packet hits in a table is known, before the entry's instructions run.
    /// `entry` is `EntryId::NONE` for a miss. The packet has `bytes` bytes.
    #[inline]
    fn looked_up(
        &mut self,
        _slot: PacketSlot,
        _table: TableId,
        _by: FoundBy,
        _entry: EntryId,
        _bytes: usize,
    ) {
    }

    /// Called before the packet's action set runs.
    #[inline]
    fn finishing(&mut self, _slot: PacketSlot) {}

    /// Called when a packet leaves the fast-forwarding path because this table's LUT has no record for the
    /// packet's key.
    #[inline]
    fn lut_missed(&mut self, _slot: PacketSlot, _table: TableId) {}

    /// Called when a packet is finished, before its outputs are sent.
    #[inline]
    fn leaving(&mut self, _slot: PacketSlot, _leaving: &Leaving<'_>) {}

    /// Called when a packet has left, with its outcome and its burst's counters so far.
    #[inline]
    fn left(&mut self, _slot: PacketSlot, _outcome: Outcome, _via: Via, _burst: &BurstCounters) {}

    /// Called when a packet is dropped because the backlog has no space for it or because the worker ends.
    /// `table` is the table that the packet waited for, or `None` if the packet was finished.
    #[inline]
    fn refused(&mut self, _frame: &Frame, _table: Option<TableId>, _reason: DropReason) {}

    /// Called when a packet returns to the port cache unprocessed. It arrives again when it is released.
    #[inline]
    fn returned(&mut self, _slot: PacketSlot) {}

    /// Called for the packet with number `sequence` of this worker's receive queue at `port`, before it is
    /// admitted.
    #[inline]
    fn packet(&mut self, _port: PortNo, _sequence: u64) {}

    /// Called before a burst of packets that waited in the port cache, all in the same role. Called with
    /// `None` after it.
    #[inline]
    fn released(&mut self, _waited: Option<CacheWait>) {}

    /// Called when the operation of this version has been applied. The call is repeated with the same version
    /// after a change that is not an operation.
    #[inline]
    fn applied(&mut self, _version: RuleVersion) {}

    /// Returns whether packets are looked up both in a table and in its LUT, to compare the costs. The result
    /// of the table lookup is not used.
    #[inline]
    fn compares(&self) -> bool {
        false
    }

    /// Returns the instrument's own time in ns, if it has one. This time replaces the worker's clock in
    /// latencies.
    #[inline]
    fn time_ns(&self) -> Option<Nanos> {
        None
    }
}

impl Probe for () {
    const LISTENS: bool = false;
}

/// Outputs of a packet.
pub struct Leaving<'a> {
    /// The packet's list of pending copies, and the array that holds all pending copies.
    copies: Option<(OutputList, &'a PendingOutputs)>,
    /// The packet's frame, if it leaves without a copy, and its port.
    frame: Option<(PortNo, &'a Frame)>,
    /// Whether an output has failed for lack of space, perhaps in an earlier burst.
    pub scarce: bool,
}

impl<'a> Leaving<'a> {
    pub(crate) fn of(packet: &'a Packet, outputs: &'a PendingOutputs) -> Self {
        Self {
            copies: Some((packet.outputs, outputs)),
            frame: packet.leaves.map(|port| (port, &packet.data.frame)),
            scarce: packet.scarce,
        }
    }

    /// Describes the outputs of a packet that leaves by one port without a copy, or does not leave at all.
    pub(crate) fn only(frame: Option<(PortNo, &'a Frame)>) -> Self {
        Self { copies: None, frame, scarce: false }
    }

    /// Calls `take` for each output in order, with its port; `None` stands for the controller.
    pub fn copies(&self, mut take: impl FnMut(Option<PortNo>, &Frame)) {
        for out in self.copies.into_iter().flat_map(|(list, outputs)| outputs.of(list)) {
            match out {
                PendingOutput::Copy { port, frame, .. } => take(Some(*port), frame),
                PendingOutput::Report(report) => take(None, &report.frame),
                PendingOutput::Gone => {}
            }
        }
        if let Some((port, frame)) = self.frame {
            take(Some(port), frame);
        }
    }
}

/// A pair of probes, both of which receive every call.
impl<A: Probe, B: Probe> Probe for (&mut A, &mut B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;

    #[inline]
    fn mark(&mut self, step: ProbeStep, units: u32) {
        self.0.mark(step, units);
        self.1.mark(step, units);
    }

    #[inline]
    fn packet(&mut self, port: PortNo, sequence: u64) {
        self.0.packet(port, sequence);
        self.1.packet(port, sequence);
    }

    #[inline]
    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        self.0.arrives(slot, frame);
        self.1.arrives(slot, frame);
    }

    #[inline]
    fn looked_up(&mut self, slot: PacketSlot, table: TableId, by: FoundBy, entry: EntryId, bytes: usize) {
        self.0.looked_up(slot, table, by, entry, bytes);
        self.1.looked_up(slot, table, by, entry, bytes);
    }

    #[inline]
    fn finishing(&mut self, slot: PacketSlot) {
        self.0.finishing(slot);
        self.1.finishing(slot);
    }

    #[inline]
    fn lut_missed(&mut self, slot: PacketSlot, table: TableId) {
        self.0.lut_missed(slot, table);
        self.1.lut_missed(slot, table);
    }

    #[inline]
    fn leaving(&mut self, slot: PacketSlot, leaving: &Leaving<'_>) {
        self.0.leaving(slot, leaving);
        self.1.leaving(slot, leaving);
    }

    #[inline]
    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, burst_counters: &BurstCounters) {
        self.0.left(slot, outcome, via, burst_counters);
        self.1.left(slot, outcome, via, burst_counters);
    }

    #[inline]
    fn refused(&mut self, frame: &Frame, table: Option<TableId>, reason: DropReason) {
        self.0.refused(frame, table, reason);
        self.1.refused(frame, table, reason);
    }

    #[inline]
    fn released(&mut self, waited: Option<CacheWait>) {
        self.0.released(waited);
        self.1.released(waited);
    }

    #[inline]
    fn returned(&mut self, slot: PacketSlot) {
        self.0.returned(slot);
        self.1.returned(slot);
    }

    #[inline]
    fn applied(&mut self, version: RuleVersion) {
        self.0.applied(version);
        self.1.applied(version);
    }
    #[inline]
    fn compares(&self) -> bool {
        self.0.compares() || self.1.compares()
    }

    #[inline]
    fn time_ns(&self) -> Option<Nanos> {
        self.0.time_ns().or_else(|| self.1.time_ns())
    }
}
