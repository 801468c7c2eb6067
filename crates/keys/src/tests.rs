// SPDX-License-Identifier: Apache-2.0
//! Tests of plans and keys. Crate `oracle` compares keys with the reference, with random rules.

use super::*;
use crate::conditions::{Condition, Facts};
use crate::layout::{Layout, Run};
use flow::{Field, FieldBase, PortNo, Slice, SliceBase};
use wire::PacketBuilder;
use wire::layers::header;

fn plan(fields: &[Field]) -> ExpressPlan {
    let examined = fields.iter().map(|field| (*field, field.full_mask())).collect();
    ExpressPlan::new(PlanVersion(1), examined, PortNo(4))
}

fn key(plan: &ExpressPlan, frame: &[u8], port: u32) -> Vec<u8> {
    let reader = plan.reader().unwrap();
    let mut key = ExpressKey::default();
    reader.key_of(frame, PortNo(port), &mut key);
    reader.bytes(&key).to_vec()
}

fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

const PORTS: [Field; 4] = [Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst];

/// Fields of three tables: destination MAC, addresses, and protocol with ports.
fn three_tables(addresses: &[Field]) -> Vec<Field> {
    [&[Field::EthDst, Field::EthType, Field::IpProto], addresses, &PORTS].concat()
}

#[test]
fn example_plans_have_these_lengths() {
    let v4 = [Field::Ipv4Src, Field::Ipv4Dst];
    let v6 = [Field::Ipv6Src, Field::Ipv6Dst];
    let both = [&v4[..], &v6].concat();
    for (name, fields, bytes) in [
        ("L2", vec![Field::EthDst], 8),
        ("learning bridge", vec![Field::EthDst, Field::EthSrc, Field::VlanVid], 16),
        ("three tables of IPv4", three_tables(&v4), 22),
        ("three tables of IPv6", three_tables(&v6), 46),
        ("three tables of both", three_tables(&both), 46),
    ] {
        let made = plan(&fields);
        assert_eq!((made.length_bytes(), made.fit()), (bytes, KeyFit::OneLine), "{name}");
    }
}

#[test]
fn keys_of_routers_need_one_load_for_each_word() {
    let slice = |offset: u32, bits: u32| Field::Slice(Slice::new(SliceBase::Packet, offset, bits).unwrap());
    let macs = [slice(0, 48), slice(96, 16)];
    let ipv4 = [slice(112, 8), slice(184, 8), slice(208, 32), slice(240, 32), slice(272, 16), slice(288, 16)];
    let ipv6 =
        [slice(112, 4), slice(160, 8), slice(176, 128), slice(304, 128), slice(432, 16), slice(448, 16)];
    for (fields, words) in [([&macs[..], &ipv4].concat(), 4), ([&macs[..], &ipv6].concat(), 7)] {
        let made = plan(&fields);
        assert_eq!(made.key_words(), words);
        let mut templates = Templates::default();
        let Some(FlatTemplate::Near(template)) = templates.flat(made.reader().unwrap()) else { panic!() };
        assert!(template.single_loads::<7>().is_some());
    }
    let made = plan(&three_tables(&[Field::Ipv4Src, Field::Ipv4Dst]));
    assert_eq!(made.key_words(), 3);
}

#[test]
fn no_packet_has_two_parts_of_a_key_in_the_same_bytes() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let runs: Vec<Run> = (0..random.usize(1..12)).map(|_| random_run(&mut random)).collect();
        let (port_bytes, presence_bytes) = (random.usize(2..=4), random.usize(0..8));
        let Layout { placed, ends, length_bytes } = Layout::new(runs.clone(), port_bytes, presence_bytes);
        assert_eq!(placed.len(), runs.len());
        assert!(runs.iter().all(|run| placed.iter().any(|(other, _)| other == run)));
        let always = Condition::default();
        let mut parts = vec![
            (always, ends.port_at..ends.port_at + port_bytes),
            (always, ends.presence_at..ends.presence_at + presence_bytes),
        ];
        parts.extend(placed.iter().map(|(run, at)| (run.when, *at..at + run.masks.len())));
        assert_eq!(parts.iter().map(|(_, range)| range.end).max(), Some(length_bytes));
        for (number, (when, range)) in parts.iter().enumerate() {
            for (other, taken) in &parts[number + 1..] {
                let is_apart = range.end <= taken.start || taken.end <= range.start;
                assert!(is_apart || when.excludes(*other), "{placed:?}");
            }
        }
    }
}

fn random_run(random: &mut fastrand::Rng) -> Run {
    const HEADERS: [u32; 7] = [
        header::VLAN,
        header::IPV4,
        header::IPV6,
        header::TCP,
        header::UDP,
        header::ARP,
        header::IPV4 | header::TCP,
    ];
    let bases = [FieldBase::Frame, FieldBase::Ext, FieldBase::L3, FieldBase::L4];
    let headers = |random: &mut fastrand::Rng| Facts::from(HEADERS[random.usize(..HEADERS.len())]);
    let when = match random.u8(..3) {
        0 => Condition::default(),
        1 => Condition { needs: headers(random), unless: 0 },
        _ => Condition { needs: 0, unless: headers(random) },
    };
    let masks = vec![random.u8(1..); random.usize(1..20)];
    Run { base: bases[random.usize(..bases.len())], byte: random.u16(..40), when, masks }
}

