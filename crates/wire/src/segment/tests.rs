// SPDX-License-Identifier: Apache-2.0
//! Compares segments with frames that the builder makes from the same payload.

use proptest::prelude::*;

use super::*;
use crate::{Depth, PacketBuilder, ipv6, locate, sctp, vlan};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Returns the headers up to and including IP. `shape` selects VLAN tags, address family, options and
/// extension headers.
fn ip(shape: u8, id: u16) -> PacketBuilder {
    let mut builder = PacketBuilder::ethernet([2; 6], [4; 6]);
    if shape & 1 != 0 {
        builder = builder.vlan(vlan::S_TAG, 9).vlan(vlan::C_TAG, 7);
    }
    match shape >> 1 & 3 {
        0 => builder.ipv4(A, B).id(id),
        1 => builder.ipv4(A, B).ipv4_options(&[1, 1, 1]).id(id),
        2 => builder.ipv6(A6, B6),
        // With a routing header, the pseudo-header contains the last destination.
        _ => builder.ipv6(A6, B6).extension(ipv6::ROUTING, &[&[2, 1, 0, 0, 0, 0][..], &[9; 16]].concat()),
    }
}

/// Makes the checksum partial: removes the sum of the covered bytes.
fn make_partial(frame: &mut [u8], field: usize) {
    let layers = locate(frame, Depth::L4);
    let l4 = usize::from(layers.l4);
    let whole: u16 = Field::load(&frame[l4 + field..]);
    0u16.store(&mut frame[l4 + field..]);
    let payload = checksum::sum(&frame[l4..layers.l4_end as usize]);
    checksum::add(!whole, !payload).store(&mut frame[l4 + field..]);
}

fn all(mut segments: Segments<'_>) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    let mut left = segments.remaining();
    let mut out = vec![0xee; segments.segment_len_max()];
    while let Some(len) = segments.write_next(&mut out) {
        written.push(out[..len].to_vec());
        left -= 1;
        assert_eq!(segments.remaining(), left);
    }
    assert_eq!(left, 0);
    written
}

