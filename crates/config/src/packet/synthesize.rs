// SPDX-License-Identifier: Apache-2.0
//! Synthetic packets, built from a list of fields. `ovs-appctl ofproto/trace` accepts similar lists.

use super::PacketError;
use flow::syntax::{ParseOptions, parse_match};
use flow::{Field, FieldBase, FieldMatch, Match, PortNo, port_no};
use port::LARGE_FRAME_BYTES;
use wire::{Depth, Layers, PacketBuilder};

/// Default MAC addresses. Both are unicast, so NORMAL learns the source and floods to the destination.
const DESTINATION: u128 = 0x0200_0000_0002;
const SOURCE: u128 = 0x0200_0000_0001;
const TTL: u8 = 64;
/// Minimum length of an Ethernet frame without the FCS, in bytes.
const FRAME_BYTES_MIN: usize = 60;
/// Minimum length of the payload, in bytes.
const PAYLOAD_BYTES: usize = 18;
/// Key of the TTL, which is not a match field.
const TTL_KEY: &str = "nw_ttl=";

/// Synthetic packet and its ingress port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthesized {
    /// Ingress port, if the list of fields contains one.
    pub in_port: Option<PortNo>,
    /// Bytes of the frame.
    pub frame: Vec<u8>,
}

/// Builds a packet from fields in flow syntax and `nw_ttl`. `by_name` resolves port names.
pub fn synthesize(text: &str, by_name: &dyn Fn(&str) -> Option<PortNo>) -> Result<Synthesized, PacketError> {
    let template = Template::parse(text, by_name, Masks::Refused)?;
    let frame = template.frame(&mut || 0, 0)?;
    Ok(Synthesized { in_port: template.in_port, frame })
}

/// Whether the fields of a template may have masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// Masks are refused, because the template describes one packet.
    Refused,
    /// Masks are allowed. The bits outside a mask may differ between packets.
    Allowed,
}

/// Template of packets, with values and masks of fields. Bits outside the masks get different values in each
/// packet.
#[derive(Clone, Debug)]
pub struct Template {
    matching: Match,
    ttl: u8,
    /// Ingress port, if the list of fields contains one.
    pub in_port: Option<PortNo>,
}

impl Template {
    /// Parses fields in flow syntax and `nw_ttl`. `by_name` resolves port names.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is wrong, or if it names a field that no received packet has.
    pub fn parse(
        text: &str,
        by_name: &dyn Fn(&str) -> Option<PortNo>,
        masks: Masks,
    ) -> Result<Self, PacketError> {
        let (fields, ttl) = take_ttl(text)?;
        let matching = parse_match(&fields, ParseOptions { port_names: by_name })
            .map_err(|error| PacketError::Fields(error.to_string()))?;
        check(&matching, masks)?;
        let in_port = matching.get(Field::InPort).map(|condition| PortNo(condition.value as u32));
        if let Some(port) = in_port.filter(|port| !port_no::is_real(*port)) {
            return Err(PacketError::InPort(port));
        }
        Ok(Self { matching, ttl, in_port })
    }

    /// Returns the number of bits outside the masks.
    #[must_use]
    pub fn open_bits(&self) -> u32 {
        self.matching.fields().map(|condition| open(&condition).count_ones()).sum()
    }

    /// Builds one packet of at least `bytes` bytes. `draw` returns the values of the bits outside the masks,
    /// field by field.
    ///
    /// # Errors
    ///
    /// Returns an error if a slice is not in the packet's bytes, or makes the packet longer than any frame.
    pub fn frame(&self, draw: &mut dyn FnMut() -> u128, bytes: usize) -> Result<Vec<u8>, PacketError> {
        let drawn: Vec<(Field, u128)> = self
            .matching
            .fields()
            .map(|condition| match open(&condition) {
                0 => (condition.field, condition.value),
                open => (condition.field, condition.value | draw() & open),
            })
            .collect();
        let value = |field| drawn.iter().find(|(of, _)| *of == field).map(|(_, value)| *value);
        let mut frame = build(&value, self.ttl, 0);
        let mut more_bytes = 0;
        // The builder pads short frames, so a longer payload may not lengthen the frame.
        while frame.len() < bytes {
            more_bytes += bytes - frame.len();
            frame = build(&value, self.ttl, more_bytes);
        }
        // Slices and fields that the builder does not support are written into the built frame.
        for (field, value) in drawn.iter().copied() {
            write(&mut frame, field, value)?;
        }
        Ok(frame)
    }
}

/// Returns the bits of a field that may differ between packets. The VLAN ID has none.
fn open(condition: &FieldMatch) -> u128 {
    if condition.field == Field::VlanVid { 0 } else { condition.field.full_mask() & !condition.mask }
}

