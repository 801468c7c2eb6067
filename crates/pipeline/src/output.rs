// SPDX-License-Identifier: Apache-2.0
//! Outputs to one port, to several ports and to the controller.
//!
//! If an output is the last use of a packet, the frame itself leaves. All other outputs are copies. Outputs
//! stay pending until the whole burst is finished ([`actions::PendingOutputs`]).

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::normal;
use crate::packet::{Packet, Take};
use actions::{PendingOutput, Retag};
use dataplane::PacketInEvent;
use flow::{DropReason, PacketInReason, PortNo, PortState, port_no};
use frame::Frame;

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

    /// Sends the packet to one real port, and changes its VLAN tag.
    pub(crate) fn send_retagged_to_port(
        &mut self,
        packet: &mut Packet,
        port: PortNo,
        retag: Retag,
        take: Take,
    ) {
        if self.ports.is_open(port) {
            self.send_retagged(packet, port, retag, take);
        } else {
            self.fail_port(packet, port);
        }
    }

    /// Sends the packet to every port that floods include, is not the ingress port, and for which `retag`
    /// returns a change of the VLAN tag. The ports of other VLANs get no copy.
    pub(crate) fn flood_vlan(
        &mut self,
        packet: &mut Packet,
        retag: impl Fn(PortNo) -> Option<Retag>,
        take: Take,
    ) {
        let in_port = packet.data.ext.in_port();
        let ports = self.ports;
        let mut waiting: Option<(PortNo, Retag)> = None;
        for port in ports.all().iter().filter(|p| p.up && !p.no_fwd && !p.no_flood && p.number != in_port) {
            let Some(change) = retag(port.number) else { continue };
            if let Some((earlier, change)) = waiting.replace((port.number, change)) {
                self.send_retagged(packet, earlier, change, Take::Copy);
            }
        }
        match waiting {
            Some((port, change)) => self.send_retagged(packet, port, change, take),
            None => self.fail(packet, DropReason::NoFloodPort),
        }
    }

    /// Adds an output with a changed VLAN tag to a port whose state has been checked.
    fn send_retagged(&mut self, packet: &mut Packet, port: PortNo, retag: Retag, take: Take) {
        match take {
            _ if retag == Retag::Keep => self.send(packet, port, take),
            // Nothing reads the packet after its last use, except for the bytes of its frame.
            Take::Frame => match retag.apply(&mut packet.data.frame) {
                Ok(()) => {
                    packet.data.forget_layers();
                    packet.leaves = Some(port);
                }
                Err(reason) => self.fail(packet, reason),
            },
            Take::Copy => self.send_retagged_copy(packet, port, retag),
        }
    }

    #[inline(never)]
    fn send_retagged_copy(&mut self, packet: &mut Packet, port: PortNo, retag: Retag) {
        let Some(mut frame) = self.egress.buffer(packet.data.frame.room_len()) else {
            return self.fail(packet, DropReason::NoBuffer);
        };
        // The copy must be able to grow as far as the packet itself.
        let copied = frame.copy_with_room(&packet.data.frame);
        let made = if copied { retag.apply(&mut frame) } else { Err(DropReason::NoBuffer) };
        match made {
            Ok(()) => self.push_copy(packet, port, frame),
            Err(reason) => {
                self.egress.free(frame);
                self.fail(packet, reason);
            }
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
        self.push_copy(packet, port, frame);
    }

    #[inline]
    fn push_copy(&mut self, packet: &mut Packet, port: PortNo, frame: Frame) {
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
