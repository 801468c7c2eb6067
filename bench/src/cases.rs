// SPDX-License-Identifier: Apache-2.0
//! Cases of `forward` and of `make instructions`: rules, ports and packets.

use std::fmt::Write;

use wire::PacketBuilder;

use crate::rig::Case;

/// Length of a 64-byte packet without its FCS, in bytes.
const PACKET_BYTES: usize = 60;

/// Number of rules, flows or addresses in a case.
const MANY: u8 = 100;

/// Returns every case. `--turns` and `--window` of `forward` use the first case.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = vec![
        exact("exact, 100 rules on the 5-tuple", five_tuple),
        exact("exact, 100 rules on in_port and dl_dst", |n| format!("in_port=1,dl_dst={}", mac(n))),
        exact("exact, 100 rules on dl_dst", |n| format!("dl_dst={}", mac(n))),
        Case {
            flows: format!("dl_dst={},actions=output:2\n", mac(MANY)),
            forwards: false,
            ..exact("exact, 1 rule, every packet misses", |_| String::new())
        },
        normal(),
        three_tables("3 exact tables of 100 rules, 2 set-field, dec_ttl", ""),
        three_tables("FFP, 3 LUTs of 100 low-latency flows, 2 set-field, dec_ttl", "low_latency,"),
        exact("mask, 100 rules of 4 masks on nw_dst, in_port and tp_dst", |n| match n % 4 {
            0 => format!("priority={n},ip,nw_dst=10.0.{n}.0/24"),
            1 => format!("priority={n},ip,in_port=1,nw_dst=10.0.{n}.2"),
            2 => format!("priority={n},udp,nw_dst=10.0.{n}.0/25,tp_dst={}", 2_000 + u16::from(n)),
            _ => format!("priority={n},udp,tp_dst={}", 2_000 + u16::from(n)),
        }),
    ];
    for burst in [1, 4, 8, 16] {
        let name = format!("exact, 100 rules on the 5-tuple, bursts of {burst}");
        cases.push(Case { burst, ..exact(&name, five_tuple) });
    }
    for (of, rules) in [
        ("100 rules on dl_dst", exact("", |n| format!("dl_dst={}", mac(n)))),
        ("3 tables of 100 rules, 2 set-field, dec_ttl", three_tables("", "")),
        ("NORMAL, 100 learned MACs behind 4 ports", normal()),
    ] {
        let name = format!("express path, {of}");
        cases.push(Case { name, express_records: 16_384, ..rules });
    }
    for burst in [1, 8] {
        let name = format!("exact, 100 rules on dl_dst, bursts of {burst}");
        cases.push(Case { burst, ..exact(&name, |n| format!("dl_dst={}", mac(n))) });
    }
    cases
}

/// Returns a case of 100 rules with one output each. Each packet hits one rule.
fn exact(name: &str, matching: impl Fn(u8) -> String) -> Case {
    let mut flows = String::new();
    for n in 0..MANY {
        // Formatting to a string cannot fail.
        let _ = writeln!(flows, "{},actions=output:{}", matching(n), 2 + n % 3);
    }
    Case {
        name: name.into(),
        flows,
        ports: 4,
        sources: vec![(1, (0..MANY).map(|n| packet(n, n)).collect())],
        burst: 32,
        forwards: true,
        lut_entries: 4_096,
        express_records: 0,
    }
}

/// Returns a learning bridge with 25 hosts behind each of four ports. Each host sends to hosts behind the
/// other ports.
fn normal() -> Case {
    let behind = |port: u32| {
        (0..MANY)
            .filter(move |n| u32::from(n % 4) + 1 == port)
            .flat_map(|from| (1..4).map(move |step| packet((from + 4 * step + step) % MANY, from)))
    };
    Case {
        flows: "priority=0,actions=NORMAL\n".into(),
        sources: (1..=4).map(|port| (port, behind(port).collect())).collect(),
        ..exact("NORMAL, 100 learned MACs behind 4 ports", |_| String::new())
    }
}

/// Returns a routing pipeline whose tables 0, 1 and 2 match destination MAC address, destination IP address
/// and UDP port. Table 1 also rewrites both MAC addresses and the TTL. `flag` is written before each match.
fn three_tables(name: &str, flag: &str) -> Case {
    let mut flows = String::new();
    for n in 0..MANY {
        let _ = writeln!(flows, "table=0,{flag}dl_dst={},actions=goto_table:1", mac(n));
        let _ = writeln!(
            flows,
            "table=1,{flag}ip,nw_dst=10.0.{n}.2,actions=set_field:{}->eth_dst,set_field:{}->eth_src,dec_ttl,goto_table:2",
            mac(n + 100),
            mac(n + 101),
        );
        let _ =
            writeln!(flows, "table=2,{flag}udp,tp_dst={},actions=output:{}", 2_000 + u16::from(n), 2 + n % 3);
    }
    Case { flows, ..exact(name, |_| String::new()) }
}

fn five_tuple(n: u8) -> String {
    let (from, to) = (1_000 + u16::from(n), 2_000 + u16::from(n));
    format!("udp,nw_src=10.0.{n}.1,nw_dst=10.0.{n}.2,tp_src={from},tp_dst={to}")
}

fn mac(n: u8) -> String {
    format!("02:00:00:00:00:{n:02x}")
}

/// Returns the UDP packet of a flow between hosts `from` and `to`.
fn packet(to: u8, from: u8) -> Vec<u8> {
    let mut bytes = PacketBuilder::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from])
        .ipv4([10, 0, to, 1], [10, 0, to, 2])
        .udp(1_000 + u16::from(to), 2_000 + u16::from(to))
        .payload(&[0; PACKET_BYTES - 42])
        .build();
    bytes.resize(PACKET_BYTES, 0);
    bytes
}