/// Removes the TTL from the list.
fn take_ttl(text: &str) -> Result<(String, u8), PacketError> {
    let items = || text.split([',', ' ', '\t']).filter(|item| !item.is_empty());
    let is_ttl = |item: &&str| item.starts_with(TTL_KEY);
    let ttl = match items().find(is_ttl) {
        None => TTL,
        Some(item) => {
            let number = &item[TTL_KEY.len()..];
            number.parse().map_err(|_| PacketError::Ttl(number.to_owned()))?
        }
    };
    let rest: Vec<&str> = items().filter(|item| !is_ttl(item)).collect();
    Ok((rest.join(","), ttl))
}

/// Checks that a received packet can have these fields, and that `masks` allows their masks.
fn check(matching: &Match, masks: Masks) -> Result<(), PacketError> {
    if matching.index().is_some() {
        return Err(PacketError::Field("index".into(), "selects an entry of a table; packets have no index"));
    }
    for condition in matching.fields() {
        let refuse = |why| Err(PacketError::Field(condition.field.to_string(), why));
        match condition.field {
            Field::Metadata | Field::TunnelId => {
                return refuse("is written by tables; it is 0 when a packet arrives");
            }
            Field::InPhyPort => return refuse("is the ingress port; give in_port"),
            Field::Ipv6Exthdr => {
                return refuse(
                    "needs headers that a list of fields cannot describe; give the packet's bytes",
                );
            }
            Field::EthType if condition.value < 0x600 => {
                return refuse("names no Ethernet II frame; give the packet's bytes");
            }
            // A condition on the PCP alone has a partial mask of the VLAN ID.
            Field::VlanVid if condition.value & 0x1000 != 0 => {}
            _ if !condition.is_exact() && masks == Masks::Refused => {
                return refuse("has a mask; a packet has one value, so give all of it");
            }
            _ => {}
        }
    }
    Ok(())
}

fn build(value: &dyn Fn(Field) -> Option<u128>, ttl: u8, more_bytes: usize) -> Vec<u8> {
    let mac = |field, default| bytes::<6>(value(field).unwrap_or(default));
    let number = |field: Field| value(field).unwrap_or(0);
    let source = mac(Field::EthSrc, SOURCE);
    let mut b = PacketBuilder::ethernet(mac(Field::EthDst, DESTINATION), source);
    let vid = number(Field::VlanVid) as u16;
    if vid & 0x1000 != 0 {
        b = b.vlan(0x8100, vid & 0xfff | (number(Field::VlanPcp) as u16) << 13);
    }
    let tos = (number(Field::IpDscp) << 2 | number(Field::IpEcn)) as u8;
    let is_ip = match number(Field::EthType) as u16 {
        0x0800 => {
            b = b.ipv4(bytes(number(Field::Ipv4Src)), bytes(number(Field::Ipv4Dst))).tos(tos).ttl(ttl);
            true
        }
        0x86dd => {
            b = b.ipv6(bytes(number(Field::Ipv6Src)), bytes(number(Field::Ipv6Dst)));
            b = b.flow_label(number(Field::Ipv6Flabel) as u32).tos(tos).ttl(ttl);
            true
        }
        0x0806 => {
            let sha = mac(Field::ArpSha, u128::from_be_bytes(widened(source)));
            let (spa, tpa) = (bytes(number(Field::ArpSpa)), bytes(number(Field::ArpTpa)));
            b = b.arp(value(Field::ArpOp).unwrap_or(1) as u16, sha, spa, mac(Field::ArpTha, 0), tpa);
            false
        }
        0x8847 => {
            b = b.mpls(number(Field::MplsLabel) as u32, number(Field::MplsTc) as u8, ttl);
            false
        }
        other => {
            b = b.ethertype(other);
            false
        }
    };
    if is_ip {
        b = transport(b, value, &source);
    }
    b.payload(&vec![0; PAYLOAD_BYTES + more_bytes]).pad_to(FRAME_BYTES_MIN).build()
}

fn transport(b: PacketBuilder, value: &dyn Fn(Field) -> Option<u128>, source: &[u8; 6]) -> PacketBuilder {
    let number = |field: Field| value(field).unwrap_or(0);
    let ports = |from, to| (number(from) as u16, number(to) as u16);
    match number(Field::IpProto) as u8 {
        6 => {
            let (from, to) = ports(Field::TcpSrc, Field::TcpDst);
            b.tcp(from, to)
        }
        17 => {
            let (from, to) = ports(Field::UdpSrc, Field::UdpDst);
            b.udp(from, to)
        }
        132 => {
            let (from, to) = ports(Field::SctpSrc, Field::SctpDst);
            b.sctp(from, to, 0)
        }
        1 => b.icmpv4(number(Field::Icmpv4Type) as u8, number(Field::Icmpv4Code) as u8, [0; 4]),
        58 => {
            let target = bytes(number(Field::NdTarget));
            match number(Field::Icmpv6Type) as u8 {
                135 => {
                    b.neighbour_solicitation(target).nd_option(1, &value(Field::NdSll).map_or(*source, bytes))
                }
                136 => b
                    .neighbour_advertisement(target)
                    .nd_option(2, &value(Field::NdTll).map_or(*source, bytes)),
                kind => b.icmpv6(kind, number(Field::Icmpv6Code) as u8, [0; 4]),
            }
        }
        proto => b.proto(proto),
    }
}

