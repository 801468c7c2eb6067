// SPDX-License-Identifier: Apache-2.0
//! The end of a packet's processing: its action set runs, its outputs leave in order, and its outcome is
//! counted once.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, State};
use crate::probe::{Leaving, Probe, Via};
use crate::slab::PacketSlot;
use actions::PendingOutput;
use dataplane::{Event, PacketInEvent};
use flow::{DropReason, Outcome, PacketInReason, PortNo, QueueId};
use frame::Frame;

impl<E: Egress> BurstContext<'_, E> {
    /// Runs the action set, sends the pending outputs, counts the outcome and frees the packet's frame if the
    /// frame was not sent.
    #[inline(always)]
    pub(crate) fn finish<P: Probe>(
        &mut self,
        packet: &mut Packet,
        slot: PacketSlot,
        via: Via,
        probe: &mut P,
    ) {
        if packet.state == State::Finish {
            probe.finishing(slot);
            self.action_set(packet);
        }
        if !packet.outputs.is_empty() && self.quenches && self.asks_controller(packet, slot) {
            return;
        }
        probe.leaving(slot, &Leaving::of(packet, self.outputs));
        let mut left = Released::default();
        if !packet.outputs.is_empty() {
            left = self.release_copies(packet);
        }
        if let Some(port) = packet.leaves {
            let frame = packet.data.take_frame();
            left.sent |= self.transmit(packet, port, packet.data.queue, frame);
        }
        let outcome = if left.sent && packet.reason.is_none() {
            self.burst_counters.forwarded += 1;
            Outcome::Forwarded
        } else {
            self.decide_outcome(left, packet.reason)
        };
        probe.left(slot, outcome, via, &self.burst_counters);
        if packet.leaves.is_none() && !packet.data.frame.is_hollow() {
            self.egress.free(packet.data.take_frame());
        }
    }

    /// Returns whether the packet has no output but packet-ins that may be quenched. Lists the packet if so.
    #[inline(never)]
    fn asks_controller(&mut self, packet: &Packet, slot: PacketSlot) -> bool {
        let may_quench = |out: &PendingOutput| match out {
            PendingOutput::Report(report) => {
                report.reason == PacketInReason::NoMatch && self.quench.has(report.table)
            }
            PendingOutput::Copy { .. } | PendingOutput::Gone => false,
        };
        // Another output of the packet may have failed for lack of space.
        let is_whole = packet.leaves.is_none() && !packet.scarce;
        let asks = is_whole && self.outputs.of(packet.outputs).all(may_quench);
        if asks {
            self.asking.push(slot);
        }
        asks
    }

    /// Decides and counts the outcome of a packet that was not sent, or that had a failed output.
    #[inline(never)]
    fn decide_outcome(&mut self, left: Released, reason: Option<DropReason>) -> Outcome {
        let outcome = match reason {
            _ if left.sent => Outcome::Forwarded,
            _ if left.reported => Outcome::Consumed,
            reason => Outcome::Dropped(reason.unwrap_or(DropReason::NoOutput)),
        };
        if let (Outcome::Forwarded | Outcome::Consumed, Some(reason)) = (outcome, reason) {
            self.count_dropped_copy(reason);
        }
        self.count_outcome(outcome);
        outcome
    }

    /// Frees all pending outputs of the packet without sending them.
    pub(crate) fn discard(&mut self, packet: &mut Packet) {
        packet.leaves = None;
        let mut at = std::mem::take(&mut packet.outputs).first;
        while let Some((out, next)) = self.outputs.take(at) {
            at = next;
            match out {
                PendingOutput::Copy { frame, .. } => self.egress.free(frame),
                PendingOutput::Report(report) => self.egress.free(report.frame),
                PendingOutput::Gone => {}
            }
        }
    }

    /// Gives the pending outputs of the packet to the egress, in order.
    #[inline(never)]
    fn release_copies(&mut self, packet: &mut Packet) -> Released {
        let mut left = Released::default();
        let mut at = packet.outputs.first;
        while let Some((out, next)) = self.outputs.take(at) {
            at = next;
            match out {
                PendingOutput::Copy { port, queue, frame } => {
                    left.sent |= self.transmit(packet, port, queue, frame);
                }
                PendingOutput::Report(report) => left.reported |= self.report(packet, report),
                PendingOutput::Gone => {}
            }
        }
        left
    }

    /// Gives a report to the egress. Returns whether the egress took it.
    fn report(&mut self, packet: &mut Packet, mut report: PacketInEvent) -> bool {
        report.frame.meta.lane = packet.lane();
        self.unsent = true;
        if !self.packet_in_limits.take(report.reason, packet.data.ext.in_port(), self.now) {
            self.egress.free(report.frame);
            let reason = match report.reason {
                PacketInReason::NoMatch => DropReason::PacketInRateNoMatch,
                PacketInReason::Action => DropReason::PacketInRateAction,
                PacketInReason::InvalidTtl => DropReason::PacketInRateInvalidTtl,
            };
            self.fail(packet, reason);
            return false;
        }
        match self.egress.report(Event::PacketIn(report)) {
            Ok(()) => {
                self.unsent = false;
                return true;
            }
            Err(Event::PacketIn(report)) => {
                self.egress.free(report.frame);
                self.fail(packet, DropReason::PacketInFull);
            }
            Err(Event::Learn(_) | Event::MacRefused(_) | Event::Storm(_) | Event::Searcher(_)) => {}
        }
        false
    }

    /// Gives a frame to the egress. Returns whether the egress took it.
    #[inline(always)]
    fn transmit(&mut self, packet: &mut Packet, port: PortNo, queue: QueueId, mut frame: Frame) -> bool {
        // All copies use the lane that the packet is in at the end, so that copies of one flow do not
        // overtake one another.
        frame.meta.lane = packet.lane();
        match self.egress.transmit(port, queue, frame) {
            Ok(()) => {
                self.burst_counters.copies += 1;
                true
            }
            Err((frame, reason)) => {
                self.egress.free(frame);
                self.fail(packet, reason);
                false
            }
        }
    }
}

/// Which outputs of a packet the egress took.
#[derive(Clone, Copy, Debug, Default)]
struct Released {
    /// At least one frame for a port.
    sent: bool,
    /// At least one packet-in for the controller.
    reported: bool,
}