proptest! {
    #[test]
    fn tcp_segments_equal_built_frames(
        shape in 0u8..8,
        payload in proptest::collection::vec(any::<u8>(), 0..3000),
        size in 1usize..1500,
        id: u16,
        seq: u32,
        flags in 0u16..0x200,
        options in prop_oneof![Just(0usize), Just(12)],
    ) {
        let size = size.max(payload.len() / 40 + 1);
        let build = |id, seq, flags, payload: &[u8]| {
            ip(shape, id).tcp(1, 2).tcp_numbers(seq, 77).tcp_flags(flags).tcp_options(&vec![1; options]).payload(payload).build()
        };
        let mut frame = build(id, seq, flags, &payload);
        make_partial(&mut frame, TCP_CHECKSUM);
        // Padding must not become payload.
        frame.extend_from_slice(&[0xaa; 3]);
        let layers = locate(&frame, Depth::L4);
        let written = all(tcp_segments(&frame, &layers, size).unwrap());

        let mut chunks: Vec<&[u8]> = payload.chunks(size).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        prop_assert_eq!(written.len(), chunks.len());
        for (index, chunk) in chunks.iter().enumerate() {
            let mut flags = flags;
            if index > 0 {
                flags &= !tcp::CWR;
            }
            if index + 1 < chunks.len() {
                flags &= !(tcp::FIN | tcp::PSH);
            }
            let seq = seq.wrapping_add((index * size) as u32);
            prop_assert_eq!(&written[index], &build(id.wrapping_add(index as u16), seq, flags, chunk));
        }
    }

    #[test]
    fn udp_segments_equal_built_frames(
        shape in 0u8..8,
        payload in proptest::collection::vec(any::<u8>(), 1..3000),
        size in 1usize..1500,
        id: u16,
    ) {
        let size = size.max(payload.len() / 40 + 1);
        let build = |id, payload: &[u8]| ip(shape, id).udp(1, 2).payload(payload).build();
        let mut frame = build(id, &payload);
        make_partial(&mut frame, UDP_CHECKSUM);
        let layers = locate(&frame, Depth::L4);
        let written = all(udp_segments(&frame, &layers, size).unwrap());
        let expected: Vec<Vec<u8>> = payload
            .chunks(size)
            .enumerate()
            .map(|(index, chunk)| build(id.wrapping_add(index as u16), chunk))
            .collect();
        prop_assert_eq!(written, expected);
    }

    #[test]
    fn partial_checksums_are_completed(shape in 0u8..8, payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        for (builder, field) in [(ip(shape, 1).tcp(1, 2), TCP_CHECKSUM), (ip(shape, 1).udp(1, 2), UDP_CHECKSUM)] {
            let whole = builder.payload(&payload).build();
            let mut frame = whole.clone();
            make_partial(&mut frame, field);
            let l4 = locate(&frame, Depth::L4).l4;
            prop_assert!(complete_partial(&mut frame, l4.into(), field));
            prop_assert_eq!(frame, whole);
        }
    }

    /// Random bytes with random layers must give a result and never cause a panic.
    #[test]
    fn random_layers_cause_no_panic(
        frame in proptest::collection::vec(any::<u8>(), 0..120),
        l3 in 0u16..130,
        l4 in 0u16..130,
        l4_end in 0u32..140,
        size in 0usize..40,
        start in 0usize..130,
        offset in 0usize..130,
    ) {
        for family in [header::IPV4, header::IPV6] {
            let present = family | header::IP | header::TCP | header::UDP;
            let layers = Layers { present, l3, l4, l4_end, ..Layers::default() };
            for mut segments in [tcp_segments(&frame, &layers, size), udp_segments(&frame, &layers, size)].into_iter().flatten() {
                let mut out = [0; 200];
                while segments.write_next(&mut out).is_some() {}
                prop_assert_eq!(segments.remaining(), 0);
            }
        }
        complete_partial(&mut frame.clone(), start, offset);
    }
}

#[test]
fn sctp_gets_its_crc() {
    let whole = ip(0, 1).sctp(1, 2, 3).payload(&[11, 0, 0, 4]).build();
    let l4 = usize::from(locate(&whole, Depth::L4).l4);
    let mut frame = whole.clone();
    sctp::Packet::new_checked(&mut frame[l4..]).unwrap().set_checksum([0; 4]);
    assert!(complete_partial(&mut frame, l4, 8));
    assert_eq!(frame, whole);
}

#[test]
fn super_frames_that_cannot_be_segmented_are_refused() {
    let udp = ip(0, 1).udp(1, 2).payload(&[0; 100]).build();
    let layers = locate(&udp, Depth::L4);
    assert!(tcp_segments(&udp, &layers, 10).is_none());
    assert!(udp_segments(&udp, &layers, 0).is_none());
    assert!(udp_segments(&udp, &locate(&udp, Depth::L3), 10).is_none());
    let fragment = ip(0, 1).ipv4_fragment(0, true).udp(1, 2).payload(&[0; 100]).build();
    assert!(udp_segments(&fragment, &locate(&fragment, Depth::L4), 10).is_none());
    let mut segments = udp_segments(&udp, &layers, 60).unwrap();
    assert_eq!(segments.segment_len_max(), 102);
    let mut short = [0; 101];
    assert_eq!(segments.write_next(&mut short), None);
    let mut room = [0; 102];
    assert_eq!((segments.write_next(&mut room), segments.write_next(&mut room)), (Some(102), Some(82)));
    assert_eq!(segments.write_next(&mut room), None);
    assert!(!complete_partial(&mut [0; 10], 11, 0));
    assert!(!complete_partial(&mut [0; 10], 4, 5));
    assert!(!complete_partial(&mut [0; 10], 0, 8));
    assert!(!complete_partial(&mut [0; 10], 0, usize::MAX));
}
