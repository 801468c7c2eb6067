// SPDX-License-Identifier: Apache-2.0
//! Probe of a run: advances virtual time and records the outcome of each packet.

use crate::arrivals::wires::{Clock, Wires, lock};
use crate::cost::CostProbe;
use flow::{Nanos, Outcome, PortNo};
use frame::Frame;
use pipeline::{BurstCounters, Probe, Step};
use std::sync::{Arc, Mutex};

/// Ingress port and sequence number of a packet, its outcome, and whether it stayed on the fast-forwarding
/// path.
type Fate = (PortNo, u64, Outcome, bool);

/// Probe of one worker.
#[derive(Debug, Default)]
pub struct Witness {
    pub(super) costs: CostProbe,
    pub(super) outside: Option<(Arc<Clock>, Arc<Mutex<Wires>>)>,
    /// Packet in each slot of the worker.
    places: Vec<(PortNo, u64)>,
    fates: Vec<Fate>,
}

impl Witness {
    /// Advances virtual time by `span_ns` nanoseconds during which the worker does nothing.
    pub(super) fn pass(&mut self, span_ns: f64) {
        self.costs.pass(span_ns);
        if let Some((clock, _)) = &self.outside {
            clock.set_ns(self.costs.virtual_ns());
        }
    }

    /// Reports the recorded outcomes, and the doorbell if `sent`.
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
    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, _: &BurstCounters) {
        if let Some((port, sequence)) = self.places.get(slot) {
            self.fates.push((*port, *sequence, outcome, fast));
        }
    }
}
