// SPDX-License-Identifier: Apache-2.0
//! Tests of set-field, and of the adjustment of checksums.

use super::frames::{self, DST, SRC, ethernet, ipv4, ipv6, udp, wrong_checksums};
use super::{after, run, set_masked};
use crate::checksums::crc32c;
use flow::{Action, DropReason, Field, Instructions, Slice, SliceBase};
use proptest::prelude::*;
use wire::{Depth, locate};

fn set(field: Field, value: u128, frame: &[u8]) -> Result<Vec<u8>, DropReason> {
    after(&[Action::set(field, value)], frame)
}

fn slice(base: SliceBase, offset_bits: u32, length_bits: u32) -> Field {
    Field::Slice(Slice::new(base, offset_bits, length_bits).unwrap())
}

#[test]
fn absent_fields_drop() {
    let arp = ethernet().arp(1, SRC, [1; 4], DST, [2; 4]).build();
    for field in Field::NAMED.iter().filter(|field| field.settable()) {
        let expected = match field {
            Field::VlanVid | Field::VlanPcp => DropReason::MissingVlan,
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => DropReason::MissingMpls,
            Field::EthDst | Field::EthSrc | Field::EthType | Field::TunnelId => continue,
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => continue,
            _ => DropReason::MissingHeader,
        };
        assert_eq!(set(*field, 0, &arp), Err(expected), "{field}");
    }
    let end = arp.len() as u32 * 8;
    assert!(set(slice(SliceBase::Packet, end - 8, 8), 1, &arp).is_ok());
    assert_eq!(set(slice(SliceBase::Packet, end - 7, 8), 1, &arp), Err(DropReason::MissingHeader));
    assert_eq!(set(slice(SliceBase::L4, 0, 8), 1, &arp), Err(DropReason::MissingHeader));
    let llc = ethernet().payload(&[0x42, 0x42, 3]).ethertype(3).build();
    assert_eq!(set(Field::EthType, 0x800, &llc), Err(DropReason::MissingHeader));
}

#[test]
fn vlan_fields_write_their_bits_only() {
    let tagged = ethernet().vlan(0x8100, 0xb123).arp(1, SRC, [1; 4], DST, [2; 4]).build();
    assert_eq!(set(Field::VlanVid, 0x1456, &tagged).unwrap()[14..16], [0xb4, 0x56]);
    assert_eq!(set(Field::VlanVid, 0x0456, &tagged).unwrap()[14..16], [0xb4, 0x56]);
    assert_eq!(set(Field::VlanPcp, 2, &tagged).unwrap()[14..16], [0x51, 0x23]);
    let masked = after(&[set_masked(Field::VlanVid, 0x1006, 0x100f)], &tagged).unwrap();
    assert_eq!(masked[14..16], [0xb1, 0x26]);
}

#[test]
fn writing_ether_type_or_protocol_changes_the_headers() {
    let off = after(&[Action::set(Field::EthType, 0x9999), Action::DecNwTtl], &udp());
    assert_eq!(off, Err(DropReason::MissingHeader));
    let back = [
        Action::set(Field::EthType, 0x9999),
        Action::set(Field::EthType, 0x800),
        Action::set(Field::UdpSrc, 9),
    ];
    assert!(wrong_checksums(&after(&back, &udp()).unwrap()).is_empty());
    // The packet is no longer UDP. Its UDP checksum was adjusted nevertheless, because it covers the
    // protocol.
    let changed = set(Field::IpProto, 0x63, &udp()).unwrap();
    assert_eq!((changed[23], &changed[34..40], &changed[42..]), (0x63, &udp()[34..40], &udp()[42..]));
    let checksum = |bytes: &[u8]| u32::from(bytes[40]) << 8 | u32::from(bytes[41]);
    assert_eq!(checksum(&changed) + 0x63 - 17, checksum(&udp()));
    assert!(wrong_checksums(&changed).is_empty());
    assert_eq!(
        after(&[Action::set(Field::IpProto, 0x63), Action::set(Field::UdpSrc, 1)], &udp()),
        Err(DropReason::MissingHeader)
    );
    let v6 = ipv6().udp(1, 2).build();
    assert_eq!(set(Field::IpProto, 0x63, &v6).unwrap()[20], 0x63);
    let moved = set(Field::IpProto, 0x63, &v6).unwrap();
    assert_ne!(moved[60..62], v6[60..62]);
    let extended = ipv6().extension(60, &[0; 6]).udp(1, 2).build();
    assert_eq!(set(Field::IpProto, 0x63, &extended), Err(DropReason::MissingHeader));
}

