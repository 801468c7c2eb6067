// SPDX-License-Identifier: Apache-2.0
//! Compares edits of a path with the steps of its entries.

use super::*;
use crate::packet_data::PacketData;
use crate::program::Program;
use flow::stateless::TagTypes;
use flow::{Action, Instructions, Next, PortNo, TableId};
use frame::{Frame, PartialChecksum};
use wire::{Depth, PacketBuilder};

const HEADER_BITS: BitRange = BitRange { offset_bits: 0, length_bits: 160 };
const CHECKSUM_BITS: BitRange = BitRange { offset_bits: 80, length_bits: 16 };

fn slice(base: SliceBase, offset_bits: u16, length_bits: u16) -> Slice {
    Slice { base, offset_bits, length_bits }
}

fn decrement(offset_bits: u16) -> Action {
    Edit::ModifyField { slice: slice(SliceBase::Moving, offset_bits, 8), increment: -1 }.into()
}

fn move_base(bytes: i16) -> Action {
    Edit::MoveBase(bytes).into()
}

fn checksum() -> Action {
    Edit::CalculateChecksum { checksum: CHECKSUM_BITS, covered: HEADER_BITS }.into()
}

fn mac(offset_bits: u16, value: u128) -> Action {
    Action::set(Field::Slice(slice(SliceBase::Moving, offset_bits, 48)), value)
}

/// Returns the actions of a router's last entry for packets whose base is at the IP header behind `before`
/// bytes.
fn routed(is_ipv6: bool, before: i16) -> Vec<Action> {
    let ttl = if is_ipv6 { vec![decrement(56)] } else { vec![decrement(64), checksum()] };
    let macs =
        [move_base(-before), mac(0, 0x02aa_0000_0007), mac(48, 0x02bb_0000_0001), Action::output(PortNo(2))];
    [ttl, macs.to_vec()].concat()
}

/// Compiles the entries of a path. All but the last entry continue with another table.
fn path(entries: &[Vec<Action>]) -> Vec<Program> {
    let compile = |(at, apply): (usize, &Vec<Action>)| {
        let next = (at + 1 < entries.len()).then(|| Next::Table(TableId(at as u8 + 1)));
        let instructions = Instructions { apply: apply.clone(), next, ..Instructions::default() };
        Program::compile(&instructions, false, false)
    };
    entries.iter().enumerate().map(compile).collect()
}

/// Returns the effect of a path, or `None` if it is not that of a router.
fn effect(programs: &[Program]) -> Option<(MacWrite, TtlSpot)> {
    let mut edits = PathEdits::NONE;
    programs.iter().try_for_each(|program| program.add_edits(&mut edits).map(|_| ()))?;
    edits.finish()
}

/// Returns the frame after the entries' steps, or `None` if a step fails.
fn stepped(programs: &[Program], frame: Frame) -> Option<Vec<u8>> {
    let mut packet = PacketData::empty();
    packet.frame = frame;
    let types = TagTypes::default();
    let steps = programs.iter().flat_map(|program| program.apply.iter());
    steps.map(|step| step.rewrite(&mut packet, &types)).collect::<Result<Vec<()>, _>>().ok()?;
    Some(packet.frame.bytes().to_vec())
}

/// Returns the frame after the edits of the path, or `None` if its entries' steps must run.
fn edited(programs: &[Program], mut frame: Frame) -> Option<Vec<u8>> {
    let (macs, spot) = effect(programs)?;
    let actual = TtlSpot::of(&wire::locate(frame.bytes(), Depth::L3));
    if !spot.suits(actual, &frame) {
        return None;
    }
    let start = frame.start_mut()?;
    spot.edit(start);
    macs.as_replacement()?.write(start);
    Some(frame.bytes().to_vec())
}

