// SPDX-License-Identifier: Apache-2.0
//! Scenario `server`: an access list on IPv6 5-tuples, then routes by destination address.

use fastrand::Rng;
use wire::PacketBuilder;

use super::acl::{self, FiveTuple};
use super::rule::{Field, Rule, mac_bytes};
use super::{DESTINATION, Options, Recipe, own_mac, routes};
use crate::Sources;

const MAC: usize = 0;
const AT: FiveTuple = FiveTuple { src: 1, dst: 2, proto: 3, src_port: 4, dst_port: 5 };
const TCP: u128 = 6;
const UDP: u128 = 17;

/// Length of Ethernet, IPv6 and TCP headers in bytes. Shorter packets are UDP.
const TCP_BYTES: usize = 74;

pub(super) fn recipe(options: &Options, sources: &Sources) -> Recipe {
    let fields = vec![
        DESTINATION,
        Field::address("ipv6_src"),
        Field::address("ipv6_dst"),
        Field::number("nw_proto", 8),
        Field::number("slice(l4,0,16)", 16),
        Field::number("slice(l4,16,16)", 16),
    ];
    // One of the entries is the default route.
    let fib = routes::spread(&routes::parse(&sources.routes), options.rules.saturating_sub(1));
    let list = list(&fields, options.rules, sources, &fib);
    Recipe {
        ether_type: (0x86dd, "dl_type"),
        headers: [",ipv6", ",ipv6"],
        list,
        fib: routes::by_prefix(&fib, AT.dst, fields[AT.dst]),
        fields,
        draw,
        build,
    }
}

/// Returns `count` entries, evenly spread over the list. A list that is too short is repeated.
fn list(fields: &[Field], count: usize, sources: &Sources, fib: &[routes::Prefix]) -> Vec<Rule> {
    let mut all: Vec<Rule> = Vec::new();
    for copy in 0.. {
        let more = acl::parse(&sources.rules, AT, fields, fib, copy);
        if more.is_empty() {
            break;
        }
        all.extend(more);
        if all.len() >= count {
            break;
        }
    }
    let places: Vec<usize> = (0..all.len()).collect();
    routes::spread(&places, count).into_iter().map(|place| all[place].clone()).collect()
}

fn draw(rng: &mut Rng, values: &mut [u128]) {
    values[MAC] = own_mac(rng);
    // The source is any global unicast address.
    values[AT.src] = 1 << 125 | rng.u128(..) >> 3;
    values[AT.dst] = 1 << 125 | rng.u128(..) >> 3;
    values[AT.proto] = if rng.bool() { TCP } else { UDP };
    values[AT.src_port] = rng.u16(1_024..).into();
    values[AT.dst_port] = rng.u16(1..).into();
}

fn build(values: &mut [u128], bytes: usize) -> Option<Vec<u8>> {
    let port = |at: usize| values[at] as u16;
    let packet = PacketBuilder::ethernet(mac_bytes(values[MAC]), [2, 0, 0, 0, 0, 9])
        .ipv6(values[AT.src].to_be_bytes(), values[AT.dst].to_be_bytes());
    let (src, dst) = (port(AT.src_port), port(AT.dst_port));
    let (packet, header) = match values[AT.proto] {
        TCP if bytes >= TCP_BYTES => (packet.tcp(src, dst), TCP_BYTES),
        UDP => (packet.udp(src, dst), TCP_BYTES - 12),
        _ => return None,
    };
    Some(packet.payload(&vec![0x5a; bytes.saturating_sub(header)]).build())
}
