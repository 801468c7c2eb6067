// SPDX-License-Identifier: Apache-2.0
//! Random flows, as text.

use fastrand::Rng;

/// Kinds of flows, so that the flows of a case examine similar fields.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Ethernet,
    Route,
    Filter,
    Ipv6,
    Mixed,
}

impl Kind {
    pub fn random(rng: &mut Rng) -> Self {
        [Self::Ethernet, Self::Route, Self::Filter, Self::Ipv6, Self::Mixed][rng.usize(0..5)]
    }
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(0..of.len())]
}

fn mac(rng: &mut Rng) -> String {
    format!("02:00:00:00:00:{:02x}", rng.u8(1..5))
}

fn maybe(rng: &mut Rng, out: &mut Vec<String>, text: impl FnOnce(&mut Rng) -> String) {
    if rng.bool() {
        let made = text(rng);
        out.push(made);
    }
}

fn prefix(rng: &mut Rng) -> String {
    let length = [8, 16, 23, 24, 31, 32][rng.usize(0..6)];
    let address = 10 << 24 | rng.u32(0..2) << 16 | rng.u32(0..3) << 8 | rng.u32(0..3);
    let bits = address & u32::MAX << (32 - length);
    let [a, b, c, d] = bits.to_be_bytes();
    format!("{a}.{b}.{c}.{d}/{length}")
}

fn conditions(rng: &mut Rng, kind: Kind) -> Vec<String> {
    let mut out = Vec::new();
    match kind {
        Kind::Ethernet => {
            maybe(rng, &mut out, |rng| format!("in_port={}", rng.u8(1..4)));
            maybe(rng, &mut out, |rng| format!("dl_dst={}", mac(rng)));
            maybe(rng, &mut out, |rng| {
                pick(
                    rng,
                    &[
                        "dl_vlan=1",
                        "dl_vlan=2",
                        "vlan_tci=0",
                        "vlan_tci=0x1000/0x1000",
                        "dl_vlan=1,dl_vlan_pcp=2",
                    ],
                )
                .into()
            });
            maybe(rng, &mut out, |rng| pick(rng, &["ip", "arp", "ipv6", "dl_type=0x88b9"]).into());
        }
        Kind::Route => {
            out.push("ip".into());
            maybe(rng, &mut out, |rng| format!("nw_dst={}", prefix(rng)));
            maybe(rng, &mut out, |rng| format!("nw_tos={}", rng.u8(0..4) << 2));
        }
        Kind::Filter => {
            out.push(
                pick(rng, &["tcp", "udp", "icmp", "ip,nw_proto=6", "ip,nw_proto=17", "tcp", "udp"]).into(),
            );
            maybe(rng, &mut out, |rng| format!("nw_src={}", prefix(rng)));
            maybe(rng, &mut out, |rng| format!("nw_dst={}", prefix(rng)));
            if out[0] == "tcp" || out[0] == "udp" {
                maybe(rng, &mut out, |rng| format!("tp_src={}", [53, 80, 443][rng.usize(0..3)]));
                maybe(rng, &mut out, |rng| {
                    pick(rng, &["tp_dst=80", "tp_dst=53", "tp_dst=0x40/0xffc0"]).into()
                });
            }
        }
        Kind::Ipv6 => {
            out.push("ipv6".into());
            maybe(rng, &mut out, |rng| {
                let length = [32, 63, 64, 96][rng.usize(0..4)];
                format!("ipv6_dst=2001:db8:0:{}::/{length}", if length == 32 { 0 } else { rng.u8(0..2) * 2 })
            });
            maybe(rng, &mut out, |rng| format!("ipv6_label={}", rng.u8(0..2)));
        }
        Kind::Mixed => {
            let other = [Kind::Ethernet, Kind::Route, Kind::Filter, Kind::Ipv6][rng.usize(0..4)];
            return match rng.u8(0..6) {
                0 => vec![format!("slice(packet,{},{})={}", rng.u8(96..140), rng.u8(3..12), rng.u8(0..3))],
                1 => vec![format!("slice(l3,{},{})={}", rng.u8(0..40), rng.u8(3..12), rng.u8(0..3))],
                2 => vec!["arp".into(), format!("arp_tpa=10.0.0.{}", rng.u8(0..3))],
                _ => conditions(rng, other),
            };
        }
    }
    out
}

fn edit(rng: &mut Rng, kind: Kind) -> String {
    let of_kind: &[&str] = match kind {
        Kind::Ethernet => &[
            "pop_vlan",
            "push_vlan:0x8100",
            "push_vlan:0x8100,set_field:0x1002->vlan_vid,set_field:3->vlan_pcp",
            "set_field:0x1001->vlan_vid",
            "set_field:5->vlan_pcp",
        ],
        Kind::Route => {
            &["dec_ttl", "dec_ttl", "set_field:10.7.7.7->ip_src", "set_field:9->ip_dscp", "mod_nw_ttl:9"]
        }
        Kind::Filter => &[
            "set_field:10.7.7.7->ip_src",
            "set_field:10.7.7.8->ip_dst",
            "set_field:77->tcp_dst",
            "set_field:78->udp_src",
        ],
        Kind::Ipv6 => &["dec_ttl", "set_field:2001:db8::77->ipv6_dst", "mod_nw_ttl:7"],
        Kind::Mixed => &["pop_vlan", "dec_ttl", "group:1", "set_queue:0", "set_queue:1"],
    };
    match rng.u8(0..3) {
        0 => format!("set_field:{}->eth_dst", mac(rng)),
        1 => format!("set_field:{}->eth_src", mac(rng)),
        _ => pick(rng, of_kind).into(),
    }
}

fn output(rng: &mut Rng) -> String {
    match rng.u8(0..8) {
        0 => "IN_PORT".into(),
        1 => "CONTROLLER".into(),
        _ => rng.u8(1..7).to_string(),
    }
}

/// Returns instructions of an entry of a table.
pub fn actions(rng: &mut Rng, kind: Kind, table: u8, tables: u8) -> String {
    let mut out: Vec<String> = Vec::new();
    for _ in 0..[0, 0, 1, 1, 2, 3][rng.usize(0..6)] {
        let made = edit(rng, kind);
        out.push(made);
    }
    if table + 1 < tables && rng.u8(0..3) != 0 {
        if rng.u8(0..8) == 0 {
            out.push("clear_actions".into());
        }
        if rng.u8(0..6) == 0 {
            out.push(format!("write_actions(output:{})", output(rng)));
        }
        if rng.u8(0..3) == 0 {
            out.push(format!("write_metadata:{}", ["1", "2", "0x10/0xff", "0x3/0x3"][rng.usize(0..4)]));
        }
        out.push(format!("goto_table:{}", rng.u8(table + 1..tables)));
    } else {
        match rng.u8(0..8) {
            0 => {}
            1 => out.push(format!("write_actions({},output:{})", edit(rng, kind), output(rng))),
            _ => out.push(format!("output:{}", output(rng))),
        }
    }
    if out.is_empty() { "drop".into() } else { out.join(",") }
}

/// Returns a flow for a table.
pub fn flow(rng: &mut Rng, kind: Kind, table: u8, tables: u8) -> String {
    let mut parts = vec![format!("table={table}"), format!("priority={}", rng.u8(0..6))];
    parts.extend(conditions(rng, kind));
    if table > 0 && rng.u8(0..4) == 0 {
        parts.push(format!("metadata={}", ["0", "1", "2", "0x10/0x10"][rng.usize(0..4)]));
    }
    parts.push(format!("actions={}", actions(rng, kind, table, tables)));
    parts.join(",")
}
