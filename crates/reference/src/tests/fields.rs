// SPDX-License-Identifier: Apache-2.0
//! Tests of reading fields.

use super::frames::{self, ethernet, ipv4, ipv6, udp};
use crate::bits;
use crate::fields::get;
use crate::packet::ReferencePacket;
use flow::{Field, FieldBase, PortNo, Slice, SliceBase};
use proptest::prelude::*;
use wire::{Depth, locate};

fn value(frame: &[u8], field: Field) -> Option<u128> {
    get(&ReferencePacket::arriving(PortNo(3), frame), field)
}

fn slice(base: SliceBase, offset_bits: u32, length_bits: u32) -> Field {
    Field::Slice(Slice::new(base, offset_bits, length_bits).unwrap())
}

#[test]
fn fields_of_a_tagged_udp_packet() {
    let frame =
        ethernet().vlan(0x8100, 0xb00a).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tos(0xb9).udp(7, 8).build();
    for (field, expected) in [
        (Field::InPort, Some(3)),
        (Field::InPhyPort, Some(3)),
        (Field::Metadata, Some(0)),
        (Field::EthDst, Some(0x0200_0000_000b)),
        (Field::EthSrc, Some(0x0200_0000_000a)),
        (Field::EthType, Some(0x0800)),
        (Field::VlanVid, Some(0x100a)),
        (Field::VlanPcp, Some(5)),
        (Field::IpDscp, Some(0x2e)),
        (Field::IpEcn, Some(1)),
        (Field::IpProto, Some(17)),
        (Field::Ipv4Src, Some(0x0a00_0001)),
        (Field::Ipv4Dst, Some(0x0a00_0002)),
        (Field::UdpSrc, Some(7)),
        (Field::UdpDst, Some(8)),
        (Field::TcpSrc, None),
        (Field::Ipv6Src, None),
        (Field::Ipv6Exthdr, None),
        (Field::MplsLabel, None),
        (Field::ArpOp, None),
    ] {
        assert_eq!(value(&frame, field), expected, "{field}");
    }
}

#[test]
fn fields_without_a_tag_and_of_other_protocols() {
    assert_eq!(value(&udp(), Field::VlanVid), Some(0));
    assert_eq!(value(&udp(), Field::VlanPcp), None);
    let shims = ethernet().mpls(0xabcde, 5, 9).mpls(1, 0, 8).payload(&[0; 4]).build();
    let mpls = [Field::MplsLabel, Field::MplsTc, Field::MplsBos].map(|field| value(&shims, field));
    assert_eq!(mpls, [Some(0xabcde), Some(5), Some(0)]);
    let arp = ethernet().arp(1, [1; 6], [2; 4], [3; 6], [4; 4]).build();
    let fields = [Field::ArpOp, Field::ArpSha, Field::ArpSpa, Field::ArpTha, Field::ArpTpa];
    let expected = [1, 0x0101_0101_0101, 0x0202_0202, 0x0303_0303_0303, 0x0404_0404].map(Some);
    assert_eq!(fields.map(|field| value(&arp, field)), expected);
    let ns = ipv6()
        .tos(0xb9)
        .flow_label(0x12345)
        .neighbour_solicitation([9; 16])
        .nd_option(1, &frames::SRC)
        .build();
    let fields =
        [Field::IpDscp, Field::IpEcn, Field::Ipv6Flabel, Field::Icmpv6Type, Field::NdSll, Field::Ipv6Exthdr];
    let expected = [0x2e, 1, 0x12345, 135, 0x0200_0000_000a, 0].map(Some);
    assert_eq!(fields.map(|field| value(&ns, field)), expected);
    assert_eq!(value(&ns, Field::NdTarget), Some(0x0909_0909_0909_0909_0909_0909_0909_0909));
    assert_eq!(value(&ns, Field::NdTll), None);
    let pbb = ethernet().ethertype(0x88e7).payload(&[0xff, 1, 2, 3]).build();
    assert_eq!(value(&pbb, Field::PbbIsid), Some(0x010203));
}

