// SPDX-License-Identifier: Apache-2.0
//! Compares segments of super-frames in tunnels with segments that are put into the same tunnels one by one.

use proptest::prelude::*;

use crate::ethernet::ETHERNET_BYTES;
use crate::segment::{TCP_CHECKSUM, UDP_CHECKSUM, tcp_segments};
use crate::view::Field;
use crate::{Depth, Layers, PacketBuilder, checksum, ipv6, locate, vlan};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const GRE_SUMMED: [u8; 8] = [0x80, 0, 0x65, 0x58, 0, 0, 0, 0];

/// Wraps an Ethernet frame in a tunnel. `id` is the identification of the outer IPv4 header.
type Tunnel = fn(frame: &[u8], id: u16) -> Vec<u8>;

fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn v4(id: u16) -> PacketBuilder {
    ethernet().ipv4(A, B).id(id)
}

fn put(outer: PacketBuilder, parts: &[&[u8]]) -> Vec<u8> {
    outer.payload(&parts.concat()).build()
}

fn vxlan(frame: &[u8], id: u16) -> Vec<u8> {
    put(v4(id).udp(5, 4789).no_udp_checksum(), &[&[8, 0, 0, 0, 0, 0, 7, 0], frame])
}

fn vxlan_summed(frame: &[u8], id: u16) -> Vec<u8> {
    let builder = ethernet().vlan(vlan::C_TAG, 5).ipv4(A, B).ipv4_options(&[1; 4]).id(id);
    put(builder.udp(5, 4789), &[&[0x88, 0, 0, 1, 0, 0, 7, 0], frame])
}

fn vxlan_v6(frame: &[u8], _: u16) -> Vec<u8> {
    put(ethernet().ipv6(A6, B6).udp(5, 8472), &[&[8, 0, 0, 0, 0, 0, 7, 0], frame])
}

/// Wraps a frame in Geneve with options. The first byte of this header is also valid for VXLAN.
fn geneve(frame: &[u8], id: u16) -> Vec<u8> {
    put(v4(id).udp(5, 6081), &[&[8, 0, 0x65, 0x58, 0, 0, 7, 0], &[3; 32], frame])
}

fn gretap(frame: &[u8], id: u16) -> Vec<u8> {
    put(v4(id).proto(47), &[&[0, 0, 0x65, 0x58], frame])
}

fn gre_with_key(frame: &[u8], _: u16) -> Vec<u8> {
    let builder = ethernet().ipv6(A6, B6).extension(ipv6::DESTINATION, &[4, 1, 4, 1, 1, 0]).proto(47);
    put(builder, &[&[0x20, 0], &frame[12..14], &[0, 0, 0, 9], &frame[ETHERNET_BYTES..]])
}

fn gre_summed(frame: &[u8], id: u16) -> Vec<u8> {
    let mut gre = [&GRE_SUMMED, frame].concat();
    checksum::l4(0, &gre).store(&mut gre[4..]);
    put(v4(id).proto(47), &[&gre])
}

fn ip_in_ip(frame: &[u8], id: u16) -> Vec<u8> {
    let proto = if frame[12..14] == [8, 0] { 4 } else { 41 };
    put(v4(id).proto(proto), &[&frame[ETHERNET_BYTES..]])
}

fn ip_in_udp(frame: &[u8], id: u16) -> Vec<u8> {
    put(v4(id).udp(5, 5555), &[&frame[ETHERNET_BYTES..]])
}

fn vxlan_behind_mpls(frame: &[u8], id: u16) -> Vec<u8> {
    let builder = ethernet().mpls(5, 0, 64).mpls(6, 0, 64);
    put(builder, &[&vxlan_summed_v4(frame, id)[ETHERNET_BYTES..]])
}

fn vxlan_summed_v4(frame: &[u8], id: u16) -> Vec<u8> {
    put(v4(id).udp(5, 4789), &[&[8, 0, 0, 0, 0, 0, 7, 0], frame])
}

fn nested(frame: &[u8], id: u16) -> Vec<u8> {
    vxlan_summed_v4(&ip_in_ip(frame, id), id)
}

fn nested_behind_mpls(frame: &[u8], id: u16) -> Vec<u8> {
    gre_summed(&vxlan_behind_mpls(frame, id), id)
}

const TUNNELS: &[Tunnel] = &[
    vxlan,
    vxlan_summed,
    vxlan_v6,
    geneve,
    gretap,
    gre_with_key,
    gre_summed,
    ip_in_ip,
    ip_in_udp,
    vxlan_behind_mpls,
    nested,
    nested_behind_mpls,
];

fn inner(is_v6: bool, id: u16, seq: u32, payload: &[u8]) -> Vec<u8> {
    let ip = if is_v6 { ethernet().ipv6(B6, A6) } else { ethernet().ipv4(B, A).id(id) };
    ip.tcp(1, 2).tcp_numbers(seq, 77).payload(payload).build()
}

