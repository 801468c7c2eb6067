// SPDX-License-Identifier: Apache-2.0
//! Outputs to one port, to several ports and to the controller.
//!
//! If an output is the last use of a packet, the frame itself leaves. All other outputs are copies. Outputs
//! stay pending until the whole burst is finished ([`actions::PendingOutputs`]).

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::normal;
use crate::packet::{Packet, Take};
use actions::PendingOutput;
use dataplane::PacketInEvent;
use flow::{DropReason, PacketInReason, PortNo, PortState, port_no};

impl<E: Egress> BurstContext<'_, E> {
    /// Sends the packet to a real or reserved port.
    #[inline(always)]
    pub(crate) fn output(&mut self, packet: &mut Packet, port: PortNo, max_len: u16, take: Take) {
        if !port_no::is_real(port) {
            self.output_reserved(packet, port, max_len, take);
        } else {
            self.output_to(packet, port, take);
        }
    }

    /// Sends the packet to a real port.
    #[inline(always)]
    pub(crate) fn output_to(&mut self, packet: &mut Packet, port: PortNo, take: Take) {
        if port == packet.data.ext.in_port() {
            // OpenFlow sends a packet back to its ingress port only if the output names the reserved port
            // IN_PORT.
            self.fail(packet, DropReason::IngressPort);
        } else {
            self.send_to_port(packet, port, take);
        }
    }

    #[inline(never)]
    fn output_reserved(&mut self, packet: &mut Packet, port: PortNo, max_len: u16, take: Take) {
        match port {
            port_no::IN_PORT => self.send_to_port(packet, packet.data.ext.in_port(), take),
            port_no::ALL => self.send_to_many(packet, |_| true, take),
            port_no::FLOOD => self.send_to_many(packet, |port| !port.no_flood, take),
            port_no::NORMAL => normal::forward(self, packet, take),
            port_no::CONTROLLER => {
                let reason = if packet.miss_entry { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.send_to_controller(packet, max_len, reason);
            }
            _ => self.fail(packet, DropReason::NoSuchPort),
        }
    }

    /// Sends the packet to one real port.
    #[inline(always)]
    pub(crate) fn send_to_port(&mut self, packet: &mut Packet, port: PortNo, take: Take) {
        if self.ports.is_open(port) { self.send(packet, port, take) } else { self.fail_port(packet, port) }
    }

    /// Notes the reason why a port cannot send the packet.
    #[cold]
    #[inline(never)]
    fn fail_port(&mut self, packet: &mut Packet, port: PortNo) {
        self.fail(
            packet,
            match self.ports.get(port) {
                None => DropReason::NoSuchPort,
                Some(port) if !port.up => DropReason::PortDown,
                Some(_) => DropReason::PortNotForwarding,
            },
        );
    }

    /// Sends the packet to every port that is up, forwards, is accepted by `wanted` and is not the ingress
    /// port.
    pub(crate) fn send_to_many(
        &mut self,
        packet: &mut Packet,
        wanted: impl Fn(&PortState) -> bool,
        take: Take,
    ) {
        let in_port = packet.data.ext.in_port();
        let ports = self.ports;
        let mut waiting: Option<PortNo> = None;
        for port in ports.all().iter().filter(|p| p.up && !p.no_fwd && p.number != in_port && wanted(p)) {
            if let Some(earlier) = waiting.replace(port.number) {
                self.send(packet, earlier, Take::Copy);
            }
        }
        match waiting {
            Some(port) => self.send(packet, port, take),
            None => self.fail(packet, DropReason::NoFloodPort),
        }
    }

    /// Adds an output to a port whose state has been checked.
    #[inline]
    fn send(&mut self, packet: &mut Packet, port: PortNo, take: Take) {
        match take {
            Take::Frame => packet.leaves = Some(port),
            Take::Copy => self.send_copy(packet, port),
        }
    }

    #[inline(never)]
    fn send_copy(&mut self, packet: &mut Packet, port: PortNo) {
        let Some(mut frame) = self.egress.buffer(packet.data.frame.len()) else {
            return self.fail(packet, DropReason::NoBuffer);
        };
        if !frame.copy_from(&packet.data.frame) {
            self.egress.free(frame);
            return self.fail(packet, DropReason::NoBuffer);
        }
        let (lane, copy) = (packet.lane(), PendingOutput::Copy { port, queue: packet.data.queue, frame });
        if let Err(PendingOutput::Copy { frame, .. }) = self.outputs.push(&mut packet.outputs, lane, copy) {
            self.egress.free(frame);
            self.fail(packet, DropReason::TransmitFull);
        }
    }

    #[inline(never)]
    pub(crate) fn send_to_controller(&mut self, packet: &mut Packet, max_len: u16, reason: PacketInReason) {
        let in_port = packet.data.ext.in_port();
        if self.ports.get(in_port).is_some_and(|port| port.no_packet_in) {
            return self.fail(packet, DropReason::NoPacketIn);
        }
        let Some(mut copy) = self.egress.controller_buffer(packet.data.frame.len(), packet.lane()) else {
            return self.fail(packet, DropReason::PacketInFull);
        };
        if !copy.copy_from(&packet.data.frame) {
            self.egress.free(copy);
            return self.fail(packet, DropReason::PacketInFull);
        }
        let report = PacketInEvent {
            frame: copy,
            table: packet.table,
            entry: packet.entry,
            reason,
            max_len,
            metadata: packet.data.ext.metadata(),
            tunnel_id: packet.data.ext.tunnel_id(),
            question: None,
        };
        let (lane, report) = (packet.lane(), PendingOutput::Report(report));
        if let Err(PendingOutput::Report(report)) = self.outputs.push(&mut packet.outputs, lane, report) {
            self.egress.free(report.frame);
            self.fail(packet, DropReason::PacketInFull);
        }
    }
}
