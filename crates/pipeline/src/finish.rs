// SPDX-License-Identifier: Apache-2.0
//! The end of a packet's processing: its action set runs, its outputs leave in order, and its outcome is
//! counted once.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, State};
use crate::pending_outputs::PendingOutput;
use crate::probe::{Leaving, Probe, Via};
use dataplane::{Event, PacketInEvent};
use flow::{DropReason, Outcome, PortNo, QueueId};
use frame::Frame;

impl<E: Egress> BurstContext<'_, E> {
    /// Runs the action set, sends the pending outputs, counts the outcome and frees the packet's frame if the
    /// frame was not sent.
    #[inline]
    pub(crate) fn finish<P: Probe>(&mut self, packet: &mut Packet, slot: usize, via: Via, probe: &mut P) {
        if packet.state == State::Finish {
            self.action_set(packet);
        }
        probe.leaving(slot, &Leaving::of(packet, self.outputs));
        self.release(packet);
        let outcome = match packet.reason {
            _ if packet.sent > 0 => Outcome::Forwarded,
            _ if packet.reported > 0 => Outcome::Consumed,
            reason => Outcome::Dropped(reason.unwrap_or(DropReason::NoOutput)),
        };
        if let (Outcome::Forwarded | Outcome::Consumed, Some(reason)) = (outcome, packet.reason) {
            self.burst_counters.copy_dropped(reason);
        }
        self.burst_counters.outcome(outcome);
        probe.left(slot, outcome, via, &self.burst_counters);
        if !packet.data.frame.is_hollow() {
            self.egress.free(packet.data.take_frame());
        }
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

    /// Gives all outputs of the packet to the egress, in order.
    #[inline]
    fn release(&mut self, packet: &mut Packet) {
        if !packet.outputs.is_empty() {
            self.release_copies(packet);
        }
        if let Some(port) = packet.leaves {
            let frame = packet.data.take_frame();
            self.transmit(packet, port, packet.data.queue, frame);
        }
    }

    #[inline(never)]
    fn release_copies(&mut self, packet: &mut Packet) {
        let mut at = packet.outputs.first;
        while let Some((out, next)) = self.outputs.take(at) {
            at = next;
            match out {
                PendingOutput::Copy { port, queue, frame } => self.transmit(packet, port, queue, frame),
                PendingOutput::Report(report) => self.report(packet, report),
                PendingOutput::Gone => {}
            }
        }
    }

    fn report(&mut self, packet: &mut Packet, mut report: PacketInEvent) {
        report.frame.meta.lane = packet.lane();
        match self.egress.report(Event::PacketIn(report)) {
            Ok(()) => packet.reported += 1,
            Err(Event::PacketIn(report)) => {
                self.egress.free(report.frame);
                self.fail(packet, DropReason::PacketInFull);
            }
            Err(Event::Learn(_)) => {}
        }
    }

    #[inline]
    fn transmit(&mut self, packet: &mut Packet, port: PortNo, queue: QueueId, mut frame: Frame) {
        // All copies use the lane that the packet is in at the end, including copies made earlier. In the
        // other lane, they could overtake copies of the flow's previous packet.
        frame.meta.lane = packet.lane();
        match self.egress.transmit(port, queue, frame) {
            Ok(()) => {
                packet.sent += 1;
                self.burst_counters.copies += 1;
            }
            Err((frame, reason)) => {
                self.egress.free(frame);
                self.fail(packet, reason);
            }
        }
    }
}
