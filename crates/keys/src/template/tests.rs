// SPDX-License-Identifier: Apache-2.0
//! Tests that templates give the same keys as [`KeyReader::general_key`].

use super::*;
use crate::plan::{ExpressPlan, PlanVersion};
use flow::Field;
use frame::Frame;
use wire::{PacketBuilder, locate_common};

/// Returns packets with all common combinations of headers. Their addresses and ports depend on `number`.
fn common(number: u8) -> Vec<Vec<u8>> {
    let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, number], [2, 0, 0, 0, 1, number]);
    let tagged = || ethernet().vlan(0x8100, 0x6000 | u16::from(number));
    let (source, target) = ([0x20, number, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [9; 16]);
    let upper = |ip: PacketBuilder| {
        [ip.clone().udp(number.into(), 53), ip.tcp(7_000, number.into())]
            .map(|packet| packet.payload(&[number; 60]).build())
    };
    let both = |outer: PacketBuilder| {
        let v4 = upper(outer.clone().ipv4([10, 0, 0, number], [10, 1, number, 1]));
        let v6 = upper(outer.ipv6(source, target));
        v4.into_iter().chain(v6)
    };
    both(ethernet()).chain(both(tagged())).collect()
}

#[test]
fn templates_give_the_keys_of_the_general_way() {
    let mut made = 0;
    for count in 1..Field::NAMED.len() {
        let fields = Field::NAMED.iter().cycle().skip(count * 7).take(count);
        let mut examined: Vec<_> = fields.map(|field| (*field, field.full_mask())).collect();
        examined.sort_unstable();
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
        let Some(reader) = plan.reader() else { continue };
        let mut templates = Templates::default();
        let words = reader.hashed_words();
        for (number, bytes) in (1..4).flat_map(|number| common(number).into_iter().map(move |b| (number, b)))
        {
            let frame = Frame::from_bytes(&bytes);
            let mut found = Layers::default();
            assert!(locate_common(frame.bytes(), &mut found));
            // What the words held before must not matter.
            let mut keys = [ExpressKey::default(); 2];
            keys[0].words_mut()[..words].fill(!0);
            let (port, bytes) = (PortNo(number.into()), frame.window().first_chunk().unwrap());
            templates.begin(reader, port);
            let template = templates.choose(reader, &found).unwrap();
            assert!(template.recognises(frame.len(), bytes));
            match words {
                1 => template.write::<1>(None, bytes, &mut keys[0]),
                2 => template.write::<2>(None, bytes, &mut keys[0]),
                3 => template.write::<3>(None, bytes, &mut keys[0]),
                4 => template.write::<4>(None, bytes, &mut keys[0]),
                _ => template.write::<14>(None, bytes, &mut keys[0]),
            }
            reader.general_key(frame.bytes(), &found, port, &mut keys[1]);
            assert_eq!(keys[0].words(), keys[1].words(), "{count} fields, {bytes:02x?}");
            made += 1;
        }
    }
    assert!(made > 500, "{made}");
}

#[test]
fn the_two_templates_used_last_are_remembered() {
    let examined = vec![(Field::EthDst, Field::EthDst.full_mask()), (Field::IpProto, 0xff)];
    let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
    let (reader, mut templates) = (plan.reader().unwrap(), Templates::default());
    let frames: Vec<Frame> = common(1)[..3].iter().map(|bytes| Frame::from_bytes(bytes)).collect();
    for frame in &frames {
        let mut found = Layers::default();
        assert!(locate_common(frame.bytes(), &mut found));
        assert!(templates.choose(reader, &found).is_some());
    }
    let recent = |templates: &Templates| templates.recent().map(|template| template.index);
    assert_eq!(recent(&templates), [2, 1]);
    for (number, expected) in [(2, [2, 1]), (0, [0, 2]), (0, [0, 2]), (2, [2, 0])] {
        let frame = &frames[number];
        assert!(templates.find(frame.len(), frame.start().unwrap()));
        assert_eq!(recent(&templates), expected);
    }
    let other = Frame::from_bytes(&[0x55; 80]);
    assert!(!templates.find(other.len(), other.start().unwrap()));
    assert_eq!(recent(&templates), [2, 0]);
}

