// SPDX-License-Identifier: Apache-2.0
//! Where instruments listen to a worker: the oracle's order log, the cost table of the virtual clock. In production
//! the probe is `()`, and every call compiles to nothing; single bursts run with a pair of probes, the second of which
//! is an instrument for that burst.

/// A step of a worker's loop whose time is charged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A turn of the loop, whatever it brings.
    Turn,
    /// Taking packets from ports; a unit is a packet.
    Receive,
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
}

impl Probe for () {}

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
    fn applied(&mut self, version: u64) {
        self.0.applied(version);
        self.1.applied(version);
    }
    #[inline]
    fn compares(&self) -> bool {
        self.0.compares() || self.1.compares()
    }
}