#[test]
fn long_keys_need_two_lines_or_have_no_record() {
    let slices = |count: u32, bits: u32| -> Vec<Field> {
        (0..count)
            .map(|at| Field::Slice(Slice::new(SliceBase::Packet, at * (bits + 8), bits).unwrap()))
            .collect()
    };
    assert_eq!(plan(&slices(4, 128)).fit(), KeyFit::TwoLines);
    assert_eq!(plan(&slices(8, 128)).fit(), KeyFit::TooLong);
    assert!(plan(&slices(8, 128)).reader().is_none());
    // More slices than a plan can distinguish.
    assert_eq!(plan(&slices(64, 1)).fit(), KeyFit::TooLong);
    assert_eq!(plan(Field::NAMED).fit(), KeyFit::TwoLines);
    let high = ExpressPlan::new(PlanVersion(2), Vec::new(), PortNo(0x1_0000));
    assert_eq!((high.length_bytes(), plan(&[]).length_bytes()), (4, 2));
}

/// Tables of names of several lengths examine the same bytes, each with slices of its own.
#[test]
fn bytes_of_nested_slices_are_in_the_key_once() {
    let slice = |at: u32, bytes: u32| Field::Slice(Slice::new(SliceBase::Packet, 8 * at, 8 * bytes).unwrap());
    let lengths = [5, 10, 12, 16];
    let nested: Vec<Field> =
        lengths.into_iter().flat_map(|bytes| [slice(18, bytes), slice(20, bytes)]).collect();
    // Bytes 18 to 36, the port, and eight presence bits.
    assert_eq!((plan(&nested).length_bytes(), plan(&nested).fit()), (18 + 2 + 1, KeyFit::OneLine));
    // A name of 128 bytes at two positions, in parts of 16 bytes.
    let long: Vec<Field> =
        (0..8).flat_map(|part| [slice(18 + 16 * part, 16), slice(20 + 16 * part, 16)]).collect();
    assert_eq!(plan(&long).fit(), KeyFit::TooLong);
    assert_eq!(plan(&long[..10]).fit(), KeyFit::TwoLines);
    // A shorter slice that examines fewer bits does not hold those of the longer one.
    let mut examined = vec![(slice(20, 2), 0xff00), (slice(20, 4), 0xffff_ffff)];
    let part = ExpressPlan::new(PlanVersion(1), examined.clone(), PortNo(4));
    examined[0].1 = 0xffff;
    let whole = ExpressPlan::new(PlanVersion(1), examined, PortNo(4));
    assert_eq!((part.length_bytes(), whole.length_bytes()), (4 + 2 + 1, 4 + 2 + 1));
}

#[test]
fn a_key_ignores_the_arrangement_of_headers() {
    let made = plan(&[Field::Ipv4Dst]);
    let to = |b: PacketBuilder| b.ipv4([10, 0, 0, 1], [10, 0, 0, 9]);
    let plain = to(ethernet()).udp(1, 2).payload(&[7; 30]).build();
    for frame in [
        to(ethernet().vlan(0x8100, 5)).udp(1, 2).payload(&[7; 30]).build(),
        to(ethernet()).ipv4_options(&[1, 1, 1, 1]).tcp(3, 4).build(),
        to(ethernet()).ipv4_fragment(185, true).proto(17).payload(&[1; 8]).build(),
        to(ethernet()).icmpv4(8, 0, [0; 4]).payload(&[9; 1_000]).build(),
    ] {
        assert_eq!(key(&made, &plain, 1), key(&made, &frame, 1));
        assert_ne!(key(&made, &plain, 1), key(&made, &frame, 2));
    }
    let other = ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 8]).udp(1, 2).build();
    assert_ne!(key(&made, &plain, 1), key(&made, &other, 1));
}

#[test]
fn absent_and_zero_differ() {
    let made = plan(&three_tables(&[Field::Ipv6Dst]));
    let zeros = ethernet().ipv6([0; 16], [0; 16]).udp(0, 0).build();
    let cut = &zeros[..zeros.len() - 1];
    let proto = ethernet().ipv6([0; 16], [0; 16]).proto(17).build();
    let keys = [&zeros[..], cut, &proto].map(|frame| key(&made, frame, 1));
    assert_ne!(keys[0], keys[1], "the UDP header is cut short");
    assert_eq!(keys[1], keys[2], "neither has UDP");
}

#[test]
fn plans_know_what_their_keys_hold() {
    let made = ExpressPlan::new(PlanVersion(3), vec![(Field::Ipv4Dst, 0xffff_ff00)], PortNo(1));
    assert!(made.holds(Field::Ipv4Dst, 0xff00) && made.holds(Field::Ipv4Src, 0));
    assert!(!made.holds(Field::Ipv4Dst, 0xff) && !made.holds(Field::Ipv4Src, 1));
    assert_eq!((made.version(), made.examined_bits(), made.length_bytes()), (PlanVersion(3), 24, 6));
}

#[test]
fn hashes_cover_the_whole_key() {
    let made = plan(&[Field::EthDst]);
    let reader = made.reader().unwrap();
    let hash = |mac: u8, port: u32| {
        let mut key = ExpressKey::default();
        reader.key_of(&PacketBuilder::ethernet([2, 0, 0, 0, 0, mac], [0; 6]).build(), PortNo(port), &mut key);
        reader.hash(&key)
    };
    assert_eq!(hash(1, 1), hash(1, 1));
    assert!(hash(1, 1) != hash(2, 1) && hash(1, 1) != hash(1, 2));
}