/// Returns the super-frame in its tunnel, and the layers of the innermost packet. The inner checksum is
/// partial.
fn tunnelled(tunnel: Tunnel, mut frame: Vec<u8>, id: u16) -> (Vec<u8>, Layers) {
    let mut layers = locate(&frame, Depth::L4);
    let l4 = usize::from(layers.l4);
    let whole: u16 = Field::load(&frame[l4 + TCP_CHECKSUM..]);
    0u16.store(&mut frame[l4 + TCP_CHECKSUM..]);
    let summed = checksum::sum(&frame[l4..]);
    checksum::add(!whole, !summed).store(&mut frame[l4 + TCP_CHECKSUM..]);
    let out = tunnel(&frame, id);
    let before = (out.len() - frame.len()) as u16;
    (layers.l3, layers.l4, layers.l4_end) = (layers.l3 + before, layers.l4 + before, out.len() as u32);
    (out, layers)
}

proptest! {
    #[test]
    fn segments_equal_frames_tunnelled_one_by_one(
        tunnel in 0..TUNNELS.len(),
        is_v6: bool,
        payload in proptest::collection::vec(any::<u8>(), 1..2000),
        size in 100usize..900,
        id: u16,
        seq: u32,
    ) {
        let tunnel = TUNNELS[tunnel];
        let (frame, layers) = tunnelled(tunnel, inner(is_v6, 40, seq, &payload), id);
        let mut segments = tcp_segments(&frame, &layers, size).unwrap();
        let mut out = vec![0; segments.segment_len_max()];
        for (index, chunk) in payload.chunks(size).enumerate() {
            let len = segments.write_next(&mut out).unwrap();
            let count = index as u16;
            let seq = seq.wrapping_add((index * size) as u32);
            let expected = tunnel(&inner(is_v6, 40 + count, seq, chunk), id.wrapping_add(count));
            // The identifications of all outer IPv4 headers advance by the same steps.
            prop_assert_eq!(&out[..len], &expected);
        }
        prop_assert_eq!(segments.remaining(), 0);
    }

    /// A frame with damage at any position must give a result and never cause a panic. Segments must still
    /// have complete outer headers.
    #[test]
    fn damaged_super_frames_cause_no_panic(tunnel in 0..TUNNELS.len(), at in 0usize..150, value: u8, is_v6: bool) {
        let (mut frame, layers) = tunnelled(TUNNELS[tunnel], inner(is_v6, 1, 2, &[3; 500]), 9);
        let at = at % frame.len();
        frame[at] = value;
        if let Some(mut segments) = tcp_segments(&frame, &layers, 200) {
            let mut out = [0; 700];
            while segments.write_next(&mut out).is_some() {}
        }
    }
}

fn is_cut(tunnel: Tunnel) -> bool {
    let (frame, layers) = tunnelled(tunnel, inner(false, 1, 2, &[3; 500]), 9);
    tcp_segments(&frame, &layers, 200).is_some()
}

#[test]
fn super_frames_that_cannot_be_corrected_are_not_segmented() {
    assert!(TUNNELS.iter().all(|tunnel| is_cut(*tunnel)));
    let refused: &[(&str, Tunnel)] = &[
        ("GRE with sequence numbers", |frame, id| {
            put(v4(id).proto(47), &[&[0x10, 0, 0x65, 0x58, 0, 0, 0, 1], frame])
        }),
        ("GRE of another version", |frame, id| put(v4(id).proto(47), &[&[0, 1, 0x65, 0x58], frame])),
        ("GTP, which has a length", |frame, id| {
            put(v4(id).udp(2152, 2152), &[&[0x30, 255, 2, 8, 0, 0, 0, 7], &frame[ETHERNET_BYTES..]])
        }),
        ("an unknown protocol", |frame, id| put(v4(id).proto(50), &[&[0; 8], frame])),
        ("an outer fragment", |frame, id| {
            let udp = &vxlan(frame, id)[ETHERNET_BYTES + 20..];
            put(v4(id).ipv4_fragment(0, true).proto(17), &[udp])
        }),
        ("a length that ends before the packet", |frame, id| [&vxlan(frame, id)[..], &[0; 2]].concat()),
        ("too many outer headers", |frame, id| (0..9).fold(frame.to_vec(), |frame, _| ip_in_ip(&frame, id))),
    ];
    for (what, tunnel) in refused {
        assert!(!is_cut(*tunnel), "{what}");
    }
}

#[test]
fn a_partial_outer_udp_checksum_is_completed() {
    let (mut frame, layers) = tunnelled(vxlan_summed_v4, inner(false, 1, 2, &[3; 500]), 9);
    // Linux leaves the sum of the pseudo-header in this field.
    let open = checksum::pseudo_v4(A, B, 17, (frame.len() - 34) as u32);
    open.store(&mut frame[34 + UDP_CHECKSUM..]);
    let mut out = [0; 700];
    let len = tcp_segments(&frame, &layers, 200).unwrap().write_next(&mut out).unwrap();
    assert_eq!(out[..len], vxlan_summed_v4(&inner(false, 1, 2, &[3; 200]), 9));
}
