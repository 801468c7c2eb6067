// SPDX-License-Identifier: Apache-2.0
//! Outputs: to one port, to many, to the controller. By an output that is the packet's last the frame itself leaves; all
//! others send copies. They leave when the whole burst is through ([`crate::outs`]).

use crate::burst::Run;
use crate::outs::Out;
use crate::packet::Packet;
use crate::{Event, PacketIn, normal};
use flow::{DropReason, PacketInReason, PortNo, PortState, port_no};
use frame::{Frame, Lane};

/// What forwarding needs of the worker around it.
pub trait Egress {
    /// An empty frame with room for `len` bytes.
    fn buffer(&mut self, len: usize) -> Option<Frame>;
    /// An empty frame of the stock for the controller. Packets that are not low-latency leave some to those that are.
    fn controller_buffer(&mut self, len: usize, low_latency: bool) -> Option<Frame>;
    /// Queues a frame for a port, in the egress queue of this number if the port has it. Given back if there is no room.
    ///
    /// # Errors
    /// The frame, and what it is counted as.
    fn transmit(&mut self, port: PortNo, queue: u32, frame: Frame) -> Result<(), (Frame, DropReason)>;
    /// Reports to the control thread. Given back if there is no room: packets leave some to those whose lane is the
    /// low-latency one.
    ///
    /// # Errors
    /// The event.
    fn report(&mut self, event: Event) -> Result<(), Event>;
    /// Takes a frame home.
    fn free(&mut self, frame: Frame);
    /// Whether a frame may wait: not if few of its size are left for receiving. A packet known to be normal leaves more of
    /// them, so that there are some for unknown ones, which must be learned.
    fn may_hold(&self, frame: &Frame, normal: bool) -> bool;
}

