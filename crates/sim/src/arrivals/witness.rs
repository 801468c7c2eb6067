// SPDX-License-Identifier: Apache-2.0
//! The instrument of a run: lets virtual time pass, and sees what becomes of each packet.

use crate::arrivals::wires::{Clock, Wires, lock};
use crate::cost::CostProbe;
use flow::{Nanos, Outcome, PortNo};
use frame::Frame;
use pipeline::{Probe, Step, Tally};
use std::sync::{Arc, Mutex};

/// A packet's port and number there, and what became of it.
type Fate = (PortNo, u64, Outcome, bool);

/// Listens to one worker.
#[derive(Debug, Default)]
pub struct Witness {
    pub(super) costs: CostProbe,
    pub(super) outside: Option<(Arc<Clock>, Arc<Mutex<Wires>>)>,
    /// Which packet is in which place of the worker's.
    places: Vec<(PortNo, u64)>,
    fates: Vec<Fate>,
}

impl Witness {
    /// Lets virtual time pass in which the worker does nothing, ns.
    pub(super) fn pass(&mut self, span_ns: f64) {
        self.costs.pass(span_ns);
        if let Some((clock, _)) = &self.outside {
            clock.set_ns(self.costs.virtual_ns());
        }
    }

    /// Tells what became of packets.
    fn tell(&mut self, sent: bool) {
        let Some((_, wires)) = &self.outside else { return };
        let mut wires = lock(wires);
        for (port, sequence, outcome, fast) in self.fates.drain(..) {
            wires.left(port, sequence, outcome, fast);
        }
        if sent {
            wires.doorbell();
        }
    }
}

impl Probe for Witness {
    #[inline]
    fn mark(&mut self, step: Step, units: u32) {
        self.costs.mark(step, units);
        if let Some((clock, _)) = &self.outside {
            clock.set_ns(self.costs.virtual_ns());
        }
        if step == Step::Transmit {
            self.tell(true);
        } else if step == Step::Turn && !self.fates.is_empty() {
            self.tell(false);
        }
    }

    #[inline]
    fn time_ns(&self) -> Option<Nanos> {
        self.costs.time_ns()
    }

    #[inline]
    fn arrives(&mut self, slot: usize, frame: &Frame) {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, (0, 0));
        }
        self.places[slot] = (frame.meta.in_port, frame.meta.sequence);
    }

    #[inline]
    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, _: &Tally) {
        if let Some((port, sequence)) = self.places.get(slot) {
            self.fates.push((*port, *sequence, outcome, fast));
        }
    }
}