#[test]
fn writing_dscp_or_ecn_keeps_the_other() {
    let v4 = ipv4().tos(0xb9).udp(1, 2).build();
    assert_eq!(set(Field::IpDscp, 0x3f, &v4).unwrap()[15], 0xfd);
    assert_eq!(set(Field::IpEcn, 2, &v4).unwrap()[15], 0xba);
    let v6 = ipv6().tos(0xb9).flow_label(0xfffff).udp(1, 2).build();
    assert_eq!(set(Field::IpDscp, 0x15, &v6).unwrap()[14..18], [0x65, 0x5f, 0xff, 0xff]);
    assert_eq!(set(Field::IpEcn, 2, &v6).unwrap()[14..18], [0x6b, 0xaf, 0xff, 0xff]);
}

#[test]
fn masks_are_honoured() {
    let changed = after(&[set_masked(Field::Ipv4Dst, 0x00_ff00, 0x00_ff00)], &udp()).unwrap();
    assert_eq!(changed[30..34], [10, 0, 255, 2]);
    assert!(wrong_checksums(&changed).is_empty());
    let changed = after(&[set_masked(slice(SliceBase::L4, 12, 8), 0x50, 0xf0)], &udp()).unwrap();
    assert_eq!(changed[34..38], [0x03, 0xe5, 0x07, 0xd0]);
    assert!(wrong_checksums(&changed).is_empty());
}

#[test]
fn registers_reach_the_controller() {
    let write = |field, value| Action::set(field, value);
    let done = run(
        Instructions::apply(vec![
            write(Field::TunnelId, 0x1122_3344_5566_7788),
            write(slice(SliceBase::Metadata, 120, 16), 0xaabb),
            Action::output(flow::port_no::CONTROLLER),
        ]),
        &udp(),
    );
    let packet_in = &done.packet_ins[0];
    assert_eq!((packet_in.metadata, packet_in.tunnel_id), (0xaa, 0xbb22_3344_5566_7788));
    assert_eq!(set(slice(SliceBase::Metadata, 60, 8), 1, &udp()), Err(DropReason::UnsupportedAction));
}

#[test]
fn wrong_checksums_stay_wrong_by_the_same_difference() {
    let mut frame = udp();
    let right = u16::from_be_bytes([frame[40], frame[41]]);
    frame[40..42].copy_from_slice(&(right - 5).to_be_bytes());
    let changed = set(Field::UdpSrc, 1001, &frame).unwrap();
    assert_eq!(changed[40..42], (right - 6).to_be_bytes());
    // If the value does not change, or changes by 0 modulo 0xffff, no checksum changes. Here 0 is replaced by
    // 0xffff.
    let odd = ipv4().udp(0, 2000).build();
    assert_eq!(set(Field::UdpSrc, 0, &odd).unwrap(), odd);
    assert_eq!(set(Field::UdpSrc, 0xffff, &odd).unwrap()[40..42], odd[40..42]);
}

#[test]
fn an_adjusted_checksum_is_never_0xffff() {
    // If the covered bytes are not all zero, a complete computation never results in 0xffff. The same must
    // hold for an adjusted checksum.
    let frame = ipv4().tcp(1000, 2000).build();
    let checksum = u128::from(u16::from_be_bytes([frame[50], frame[51]]));
    let changed = set(Field::TcpSrc, (1000 + checksum) % 0xffff, &frame).unwrap();
    assert_eq!((&changed[50..52], wrong_checksums(&changed)), (&[0, 0][..], vec![]));
    // A checksum that is not adjusted stays unchanged, even if it is 0xffff.
    let mut other_zero = changed;
    other_zero[50..52].fill(0xff);
    assert_eq!(set(Field::TcpDst, 2000, &other_zero).unwrap(), other_zero);
}