/// Returns packets with IP and other headers, with correct and wrong checksums and all kinds of TTL.
fn packets() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut made = Vec::new();
    for number in 0..2_000 {
        let plain = PacketBuilder::ethernet([2; 6], [4; 6]);
        let tagged = if number % 5 == 0 { plain.vlan(0x8100, rng.u16(0..4_096)) } else { plain };
        let payload: Vec<u8> = (0..rng.usize(0..60)).map(|_| rng.u8(..)).collect();
        let addresses: [u8; 32] = std::array::from_fn(|_| rng.u8(..));
        let (from, to) = addresses.split_at(16);
        let six = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).unwrap();
        let four = |bytes: &[u8]| <[u8; 4]>::try_from(&bytes[..4]).unwrap();
        let ip =
            if number % 2 == 0 { tagged.ipv6(six(from), six(to)) } else { tagged.ipv4(four(from), four(to)) };
        let ip = ip.ttl([0, 1, 2, 64, 255][rng.usize(0..5)]);
        let mut bytes = if rng.bool() { ip.udp(53, 80) } else { ip.tcp(53, 80) }.payload(&payload).build();
        match rng.u8(0..6) {
            // A wrong checksum, another header length, or a packet without the end of its header.
            0 => bytes[24] ^= rng.u8(..),
            1 => bytes[14] = bytes[14] & 0xf0 | rng.u8(0..16),
            2 => bytes.truncate(rng.usize(14..60)),
            3 => bytes[rng.usize(12..34)] = rng.u8(..),
            _ => {}
        }
        made.push(bytes);
    }
    made
}

#[test]
fn edits_of_a_path_change_packets_as_its_entries_do() {
    for (is_ipv6, before) in [(false, 14), (false, 18), (true, 14), (true, 18)] {
        let programs = path(&[vec![move_base(before)], vec![], routed(is_ipv6, before)]);
        let mut same = 0;
        for bytes in packets() {
            let Some(made) = edited(&programs, Frame::from_bytes(&bytes)) else { continue };
            assert_eq!(Some(made), stepped(&programs, Frame::from_bytes(&bytes)), "{bytes:02x?}");
            same += 1;
        }
        assert!(same > 100, "IPv6 {is_ipv6}, {before} bytes: {same}");
    }
}

#[test]
fn an_open_checksum_that_begins_in_the_ipv4_header_needs_the_steps() {
    let bytes =
        PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10; 4], [11; 4]).udp(53, 80).payload(&[0; 30]).build();
    for (start, is_direct) in [(33, false), (34, true)] {
        let programs = path(&[vec![move_base(14)], routed(false, 14)]);
        let frame = || {
            let mut frame = Frame::from_bytes(&bytes);
            frame.meta.checksum = Some(PartialChecksum { start, offset: 6 });
            frame
        };
        let made = edited(&programs, frame());
        assert_eq!(made.is_some(), is_direct, "{start}");
        assert!(made.is_none() || made == stepped(&programs, frame()));
    }
}

#[test]
fn other_paths_are_none_of_a_router() {
    let with = |last: Vec<Action>| effect(&path(&[vec![move_base(14)], last]));
    assert!(with(routed(false, 14)).is_some() && with(routed(true, 14)).is_some());
    let output = || Action::output(PortNo(2));
    let field = |length_bits, increment| -> Action {
        Edit::ModifyField { slice: slice(SliceBase::Moving, 64, length_bits), increment }.into()
    };
    let other_sum = |checksum, covered| -> Action { Edit::CalculateChecksum { checksum, covered }.into() };
    let later = |range: BitRange| BitRange { offset_bits: range.offset_bits + 8, ..range };
    let others: [Vec<Action>; 14] = [
        vec![output()],
        vec![mac(0, 1), output()],
        vec![decrement(64), decrement(64), checksum(), output()],
        vec![decrement(64), checksum(), checksum(), output()],
        vec![checksum(), decrement(64), output()],
        vec![decrement(56), checksum(), output()],
        vec![decrement(60), output()],
        vec![field(16, -1), output()],
        vec![field(8, -2), output()],
        vec![decrement(64), other_sum(later(CHECKSUM_BITS), HEADER_BITS), output()],
        vec![decrement(64), other_sum(CHECKSUM_BITS, later(HEADER_BITS)), output()],
        // The base may move behind the end of the packet, or before its start.
        vec![move_base(100), move_base(-100), decrement(64), checksum(), output()],
        vec![move_base(-15), move_base(15), decrement(64), checksum(), output()],
        // The second MAC address is written 2 bytes too far.
        vec![decrement(64), checksum(), move_base(-14), mac(64, 1), output()],
    ];
    for other in others {
        assert_eq!(with(other.clone()), None, "{other:?}");
    }
    let twice = vec![decrement(64), checksum(), output(), output()];
    assert_eq!(with(twice), None, "two outputs");
    assert_eq!(effect(&path(&[vec![move_base(60)], routed(false, 60)])), None, "far behind the first bytes");
}
