// SPDX-License-Identifier: Apache-2.0
//! Tests of edits and of the moving base.

use super::frames::{ethernet, ipv4, udp, wrong_checksums};
use super::{add, after, entry, four_ports};
use crate::{OpenChecksum, Reference, Unfinished};
use flow::{
    Action, BitRange, CutOrigin, DropReason, Edit, Field, FieldMatch, FlowEntry, Instructions, Match, Next,
    Outcome, PortNo, Slice, SliceBase, TableId,
};
use wire::checksum;

fn range(offset_bits: u16, length_bits: u16) -> BitRange {
    BitRange { offset_bits, length_bits }
}

fn slice(base: SliceBase, offset_bits: u16, length_bits: u16) -> Slice {
    Slice { base, offset_bits, length_bits }
}

/// Returns a data plane with four ports and these entries.
fn with_entries(entries: Vec<FlowEntry>) -> Reference {
    let mut made = four_ports();
    entries.into_iter().for_each(|entry| add(&mut made, entry));
    made
}

fn edits<const N: usize>(edits: [Edit; N]) -> [Action; N] {
    edits.map(Action::Edit)
}

#[test]
fn a_base_is_inside_the_frame_or_directly_behind_it() {
    let len = udp().len() as i16;
    let write = Action::set(Field::Slice(slice(SliceBase::Moving, 0, 8)), 9);
    let moved = |bytes: i16| [Edit::MoveBase(bytes).into(), write.clone()];
    assert_eq!(after(&moved(len - 1), &udp()).unwrap().last(), Some(&9));
    assert_eq!(after(&moved(len), &udp()), Err(DropReason::MissingHeader), "the slice is absent");
    assert!(after(&edits([Edit::MoveBase(len)]), &udp()).is_ok());
    for bytes in [len + 1, -1] {
        assert_eq!(after(&edits([Edit::MoveBase(bytes)]), &udp()), Err(DropReason::MissingHeader));
    }
    let back = edits([Edit::MoveBase(20), Edit::MoveBase(-21)]);
    assert_eq!(after(&back, &udp()), Err(DropReason::MissingHeader));
}

#[test]
fn tables_match_at_the_base_and_the_next_packet_starts_at_byte_0() {
    let matching = |base, value| {
        let field = Field::Slice(slice(base, 0, 8));
        Match::new([FieldMatch::exact(field, value)]).unwrap()
    };
    let next = Instructions {
        apply: vec![Edit::MoveBase(14).into()],
        next: Some(Next::Table(TableId(1))),
        ..Instructions::default()
    };
    let output = Instructions::apply(vec![Action::output(PortNo(2))]);
    let entries = vec![
        entry(1, TableId(0), matching(SliceBase::Moving, 2), next),
        entry(2, TableId(1), matching(SliceBase::Moving, 0x45), output),
    ];
    let mut rules = with_entries(entries);
    for _ in 0..2 {
        let processed = rules.process(PortNo(1), &udp());
        assert_eq!((processed.outcome, processed.hits.len()), (Outcome::Forwarded, 2));
    }
}

#[test]
fn inserted_bytes_do_not_move_the_base() {
    let frame = udp();
    let add = Edit::AddField { range: range(0, 32), value: 0x8100_0007 };
    let made = after(&edits([Edit::MoveBase(12), add]), &frame).unwrap();
    assert_eq!(
        made,
        after(&[Action::PushVlan(0x8100), Action::set(Field::VlanVid, 0x1007)], &frame).unwrap()
    );
    let vid = Action::set(Field::VlanVid, 0x1009);
    let tagged = after(&[Edit::MoveBase(12).into(), add.into(), vid], &frame).unwrap();
    assert_eq!(tagged[14..16], [0, 9], "the headers are parsed again");
    let again = [Edit::MoveBase(12), add, Edit::DeleteField(range(0, 32))];
    let mut padded = frame.clone();
    padded.resize(60, 0);
    assert_eq!(after(&edits(again), &frame).unwrap(), padded);
    let end = frame.len() as u16 * 8;
    assert!(
        after(&edits([Edit::AddField { range: range(end, 8), value: 7 }]), &frame).unwrap().ends_with(&[7])
    );
    let behind = Edit::AddField { range: range(end + 8, 8), value: 7 };
    assert_eq!(after(&edits([behind]), &frame), Err(DropReason::MissingHeader));
    let full = Edit::AddField { range: range(0, 128), value: 1 };
    assert!(after(&edits([full; 8]), &frame).is_ok());
    assert_eq!(after(&edits([full; 9]), &frame), Err(DropReason::NoHeadroom));
}

#[test]
fn a_cut_leaves_the_bytes_from_a_place_on() {
    let mut frame = udp();
    frame.resize(100, 7);
    let cut = |origin, bytes| Edit::CutFront { origin, bytes };
    let (packet, base) = (CutOrigin::Packet, CutOrigin::Base);
    let moved = Edit::MoveBase(14);
    assert_eq!(after(&edits([moved, cut(base, 20)]), &frame).unwrap(), frame[34..]);
    assert_eq!(after(&edits([moved, cut(packet, 20)]), &frame).unwrap(), frame[20..]);
    assert_eq!(after(&edits([moved, cut(packet, 0)]), &frame).unwrap(), frame);
    // The base is the first byte from then on.
    let insert = Edit::AddField { range: range(0, 16), value: 0xabcd };
    let made = after(&edits([moved, cut(base, 0), insert]), &frame).unwrap();
    assert_eq!(made, [&[0xab, 0xcd], &frame[14..]].concat());
    assert_eq!(after(&edits([moved, cut(base, 86)]), &frame).unwrap(), [0; 60]);
    assert_eq!(after(&edits([moved, cut(base, 87)]), &frame), Err(DropReason::MissingHeader));
    assert_eq!(after(&edits([moved, cut(packet, 101)]), &frame), Err(DropReason::MissingHeader));
}