#[test]
fn a_udp_checksum_of_zero_is_not_adjusted() {
    let none = ipv4().udp(1, 2).no_udp_checksum().build();
    assert_eq!(set(Field::UdpSrc, 77, &none).unwrap()[40..42], [0, 0]);
    assert_eq!(set(Field::Ipv4Src, 77, &none).unwrap()[40..42], [0, 0]);
    // A resulting checksum of 0 is sent as 0xffff.
    let frame = udp();
    let checksum = u128::from(u16::from_be_bytes([frame[40], frame[41]]));
    let changed = set(Field::UdpSrc, 1000 + checksum, &frame).unwrap();
    assert_eq!(changed[40..42], [0xff, 0xff]);
    assert!(wrong_checksums(&changed).is_empty());
}

#[test]
fn a_written_checksum_stays_as_written() {
    // Destination port and UDP checksum are written together. The checksum stays as written.
    let changed = set(slice(SliceBase::L4, 16, 48), 0x1111_0008_abcd, &udp()).unwrap();
    assert_eq!(changed[36..42], [0x11, 0x11, 0, 8, 0xab, 0xcd]);
    // The slice covers the checksum, but its mask does not. The checksum is adjusted.
    let spared =
        after(&[set_masked(slice(SliceBase::L4, 16, 48), 0x1111_0000_0000, 0xffff_0000_0000)], &udp());
    assert!(wrong_checksums(&spared.unwrap()).is_empty());
    // The IPv4 checksum is written together with the source address. Only the UDP checksum is adjusted.
    let changed = set(slice(SliceBase::L3, 80, 48), 0x1234_0b00_0001, &udp()).unwrap();
    assert_eq!((&changed[24..30], wrong_checksums(&changed)), (&[0x12, 0x34, 11, 0, 0, 1][..], vec!["IPv4"]));
}

#[test]
fn fragments() {
    // The checksum of a first fragment covers more than the frame, so it is adjusted by the difference.
    let first = ipv4().ipv4_fragment(0, true).udp(1000, 2000).payload(&[1; 16]).build();
    let old = u16::from_be_bytes([first[40], first[41]]);
    let changed = set(Field::UdpSrc, 1001, &first).unwrap();
    assert_eq!(u16::from_be_bytes([changed[40], changed[41]]), old - 1);
    let later = ipv4().ipv4_fragment(9, true).udp(1000, 2000).payload(&[1; 16]).build();
    assert_eq!(set(Field::UdpSrc, 1, &later), Err(DropReason::MissingHeader));
    assert_eq!(set(Field::Ipv4Src, 1, &later).unwrap()[34..], later[34..]);
    let sctp = ipv4().ipv4_fragment(0, true).sctp(1, 2, 3).payload(&[1; 16]).build();
    assert_eq!(set(Field::SctpSrc, 99, &sctp).unwrap()[42..46], sctp[42..46]);
}

#[test]
fn the_sctp_crc_is_recomputed_if_covered_bytes_change() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let mut frame = ipv4().sctp(1, 2, 3).payload(&[1; 15]).pad_to(70).build();
    assert!(wrong_checksums(&set(Field::SctpDst, 9, &frame).unwrap()).is_empty());
    frame[42] ^= 1;
    assert_eq!(set(Field::SctpDst, 2, &frame).unwrap(), frame);
    assert_eq!(set(Field::Ipv4Src, 2, &frame).unwrap()[42..46], frame[42..46]);
    assert!(wrong_checksums(&set(Field::SctpDst, 9, &frame).unwrap()).is_empty());
}

