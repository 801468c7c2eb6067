// SPDX-License-Identifier: Apache-2.0
//! Differences between two states of a frame, caused by actions.

use flow::{Field, FieldBase, PortNo};
use reference::ReferencePacket;
use std::ops::Range;
use wire::layers::header;
use wire::{Depth, Layers};

/// Maximum number of changed byte ranges reported.
const RUNS: usize = 8;

/// A difference between two frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameChange {
    /// A field was changed, added or removed.
    Field {
        /// The changed field.
        field: Field,
        /// Value before the change, or `None` if the frame had no such field.
        before: Option<u128>,
        /// Value after the change, or `None` if the frame has no such field.
        after: Option<u128>,
    },
    /// The IPv4 TTL or the IPv6 hop limit was changed.
    Ttl {
        /// TTL before the change.
        before: u8,
        /// TTL after the change.
        after: u8,
    },
    /// Bytes outside the reported fields were changed, in frames of equal length.
    Bytes {
        /// Offset of the first changed byte.
        at: usize,
        /// Bytes before the change.
        before: Vec<u8>,
        /// Bytes after the change.
        after: Vec<u8>,
    },
    /// The frame's length was changed.
    Length {
        /// Length in bytes before the change.
        before: usize,
        /// Length in bytes after the change.
        after: usize,
    },
}

