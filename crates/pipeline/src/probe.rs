// SPDX-License-Identifier: Apache-2.0
//! Where instruments listen to a worker: the oracle's order log, the cost table of the virtual clock. In production
//! the probe is `()`, and every call compiles to nothing; single bursts run with a pair of probes, the second of which
//! is an instrument for that burst.

use crate::counters::Tally;
use crate::outs::{Out, Outs};
use crate::packet::Packet;
use flow::{DropReason, EntryId, Nanos, Outcome, PortNo};
use frame::Frame;

/// How a packet came to the entry that it hit in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The table's lookup.
    Table,
    /// The index that it was sent to, in a linear table.
    Index,
    /// A record of the fast-forwarding path.
    Lut,
    /// A record that was held against the table first.
    Verified,
    /// A record of the LUT before.
    Inherited,
    /// The table's lookup, on the fast-forwarding path.
    Shared,
    /// A record that told a normal entry.
    Known,
}

/// A step of a worker's loop whose time is charged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A turn of the loop, whatever it brings.
    Turn,
    /// Taking packets from ports; a unit is a packet.
    Receive,
    /// Forwarding by the stateless lane; a unit is a packet.
    Stateless,
    /// Checking packets and setting them up; a unit is a packet.
    Admit,
    /// Finding headers and building a table's keys; a unit is a packet.
    Extract(u8),
    /// Looking keys up in a table's LUT; a unit is a packet.
    Probe(u8),
    /// Holding a table's records against what changed; a unit is a record.
    Verify(u8),
    /// Looking keys up in a table; a unit is a packet.
    Lookup(u8),
    /// Running instructions of a table's entries, outputs and copies included; a unit is a packet.
    Execute(u8),
    /// Running action sets; a unit is a packet.
    Finish,
    /// Giving packets to ports and taking freed frames home; a unit is a packet.
    Transmit,
    /// Taking records away that a change concerns, before a burst; a unit is a record looked at.
    Clean,
    /// Applying an operation of single changes; a unit is a change.
    Change,
    /// Applying an operation that swaps; a unit is a swapped part.
    Swap,
}

/// An instrument.
pub trait Probe {
    /// The time since the last mark was spent on `units` of `step`.
    #[inline]
    fn mark(&mut self, _step: Step, _units: u32) {}

    /// A packet came in, as this frame; `slot` is its own until it has left.
    #[inline]
    fn arrives(&mut self, _slot: usize, _frame: &Frame) {}

    /// A packet of so many bytes was looked up in a table: what it hit, `tables::NONE` for a miss. Its instructions come next.
    #[inline]
    fn looked_up(&mut self, _slot: usize, _table: u8, _by: By, _entry: EntryId, _bytes: usize) {}

    /// A packet leaves the fast-forwarding path: the LUT of this table does not know its value.
    #[inline]
    fn lut_missed(&mut self, _slot: usize, _table: u8) {}

    /// A packet is through: this is what it sends.
    #[inline]
    fn leaving(&mut self, _slot: usize, _leaving: &Leaving<'_>) {}

    /// A packet has left: what became of it, and what its burst has counted so far.
    #[inline]
    fn left(&mut self, _slot: usize, _outcome: Outcome, _fast: bool, _tally: &Tally) {}

    /// A packet that waits for this table, or is through (none), is dropped: the backlog has no room for it.
    #[inline]
    fn refused(&mut self, _frame: &Frame, _table: Option<u8>, _reason: DropReason) {}

    /// A packet is judged now: arrival number `sequence` of this worker's queue at `port`.
    #[inline]
    fn packet(&mut self, _port: u32, _sequence: u64) {}

    /// The operation of this version is in force from now on. A version comes again when something changes that is not
    /// an operation.
    #[inline]
    fn applied(&mut self, _version: u64) {}

    /// Whether packets that a LUT was asked about are looked up in the table as well, so that the two costs can be
    /// compared. What is found is not used.
    #[inline]
    fn compares(&self) -> bool {
        false
    }

    /// The instrument's own time in ns, which latencies are then told by instead of the worker's clock: virtual time.
    #[inline]
    fn time_ns(&self) -> Option<Nanos> {
        None
    }
}

impl Probe for () {}

/// What a packet sends.
pub struct Leaving<'a> {
    /// Who sends copies, and where they are.
    copies: Option<(&'a Packet, &'a Outs)>,
    /// The frame itself, and its port.
    frame: Option<(PortNo, &'a Frame)>,
}

impl<'a> Leaving<'a> {
    pub(crate) fn of(packet: &'a Packet, outs: &'a Outs) -> Self {
        Self { copies: Some((packet, outs)), frame: packet.leaves.map(|port| (port, &packet.frame)) }
    }

    /// A frame by a port, or nothing.
    pub(crate) fn only(frame: Option<(PortNo, &'a Frame)>) -> Self {
        Self { copies: None, frame }
    }

    /// Gives each copy to `take`, in order, with its port; none: it is for the controller.
    pub fn copies(&self, mut take: impl FnMut(Option<PortNo>, &Frame)) {
        for out in self.copies.into_iter().flat_map(|(packet, outs)| outs.of(packet)) {
            match out {
                Out::Copy { port, frame, .. } => take(Some(*port), frame),
                Out::Report(report) => take(None, &report.frame),
                Out::Gone => {}
            }
        }
        if let Some((port, frame)) = self.frame {
            take(Some(port), frame);
        }
    }
}

/// Both listen.
impl<A: Probe, B: Probe> Probe for (&mut A, &mut B) {
    #[inline]
    fn mark(&mut self, step: Step, units: u32) {
        self.0.mark(step, units);
        self.1.mark(step, units);
    }

    #[inline]
    fn packet(&mut self, port: u32, sequence: u64) {
        self.0.packet(port, sequence);
        self.1.packet(port, sequence);
    }

    #[inline]
    fn arrives(&mut self, slot: usize, frame: &Frame) {
        self.0.arrives(slot, frame);
        self.1.arrives(slot, frame);
    }

    #[inline]
    fn looked_up(&mut self, slot: usize, table: u8, by: By, entry: EntryId, bytes: usize) {
        self.0.looked_up(slot, table, by, entry, bytes);
        self.1.looked_up(slot, table, by, entry, bytes);
    }

    #[inline]
    fn lut_missed(&mut self, slot: usize, table: u8) {
        self.0.lut_missed(slot, table);
        self.1.lut_missed(slot, table);
    }

    #[inline]
    fn leaving(&mut self, slot: usize, leaving: &Leaving<'_>) {
        self.0.leaving(slot, leaving);
        self.1.leaving(slot, leaving);
    }

    #[inline]
    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, tally: &Tally) {
        self.0.left(slot, outcome, fast, tally);
        self.1.left(slot, outcome, fast, tally);
    }

    #[inline]
    fn refused(&mut self, frame: &Frame, table: Option<u8>, reason: DropReason) {
        self.0.refused(frame, table, reason);
        self.1.refused(frame, table, reason);
    }

    #[inline]
    fn applied(&mut self, version: u64) {
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