/// Writes a field that the builder does not support. A slice may extend the frame.
fn write(frame: &mut Vec<u8>, field: Field, value: u128) -> Result<(), PacketError> {
    let location = field.location();
    let layers: Layers = wire::locate(frame, Depth::L4);
    let base = match location.base {
        FieldBase::Ext if matches!(field, Field::Slice(_)) => {
            return Err(PacketError::Field(field.to_string(), "is not part of the packet's bytes"));
        }
        FieldBase::Ext => return Ok(()),
        // The packet arrives with its base at byte 0.
        FieldBase::Frame | FieldBase::Moving => 0,
        FieldBase::L3 => usize::from(layers.l3),
        FieldBase::L4 => usize::from(layers.l4),
        FieldBase::NdSll => usize::from(layers.nd_sll),
        FieldBase::NdTll => usize::from(layers.nd_tll),
    };
    let is_slice = matches!(field, Field::Slice(_));
    let by_hand =
        is_slice || matches!(field, Field::MplsTc | Field::MplsBos | Field::PbbIsid | Field::MplsLabel);
    if !by_hand {
        return Ok(());
    }
    let first = 8 * base + usize::from(location.offset_bits);
    let length = usize::from(location.length_bits);
    let end = (first + length).div_ceil(8);
    if end > LARGE_FRAME_BYTES {
        return Err(PacketError::TooLong(end));
    }
    if end > frame.len() {
        frame.resize(end, 0);
    }
    for bit in 0..length {
        let (at, shift) = ((first + bit) / 8, 7 - (first + bit) % 8);
        let one = (value >> (length - 1 - bit) & 1) as u8;
        frame[at] = frame[at] & !(1 << shift) | one << shift;
    }
    Ok(())
}

/// Returns the last `N` bytes of a value.
fn bytes<const N: usize>(value: u128) -> [u8; N] {
    let all = value.to_be_bytes();
    let mut last = [0; N];
    last.copy_from_slice(&all[all.len() - N..]);
    last
}

/// Returns a MAC address as the bytes of a 128-bit number.
fn widened(mac: [u8; 6]) -> [u8; 16] {
    let mut wide = [0; 16];
    wide[10..].copy_from_slice(&mac);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Synthesized {
        synthesize(text, &|name| (name == "p7").then_some(PortNo(7))).unwrap()
    }

    /// A packet built from a match must satisfy this match.
    #[test]
    fn a_packet_has_the_fields_that_it_was_built_from() {
        for text in [
            "in_port=p7,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1234,tp_dst=80,nw_tos=32,nw_ecn=1",
            "in_port=3,dl_src=02:00:00:00:00:09,dl_dst=ff:ff:ff:ff:ff:ff,dl_vlan=7,dl_vlan_pcp=5,arp,arp_op=2",
            "udp6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::2,udp_dst=53,ipv6_label=0x12345",
            "icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=02:00:00:00:00:01",
            "mpls,mpls_label=17,mpls_tc=5,mpls_bos=0",
            "dl_type=0x88e7,pbb_isid=0x123456",
            "dl_type=0x9999,slice(l3,12,20)=0xabcde",
            "slice(packet,800,16)=0x1234",
            "sctp,tp_dst=9",
            "icmp,icmp_type=8,icmp_code=1",
            "ip,nw_proto=47",
        ] {
            let packet = made(text);
            let port = packet.in_port.unwrap_or(PortNo(1));
            let matching = parse_match(text, ParseOptions { port_names: &|_| Some(PortNo(7)) }).unwrap();
            let seen = model::trace::value_of(port, &packet.frame);
            for c in matching.fields() {
                assert_eq!(seen(c.field).map(|value| value & c.mask), Some(c.value), "{text}: {}", c.field);
            }
        }
    }

    #[test]
    fn impossible_packets_are_refused() {
        for (text, says) in [
            ("nw_src=10.0.0.1", "needs dl_type"),
            ("ip,nw_src=10.0.0.0/8", "has a mask"),
            ("metadata=5", "is 0 when a packet arrives"),
            ("index=5", "selects an entry"),
            ("ip,nw_ttl=900", "900"),
            ("tcp,colour=red", "colour"),
            ("in_port=controller", "port"),
            ("slice(metadata,224,8)=1", "not part of the packet"),
        ] {
            let error = synthesize(text, &|_| None).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_ttl_can_be_given() {
        let packet = made("ip,nw_ttl=1");
        assert_eq!(packet.frame[14 + 8], 1);
        assert_eq!(made("ip").frame[14 + 8], TTL);
        assert_eq!(made("").frame.len(), FRAME_BYTES_MIN);
    }
}
