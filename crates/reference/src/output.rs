// SPDX-License-Identifier: Apache-2.0
//! Outputs to one port, to several ports, to the controller, and by a learning bridge (NORMAL).

use crate::packet::ReferencePacket;
use crate::run::Run;
use crate::{ControllerCopy, LearnedMac, Sent, bits};
use flow::{DropReason, FlowEntry, PacketInReason, PortNo, PortState, port_no};

impl Run<'_> {
    /// Makes the copies for an output action, or records the drop reason if no copy is made.
    pub(crate) fn output(&mut self, port: PortNo, max_len: u16, entry: &FlowEntry) {
        let copies = match port {
            port_no::IN_PORT => self.send(self.packet.in_port),
            port_no::ALL => self.flood(|_| true),
            port_no::FLOOD => self.flood(|port| !port.no_flood),
            port_no::NORMAL => self.normal(),
            port_no::CONTROLLER => {
                let is_table_miss = entry.priority == 0 && entry.matching.is_any();
                let reason = if is_table_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.packet_in(max_len, reason, entry)
            }
            // LOCAL, TABLE and ANY are not valid output ports here.
            port => self.send_elsewhere(port),
        };
        if let Err(reason) = copies {
            self.reasons.push(reason);
        }
    }

    /// Sends to a port that must differ from the ingress port.
    fn send_elsewhere(&mut self, port: PortNo) -> Result<(), DropReason> {
        if port == self.packet.in_port { Err(DropReason::IngressPort) } else { self.send(port) }
    }

    fn send(&mut self, port: PortNo) -> Result<(), DropReason> {
        let state = self.rules.port(port).ok_or(DropReason::NoSuchPort)?;
        if !state.up {
            return Err(DropReason::PortDown);
        }
        if state.no_fwd {
            return Err(DropReason::PortNotForwarding);
        }
        self.take_room()?;
        let ReferencePacket { bytes, queue, unfinished, .. } = self.packet.clone();
        self.sent.push(Sent { port, bytes, queue, unfinished });
        Ok(())
    }

    /// Sends to all other ports that can transmit and satisfy `wanted`, in ascending order.
    fn flood(&mut self, wanted: impl Fn(&PortState) -> bool) -> Result<(), DropReason> {
        let in_port = self.packet.in_port;
        let ports = self.rules.ports();
        let others = ports.iter().filter(|p| p.number != in_port && p.up && !p.no_fwd && wanted(p));
        let numbers: Vec<PortNo> = others.map(|port| port.number).collect();
        if numbers.is_empty() {
            return Err(DropReason::NoFloodPort);
        }
        numbers.into_iter().try_for_each(|number| self.send(number))
    }

    pub(crate) fn packet_in(
        &mut self,
        max_len: u16,
        reason: PacketInReason,
        entry: &FlowEntry,
    ) -> Result<(), DropReason> {
        if self.rules.port(self.packet.in_port).is_some_and(|port| port.no_packet_in) {
            return Err(DropReason::NoPacketIn);
        }
        self.take_room()?;
        let packet = &self.packet;
        self.packet_ins.push(ControllerCopy {
            table: entry.table,
            entry: entry.id,
            reason,
            max_len,
            in_port: packet.in_port,
            metadata: packet.metadata,
            tunnel_id: packet.tunnel_id,
            bytes: packet.bytes.clone(),
        });
        Ok(())
    }

    /// Forwards as a learning bridge: to the port of a learned address, else to all ports.
    fn normal(&mut self) -> Result<(), DropReason> {
        let mac = |first| bits::read(&self.packet.bytes, first, 48).map_or(0, |mac| mac as u64);
        let (destination, source) = (mac(0), mac(48));
        let vid = self.packet.headers.vlan_tci.unwrap_or(0) & 0xfff;
        let in_port = self.packet.in_port;
        if destination & !0xf == 0x0180_c200_0000 {
            return Err(DropReason::ReservedMulticast);
        }
        if port_no::is_real(in_port) && source != 0 && !is_group(source) {
            match self.rules.learned(vid, source) {
                Some((entry, port)) if port == in_port => self.refreshed.push(entry),
                _ => self.learn.push(LearnedMac { vid, mac: source, port: in_port }),
            }
        }
        match self.rules.learned(vid, destination) {
            Some((_, port)) if !is_group(destination) => self.send_elsewhere(port),
            _ => self.flood(|port| !port.no_flood),
        }
    }
}

/// Returns whether an address is a multicast or broadcast address.
fn is_group(mac: u64) -> bool {
    mac >> 40 & 1 == 1
}