fn settable() -> impl Strategy<Value = Field> {
    let structural = [Field::EthType, Field::IpProto, Field::Icmpv6Type, Field::Icmpv6Code];
    let named =
        Field::NAMED.iter().copied().filter(|f| f.settable() && !structural.contains(f)).collect::<Vec<_>>();
    let base = prop_oneof![Just(SliceBase::Packet), Just(SliceBase::L3), Just(SliceBase::L4)];
    let slice = (base, 0..700u32, 1..=128u32).prop_map(|(base, offset, length)| slice(base, offset, length));
    prop_oneof![prop::sample::select(named), slice]
}

/// Returns which bytes of the frame the field's mask covers.
fn written(frame: &[u8], layers: &wire::Layers, field: Field, mask: u128) -> Vec<bool> {
    let Field::Slice(slice) = field else { return vec![false; frame.len()] };
    let base = match slice.base {
        SliceBase::L3 => layers.l3,
        SliceBase::L4 => layers.l4,
        _ => 0,
    };
    let mut bytes = vec![0; frame.len()];
    let first = usize::from(base) * 8 + usize::from(slice.offset_bits);
    crate::bits::write(&mut bytes, first, slice.length_bits.into(), mask, mask);
    bytes.iter().map(|byte| *byte != 0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 1_000_000, ..ProptestConfig::with_cases(10_000) })]

    /// Correct checksums must stay correct after every write that neither moves headers nor writes a
    /// checksum.
    #[test]
    fn checksums_stay_right(
        frame in frames::well_formed(), field in settable(), value: u128, mask: u128,
    ) {
        let (full, old) = (field.full_mask(), locate(&frame, Depth::L4));
        let mask = if mask & full == 0 { full } else { mask & full };
        prop_assume!(wrong_checksums(&frame).is_empty());
        let changed = after(&[set_masked(field, value & mask, mask)], &frame);
        prop_assume!(changed.is_ok());
        let changed = changed.unwrap();
        prop_assert_eq!(changed.len(), frame.len());
        let new = locate(&changed, Depth::L4);
        let place = |l: &wire::Layers| (l.present & !(7 << 11), l.l3, l.l4, l.l4_end, l.ip_proto, l.fragment);
        prop_assume!(place(&old) == place(&new));
        let (l3, l4) = (usize::from(old.l3), usize::from(old.l4));
        let written = written(&frame, &old, field, mask);
        // Byte ranges of the checksum fields of all protocols.
        let checksums = [l3 + 10..l3 + 12, l4 + 2..l4 + 4, l4 + 6..l4 + 12, l4 + 16..l4 + 18];
        prop_assume!(!checksums.into_iter().flatten().any(|at| written.get(at) == Some(&true)));
        prop_assert_eq!(wrong_checksums(&changed), Vec::<&str>::new());
    }

    /// A write must change only the bits of its mask and checksums.
    #[test]
    fn nothing_else_changes(frame in frames::broken(), value: u128, mask: u128, offset in 0..600u32) {
        prop_assume!(frame.len() >= 14);
        let field = slice(SliceBase::Packet, offset, 128);
        let mask = mask | 1;
        let changed = after(&[set_masked(field, value & mask, mask)], &frame);
        if offset as usize + 128 > frame.len() * 8 {
            prop_assert_eq!(changed, Err(DropReason::MissingHeader));
            return Ok(());
        }
        let changed = changed.unwrap();
        let mut expected = frame.clone();
        crate::bits::write(&mut expected, offset as usize, 128, value, mask);
        let found = locate(&frame, Depth::L4);
        let (l3, l4) = (usize::from(found.l3), usize::from(found.l4));
        let checksums = [l3 + 10..l3 + 12, l4 + 2..l4 + 4, l4 + 6..l4 + 12, l4 + 16..l4 + 18];
        for at in (0..frame.len()).filter(|at| !checksums.iter().any(|range| range.contains(at))) {
            prop_assert_eq!(changed[at], expected[at], "byte {}", at);
        }
    }
}
