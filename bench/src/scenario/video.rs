// SPDX-License-Identifier: Apache-2.0
//! Scenario `video`: tables match SEADP fields as slices. Long packets carry SEADP over SEANET's ID header
//! over IPv6, and are routed by destination address. Short packets carry a shortened SEADP header over
//! Ethernet, and are forwarded by destination MAC address.

use std::collections::HashSet;

use fastrand::Rng;
use wire::PacketBuilder;

use super::rule::{Condition, Field, Rule, mac_bytes};
use super::{DESTINATION, Options, Recipe, SEADP_ETHERTYPE, ethernet, own_mac, routes};
use crate::Sources;

const MAC: usize = 0;
/// Next header of the ID header; 1 is SEADP.
const NEXT: usize = 1;
/// Leading bits of the destination's EID: 128 bits, or all 64 bits of the short form.
const EID: usize = 2;
/// Destination port of SEADP.
const PORT: usize = 3;
/// Version (4 bits) and type (4 bits) of SEADP.
const TYPE: usize = 4;
/// Last 32 bits of the EID, which has 160 bits.
const EID_END: usize = 5;
/// Destination address.
const ADDRESS: usize = 6;

/// IPv6 protocol number of the ID header.
const ID_PROTO: u8 = 0x99;
const SEADP: u128 = 1;
/// SEADP types: a request, data, signed data.
const TYPES: [u128; 3] = [0x18, 0x14, 0x12];

/// Length of the full form's headers in bytes: Ethernet, IPv6, ID header with two EIDs of 20 bytes, SEADP.
const WHOLE_BYTES: usize = 14 + 40 + 44 + 20;

pub(super) fn recipe(options: &Options, sources: &Sources) -> Recipe {
    if options.bytes >= WHOLE_BYTES + 4 { whole(options, sources) } else { short(options) }
}

fn whole(options: &Options, sources: &Sources) -> Recipe {
    let fields = vec![
        DESTINATION,
        Field::number("slice(packet,432,8)", 8),
        Field::number("slice(packet,624,128)", 128),
        Field::number("slice(packet,800,16)", 16),
        Field::number("slice(packet,816,8)", 8),
        Field::number("slice(packet,752,32)", 32),
        Field::number("slice(packet,304,128)", 128),
    ];
    let fib = routes::spread(&routes::parse(&sources.routes), options.rules.saturating_sub(1));
    Recipe {
        ether_type: (0x86dd, "slice(packet,96,16)"),
        headers: ["", ""],
        list: list(options, &fields, true),
        fib: routes::by_prefix(&fib, ADDRESS, fields[ADDRESS]),
        fields,
        draw: |rng, values| {
            draw(rng, values);
            values[MAC] = own_mac(rng);
        },
        build: build_whole,
    }
}

fn short(options: &Options) -> Recipe {
    let fields = vec![
        DESTINATION,
        Field::number("slice(packet,112,8)", 8),
        Field::number("slice(packet,208,64)", 64),
        Field::number("slice(packet,288,16)", 16),
        Field::number("slice(packet,304,8)", 8),
        Field::number("slice(packet,752,32)", 32),
        Field::number("slice(packet,304,128)", 128),
    ];
    Recipe {
        ether_type: (SEADP_ETHERTYPE, "slice(packet,96,16)"),
        headers: ["", ""],
        list: list(options, &fields, false),
        fib: routes::by_host(options.rules, MAC, fields[MAC]),
        fields,
        draw,
        build: build_short,
    }
}

