// SPDX-License-Identifier: Apache-2.0
//! Outputs to one port, to several ports and to the controller. NORMAL is in another file.

use crate::packet::ReferencePacket;
use crate::run::Run;
use crate::{ControllerCopy, Sent};
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

    pub(crate) fn send(&mut self, port: PortNo) -> Result<(), DropReason> {
        self.check_open(port)?;
        self.take_room()?;
        let ReferencePacket { bytes, queue, unfinished, .. } = self.packet.clone();
        self.sent.push(Sent { port, bytes, queue, unfinished });
        Ok(())
    }

    /// Returns an error if a port cannot send.
    pub(crate) fn check_open(&self, port: PortNo) -> Result<(), DropReason> {
        let state = self.rules.port(port).ok_or(DropReason::NoSuchPort)?;
        if !state.up {
            return Err(DropReason::PortDown);
        }
        if state.no_fwd {
            return Err(DropReason::PortNotForwarding);
        }
        Ok(())
    }

    /// Sends to all other ports that can transmit and satisfy `wanted`, in ascending order.
    fn flood(&mut self, wanted: impl Fn(&PortState) -> bool) -> Result<(), DropReason> {
        self.flood_ports(wanted)?.into_iter().try_for_each(|number| self.send(number))
    }

    /// Returns all other ports that can transmit and satisfy `wanted`, in ascending order.
    pub(crate) fn flood_ports(&self, wanted: impl Fn(&PortState) -> bool) -> Result<Vec<PortNo>, DropReason> {
        let in_port = self.packet.in_port;
        let ports = self.rules.ports();
        let others = ports.iter().filter(|p| p.number != in_port && p.up && !p.no_fwd && wanted(p));
        let numbers: Vec<PortNo> = others.map(|port| port.number).collect();
        if numbers.is_empty() { Err(DropReason::NoFloodPort) } else { Ok(numbers) }
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
}
