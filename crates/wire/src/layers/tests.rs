// SPDX-License-Identifier: Apache-2.0
//! Tests of the walk and of its fast parser, with frames written by hand and with random frames.

use super::{
    CommonGuard, Depth, ETH_TYPE_LLC, Layers, deepen, exthdr, header, is_untagged_ip, locate, locate_common,
};
use proptest::prelude::*;

/// Returns an Ethernet frame with two zero addresses, followed by `type_and_rest`.
fn frame(type_and_rest: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for part in type_and_rest {
        frame.extend_from_slice(part);
    }
    frame
}

fn ipv4(total_len: u16, fragment: u16, proto: u8) -> Vec<u8> {
    let [len_high, len_low] = total_len.to_be_bytes();
    let [fragment_high, fragment_low] = fragment.to_be_bytes();
    let mut ip = vec![0x45, 0xb8, len_high, len_low, 0, 0, fragment_high, fragment_low, 64, proto];
    ip.resize(20, 0);
    ip
}

fn ipv6(payload_len: u16, next: u8) -> Vec<u8> {
    let [len_high, len_low] = payload_len.to_be_bytes();
    let mut ip = vec![0x6b, 0x81, 0, 0, len_high, len_low, next, 64];
    ip.resize(40, 0);
    ip
}

/// Returns an IPv6 frame with extension headers, followed by `upper` of protocol `proto`. Each extension
/// header is given by its number, and by its bytes without the first byte.
fn with_extensions(extensions: &[(u8, &[u8])], proto: u8, upper: &[u8]) -> Layers {
    let first = extensions.first().map_or(proto, |extension| extension.0);
    let mut payload = Vec::new();
    for (index, (_, rest)) in extensions.iter().enumerate() {
        payload.push(extensions.get(index + 1).map_or(proto, |extension| extension.0));
        payload.extend_from_slice(rest);
    }
    payload.extend_from_slice(upper);
    let data = frame(&[&[0x86, 0xdd], &ipv6(payload.len() as u16, first), &payload]);
    let layers = locate(&data, Depth::L4);
    for first in [Depth::L2, Depth::L3] {
        let mut steps = locate(&data, first);
        deepen(&data, Depth::L4, &mut steps);
        assert_eq!(steps, layers, "in two steps");
    }
    assert_eq!(layers.l4_end as usize, data.len());
    layers
}

const OPTIONS: &[u8] = &[0, 1, 4, 0, 0, 0, 0];

#[test]
fn ip_headers_directly_behind_ethernet_are_recognised_as_by_the_walk() {
    let packets = [([0x08, 0x00], ipv4(40, 0, 6)), ([0x86, 0xdd], ipv6(20, 6))];
    for (is_ipv6, (eth_type, ip)) in [false, true].into_iter().zip(packets) {
        let whole = frame(&[&eth_type, &ip, &[0; 20]]);
        let agrees = |bytes: &[u8]| {
            let layers = locate(bytes, Depth::L3);
            let kind = if is_ipv6 { header::IPV6 } else { header::IPV4 };
            let walked = layers.l3 == 14 && layers.present & kind != 0;
            let has_options = walked && !is_ipv6 && bytes[14] != 0x45;
            assert_eq!(is_untagged_ip(bytes, is_ipv6), walked && !has_options, "{bytes:02x?}");
        };
        assert!(is_untagged_ip(&whole, is_ipv6));
        (0..=whole.len()).for_each(|len| agrees(&whole[..len]));
        for at in 12..30 {
            for byte in 0..=255 {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                agrees(&bytes);
            }
        }
    }
}

#[test]
fn frames_below_14_bytes_have_no_headers() {
    for len in 0..14 {
        let layers = locate(&vec![0x08; len], Depth::L4);
        assert_eq!(layers, Layers { depth: Depth::L4, ..Layers::default() });
    }
}

#[test]
fn depth_bounds_the_walk() {
    let data = frame(&[&[0x81, 0, 0x20, 5, 8, 0], &ipv4(40, 0, 6), &[0; 20]]);
    assert_eq!(locate(&data, Depth::None), Layers::default());
    let l2 = locate(&data, Depth::L2);
    assert_eq!((l2.present, l2.eth_type, l2.vlan_tci), (header::VLAN, 0x0800, 0x2005));
    let l3 = locate(&data, Depth::L3);
    assert_eq!(l3.present, header::VLAN | header::IPV4 | header::IP);
    assert_eq!((l3.ip_proto, l3.ip_tos, l3.l3, l3.l4, l3.l4_end), (6, 0xb8, 18, 38, 58));
    let l4 = locate(&data, Depth::L4);
    assert_eq!(l4, Layers { present: l3.present | header::TCP, depth: Depth::L4, ..l3 });
}

