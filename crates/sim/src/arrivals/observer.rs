// SPDX-License-Identifier: Apache-2.0
//! Probe of a run: advances virtual time and records the outcome of each packet.

use crate::arrivals::links::{Links, VirtualTime, lock};
use crate::cost::CostProbe;
use dataplane::BurstCounters;
use flow::{Nanos, Outcome, PortNo};
use frame::Frame;
use pipeline::{PacketSlot, Probe, ProbeStep, Via};
use std::sync::{Arc, Mutex};

/// Stands for a slot whose packet is not observed.
const NOBODY: (PortNo, u64) = (PortNo(0), u64::MAX);

/// Ingress port and sequence number of a packet, its outcome, and the path by which it left.
type Fate = (PortNo, u64, Outcome, Via);

/// Probe of one worker.
#[derive(Debug, Default)]
pub struct Observer {
    pub(super) costs: CostProbe,
    pub(super) outside: Option<(Arc<VirtualTime>, Arc<Mutex<Links>>)>,
    /// Packet in each slot of the worker.
    places: Vec<(PortNo, u64)>,
    fates: Vec<Fate>,
}

impl Observer {
    /// Advances virtual time by `span_ns` nanoseconds during which the worker does nothing.
    pub(super) fn pass(&mut self, span_ns: f64) {
        self.costs.pass(span_ns);
        if let Some((clock, _)) = &self.outside {
            clock.set_ns(self.costs.virtual_ns());
        }
    }

    /// Reports the recorded outcomes. If `sent` is true, also reports the doorbell.
    fn tell(&mut self, sent: bool) {
        let Some((_, links)) = &self.outside else { return };
        let mut links = lock(links);
        for (port, sequence, outcome, via) in self.fates.drain(..) {
            links.left(port, sequence, outcome, via);
        }
        if sent {
            links.doorbell();
        }
    }
}

impl Probe for Observer {
    #[inline]
    fn mark(&mut self, step: ProbeStep, units: u32) {
        self.costs.mark(step, units);
        if let Some((clock, _)) = &self.outside {
            clock.set_ns(self.costs.virtual_ns());
        }
        if step == ProbeStep::Transmit {
            self.tell(true);
        } else if step == ProbeStep::Turn && !self.fates.is_empty() {
            self.tell(false);
        }
    }

    #[inline]
    fn time_ns(&self) -> Option<Nanos> {
        self.costs.time_ns()
    }

    #[inline]
    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        if self.places.len() <= slot.index() {
            self.places.resize(slot.index() + 1, NOBODY);
        }
        self.places[slot.index()] = (PortNo(frame.meta.in_port), frame.meta.sequence);
    }

    #[inline]
    fn returned(&mut self, slot: PacketSlot) {
        // The packet arrives again after the controller's answer. Until then, the slot is used by others.
        if let Some(place) = self.places.get_mut(slot.index()) {
            *place = NOBODY;
        }
    }

    #[inline]
    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, _: &BurstCounters) {
        if let Some((port, sequence)) = self.places.get(slot.index()).filter(|place| **place != NOBODY) {
            self.fates.push((*port, *sequence, outcome, via));
        }
    }
}