#[test]
fn a_frame_can_lose_all_its_bytes() {
    let frame = udp();
    let all = range(0, frame.len() as u16 * 8);
    assert_eq!(after(&edits([Edit::DeleteField(all)]), &frame).unwrap(), [0; 60]);
    let more = BitRange { length_bits: all.length_bits + 8, ..all };
    assert_eq!(after(&edits([Edit::DeleteField(more)]), &frame), Err(DropReason::MissingHeader));
}

#[test]
fn numbers_wrap_in_their_fields() {
    let modify = |slice, increment| Edit::ModifyField { slice, increment };
    let port = slice(SliceBase::L4, 16, 16);
    for (increment, expected) in [(1, 2001), (-2001, 0xffff), (i32::MIN, 2000), (0x1_0000, 2000)] {
        let made = after(&edits([modify(port, increment)]), &udp()).unwrap();
        assert_eq!(u16::from_be_bytes([made[36], made[37]]), expected, "{increment}");
        assert!(wrong_checksums(&made).is_empty());
    }
    let bit = slice(SliceBase::Packet, 7, 1);
    assert_eq!(after(&edits([modify(bit, 3)]), &udp()).unwrap()[0], 3);
    let absent = slice(SliceBase::L4, 0, 16);
    let arp = ethernet().ethertype(0x9999).build();
    assert_eq!(after(&edits([modify(absent, 1)]), &arp), Err(DropReason::MissingHeader));
}

#[test]
fn registers_and_packets_exchange_bits() {
    let register = slice(SliceBase::Metadata, 68, 12);
    let made = after(
        &edits([
            Edit::CopyField { from: slice(SliceBase::L4, 20, 12), to: register },
            Edit::CopyField { from: register, to: slice(SliceBase::Packet, 4, 12) },
        ]),
        &udp(),
    );
    assert_eq!(made.unwrap()[..2], [0x07, 0xd0]);
    let from_port =
        Edit::CopyField { from: slice(SliceBase::Metadata, 16, 16), to: slice(SliceBase::Packet, 0, 16) };
    assert_eq!(after(&edits([from_port]), &udp()).unwrap()[..2], [0, 1]);
}

#[test]
fn checksums_are_those_of_the_internet_protocols() {
    let frame = ipv4().udp(1000, 2000).payload(&[7; 30]).build();
    let mut broken = frame.clone();
    broken[24..26].fill(0xaa);
    let header = Edit::CalculateChecksum { checksum: range(80, 16), covered: range(0, 160) };
    assert_eq!(after(&edits([Edit::MoveBase(14), header]), &broken).unwrap(), frame);
    // A checksum in the payload. The UDP checksum, which covers it, is adjusted.
    let sum = |bits| Edit::CalculateChecksum { checksum: range(28 * 8, bits), covered: range(28 * 8, 72) };
    for (bits, expected) in [
        (8, vec![!(8 * 7)]),
        (16, (!(3 * 0x0707u16 + 0x0700)).to_be_bytes().to_vec()),
        (32, (!(0x0707_0707u32 + 0x0700_0000)).to_be_bytes().to_vec()),
    ] {
        let made = after(&edits([Edit::MoveBase(14), sum(bits)]), &frame).unwrap();
        assert_eq!(made[42..42 + expected.len()], expected[..], "{bits}");
        assert!(wrong_checksums(&made).is_empty());
    }
    let long = Edit::CalculateChecksum { checksum: range(0, 16), covered: range(0, 8 * 73) };
    assert_eq!(after(&edits([long]), &frame), Err(DropReason::MissingHeader));
}

#[test]
fn an_open_checksum_is_completed_if_its_bytes_change() {
    let frame = ipv4().udp(1000, 2000).payload(&[7; 30]).build();
    let mut opened = frame.clone();
    let pseudo = checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 17, 38);
    opened[40..42].copy_from_slice(&pseudo.to_be_bytes());
    let open = Unfinished { checksum: Some(OpenChecksum { start: 34, offset: 6 }), cut: None };
    let sent = |edit: Edit| {
        let output = Action::output(PortNo(2));
        let instructions = Instructions::apply(vec![edit.into(), output]);
        let mut rules = with_entries(vec![entry(1, TableId(0), Match::any(), instructions)]);
        let processed = rules.process_unfinished(PortNo(1), &opened, open);
        (processed.sent[0].bytes.clone(), processed.sent[0].unfinished)
    };
    let moved = Unfinished { checksum: Some(OpenChecksum { start: 30, offset: 6 }), cut: None };
    assert_eq!(sent(Edit::DeleteField(range(96, 32))).1, moved);
    let (bytes, unfinished) = sent(Edit::DeleteField(range(8 * 34, 8)));
    assert_eq!(unfinished, Unfinished::default());
    assert_eq!(bytes[..71], [&frame[..34], &frame[35..]].concat());
    let insert = |at| Edit::AddField { range: range(at, 8), value: 1 };
    assert_eq!(
        sent(insert(8 * 34)).1,
        Unfinished { checksum: Some(OpenChecksum { start: 35, offset: 6 }), cut: None }
    );
    assert_eq!(sent(insert(8 * 35)).1, Unfinished::default());
}
