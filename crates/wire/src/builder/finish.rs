// SPDX-License-Identifier: Apache-2.0
//! Completion of a frame. Lengths and checksums are filled in, from the innermost header outwards.

use super::{Kind, Layer, PacketBuilder};
use crate::{checksum, ipv4, ipv6, tcp, udp};
use crate::{icmpv6, view::Field};

impl PacketBuilder {
    /// Returns the completed frame.
    pub fn build(mut self) -> Vec<u8> {
        let layers = std::mem::take(&mut self.layers);
        for (index, layer) in layers.iter().enumerate().rev() {
            let ip = layers[..index].iter().rfind(|below| matches!(below.kind, Kind::Ipv4 | Kind::Ipv6));
            self.finish(*layer, ip.copied());
        }
        let len = self.bytes.len().max(self.len_min);
        self.bytes.resize(len, 0);
        self.bytes
    }

    /// Completes `layer`. `ip` is the IP header that carries it, if there is one.
    fn finish(&mut self, layer: Layer, ip: Option<Layer>) {
        let at = layer.at;
        let len = self.bytes.len() - at;
        match layer.kind {
            Kind::Length => self.put(at, (len - 2) as u16),
            Kind::Mpls => {}
            Kind::Ipv4 => {
                self.put(at + 2, len as u16);
                if let Ok(mut ip) = ipv4::Packet::new_checked(&mut self.bytes[at..]) {
                    ip.fill_checksum();
                }
            }
            Kind::Ipv6 => self.put(at + 4, (len - 40) as u16),
            Kind::Tcp => self.put(at + 16, checksum::l4(self.pseudo(ip, tcp::PROTO, at), &self.bytes[at..])),
            Kind::Udp => {
                self.put(at + 4, len as u16);
                self.put(at + 6, checksum::udp(self.pseudo(ip, udp::PROTO, at), &self.bytes[at..]));
            }
            Kind::UdpUnsummed => self.put(at + 4, len as u16),
            Kind::Sctp => checksum::fill_sctp(&mut self.bytes[at..]),
            Kind::Icmpv4 => self.put(at + 2, checksum::l4(0, &self.bytes[at..])),
            Kind::Icmpv6 => {
                self.put(at + 2, checksum::l4(self.pseudo(ip, icmpv6::PROTO, at), &self.bytes[at..]));
            }
        }
    }

    /// Returns the sum of the pseudo-header for the payload of `ip` at `l4`, or 0 if there is no IP header.
    fn pseudo(&self, ip: Option<Layer>, proto: u8, l4: usize) -> u16 {
        let len = (self.bytes.len() - l4) as u32;
        match ip {
            Some(Layer { kind: Kind::Ipv4, at }) => checksum::pseudo_v4(
                Field::load(&self.bytes[at + 12..]),
                Field::load(&self.bytes[at + 16..]),
                proto,
                len,
            ),
            Some(Layer { at, .. }) => {
                let src = Field::load(&self.bytes[at + 8..]);
                checksum::pseudo_v6(src, self.final_dst(at, l4), proto, len)
            }
            None => 0,
        }
    }

    /// Returns the final destination of the IPv6 packet at `ip`. The packet's payload length has not been
    /// written yet.
    fn final_dst(&self, ip: usize, l4: usize) -> [u8; 16] {
        let mut headers = self.bytes[ip..l4].to_vec();
        ((l4 - ip - 40) as u16).store(&mut headers[4..]);
        match ipv6::Packet::new_checked(headers) {
            Ok(packet) => packet.final_dst(),
            Err(_) => Field::load(&self.bytes[ip + 24..]),
        }
    }
}