#[test]
fn slices_reach_to_the_end_of_the_frame() {
    let frame = ipv4().udp(7, 8).payload(&[0xaa]).pad_to(60).build();
    assert_eq!(frame.len(), 60);
    // Padding after the datagram can be read from every base.
    assert_eq!(value(&frame, slice(SliceBase::Packet, 59 * 8, 8)), Some(0));
    assert_eq!(value(&frame, slice(SliceBase::Packet, 59 * 8 + 1, 8)), None);
    assert_eq!(value(&frame, slice(SliceBase::L3, 45 * 8, 8)), Some(0));
    assert_eq!(value(&frame, slice(SliceBase::L3, 45 * 8, 9)), None);
    assert_eq!(value(&frame, slice(SliceBase::L4, 8 * 8, 8)), Some(0xaa));
    assert_eq!(value(&frame, slice(SliceBase::L4, 25 * 8, 8)), Some(0));
    assert_eq!(value(&frame, slice(SliceBase::L4, 26 * 8, 1)), None);
    // This slice is not aligned. It consists of the last 4 bits of the source port and the first 12 bits of
    // the destination port.
    assert_eq!(value(&frame, slice(SliceBase::L4, 12, 16)), Some(0x7000));
    let gre = ipv4().proto(47).payload(&[1; 30]).build();
    assert_eq!(value(&gre, slice(SliceBase::L4, 0, 8)), None);
    let llc = ethernet().payload(&[0x42, 0x42, 3]).ethertype(3).build();
    assert_eq!(value(&llc, Field::EthType), Some(0x05ff));
    assert_eq!(value(&llc, slice(SliceBase::L3, 0, 24)), Some(0x424203));
    assert_eq!(value(&llc, slice(SliceBase::L3, 0, 25)), None);
}

#[test]
fn metadata_slices_read_the_extended_header() {
    let frame = ethernet()
        .vlan(0x8100, 0xf00a)
        .ipv6([1; 16], [2; 16])
        .tos(0x12)
        .extension(60, &[0; 6])
        .tcp(1, 2)
        .build();
    assert_eq!(value(&frame, slice(SliceBase::Metadata, 0, 64)), Some(0x0000_0003_0000_0003));
    assert_eq!(value(&frame, slice(SliceBase::Metadata, 192, 64)), Some(0x86dd_f00a_1206_0008));
    assert_eq!(value(&udp(), slice(SliceBase::Metadata, 192, 64)), Some(0x0800_0000_0011_0000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// Every named field must have the same value if it is read at the location that `flow` states.
    #[test]
    fn values_equal_those_at_the_locations_of_the_field_table(frame in frames::broken()) {
        prop_assume!(frame.len() >= 14);
        let packet = ReferencePacket::arriving(PortNo(3), &frame);
        let layers = locate(&frame, Depth::L4);
        let mut ext = flow::Ext::arriving(PortNo(3));
        ext.set_layers(&layers);
        for field in Field::NAMED {
            let at = field.location();
            let (bytes, base) = match at.base {
                FieldBase::Ext => (ext.bytes(), 0),
                FieldBase::Frame | FieldBase::Moving => (&frame[..], 0),
                FieldBase::L3 => (&frame[..], layers.l3),
                FieldBase::L4 => (&frame[..], layers.l4),
                FieldBase::NdSll => (&frame[..], layers.nd_sll),
                FieldBase::NdTll => (&frame[..], layers.nd_tll),
            };
            let expected = (layers.present & at.needs == at.needs).then(|| {
                bits::read(bytes, usize::from(base) * 8 + usize::from(at.offset_bits), at.length_bits.into()).unwrap()
            });
            prop_assert_eq!(get(&packet, *field), expected, "{}", field);
        }
        prop_assert_eq!(&packet.extended_header()[..], &ext.bytes()[..32]);
    }
}
