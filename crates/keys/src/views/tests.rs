// SPDX-License-Identifier: Apache-2.0
//! Tests of views on frames that are edited byte by byte.

use super::*;
use fastrand::Rng;
use flow::{BitRange, CutOrigin};

fn range(offset_bytes: u16, count: u16) -> BitRange {
    BitRange { offset_bits: 8 * offset_bytes, length_bits: 8 * count }
}

fn random_edit(rng: &mut Rng) -> Edit {
    match rng.u8(0..4) {
        0 => Edit::MoveBase(rng.i16(-6..20)),
        1 if rng.bool() => {
            let origin = if rng.bool() { CutOrigin::Packet } else { CutOrigin::Base };
            Edit::CutFront { origin, bytes: rng.u16(0..30) }
        }
        1 | 2 => Edit::AddField { range: range(rng.u16(0..30), rng.u16(1..=16)), value: 0x55 },
        _ => Edit::DeleteField(range(rng.u16(0..30), rng.u16(1..12))),
    }
}

/// Returns the frame and the base after the edits, or `None` if they drop the packet.
fn edited(frame: &[u8], edits: &[Edit]) -> Option<(Vec<u8>, usize)> {
    let (mut bytes, mut base) = (frame.to_vec(), 0usize);
    for edit in edits {
        match *edit {
            Edit::MoveBase(by) => {
                base = base.checked_add_signed(by.into()).filter(|base| *base <= bytes.len())?
            }
            Edit::AddField { range, value } => {
                let (at, count) =
                    (base + usize::from(range.offset_bits / 8), usize::from(range.length_bits / 8));
                if at > bytes.len() {
                    return None;
                }
                bytes.splice(at..at, value.to_be_bytes()[16 - count..].iter().copied());
            }
            Edit::DeleteField(range) => {
                let (at, count) =
                    (base + usize::from(range.offset_bits / 8), usize::from(range.length_bits / 8));
                if at + count > bytes.len() {
                    return None;
                }
                bytes.drain(at..at + count);
                bytes.resize(bytes.len().max(60), 0);
            }
            Edit::CutFront { origin, bytes: count } => {
                let end = usize::from(count) + if origin == CutOrigin::Base { base } else { 0 };
                if end > bytes.len() {
                    return None;
                }
                if end > 0 {
                    bytes.drain(..end);
                    bytes.resize(bytes.len().max(60), 0);
                }
                base = 0;
            }
            _ => {}
        }
    }
    Some((bytes, base))
}

fn value(bytes: &[u8], first: usize, length: usize, mask: u128) -> Option<u128> {
    let mut value = 0;
    for bit in first..first + length {
        value = value << 1 | u128::from(bytes.get(bit / 8)? >> (7 - bit % 8) & 1);
    }
    Some(value & mask)
}

/// Returns the examined bits of a frame, or `None` for a slice that it lacks.
fn values(bytes: &[u8], pieces: &[(Field, u128)]) -> Vec<Option<u128>> {
    let of = |(field, mask): &(Field, u128)| {
        let location = field.location();
        value(bytes, location.offset_bits.into(), location.length_bits.into(), *mask)
    };
    pieces.iter().map(of).collect()
}

/// Two frames that are equal in the pieces are equal in the examined slice after the edits.
#[test]
fn pieces_of_the_arriving_frame_determine_the_slice() {
    let mut rng = Rng::with_seed(11);
    let mut compared = 0;
    for _ in 0..30_000 {
        let edits: Vec<Edit> = (0..rng.usize(0..5)).map(|_| random_edit(&mut rng)).collect();
        let Some(view) = View::default().after(&edits) else { continue };
        let length = rng.u16(1..=64);
        let base = if rng.bool() { SliceBase::Moving } else { SliceBase::Packet };
        let slice = Slice { base, offset_bits: rng.u16(0..400), length_bits: length };
        let mask = rng.u128(..) & Field::Slice(slice).full_mask();
        let Some(pieces) = view.on_arrival(Field::Slice(slice), mask) else { panic!("{slice:?}") };
        let first: Vec<u8> = (0..rng.usize(50..100)).map(|_| rng.u8(..)).collect();
        // Few different bytes, so that frames of other lengths may be equal in the pieces.
        let mut second: Vec<u8> = (0..rng.usize(50..100)).map(|_| rng.u8(..)).collect();
        for (at, byte) in second.iter_mut().enumerate() {
            if rng.u8(0..8) > 0 {
                *byte = first.get(at).copied().unwrap_or(*byte);
            }
        }
        if values(&first, &pieces) != values(&second, &pieces) {
            continue;
        }
        let (Some((a, at)), Some((b, _))) = (edited(&first, &edits), edited(&second, &edits)) else {
            continue;
        };
        let start = if base == SliceBase::Moving { 8 * at } else { 0 } + usize::from(slice.offset_bits);
        let of = |bytes: &[u8]| value(bytes, start, length.into(), mask);
        assert_eq!(of(&a), of(&b), "{edits:?} {slice:?} {pieces:?}");
        compared += 1;
    }
    assert!(compared > 8_000, "{compared}");
}

#[test]
fn fields_that_need_headers_are_unknown_after_a_resize() {
    let moved = View::default().after(&[Edit::MoveBase(14)]).unwrap();
    assert_eq!(moved.on_arrival(Field::Ipv4Dst, 1), Some(vec![(Field::Ipv4Dst, 1)]));
    let at = |base, offset_bits| Field::Slice(Slice { base, offset_bits, length_bits: 8 });
    let found = moved.on_arrival(at(SliceBase::Moving, 4), 3);
    assert_eq!(found, Some(vec![(at(SliceBase::Packet, 116), 3)]));
    assert_eq!(moved.after(&[Edit::MoveBase(-15)]), None);
    let resized = moved.after(&[Edit::AddField { range: range(0, 4), value: 0 }]).unwrap();
    for field in
        [Field::Ipv4Dst, Field::EthType, Field::VlanVid, at(SliceBase::L3, 0), at(SliceBase::Metadata, 188)]
    {
        assert_eq!(resized.on_arrival(field, 1), None, "{field}");
    }
    for field in [Field::InPort, Field::Metadata, Field::TunnelId, at(SliceBase::Metadata, 184)] {
        assert_eq!(resized.on_arrival(field, 1), Some(vec![(field, 1)]));
    }
    assert_eq!(resized.on_arrival(at(SliceBase::Moving, 8), 1), Some(vec![]), "an inserted byte");
    let address = Slice { base: SliceBase::Packet, offset_bits: 0, length_bits: 48 };
    assert_eq!(resized.on_arrival(Field::EthDst, 9), Some(vec![(Field::Slice(address), 9)]));
    let far = View::default().after(&[Edit::MoveBase(1_530)]).unwrap();
    assert_eq!(far.on_arrival(at(SliceBase::Moving, 48), 1), None, "beyond the reach of slices");
}
