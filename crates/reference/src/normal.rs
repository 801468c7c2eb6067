// SPDX-License-Identifier: Apache-2.0
//! The reserved port NORMAL: a learning bridge with VLANs.

use crate::headers::{pop_vlan, push_vlan};
use crate::run::Run;
use crate::{Flood, LearnedMac, bits};
use flow::bridge::{FloodKind, PortVlans, VID_MAX};
use flow::{DropReason, PortNo, port_no};

/// TPID of the tags that NORMAL adds.
const TPID: u16 = 0x8100;

/// Tag of a frame on a port.
enum Tagging {
    /// The frame has no tag.
    Untagged,
    /// The frame has a tag with the ID of its VLAN.
    Tagged,
    /// The frame stays as it is.
    AsItIs,
}

impl Run<'_> {
    /// Returns whether a port has as many learned addresses as its limit allows.
    fn is_full(&self, port: PortNo) -> bool {
        let settings = self.rules.bridge().and_then(|bridge| bridge.ports.get(&port));
        let limit = settings.and_then(|settings| settings.mac_limit);
        limit.is_some_and(|limit| self.rules.learned_at(port) >= limit as usize)
    }

    /// Forwards as a learning bridge: to the port of a learned address, else to all ports of the VLAN.
    pub(crate) fn normal(&mut self) -> Result<(), DropReason> {
        let mac = |first| bits::read(&self.packet.bytes, first, 48).map_or(0, |mac| mac as u64);
        let (destination, source) = (mac(0), mac(48));
        let in_port = self.packet.in_port;
        if destination & !0xf == 0x0180_c200_0000 {
            return Err(DropReason::ReservedMulticast);
        }
        let vid = self.vlan()?;
        if port_no::is_real(in_port) && source != 0 && !is_group(source) {
            match self.rules.learned(vid, source) {
                Some((entry, port)) if port == in_port => self.refreshed.push(entry),
                _ if self.is_full(in_port) => {}
                _ => self.learn.push(LearnedMac { vid, mac: source, port: in_port }),
            }
        }
        match self.rules.learned(vid, destination) {
            Some((_, port)) if !is_group(destination) => {
                if port == in_port {
                    return Err(DropReason::IngressPort);
                }
                if !self.vlans(port).carries(vid) {
                    return Err(DropReason::WrongVlan);
                }
                self.send_tagged(port, vid)
            }
            _ => {
                let kind = match destination {
                    0xffff_ffff_ffff => FloodKind::Broadcast,
                    _ if is_group(destination) => FloodKind::Multicast,
                    _ => FloodKind::UnknownUnicast,
                };
                if self.exceeds_storm_limit(kind) {
                    return Err(kind.reason());
                }
                let ports =
                    self.flood_ports(|port| !port.no_flood && self.vlans(port.number).carries(vid))?;
                for port in ports {
                    if let Err(reason) = self.send_tagged(port, vid) {
                        self.reasons.push(reason);
                    }
                }
                Ok(())
            }
        }
    }

    /// Notes a flood, if the ingress port has a storm limit for this kind of packet. Returns whether the
    /// flood exceeds the limit.
    fn exceeds_storm_limit(&mut self, kind: FloodKind) -> bool {
        let port = self.packet.in_port;
        let has_limit = self.rules.bridge().is_some_and(|bridge| bridge.port(port).storm.of(kind).is_some());
        if !has_limit {
            return false;
        }
        let exceeds = self.exceeded_floods.get(self.floods.len()).copied().unwrap_or_default();
        self.floods.push(Flood { port, kind, table: self.applying });
        exceeds
    }

    fn vlans(&self, port: PortNo) -> PortVlans {
        self.rules.bridge().map(|bridge| bridge.port(port).vlans).unwrap_or_default()
    }

    /// Returns the VLAN of the packet, or an error if the ingress port does not admit the packet.
    fn vlan(&self) -> Result<u16, DropReason> {
        let vlans = self.vlans(self.packet.in_port);
        match (self.packet.headers.vlan_tci.unwrap_or(0) & VID_MAX, &vlans) {
            (0, PortVlans::Access(vid)) => Ok(*vid),
            (_, PortVlans::Access(_)) => Err(DropReason::WrongVlan),
            (0, PortVlans::NativeTagged { native, .. } | PortVlans::NativeUntagged { native, .. }) => {
                Ok(*native)
            }
            (vid, _) if vlans.carries(vid) => Ok(vid),
            _ => Err(DropReason::WrongVlan),
        }
    }

    /// Sends the packet, which belongs to a VLAN, with the tag that it has on this port.
    fn send_tagged(&mut self, port: PortNo, vid: u16) -> Result<(), DropReason> {
        self.check_open(port)?;
        let before = self.packet.clone();
        let sent = self.retag(port, vid).and_then(|()| self.send(port));
        self.retagged += usize::from(sent.is_ok() && self.packet.bytes != before.bytes);
        self.packet = before;
        sent
    }

    fn retag(&mut self, port: PortNo, vid: u16) -> Result<(), DropReason> {
        let tagging = match self.vlans(port) {
            PortVlans::Access(_) => Tagging::Untagged,
            PortVlans::NativeUntagged { native, .. } if native == vid => Tagging::Untagged,
            _ if vid == 0 => Tagging::AsItIs,
            _ => Tagging::Tagged,
        };
        let packet = &mut self.packet;
        match tagging {
            Tagging::Untagged if packet.headers.vlan_tci.is_some() => pop_vlan(packet),
            Tagging::Untagged | Tagging::AsItIs => Ok(()),
            Tagging::Tagged => {
                if packet.headers.vlan_tci.is_none() {
                    push_vlan(packet, TPID)?;
                }
                // The VLAN ID is in the last 12 bits of the tag, which begins at byte 12.
                bits::write(&mut packet.bytes, 8 * 14 + 4, 12, vid.into(), VID_MAX.into());
                Ok(())
            }
        }
    }
}

/// Returns whether an address is a multicast or broadcast address.
fn is_group(mac: u64) -> bool {
    mac >> 40 & 1 == 1
}
