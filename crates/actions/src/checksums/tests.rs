// SPDX-License-Identifier: Apache-2.0
//! Actions on packets with checksum offload. Each action is applied to two copies of a packet: one has a
//! complete checksum, the other only the sum of the pseudo-header. The copies must be equal once the second
//! checksum is completed.

use super::{ByteChange, keep_right};
use crate::field_write::FieldWrite;
use crate::packet_data::PacketData;
use crate::{tags, ttl};
use flow::action::SetField;
use flow::{Field, PortNo, Slice, SliceBase};
use frame::{Frame, PartialChecksum};
use wire::layers::header;
use wire::{Depth, PacketBuilder, checksum, segment};

fn packets() -> Vec<Vec<u8>> {
    let start = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (a, b) = ([0x20; 16], [0x30; 16]);
    let mut made = Vec::new();
    for payload in [&b""[..], b"odd", b"some payload of even length."] {
        for tagged in [false, true] {
            let start = || if tagged { start().vlan(0x8100, 7) } else { start() };
            made.push(start().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(1, 2).payload(payload).build());
            made.push(start().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).payload(payload).build());
            made.push(start().ipv6(a, b).tcp(1, 2).payload(payload).build());
            made.push(start().ipv6(a, b).udp(1, 2).payload(payload).build());
        }
    }
    made
}

/// Returns the packet with only the pseudo-header's sum in its checksum field, as checksum offload leaves it.
fn left_open(bytes: &[u8]) -> Frame {
    let layers = wire::locate(bytes, Depth::L4);
    let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
    let (proto, offset) = if layers.present & header::TCP != 0 { (6, 16) } else { (17, 6) };
    let len = layers.l4_end - u32::from(layers.l4);
    let pseudo = if layers.present & header::IPV4 != 0 {
        let at = |from: usize| bytes[from..from + 4].try_into().unwrap();
        checksum::pseudo_v4(at(l3 + 12), at(l3 + 16), proto, len)
    } else {
        let at = |from: usize| bytes[from..from + 16].try_into().unwrap();
        checksum::pseudo_v6(at(l3 + 8), at(l3 + 24), proto, len)
    };
    let mut frame = Frame::from_bytes(bytes);
    frame.bytes_mut()[l4 + offset..l4 + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
    frame.meta.checksum = Some(PartialChecksum { start: layers.l4, offset: offset as u16 });
    frame
}

fn changed(frame: Frame, change: &dyn Fn(&mut PacketData)) -> Frame {
    let mut packet = PacketData::empty();
    packet.admit(frame, PortNo(1));
    change(&mut packet);
    packet.take_frame()
}

/// Ignores failures: an action that finds no header leaves the packet unchanged.
fn applied(_: Result<(), flow::DropReason>) {}

fn set(field: Field, value: u128) -> impl Fn(&mut PacketData) {
    let set = FieldWrite::compile(&SetField { field, value, mask: field.full_mask() });
    move |packet| applied(set.run(packet))
}

type Change = Box<dyn Fn(&mut PacketData)>;

#[test]
fn a_partial_checksum_is_completed_to_the_same_value_as_a_full_one() {
    let slice = |base, offset, length| Field::Slice(Slice::new(base, offset, length).unwrap());
    let changes: Vec<Change> = vec![
        Box::new(set(Field::Ipv4Src, 0x0b01_0203)),
        Box::new(set(Field::Ipv4Dst, 0xc0a8_fffe)),
        Box::new(set(Field::Ipv6Src, 0xfe80_0000_0000_0000_0000_0000_0000_00ff)),
        Box::new(set(Field::Ipv6Dst, 77)),
        Box::new(set(Field::TcpDst, 65_000)),
        Box::new(set(Field::UdpSrc, 9)),
        Box::new(set(Field::IpDscp, 46)),
        Box::new(set(Field::IpProto, 132)),
        Box::new(set(Field::EthDst, 99)),
        Box::new(set(slice(SliceBase::L3, 100, 13), 0x1555)),
        Box::new(set(slice(SliceBase::L4, 3, 9), 0x1ff)),
        Box::new(|packet| applied(ttl::dec_nw(packet))),
        Box::new(|packet| applied(tags::push_vlan(packet, 0x88a8))),
        Box::new(|packet| applied(tags::pop_vlan(packet))),
        Box::new(|packet| applied(tags::push_mpls(packet, 0x8847))),
        Box::new(|packet| applied(tags::push_pbb(packet, 0x88e7))),
        Box::new(|packet| {
            applied(tags::push_pbb(packet, 0x88e7));
            applied(tags::pop_pbb(packet));
            set(Field::Ipv4Src, 0x0102_0304)(packet);
        }),
        Box::new(|packet| {
            applied(tags::push_vlan(packet, 0x8100));
            set(Field::Ipv4Src, 0x0101_0101)(packet);
            set(Field::TcpSrc, 4_321)(packet);
        }),
    ];
    let mut differing = 0;
    for bytes in packets() {
        for (number, change) in changes.iter().enumerate() {
            let whole = changed(Frame::from_bytes(&bytes), change);
            let mut open = changed(left_open(&bytes), change);
            differing += usize::from(whole.bytes() != bytes);
            let left = open.meta.checksum.unwrap();
            assert!(segment::complete_partial(open.bytes_mut(), left.start.into(), left.offset.into()));
            assert_eq!(open.bytes(), whole.bytes(), "change {number} of {bytes:02x?}");
        }
    }
    assert!(differing > packets().len() * 6);
}

#[test]
fn a_ttl_write_changes_the_checksums_like_any_write_of_its_byte() {
    let mut rng = 0x9e37_79b9u32;
    for bytes in packets() {
        let layers = wire::locate(&bytes, Depth::L4);
        let l3 = usize::from(layers.l3);
        let is_v4 = layers.present & header::IPV4 != 0;
        let at = l3 + if is_v4 { 8 } else { 7 };
        for old in 0..=255u8 {
            for new in [0, 1, old.wrapping_sub(1), old, 64, 255] {
                let mut bytes = bytes.clone();
                bytes[at] = old;
                if is_v4 {
                    // An incorrect initial checksum is also tested. 0xfeff, 0 and 0xffff are the edge cases
                    // of RFC 1624.
                    rng = rng.wrapping_mul(0x85eb_ca6b).wrapping_add(1);
                    let sum = [(rng >> 16) as u16, 0xfeff, 0, 0xffff][usize::from(old % 4)];
                    bytes[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
                }
                let mut right = Frame::from_bytes(&bytes);
                right.bytes_mut()[at] = new;
                let change = ByteChange { at, old: &[old], written: &[0xff] };
                keep_right(&mut right, &layers, change);
                let set = changed(Frame::from_bytes(&bytes), &|packet| applied(ttl::set_nw(packet, new)));
                assert_eq!(set.bytes(), right.bytes(), "{old} to {new}");
                if old > 1 && new == old - 1 {
                    let less = changed(Frame::from_bytes(&bytes), &|packet| applied(ttl::dec_nw(packet)));
                    assert_eq!(less.bytes(), right.bytes(), "{old} to {new}");
                }
            }
        }
    }
}