/// Returns packets with different tags, EtherTypes and lengths.
fn any_packets() -> Vec<Vec<u8>> {
    let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 7], [0x81, 0, 0x81, 0, 8, 0]);
    let tags: [&[(u16, u16)]; 9] = [
        &[],
        &[(0x8100, 0x0123)],
        &[(0x8100, 0xf123)],
        // Priority tags. The second one has the DEI bit, in whose place the extended header shows that there
        // is a tag.
        &[(0x8100, 0xe000)],
        &[(0x8100, 0x1000)],
        &[(0x88a8, 0x0123)],
        &[(0x9100, 0x2fff)],
        &[(0x88a8, 0x0123), (0x8100, 0x0456)],
        &[(0x8100, 0x0123), (0x8100, 0x0456)],
    ];
    let mut packets = Vec::new();
    for tags in tags {
        let outer = tags.iter().fold(ethernet(), |outer, (tpid, tci)| outer.vlan(*tpid, *tci));
        let ip4 = outer.clone().ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
        let ip6 = outer.clone().ipv6([0x20; 16], [0x30; 16]);
        let complete = [
            ip4.clone().udp(1, 2),
            ip4.clone().tcp(3, 4),
            ip4.clone().ipv4_options(&[1; 4]).udp(1, 2),
            ip4.clone().ipv4_fragment(0, true).udp(1, 2),
            ip4.clone().icmpv4(8, 0, [0; 4]),
            ip6.clone().udp(5, 6),
            ip6.clone().tcp(7, 8),
            outer.clone().arp(1, [3; 6], [4; 4], [5; 6], [6; 4]),
            outer.clone().mpls(5, 0, 64),
            outer.clone().ethertype(0x1234),
            outer.clone().ethertype(0x0806),
            outer.clone().ethertype(0x0044),
        ]
        .map(|packet| packet.payload(&[9; 40]).build());
        // In these packets, the ToS byte or the traffic class is not 0.
        let l3 = 14 + 4 * tags.len();
        let marked = [0, 1, 5, 6].map(|number: usize| {
            let mut packet = complete[number].clone();
            packet[l3] |= u8::from(number > 4) * 0x0b;
            packet[l3 + 1] |= 0x94;
            packet
        });
        let cut = [&complete[0], &complete[5], &complete[7], &complete[8]]
            .into_iter()
            .flat_map(|packet| [14, 15, 16, 17, 18, 20, 40, 57].map(|len| packet[..len].to_vec()));
        packets.extend(complete.iter().cloned().chain(marked).chain(cut));
    }
    packets
}

/// Writes a key by a template that recognises the packet, else without.
fn key_of(
    reader: &KeyReader,
    templates: &mut Templates,
    frame: &Frame,
    in_port: PortNo,
    vbmi: Option<Vbmi>,
) -> (ExpressKey, bool) {
    let (mut key, words) = (ExpressKey::default(), reader.hashed_words());
    let bytes = frame.start().unwrap();
    templates.begin(reader, in_port);
    let recognised = templates.find(frame.len(), bytes);
    let mut layers = Layers::NONE;
    if !recognised && (reader.depth() < Depth::L3 || !locate_common(frame.bytes(), &mut layers)) {
        wire::deepen(frame.bytes(), reader.depth(), &mut layers);
    }
    let template = if recognised { templates.last() } else { templates.choose(reader, &layers) };
    match template.filter(|template| template.suits(frame.len())) {
        Some(template) if words == 1 => template.write::<1>(vbmi, bytes, &mut key),
        Some(template) if words == 2 => template.write::<2>(vbmi, bytes, &mut key),
        Some(template) if words <= 8 => template.write::<8>(vbmi, bytes, &mut key),
        Some(template) => template.write::<14>(vbmi, bytes, &mut key),
        None => {
            assert!(!recognised);
            reader.general_key(frame.bytes(), &layers, in_port, &mut key);
        }
    }
    (key, recognised)
}

fn is_key_of(reader: &KeyReader, key: &ExpressKey, frame: &Frame, in_port: PortNo) -> bool {
    let mut general = ExpressKey::default();
    reader.key_of(frame.bytes(), in_port, &mut general);
    general.words() == key.words()
}

#[test]
fn a_recognised_packet_has_the_key_of_the_general_way() {
    use Field::*;
    let plans: [&[Field]; 8] = [
        &[VlanVid],
        &[EthDst, EthSrc, VlanVid],
        &[VlanPcp, EthType],
        &[EthDst, VlanVid, EthType, Ipv4Dst],
        &[VlanVid, VlanPcp, IpDscp, IpEcn, IpProto, UdpDst, TcpDst],
        &[IpDscp, Ipv6Dst, Ipv6Exthdr],
        &[ArpTpa, MplsLabel, EthType, VlanPcp],
        &[EthType, IpEcn],
    ];
    let (packets, mut recognised_tags) = (any_packets(), 0);
    for fields in plans {
        let examined = fields.iter().map(|field| (*field, field.full_mask())).collect();
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
        let reader = plan.reader().unwrap();
        // The order of the packets decides which of them get a template.
        for (step, vbmi) in
            [1, 7, 101, 211].into_iter().flat_map(|step| [(step, None), (step, Vbmi::detect())])
        {
            let mut templates = Templates::default();
            for number in 0..2 * packets.len() {
                let bytes = &packets[number * step % packets.len()];
                let (frame, in_port) = (Frame::from_bytes(bytes), PortNo(1 + (number as u32 / 32) % 3));
                let (key, recognised) = key_of(reader, &mut templates, &frame, in_port, vbmi);
                assert!(is_key_of(reader, &key, &frame, in_port), "{fields:?} {bytes:02x?}");
                recognised_tags += usize::from(recognised && bytes[12..14] == [0x81, 0]);
            }
        }
    }
    assert!(recognised_tags > 1_000, "{recognised_tags}");
}

