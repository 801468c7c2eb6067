// SPDX-License-Identifier: Apache-2.0
//! Edits of packets, byte by byte. The oracle compares them with the reference.

use super::*;
use flow::{PortNo, SliceBase};
use frame::{Frame, PartialChecksum};
use wire::checksum;

fn packet(bytes: &[u8]) -> PacketData {
    let mut packet = PacketData::empty();
    packet.admit(Frame::from_bytes(bytes), PortNo(7));
    packet
}

fn numbered(len: u8) -> PacketData {
    packet(&(0..len).collect::<Vec<u8>>())
}

fn range(offset_bits: u16, length_bits: u16) -> BitRange {
    BitRange { offset_bits, length_bits }
}

fn slice(base: SliceBase, offset_bits: u16, length_bits: u16) -> Slice {
    Slice { base, offset_bits, length_bits }
}

#[test]
fn the_base_stays_in_the_frame_and_starts_anew_with_each_packet() {
    let mut made = numbered(64);
    for (bytes, result, base) in [
        (14, Ok(()), 14),
        (-4, Ok(()), 10),
        (-11, Err(DropReason::MissingHeader), 10),
        (55, Err(DropReason::MissingHeader), 10),
        (54, Ok(()), 64),
        (-64, Ok(()), 0),
        (3, Ok(()), 3),
    ] {
        assert_eq!((run(&Edit::MoveBase(bytes), &mut made), made.base), (result, base), "{bytes}");
    }
    made.admit(Frame::from_bytes(&[0; 60]), PortNo(1));
    assert_eq!(made.base, 0);
}

#[test]
fn bytes_are_inserted_and_deleted_behind_the_base() {
    let mut made = numbered(64);
    made.base = 14;
    run(&Edit::AddField { range: range(16, 24), value: 0xaabbcc }, &mut made).unwrap();
    assert_eq!(made.frame.bytes()[14..21], [14, 15, 0xaa, 0xbb, 0xcc, 16, 17]);
    assert_eq!((made.frame.len(), made.base), (67, 14));
    run(&Edit::DeleteField(range(8, 32)), &mut made).unwrap();
    assert_eq!(made.frame.bytes()[12..17], [12, 13, 14, 16, 17]);
    assert_eq!(made.frame.len(), 63);
    run(&Edit::DeleteField(range(0, 8 * 40)), &mut made).unwrap();
    assert_eq!(
        (made.frame.len(), &made.frame.bytes()[14..25]),
        (60, &[55, 56, 57, 58, 59, 60, 61, 62, 63, 0, 0][..])
    );
}

#[test]
fn a_cut_removes_the_front_and_moves_the_base_to_the_first_byte() {
    use CutOrigin::{Base, Packet};
    for (base, origin, bytes, first) in
        [(14, Packet, 4, 4), (14, Base, 4, 18), (14, Base, 0, 14), (14, Packet, 0, 0), (0, Base, 0, 0)]
    {
        let mut made = numbered(100);
        made.base = base;
        run(&Edit::CutFront { origin, bytes }, &mut made).unwrap();
        let expected: Vec<u8> = (first..100).collect();
        assert_eq!((made.frame.bytes(), made.base), (&expected[..], 0), "{base} {origin:?} {bytes}");
    }
    // Short frames are padded, but only if bytes were removed.
    for (bytes, len) in [(0, 50), (1, 60), (50, 60)] {
        let mut made = numbered(50);
        run(&Edit::CutFront { origin: Packet, bytes }, &mut made).unwrap();
        let mut expected: Vec<u8> = (bytes as u8..50).collect();
        expected.resize(len, 0);
        assert_eq!(made.frame.bytes(), expected);
    }
    for (base, origin, bytes) in [(0, Packet, 51), (20, Packet, 51), (20, Base, 31)] {
        let mut made = numbered(50);
        made.base = base;
        let cut = Edit::CutFront { origin, bytes };
        assert_eq!((run(&cut, &mut made), made.frame.len()), (Err(DropReason::MissingHeader), 50));
    }
}

#[test]
fn ranges_behind_the_end_of_the_packet_change_nothing() {
    for edit in [
        Edit::AddField { range: range(8 * 61, 8), value: 1 },
        Edit::DeleteField(range(8 * 60, 8)),
        Edit::CalculateChecksum { checksum: range(8 * 59, 16), covered: range(0, 8) },
        Edit::CalculateChecksum { checksum: range(0, 16), covered: range(8 * 59, 16) },
        Edit::ModifyField { slice: slice(SliceBase::Moving, 8 * 60 - 7, 8), increment: 1 },
        Edit::CopyField { from: slice(SliceBase::Moving, 480, 8), to: slice(SliceBase::Packet, 0, 8) },
        Edit::CopyField { from: slice(SliceBase::L4, 0, 8), to: slice(SliceBase::Packet, 0, 8) },
    ] {
        let mut made = numbered(60);
        assert_eq!(run(&edit, &mut made), Err(DropReason::MissingHeader), "{edit:?}");
        assert_eq!(made.frame.bytes(), (0..60).collect::<Vec<u8>>());
    }
    let mut made = numbered(60);
    assert_eq!(run(&Edit::AddField { range: range(480, 8), value: 9 }, &mut made), Ok(()));
    assert_eq!(made.frame.bytes()[59..], [59, 9]);
}

#[test]
fn a_packet_grows_by_its_headroom_only() {
    let mut made = numbered(60);
    let add = Edit::AddField { range: range(96, 128), value: 0 };
    let grown = (0..20).take_while(|_| run(&add, &mut made).is_ok()).count();
    assert_eq!((grown, run(&add, &mut made)), (frame::HEADROOM_BYTES / 16, Err(DropReason::NoHeadroom)));
}