/// Returns the differences. Changed fields come first, followed by the length or by other bytes.
pub(super) fn changes(in_port: PortNo, before: &[u8], after: &[u8]) -> Vec<FrameChange> {
    if before == after {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut reported = Vec::new();
    let layers = wire::locate(after, Depth::L4);
    // A frame too short for an Ethernet header has no fields.
    if before.len() >= 14 && after.len() >= 14 {
        let (old, new) =
            (ReferencePacket::arriving(in_port, before), ReferencePacket::arriving(in_port, after));
        let differs = |field: &&Field| old.value(**field) != new.value(**field);
        changes.extend(Field::NAMED.iter().filter(differs).map(|field| FrameChange::Field {
            field: *field,
            before: old.value(*field),
            after: new.value(*field),
        }));
        reported.extend(Field::NAMED.iter().filter(differs).filter_map(|field| bytes_of(*field, &layers)));
        if let (Some((_, old)), Some((at, new))) = (ttl(before), ttl(after))
            && old != new
        {
            changes.push(FrameChange::Ttl { before: old, after: new });
            reported.push(at..at + 1);
        }
    }
    if before.len() == after.len() {
        let is_reported = |at: usize| reported.iter().any(|range| range.contains(&at));
        changes.extend(runs(before, after, is_reported).take(RUNS).map(|run| FrameChange::Bytes {
            at: run.start,
            before: before[run.clone()].to_vec(),
            after: after[run].to_vec(),
        }));
    } else {
        changes.push(FrameChange::Length { before: before.len(), after: after.len() });
    }
    changes
}

/// Returns the byte range of a field, or `None` if the field has no fixed position in the frame.
fn bytes_of(field: Field, layers: &Layers) -> Option<Range<usize>> {
    let location = field.location();
    let start = usize::from(match location.base {
        FieldBase::Frame => 0,
        FieldBase::L3 => layers.l3,
        FieldBase::L4 => layers.l4,
        FieldBase::Ext | FieldBase::NdSll | FieldBase::NdTll | FieldBase::Moving => return None,
    });
    let (first, length) = (usize::from(location.offset_bits), usize::from(location.length_bits));
    Some(start + first / 8..start + (first + length).div_ceil(8))
}

/// Returns the offset of the TTL or hop limit, and its value.
fn ttl(frame: &[u8]) -> Option<(usize, u8)> {
    let layers = wire::locate(frame, Depth::L3);
    let at = match layers.present & (header::IPV4 | header::IPV6) {
        header::IPV4 => 8,
        header::IPV6 => 7,
        _ => return None,
    };
    let at = usize::from(layers.l3) + at;
    Some((at, *frame.get(at)?))
}

/// Returns the byte ranges that differ and that no reported field covers.
fn runs<'a>(
    before: &'a [u8],
    after: &'a [u8],
    is_reported: impl Fn(usize) -> bool + 'a,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let differs = move |at: &usize| before[*at] != after[*at] && !is_reported(*at);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = (from..before.len()).find(&differs)?;
        let end = (start..before.len()).find(|at| !differs(at)).unwrap_or(before.len());
        from = end;
        Some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::PacketBuilder;

    fn udp(ttl: u8, destination: [u8; 4], port: u16) -> Vec<u8> {
        let packet = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        packet.ipv4([10, 0, 0, 1], destination).ttl(ttl).udp(5, port).pad_to(64).build()
    }

    fn fields(changes: &[FrameChange]) -> Vec<(Field, Option<u128>, Option<u128>)> {
        let of = |change: &FrameChange| match change {
            FrameChange::Field { field, before, after } => Some((*field, *before, *after)),
            _ => None,
        };
        changes.iter().filter_map(of).collect()
    }

    #[test]
    fn a_changed_field_is_reported_and_its_bytes_are_not() {
        let (before, mut after) = (udp(64, [10, 0, 0, 2], 53), udp(64, [10, 0, 0, 2], 53));
        assert_eq!(changes(PortNo(1), &before, &after), []);
        // The UDP destination port begins at byte 36.
        after[36..38].copy_from_slice(&[0, 80]);
        let reported = changes(PortNo(1), &before, &after);
        assert_eq!(fields(&reported), [(Field::UdpDst, Some(53), Some(80))]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        // The UDP checksum at byte 40 belongs to no field, so its change is reported as bytes.
        after[40] ^= 0xff;
        let bytes = FrameChange::Bytes { at: 40, before: vec![before[40]], after: vec![after[40]] };
        assert_eq!(changes(PortNo(1), &before, &after)[1..], [bytes]);
    }

    #[test]
    fn a_ttl_is_reported_by_name_in_both_versions() {
        let (before, mut after) = (udp(64, [10, 0, 0, 2], 53), udp(64, [10, 0, 0, 2], 53));
        after[22] = 63;
        assert_eq!(changes(PortNo(1), &before, &after), [FrameChange::Ttl { before: 64, after: 63 }]);
        let packet = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let before = packet.ipv6([1; 16], [2; 16]).udp(5, 6).pad_to(80).build();
        let mut after = before.clone();
        after[21] = before[21] - 1;
        assert_eq!(
            changes(PortNo(1), &before, &after),
            [FrameChange::Ttl { before: before[21], after: after[21] }]
        );
    }

    #[test]
    fn an_added_header_changes_fields_and_length() {
        let before = udp(64, [10, 0, 0, 2], 53);
        let mut after = before.clone();
        after.splice(12..12, [0x81, 0, 0x60, 7]);
        let reported = changes(PortNo(1), &before, &after);
        assert_eq!(
            reported.last(),
            Some(&FrameChange::Length { before: before.len(), after: before.len() + 4 })
        );
        let vlan = [(Field::VlanVid, Some(0), Some(0x1007)), (Field::VlanPcp, None, Some(3))];
        assert_eq!(fields(&reported), vlan);
        assert_eq!(reported.len(), 3, "{reported:?}");
    }

    #[test]
    fn runs_of_other_bytes_are_reported_up_to_eight() {
        let before = vec![0; 64];
        let mut after = before.clone();
        // No field covers byte 20 or later bytes. Runs of two bytes differ.
        (20..64).filter(|at| at % 4 < 2).for_each(|at| after[at] = 1);
        let reported = changes(PortNo(1), &before, &after);
        let run = |at| FrameChange::Bytes { at, before: vec![0; 2], after: vec![1; 2] };
        assert_eq!(reported, (0..8).map(|n| run(20 + 4 * n)).collect::<Vec<_>>());
        // Frames shorter than an Ethernet header have no fields.
        for (length, has_fields) in [(13, false), (14, true)] {
            let (before, after) = (vec![0; length], vec![1; length]);
            assert_eq!(
                !fields(&changes(PortNo(1), &before, &after)).is_empty(),
                has_fields,
                "{length} bytes"
            );
        }
        assert_eq!(changes(PortNo(1), &[0; 13], &[0; 14]), [FrameChange::Length { before: 13, after: 14 }]);
    }
}