impl<E: Egress> Run<'_, E> {
    /// Sends the packet by a real or reserved port. `last`: nothing happens to the packet afterwards.
    #[inline(always)]
    pub(crate) fn output(&mut self, packet: &mut Packet, port: PortNo, max_len: u16, last: bool) {
        if !port_no::is_real(port) {
            self.output_reserved(packet, port, max_len, last);
        } else if port == packet.ext.in_port() {
            // OpenFlow: back where it came from only by asking for IN_PORT.
            self.fail(packet, DropReason::IngressPort);
        } else {
            self.send_to_port(packet, port, last);
        }
    }

    #[inline(never)]
    fn output_reserved(&mut self, packet: &mut Packet, port: PortNo, max_len: u16, last: bool) {
        match port {
            port_no::IN_PORT => self.send_to_port(packet, packet.ext.in_port(), last),
            port_no::ALL => self.send_to_many(packet, |_| true, last),
            port_no::FLOOD => self.send_to_many(packet, |port| !port.no_flood, last),
            port_no::NORMAL => normal::forward(self, packet, last),
            port_no::CONTROLLER => {
                let reason = if packet.miss_entry { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.send_to_controller(packet, max_len, reason);
            }
            _ => self.fail(packet, DropReason::NoSuchPort),
        }
    }

    /// Sends to one real port.
    #[inline(always)]
    pub(crate) fn send_to_port(&mut self, packet: &mut Packet, port: PortNo, last: bool) {
        match self.ports.get(port) {
            None => self.fail(packet, DropReason::NoSuchPort),
            Some(port) if !port.up => self.fail(packet, DropReason::PortDown),
            Some(port) if port.no_fwd => self.fail(packet, DropReason::PortNotForwarding),
            Some(_) => self.send(packet, port, last),
        }
    }

    /// Sends to every port that is up, forwards, is `wanted` and is not the ingress port.
    pub(crate) fn send_to_many(
        &mut self,
        packet: &mut Packet,
        wanted: impl Fn(&PortState) -> bool,
        last: bool,
    ) {
        let in_port = packet.ext.in_port();
        let ports = self.ports;
        let mut waiting: Option<PortNo> = None;
        for port in ports.all().iter().filter(|p| p.up && !p.no_fwd && p.number != in_port && wanted(p)) {
            if let Some(earlier) = waiting.replace(port.number) {
                self.send(packet, earlier, false);
            }
        }
        match waiting {
            Some(port) => self.send(packet, port, last),
            None => self.fail(packet, DropReason::NoFloodPort),
        }
    }

    /// Notes that the packet goes to a port that can take it.
    #[inline]
    fn send(&mut self, packet: &mut Packet, port: PortNo, last: bool) {
        if last {
            packet.leaves = Some(port);
        } else {
            self.send_copy(packet, port);
        }
    }

    #[inline(never)]
    fn send_copy(&mut self, packet: &mut Packet, port: PortNo) {
        let Some(mut frame) = self.egress.buffer(packet.frame.len()) else {
            return self.fail(packet, DropReason::NoBuffer);
        };
        if !frame.copy_from(&packet.frame) {
            self.egress.free(frame);
            return self.fail(packet, DropReason::NoBuffer);
        }
        if let Err(Out::Copy { frame, .. }) =
            self.outs.push(packet, Out::Copy { port, queue: packet.queue, frame })
        {
            self.egress.free(frame);
            self.fail(packet, DropReason::TransmitFull);
        }
    }

    #[inline(never)]
    pub(crate) fn send_to_controller(&mut self, packet: &mut Packet, max_len: u16, reason: PacketInReason) {
        let in_port = packet.ext.in_port();
        if self.ports.get(in_port).is_some_and(|port| port.no_packet_in) {
            return self.fail(packet, DropReason::NoPacketIn);
        }
        let Some(mut copy) = self.egress.controller_buffer(packet.frame.len(), packet.low_latency) else {
            return self.fail(packet, DropReason::PacketInFull);
        };
        if !copy.copy_from(&packet.frame) {
            self.egress.free(copy);
            return self.fail(packet, DropReason::PacketInFull);
        }
        let report = PacketIn {
            frame: copy,
            table: packet.table,
            entry: packet.entry,
            reason,
            max_len,
            metadata: packet.ext.metadata(),
            tunnel_id: packet.ext.tunnel_id(),
        };
        if let Err(Out::Report(report)) = self.outs.push(packet, Out::Report(report)) {
            self.egress.free(report.frame);
            self.fail(packet, DropReason::PacketInFull);
        }
    }

    /// Gives everything that the packet sent to the egress, in order.
    #[inline]
    pub(crate) fn release(&mut self, packet: &mut Packet) {
        if !packet.outs.is_empty() {
            self.release_copies(packet);
        }
        if let Some(port) = packet.leaves {
            let frame = packet.take_frame();
            self.transmit(packet, port, packet.queue, frame);
        }
    }

    #[inline(never)]
    fn release_copies(&mut self, packet: &mut Packet) {
        let mut at = packet.outs.first;
        while let Some((out, next)) = self.outs.take(at) {
            at = next;
            match out {
                Out::Copy { port, queue, frame } => self.transmit(packet, port, queue, frame),
                Out::Report(report) => self.report(packet, report),
                Out::Gone => {}
            }
        }
    }

    fn report(&mut self, packet: &mut Packet, mut report: PacketIn) {
        report.frame.meta.lane = lane(packet);
        match self.egress.report(Event::PacketIn(report)) {
            Ok(()) => packet.reported += 1,
            Err(Event::PacketIn(report)) => {
                self.egress.free(report.frame);
                self.fail(packet, DropReason::PacketInFull);
            }
            Err(Event::Learn(_)) => {}
        }
    }

    /// Forgets everything that the packet was to send.
    pub(crate) fn discard(&mut self, packet: &mut Packet) {
        packet.leaves = None;
        let mut at = std::mem::take(&mut packet.outs).first;
        while let Some((out, next)) = self.outs.take(at) {
            at = next;
            match out {
                Out::Copy { frame, .. } => self.egress.free(frame),
                Out::Report(report) => self.egress.free(report.frame),
                Out::Gone => {}
            }
        }
    }

    #[inline]
    fn transmit(&mut self, packet: &mut Packet, port: PortNo, queue: u32, mut frame: Frame) {
        // Of the packet's end, also for copies made before: in two lanes, they would overtake those of the packet before.
        frame.meta.lane = lane(packet);
        match self.egress.transmit(port, queue, frame) {
            Ok(()) => {
                packet.sent += 1;
                self.tally.copies += 1;
            }
            Err((frame, reason)) => {
                self.egress.free(frame);
                self.fail(packet, reason);
            }
        }
    }

    /// A copy could not be sent. Counted when the packet's outcome is known: as the packet's own drop if no copy goes
    /// anywhere.
    pub(crate) fn fail(&mut self, packet: &mut Packet, reason: DropReason) {
        if let Some(earlier) = packet.reason.replace(reason) {
            self.tally.copy_dropped(earlier);
        }
    }
}

fn lane(packet: &Packet) -> Lane {
    if packet.low_latency { Lane::LowLatency } else { Lane::Normal }
}