#[test]
fn vlan_tags_are_skipped_up_to_the_limit() {
    let tag: &[u8] = &[0x88, 0xa8, 0xe0, 7];
    let eight = frame(&[&tag.repeat(8), &[8, 6]]);
    let layers = locate(&eight, Depth::L4);
    assert_eq!((layers.present, layers.eth_type, layers.vlan_tci), (header::VLAN, 0x0806, 0xe007));
    assert_eq!((layers.type_at, layers.l3), (44, 46));
    let nine = frame(&[&tag.repeat(9), &[8, 0], &ipv4(20, 0, 6)]);
    let layers = locate(&nine, Depth::L4);
    assert_eq!((layers.present, layers.eth_type), (header::VLAN, 0x88a8));
}

#[test]
fn a_truncated_vlan_tag_does_not_count() {
    let whole = frame(&[&[0x81, 0, 0, 1, 0x91, 0, 0, 2, 8, 0]]);
    for (len, present, eth_type) in [
        (14, 0, 0x8100),
        (17, 0, 0x8100),
        (18, header::VLAN, 0x9100),
        (21, header::VLAN, 0x9100),
        (22, header::VLAN, 0x0800),
    ] {
        let layers = locate(&whole[..len], Depth::L4);
        assert_eq!((layers.present, layers.eth_type), (present, eth_type), "{len} bytes");
    }
}

