// SPDX-License-Identifier: Apache-2.0
//! Headers of stateless forwarding, directly after the MAC addresses (docs/wire-formats.md).

use super::Done;
use crate::bits;
use crate::packet::ReferencePacket;
use crate::walk::word;
use flow::DropReason;
use flow::action::{KeyHeader, PolkaHeader, TfHeader};
use flow::stateless::TagTypes;
use std::ops::Range;

/// A complete header.
pub(crate) enum Tag {
    /// A KeyFlow header. `key` is the range of the key's bytes in the frame.
    KeyFlow {
        epoch: usize,
        key: Range<usize>,
    },
    Polka {
        key: Range<usize>,
    },
    Tf {
        qid: u8,
        up: u32,
        down: u32,
    },
}

/// Returns the tag that a frame's EtherType announces, or an error if the tag is malformed. Returns `None` if
/// the EtherType announces no tag.
pub(crate) fn tag(frame: &[u8], types: &TagTypes) -> Option<Result<Tag, DropReason>> {
    let eth_type = word(frame, 12)?;
    let tag = if eth_type == types.keyflow {
        keyflow(frame)
    } else if eth_type == types.polka {
        polka(frame)
    } else if eth_type == types.tf {
        tf(frame, 32)
    } else if eth_type == types.tf_wide {
        tf(frame, 29)
    } else {
        return None;
    };
    Some(tag.ok_or(DropReason::MalformedTag))
}

fn keyflow(frame: &[u8]) -> Option<Tag> {
    let version = bits::read(frame, 8 * 14, 4)?;
    let epoch = bits::read(frame, 8 * 14 + 4, 1)?;
    let units = usize::from(*frame.get(16)?);
    let key = 22..22 + 8 * units;
    let whole = frame.len() >= key.end;
    (version == 1 && (1..=4).contains(&units) && whole).then_some(Tag::KeyFlow { epoch: epoch as usize, key })
}

fn polka(frame: &[u8]) -> Option<Tag> {
    let version = *frame.get(14)?;
    (version == 0 && frame.len() >= 34).then_some(Tag::Polka { key: 18..34 })
}

/// Parses a Tag-and-Forward tag: UP and DOWN share 45 bits.
fn tf(frame: &[u8], up_bits: usize) -> Option<Tag> {
    let qid = bits::read(frame, 8 * 14, 3)?;
    let up = bits::read(frame, 8 * 14 + 3, up_bits)?;
    let down = bits::read(frame, 8 * 14 + 3 + up_bits, 45 - up_bits)?;
    let whole = frame.len() >= 22;
    whole.then_some(Tag::Tf { qid: qid as u8, up: up as u32, down: down as u32 })
}

/// Pushes a KeyFlow header. The frame's EtherType moves into the header.
pub(crate) fn push_key(packet: &mut ReferencePacket, header: &KeyHeader, types: &TagTypes) -> Done {
    let first = 0x10 | header.epoch << 3;
    let units = (header.key.len() / 8) as u8;
    let mut inserted = vec![first, header.hops, units, 0, packet.bytes[12], packet.bytes[13], 0, 0];
    inserted.extend(&header.key);
    packet.insert(14, &inserted, Some((12, types.keyflow)))
}

/// Pushes a PolKA header. The frame's EtherType moves into the header.
pub(crate) fn push_polka(packet: &mut ReferencePacket, header: &PolkaHeader, types: &TagTypes) -> Done {
    let mut inserted = vec![0, header.ttl, packet.bytes[12], packet.bytes[13]];
    inserted.extend(header.key.to_be_bytes());
    packet.insert(14, &inserted, Some((12, types.polka)))
}

/// Pops a KeyFlow or PolKA header.
pub(crate) fn pop_key(packet: &mut ReferencePacket, types: &TagTypes) -> Done {
    let (type_at, end) = match tag(&packet.bytes, types) {
        Some(Ok(Tag::KeyFlow { key, .. })) => (18, key.end),
        Some(Ok(Tag::Polka { key })) => (16, key.end),
        _ => return Err(DropReason::MissingHeader),
    };
    let inner = u16::from_be_bytes([packet.bytes[type_at], packet.bytes[type_at + 1]]);
    packet.remove(14..end, Some((12, inner)));
    Ok(())
}

pub(crate) fn push_tf(
    packet: &mut ReferencePacket,
    header: &TfHeader,
    up_bits: usize,
    eth_type: u16,
) -> Done {
    let mut inserted = eth_type.to_be_bytes().to_vec();
    inserted.extend([0; 6]);
    bits::write(&mut inserted, 16, 3, header.qid.into(), u128::MAX);
    bits::write(&mut inserted, 19, up_bits, header.up.into(), u128::MAX);
    bits::write(&mut inserted, 19 + up_bits, 45 - up_bits, header.down.into(), u128::MAX);
    packet.insert(12, &inserted, None)
}

pub(crate) fn pop_tf(packet: &mut ReferencePacket, types: &TagTypes) -> Done {
    match tag(&packet.bytes, types) {
        Some(Ok(Tag::Tf { .. })) => {
            packet.remove(12..20, None);
            Ok(())
        }
        _ => Err(DropReason::MissingHeader),
    }
}