#[test]
fn fields_are_added_to_and_copied() {
    let mut made = numbered(60);
    made.base = 20;
    let modify = |slice, increment| Edit::ModifyField { slice, increment };
    run(&modify(slice(SliceBase::Moving, 4, 12), -300), &mut made).unwrap();
    // 0x415 - 300 in 12 bits.
    assert_eq!(made.frame.bytes()[20..22], [0x12, 0xe9]);
    run(&modify(slice(SliceBase::Moving, 16, 8), -23), &mut made).unwrap();
    assert_eq!(made.frame.bytes()[22], 0xff);
    run(&modify(slice(SliceBase::Metadata, 64, 32), -1), &mut made).unwrap();
    assert_eq!(made.ext.metadata(), 0xffff_ffff_0000_0000);
    let (from, to) = (slice(SliceBase::Metadata, 60, 128), slice(SliceBase::Packet, 243, 128));
    run(&Edit::CopyField { from, to }, &mut made).unwrap();
    // The low four bits of the physical ingress port, then the registers.
    let copied = read_bits(&made.frame.bytes()[30..], 3, 128);
    assert_eq!(copied, 7 << 124 | 0xffff_ffff << 92);
    let back = Edit::CopyField { from: to, to: slice(SliceBase::Metadata, 64, 128) };
    run(&back, &mut made).unwrap();
    assert_eq!(made.ext.metadata(), 0x7fff_ffff_f000_0000);
}

#[test]
fn a_checksum_counts_its_own_field_as_zero() {
    let bytes =
        wire::PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).build();
    let mut made = packet(&bytes);
    made.frame.bytes_mut()[24..26].copy_from_slice(&[0x12, 0x34]);
    made.base = 14;
    let header = |bits| Edit::CalculateChecksum { checksum: range(80, bits), covered: range(0, 160) };
    run(&header(16), &mut made).unwrap();
    assert_eq!(made.frame.bytes(), bytes);
    run(&header(16), &mut made).unwrap();
    assert_eq!(made.frame.bytes(), bytes, "the result does not depend on the old checksum");
    // Three bytes: a zero byte follows.
    let mut made = numbered(60);
    run(&Edit::CalculateChecksum { checksum: range(400, 16), covered: range(8, 24) }, &mut made).unwrap();
    assert_eq!(made.frame.bytes()[50..52], (!(0x0102u16 + 0x0300)).to_be_bytes());
    run(&Edit::CalculateChecksum { checksum: range(400, 8), covered: range(8, 24) }, &mut made).unwrap();
    assert_eq!(made.frame.bytes()[50], !6);
    run(&Edit::CalculateChecksum { checksum: range(400, 32), covered: range(8, 40) }, &mut made).unwrap();
    assert_eq!(made.frame.bytes()[50..54], (!(0x0102_0304u32 + 0x0500_0000)).to_be_bytes());
}

#[test]
fn sums_carry_around_the_end() {
    assert_eq!(sum_of(&[0xff, 0xff, 0, 1], 16, |_| false), 1);
    assert_eq!(sum_of(&[0xff; 1_536], 32, |_| false), 0xffff_ffff);
    assert_eq!(sum_of(&[0; 8], 16, |_| false), 0);
    assert_eq!(sum_of(&[9, 8, 7, 6], 16, |number| number == 1), 0x1006);
}

#[test]
fn an_open_checksum_is_completed_before_its_bytes_move() {
    let bytes = wire::PacketBuilder::ethernet([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
        .udp(1, 2)
        .payload(&[5; 32])
        .build();
    let open = PartialChecksum { start: 34, offset: 6 };
    let opened = || {
        let mut made = packet(&bytes);
        let sum = checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 17, 40);
        made.frame.bytes_mut()[40..42].copy_from_slice(&sum.to_be_bytes());
        made.frame.meta.checksum = Some(open);
        made
    };
    let mut before = opened();
    run(&Edit::DeleteField(range(0, 8 * 34)), &mut before).unwrap();
    assert_eq!(before.frame.meta.checksum, Some(PartialChecksum { start: 0, offset: 6 }));
    let mut behind = opened();
    run(&Edit::DeleteField(range(8, 8 * 34)), &mut behind).unwrap();
    assert_eq!(behind.frame.meta.checksum, None);
    assert_eq!(behind.frame.bytes()[1..40], bytes[35..74]);
    let mut added = opened();
    run(&Edit::AddField { range: range(8 * 34, 8), value: 1 }, &mut added).unwrap();
    assert_eq!(added.frame.meta.checksum, Some(PartialChecksum { start: 35, offset: 6 }));
    let mut segmented = opened();
    segmented.frame.meta.gso =
        Some(frame::Gso { kind: frame::GsoKind::Udp, ecn: false, size: 8, header_len: 42 });
    let add = Edit::AddField { range: range(8 * 42, 8), value: 1 };
    assert_eq!(run(&add, &mut segmented), Err(DropReason::UnsupportedAction));
}

#[test]
fn headers_are_parsed_again_after_bytes_moved() {
    let bytes =
        wire::PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).build();
    let mut made = packet(&bytes);
    assert!(made.has(wire::layers::header::UDP) && !made.has(wire::layers::header::VLAN));
    let tag = range(96, 32);
    run(&Edit::AddField { range: tag, value: 0x8100_0007 }, &mut made).unwrap();
    assert!(made.has(wire::layers::header::VLAN | wire::layers::header::UDP));
    run(&Edit::DeleteField(tag), &mut made).unwrap();
    assert!(made.has(wire::layers::header::UDP) && !made.has(wire::layers::header::VLAN));
}