/// Returns the SEADP table. An entry matches the chunks of a stream (one EID), all streams of a publisher (a
/// prefix of EIDs), or a port together with a short prefix of EIDs.
fn list(options: &Options, fields: &[Field], whole: bool) -> Vec<Rule> {
    let mut rng = Rng::with_seed(options.seed ^ 0x5ead);
    let publishers: Vec<u128> = (0..options.rules / 8 + 4).map(|_| rng.u128(..)).collect();
    let bits = fields[EID].bits;
    let eid = |rng: &mut Rng| {
        let publisher = publishers[rng.usize(..publishers.len())] >> (128 - bits);
        publisher & fields[EID].prefix(bits / 2) | u128::from(rng.u64(..)) >> (64 - bits / 2)
    };
    let mut seen = HashSet::new();
    let mut made: Vec<(u32, Rule)> = Vec::new();
    while made.len() < options.rules {
        let mut conditions = vec![Condition { field: NEXT, value: SEADP, mask: 0xff }];
        let mut put = |field: usize, value: u128, mask: u128| {
            conditions.push(Condition { field, value: value & mask, mask });
        };
        let value = eid(&mut rng);
        let port = u128::from(rng.u16(1_024..));
        let kind = TYPES[rng.usize(..TYPES.len())];
        match rng.u32(..20) {
            0..8 => {
                put(EID, value, fields[EID].full());
                put(PORT, port, 0xffff);
                put(TYPE, kind, 0xff);
            }
            8..14 => {
                put(EID, value, fields[EID].full());
                put(TYPE, kind, 0x0f);
            }
            14..18 => {
                put(EID, value, fields[EID].prefix(bits / 2 + [0, 4, 8, 12][rng.usize(..4)]));
                put(TYPE, kind, 0xff);
            }
            _ => {
                put(EID, value, fields[EID].prefix(bits / 4));
                put(PORT, port, [0xffff, 0xfff0][rng.usize(..2)]);
            }
        }
        if whole && conditions.iter().any(|c| c.field == EID && c.mask == fields[EID].full()) {
            conditions.push(Condition {
                field: EID_END,
                value: rng.u32(..).into(),
                mask: fields[EID_END].full(),
            });
        }
        if seen.insert(conditions.clone()) {
            let depth = conditions.iter().map(|c| c.mask.count_ones()).sum();
            made.push((depth, Rule { conditions, priority: 0, low_latency: true, leaves: None }));
        }
    }
    made.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    made.into_iter().map(|(_, rule)| rule).collect()
}

fn draw(rng: &mut Rng, values: &mut [u128]) {
    values[NEXT] = SEADP;
    values[EID] = rng.u128(..);
    values[EID_END] = rng.u32(..).into();
    values[PORT] = rng.u16(1_024..).into();
    values[TYPE] = TYPES[rng.usize(..TYPES.len())];
    values[ADDRESS] = 1 << 125 | rng.u128(..) >> 3;
}

/// Returns a SEADP header: ports, version and type, length, cache and storage flags, sequence number,
/// checksum, offset and length of the chunk. No switch verifies the checksum, so it is not computed.
fn seadp(values: &[u128]) -> Vec<u8> {
    let mut header = 0x1388_u16.to_be_bytes().to_vec();
    header.extend((values[PORT] as u16).to_be_bytes());
    header.extend([values[TYPE] as u8, 20, 0x80, 0, 0, 1, 0, 0]);
    header.extend([0; 4]);
    header.extend(1_400_u32.to_be_bytes());
    header
}

fn build_whole(values: &mut [u128], bytes: usize) -> Option<Vec<u8>> {
    let mut id = vec![values[NEXT] as u8, 44, 0, 9];
    id.extend([0xe5; 20]);
    id.extend(values[EID].to_be_bytes());
    id.extend((values[EID_END] as u32).to_be_bytes());
    id.extend(seadp(values));
    id.resize(id.len() + bytes.saturating_sub(WHOLE_BYTES), 0x5a);
    let source = 0x2001_0db8_u128 << 96 | 1;
    let packet = PacketBuilder::ethernet(mac_bytes(values[MAC]), [2, 0, 0, 0, 0, 9])
        .ipv6(source.to_be_bytes(), values[ADDRESS].to_be_bytes())
        .proto(ID_PROTO)
        .payload(&id);
    Some(packet.build())
}

fn build_short(values: &mut [u128], bytes: usize) -> Option<Vec<u8>> {
    // The short form does not contain these values.
    (values[EID], values[EID_END], values[ADDRESS]) = (values[EID] & u128::from(u64::MAX), 0, 0);
    let mut packet = ethernet(values[MAC], SEADP_ETHERTYPE);
    packet.extend([values[NEXT] as u8, 20, 0, 9]);
    packet.extend([0xe5; 8]);
    packet.extend((values[EID] as u64).to_be_bytes());
    packet.extend(seadp(values));
    packet.resize(bytes.max(packet.len()), 0x5a);
    Some(packet)
}