#[test]
fn llc_and_snap() {
    let plain = locate(&frame(&[&[0, 38, 0x42, 0x42, 3], &[0; 35]]), Depth::L4);
    assert_eq!((plain.eth_type, plain.type_at), (ETH_TYPE_LLC, 12));
    let snap = frame(&[&[0, 50, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ipv4(28, 0, 17), &[0; 8]]);
    let layers = locate(&snap, Depth::L4);
    assert_eq!((layers.eth_type, layers.type_at, layers.l3), (0x0800, 20, 22));
    assert_eq!(layers.present, header::IPV4 | header::IP | header::UDP);
    assert_eq!(locate(&snap[..21], Depth::L4).eth_type, ETH_TYPE_LLC);
    let oui = frame(&[&[0, 50, 0xaa, 0xaa, 3, 0, 0, 0x0c, 8, 0]]);
    assert_eq!(locate(&oui, Depth::L4).eth_type, ETH_TYPE_LLC);
}

#[test]
fn shims_and_arp() {
    for (kind, bit) in
        [([0x88, 0x47], header::MPLS), ([0x88, 0x48], header::MPLS), ([0x88, 0xe7], header::PBB)]
    {
        assert_eq!(locate(&frame(&[&kind, &[0; 4]]), Depth::L4).present, bit);
        assert_eq!(locate(&frame(&[&kind, &[0; 3]]), Depth::L4).present, 0);
        assert_eq!(locate(&frame(&[&kind, &[0; 4]]), Depth::L2).present, 0);
    }
    let arp = frame(&[&[8, 6, 0, 1, 8, 0, 6, 4], &[0; 22]]);
    assert_eq!(locate(&arp, Depth::L3).present, header::ARP);
    assert_eq!(locate(&arp[..41], Depth::L3).present, 0);
    let infiniband = frame(&[&[8, 6, 0, 32, 8, 0, 6, 4], &[0; 22]]);
    assert_eq!(locate(&infiniband, Depth::L3).present, 0);
}

#[test]
fn inconsistent_ipv4_headers_are_absent() {
    let good = ipv4(20, 0, 1);
    assert_eq!(locate(&frame(&[&[8, 0], &good]), Depth::L4).present, header::IPV4 | header::IP);
    for (at, value) in [(0, 0x65), (0, 0x44), (0, 0x46), (3, 19)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(locate(&frame(&[&[8, 0], &bad]), Depth::L4).present, 0, "byte {at} = {value:#x}");
    }
}

#[test]
fn padding_is_not_payload() {
    // A UDP header does not fit into a packet with a total length of 27 bytes, even if more bytes follow in
    // the frame.
    let cut = locate(&frame(&[&[8, 0], &ipv4(27, 0, 17), &[0; 26]]), Depth::L4);
    assert_eq!((cut.present, cut.l4_end), (header::IPV4 | header::IP, 41));
    let whole = locate(&frame(&[&[8, 0], &ipv4(28, 0, 17), &[0; 26]]), Depth::L4);
    assert_eq!((whole.present, whole.l4_end), (header::IPV4 | header::IP | header::UDP, 42));
}

#[test]
fn ipv4_fragments() {
    let ip = header::IPV4 | header::IP;
    for (bits, present, fragment) in [
        (0x4000, ip | header::UDP, false),
        (0x2000, ip | header::UDP, true),
        (0x2001, ip, true),
        (1, ip, true),
    ] {
        let layers = locate(&frame(&[&[8, 0], &ipv4(28, bits, 17), &[0; 8]]), Depth::L4);
        assert_eq!((layers.present, layers.fragment), (present, fragment), "{bits:#x}");
    }
}

#[test]
fn upper_layers_need_their_whole_header() {
    for (proto, len, bit) in
        [(6, 20, header::TCP), (17, 8, header::UDP), (132, 12, header::SCTP), (1, 4, header::ICMPV4)]
    {
        let whole = locate(&frame(&[&[8, 0], &ipv4(1000, 0, proto), &vec![0; len]]), Depth::L4);
        assert_eq!(whole.present, header::IPV4 | header::IP | bit);
        let cut = locate(&frame(&[&[8, 0], &ipv4(1000, 0, proto), &vec![0; len - 1]]), Depth::L4);
        assert_eq!(cut.present, header::IPV4 | header::IP);
    }
    let icmpv6_in_v4 = locate(&frame(&[&[8, 0], &ipv4(100, 0, 58), &[0; 80]]), Depth::L4);
    assert_eq!(icmpv6_in_v4.present, header::IPV4 | header::IP);
    let icmpv4_in_v6 = with_extensions(&[], 1, &[0; 8]);
    assert_eq!(icmpv4_in_v6.present, header::IPV6 | header::IP);
    assert_eq!(icmpv4_in_v6.ip_tos, 0xb8);
}

#[test]
fn extension_headers_in_the_recommended_order() {
    let ah: &[u8] = &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let all: &[(u8, &[u8])] =
        &[(0, OPTIONS), (60, OPTIONS), (43, OPTIONS), (44, &[0; 7]), (51, ah), (60, OPTIONS)];
    let layers = with_extensions(all, 6, &[0; 20]);
    assert_eq!(layers.present, header::IPV6 | header::IP | header::TCP);
    assert_eq!((layers.ip_proto, layers.l4, layers.fragment), (6, 54 + 5 * 8 + 12, false));
    let bits = exthdr::HOP | exthdr::DEST | exthdr::ROUTER | exthdr::FRAG | exthdr::AUTH;
    assert_eq!(layers.exthdr, bits);
    let mobility = with_extensions(&[(135, OPTIONS)], 59, &[]);
    assert_eq!((mobility.ip_proto, mobility.exthdr), (59, exthdr::NONEXT));
    let esp = with_extensions(&[(60, OPTIONS)], 50, &[0; 40]);
    assert_eq!((esp.ip_proto, esp.exthdr), (50, exthdr::DEST | exthdr::ESP));
}

#[test]
fn extension_headers_out_of_order_or_repeated() {
    use exthdr::{DEST, FRAG, HOP, ROUTER, UNREP, UNSEQ};
    let cases: &[(&[u8], u16)] = &[
        (&[60, 0], DEST | UNSEQ),
        (&[0, 0], HOP | UNREP | UNSEQ),
        (&[60, 60], DEST),
        (&[60, 60, 60], DEST | UNREP),
        (&[60, 43, 60, 60], DEST | ROUTER | UNREP),
        (&[60, 60, 43], DEST | ROUTER | UNSEQ),
        (&[43, 43], ROUTER | UNREP),
        (&[44, 43], ROUTER | FRAG | UNSEQ),
        (&[43, 44, 43], ROUTER | FRAG | UNREP | UNSEQ),
        (&[135, 43, 135], ROUTER | UNREP),
    ];
    for (numbers, bits) in cases {
        let headers: Vec<(u8, &[u8])> =
            numbers.iter().map(|&number| (number, if number == 44 { &[0; 7] } else { OPTIONS })).collect();
        let layers = with_extensions(&headers, 17, &[0; 8]);
        assert_eq!(layers.exthdr, *bits, "{numbers:?}");
        assert_eq!(layers.present, header::IPV6 | header::IP | header::UDP);
    }
}

#[test]
fn extension_headers_up_to_the_limit() {
    let many: Vec<(u8, &[u8])> = vec![(60, OPTIONS); 17];
    let at_limit = with_extensions(&many[..16], 17, &[0; 8]);
    assert_eq!((at_limit.ip_proto, at_limit.present & header::UDP), (17, header::UDP));
    let beyond = with_extensions(&many, 17, &[0; 8]);
    assert_eq!((beyond.ip_proto, beyond.present & header::UDP), (60, 0));
}

#[test]
fn a_truncated_extension_header_ends_the_walk() {
    let cut = with_extensions(&[(0, OPTIONS)], 43, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((cut.ip_proto, cut.exthdr), (43, exthdr::HOP));
    assert_eq!(cut.present, header::IPV6 | header::IP);
}

#[test]
fn ipv6_fragments() {
    let first = with_extensions(&[(44, &[0, 0, 1, 0, 0, 0, 9])], 17, &[0; 8]);
    assert_eq!((first.present & header::UDP, first.fragment), (header::UDP, true));
    let later = with_extensions(&[(44, &[0, 0, 8, 0, 0, 0, 9])], 60, &[17, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((later.present, later.fragment), (header::IPV6 | header::IP, true));
    assert_eq!((later.ip_proto, later.exthdr), (60, exthdr::FRAG));
}

#[test]
fn jumbo_payload_reaches_the_frame_end() {
    let hop: &[u8] = &[17, 0, 0xc2, 4, 0, 0, 0, 16];
    let data = frame(&[&[0x86, 0xdd], &ipv6(0, 0), hop, &[0; 8]]);
    let layers = locate(&data, Depth::L4);
    assert_eq!((layers.present & header::UDP, layers.l4_end), (header::UDP, 70));
    let empty = locate(&frame(&[&[0x86, 0xdd], &ipv6(0, 17), &[0; 8]]), Depth::L4);
    assert_eq!((empty.present, empty.l4_end), (header::IPV6 | header::IP, 54));
}

fn neighbour(kind: u8, code: u8, options: &[u8]) -> Layers {
    let mut icmp = vec![kind, code];
    icmp.resize(24, 0);
    icmp.extend_from_slice(options);
    with_extensions(&[], 58, &icmp)
}

#[test]
fn neighbour_discovery() {
    let icmpv6 = header::IPV6 | header::IP | header::ICMPV6;
    let nonce: &[u8] = &[14, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let source: &[u8] = &[1, 1, 2, 0, 0, 0, 0, 1];
    let target: &[u8] = &[2, 1, 2, 0, 0, 0, 0, 2];
    let both = [nonce, source, target].concat();
    let solicitation = neighbour(135, 0, &both);
    assert_eq!(solicitation.present, icmpv6 | header::ND | header::ND_SLL);
    assert_eq!(solicitation.nd_sll, 54 + 24 + 16 + 2);
    let advertisement = neighbour(136, 0, &both);
    assert_eq!(advertisement.present, icmpv6 | header::ND | header::ND_TLL);
    assert_eq!(advertisement.nd_tll, 54 + 24 + 24 + 2);
    assert_eq!(neighbour(135, 1, source).present, icmpv6);
    assert_eq!(neighbour(134, 0, source).present, icmpv6);
    assert_eq!(neighbour(135, 0, target).present, icmpv6 | header::ND);
    assert_eq!(neighbour(135, 0, &source[..7]).present, icmpv6 | header::ND);
    assert_eq!(neighbour(135, 0, &[&[9, 0], source].concat()).present, icmpv6 | header::ND);
    assert_eq!(with_extensions(&[], 58, &[135, 0, 0, 0]).present, icmpv6);
}

/// Returns the bytes of up to two VLAN tags, followed by an EtherType and an IPv4 or IPv6 header. One packet
/// in ten has the EtherType and the header of another protocol, and one has a random EtherType and no header.
fn some_headers() -> impl Strategy<Value = Vec<u8>> {
    let tpid = prop::sample::select(vec![[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]]);
    let tags = prop::collection::vec((tpid, any::<[u8; 2]>()), 0..3);
    let proto = prop::sample::select(vec![6, 6, 17, 17, 1, 58, 132, 0, 44, 59]);
    let ip = prop_oneof![
        4 => (0..100u16, prop::sample::select(vec![0, 0, 0x4000, 0x2000, 1]), proto.clone())
            .prop_map(|(len, fragment, proto)| [&[8, 0], &ipv4(len, fragment, proto)[..]].concat()),
        4 => (0..100u16, proto)
            .prop_map(|(len, next)| [&[0x86, 0xdd], &ipv6(len, next)[..]].concat()),
        1 => prop::sample::select(without_ip()),
        1 => any::<[u8; 2]>().prop_map(Vec::from),
    ];
    (tags, ip).prop_map(|(tags, ip)| {
        let tags = tags.iter().flat_map(|(tpid, tci)| [*tpid, *tci].concat());
        tags.chain(ip).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn common_packets_are_found_as_by_the_walk(
        headers in some_headers(),
        payload in prop::collection::vec(any::<u8>(), 0..60),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in 0..4usize,
    ) {
        let mut data = frame(&[&headers, &payload]);
        for (at, byte) in mutations {
            let at = at.index(data.len());
            data[at] = byte;
        }
        data.truncate(data.len() - cut);
        // A packet that is not common must keep the result of the earlier walk.
        let before = locate(&data, Depth::L2);
        let mut found = before;
        let is_common = locate_common(&data, &mut found);
        let right = if is_common { locate(&data, Depth::L4) } else { before };
        prop_assert_eq!(found, right);
        // Bytes of an earlier packet follow in the buffer, as in a buffer that is reused.
        let len = data.len();
        data.extend_from_slice(&common_frames()[cut]);
        let start = data.first_chunk::<64>().unwrap();
        let to_type = locate(&data[..len], Depth::L2);
        let facts = |layers: &Layers| (layers.present, layers.type_at, layers.eth_type);
        if let Some(guard) = CommonGuard::new(&to_type) {
            let is_other_tag = to_type.present != 0 && start[12..14] != [0x81, 0];
            prop_assert_eq!(guard.recognises(len, start), !is_other_tag);
            prop_assert!(!guard.at_least(len + 1).recognises(len, start));
        }
        // A guard made from a frame that ends within its tag must not recognise complete frames with such a
        // tag.
        for other in [[0x08, 0], [0x86, 0xdd], [0x81, 0], [0x88, 0xa8], [data[12], data[13]]] {
            for seen in [frame(&[&other]), frame(&[&[0x81, 0, 0, 7], &other]), frame(&[&other, &[0; 3]])] {
                let short = locate(&seen, Depth::L2);
                let recognised = CommonGuard::new(&short).is_some_and(|guard| guard.recognises(len, start));
                prop_assert!(!recognised || facts(&short) == facts(&to_type));
            }
        }
        let has_other_tag = to_type.present != 0 && start[12..14] != [0x81, 0];
        for depth in [Depth::L3, Depth::L4] {
            let own = locate(&data[..len], depth);
            let facts = |layers: &Layers| (facts(layers), layers.l3, layers.l4, layers.ip_proto, layers.exthdr);
            if let Some(guard) = CommonGuard::new(&own) {
                let is_ip = own.present & header::IP != 0;
                prop_assert_eq!(guard.recognises(len, start), (is_common || !is_ip) && !has_other_tag);
            }
            for frame in guarded_frames() {
                let other = locate(&frame, depth);
                let recognised = CommonGuard::new(&other).is_some_and(|guard| guard.recognises(len, start));
                prop_assert!(!recognised || facts(&own) == facts(&other));
            }
        }
        for layers in common_frames().iter().map(|frame| locate(frame, Depth::L4)) {
            let headers = |layers: &Layers| (layers.present, layers.l3, layers.l4);
            let other_tag = layers.l3 == 18 && start[12..14] != [0x81, 0];
            let suits = is_common && headers(&found) == headers(&layers) && !other_tag;
            prop_assert_eq!(CommonGuard::new(&layers).unwrap().recognises(len, start), suits);
        }
    }
}

#[test]
fn an_ethertype_is_recognised_behind_its_tags_only() {
    const TAG: [u8; 4] = [0x81, 0, 0, 7];
    let types = [[0x08, 0], [0x86, 0xdd], [0x08, 0x06], [0x12, 0x34], [0x81, 0], [0x88, 0xa8], [0x02, 0]];
    // With the EtherType of a tag, these frames end within the tag.
    let plain = types.map(|eth_type: [u8; 2]| frame(&[&eth_type, &[7; 3]]));
    let tagged = types.map(|eth_type: [u8; 2]| frame(&[&TAG, &eth_type, &[7; 3]]));
    let frames = [plain, tagged].concat();
    let start = |frame: &[u8]| *[frame, &[7; 64]].concat().first_chunk::<64>().unwrap();
    for (number, seen) in frames.iter().enumerate() {
        let Some(guard) = CommonGuard::new(&locate(seen, Depth::L2)) else {
            assert!(number % types.len() >= 4, "{seen:02x?}");
            continue;
        };
        for (other, frame) in frames.iter().enumerate() {
            let recognised = guard.recognises(frame.len(), &start(frame));
            assert_eq!(recognised, number == other, "{seen:02x?} {frame:02x?}");
        }
        let least = if number < types.len() { 14 } else { 18 };
        assert!(guard.recognises(least, &start(seen)) && !guard.recognises(least - 1, &start(seen)));
    }
}

/// Returns the EtherType and the header of packets without IP.
fn without_ip() -> Vec<Vec<u8>> {
    let arp = [&[8, 6, 0, 1, 8, 0, 6, 4][..], &[7; 20]].concat();
    let others = [[0x88, 0x47], [0x88, 0x48], [0x88, 0xe7], [0x12, 0x34]];
    let complete = others.map(|eth_type| [&eth_type[..], &[1; 8]].concat());
    let cut = [&arp[..20], &complete[0][..5], &complete[2][..5]].map(<[u8]>::to_vec);
    [&[arp][..], &complete, &cut].concat()
}

/// Returns one frame for each combination of headers that a guard recognises, and some frames with incomplete
/// headers.
fn guarded_frames() -> Vec<Vec<u8>> {
    let tags: [&[u8]; 2] = [&[], &[0x81, 0, 0x20, 5]];
    let others = without_ip().into_iter().flat_map(|header| tags.map(|tag| frame(&[tag, &header])));
    common_frames().into_iter().chain(others).collect()
}

/// Returns one frame for each combination of headers that common packets have.
fn common_frames() -> Vec<Vec<u8>> {
    let tags: [&[u8]; 2] = [&[], &[0x81, 0, 0x20, 5]];
    let both = tags.into_iter().flat_map(|tag| [(tag, 6, 20), (tag, 17, 8)]);
    both.flat_map(|(tag, proto, upper)| {
        let v4 = frame(&[tag, &[8, 0], &ipv4(20 + upper as u16, 0, proto), &vec![7; upper + 20]]);
        let v6 = frame(&[tag, &[0x86, 0xdd], &ipv6(upper as u16, proto), &vec![7; upper + 20]]);
        [v4, v6]
    })
    .collect()
}

#[test]
fn common_packets_are_recognised_at_their_least_length() {
    let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0x20, 5], &[0x88, 0xa8, 0xe0, 7]];
    for tag in tags {
        for (proto, upper) in [(6, 20), (17, 8)] {
            let v4 = frame(&[tag, &[8, 0], &ipv4(20 + upper as u16, 0, proto), &vec![7; upper]]);
            let v6 = frame(&[tag, &[0x86, 0xdd], &ipv6(upper as u16, proto), &vec![7; upper]]);
            for mut data in [v4, v6] {
                let least = data.len();
                // The fast parser does not handle frames below 58 bytes, even if the packet is complete. Such
                // frames are padded here.
                data.resize(least.max(58), 0);
                let mut found = Layers::default();
                assert!(locate_common(&data, &mut found));
                assert_eq!((found, found.l4_end as usize), (locate(&data, Depth::L4), least));
                data.truncate(least - 1);
                assert!(!locate_common(&data, &mut found));
            }
        }
    }
}