/// Writes the key of a frame by the template of all packets, or returns `None` if the frame is too short.
fn flat_key(flat: &FlatTemplate, words: usize, frame: &Frame) -> Option<ExpressKey> {
    let mut key = ExpressKey::default();
    match flat {
        FlatTemplate::Near(template) => {
            let window = frame.start_of(template.len_min())?;
            match words {
                1 => template.write::<1>(None, window, &mut key),
                2 => template.write::<2>(None, window, &mut key),
                3..=8 => template.write::<8>(None, window, &mut key),
                _ => template.write::<14>(None, window, &mut key),
            }
            if let Some(loads) = template.single_loads::<14>() {
                let mut other = ExpressKey::default();
                loads.write(window, &mut other);
                assert_eq!(key.words(), other.words());
            }
        }
        FlatTemplate::Far(template) => {
            let window = frame.start_of(template.len_min())?;
            match words {
                1 => template.write_far::<1>(window, &mut key),
                2 => template.write_far::<2>(window, &mut key),
                3..=8 => template.write_far::<8>(window, &mut key),
                _ => template.write_far::<14>(window, &mut key),
            }
        }
    }
    assert!(key.words()[words..].iter().all(|word| *word == 0));
    Some(key)
}

/// Slices at all bit positions, near the start of the packet and beyond the bytes of near templates, and
/// frames that end in the middle of a slice.
#[test]
fn the_template_of_all_packets_gives_the_keys_of_the_general_way() {
    let slice = |bit, bits| Field::Slice(flow::Slice::new(flow::SliceBase::Packet, bit, bits).unwrap());
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut near, mut far, mut none) = (0, 0, 0);
    for case in 0..800 {
        let (count, end) = (rng.u32(1..7), [480, 600, 1_000, 1_000][rng.usize(0..4)]);
        let mut fields: Vec<_> = (0..count).map(|_| slice(rng.u32(0..end), rng.u32(1..=128))).collect();
        fields.push(Field::EthDst);
        let masked = fields.into_iter().map(|field| (field, field.full_mask() & rng.u128(..)));
        let mut examined: Vec<_> = masked.filter(|(_, mask)| *mask != 0).collect();
        examined.sort_unstable();
        examined.dedup_by_key(|(field, _)| *field);
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
        let Some(reader) = plan.reader() else { continue };
        let mut templates = Templates::default();
        for number in 0..8 {
            let in_port = PortNo(1 + number % 3);
            templates.begin(reader, in_port);
            let Some(flat) = templates.flat(reader) else {
                none += 1;
                break;
            };
            let bytes: Vec<u8> = (0..rng.usize(14..200)).map(|_| rng.u8(..)).collect();
            let frame = Frame::from_bytes(&bytes);
            let Some(key) = flat_key(flat, reader.hashed_words(), &frame) else { continue };
            assert!(is_key_of(reader, &key, &frame, in_port), "case {case}: {bytes:02x?}");
            *(if matches!(flat, FlatTemplate::Near(_)) { &mut near } else { &mut far }) += 1;
        }
    }
    assert!(near > 400 && far > 400 && none > 10, "{near} and {far} keys, {none} plans without a template");
}

#[test]
fn a_plan_that_needs_headers_has_no_template_of_all_packets() {
    for (field, has_template) in [(Field::EthDst, true), (Field::VlanVid, false), (Field::Ipv4Dst, false)] {
        let plan = ExpressPlan::new(PlanVersion(1), vec![(field, field.full_mask())], PortNo(70));
        let mut templates = Templates::default();
        for _ in 0..2 {
            assert_eq!(templates.flat(plan.reader().unwrap()).is_some(), has_template, "{field:?}");
        }
    }
}

/// The slice is too far from the start in packets with TCP or UDP. Other packets have templates.
#[test]
fn packets_without_a_template_are_remembered() {
    let slice = Field::Slice(flow::Slice::new(flow::SliceBase::L4, 320, 16).unwrap());
    let plan = ExpressPlan::new(PlanVersion(1), vec![(slice, 0xffff)], PortNo(70));
    let (reader, mut templates) = (plan.reader().unwrap(), Templates::default());
    for _ in 0..3 {
        for bytes in common(1) {
            let mut found = Layers::default();
            assert!(locate_common(&bytes, &mut found));
            assert!(templates.choose(reader, &found).is_none());
        }
        assert_eq!(templates.refused.len(), common(1).len());
    }
    let arp =
        PacketBuilder::ethernet([2; 6], [4; 6]).arp(1, [3; 6], [4; 4], [5; 6], [6; 4]).pad_to(60).build();
    let mut found = Layers::default();
    wire::deepen(&arp, reader.depth(), &mut found);
    assert!(templates.choose(reader, &found).is_some());
}
