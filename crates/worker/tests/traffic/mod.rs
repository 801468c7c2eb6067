// SPDX-License-Identifier: Apache-2.0
//! Rules that use every engine and action, and packets for each of them. The UDP destination port selects the
//! rule.

use frame::{Frame, Gso, GsoKind, PartialChecksum};
use wire::{PacketBuilder, vlan};

/// Number of rules in the table with one mask.
const HASHED: u8 = 100;

/// Number of rules in the access list.
pub const LISTED: u32 = 120;

/// Returns the rules except those of table 1. Table 0 has many masks, table 3 is linear, table 5 has routes,
/// and table 6 is an access list. Some entries of table 0 are low-latency, and so are all entries of later
/// tables except table 1.
pub fn rules() -> Vec<String> {
    [
        "low_latency,tp_dst=1,actions=goto_table:1",
        "tp_dst=2,actions=push_vlan:0x8100,set_field:4097->vlan_vid,output:2,pop_vlan,output:3,output:1",
        "tp_dst=3,actions=push_mpls:0x8847,set_field:7->mpls_label,output:2,pop_mpls:0x0800,dec_ttl,output:3",
        "tp_dst=4,actions=set_field:10.9.9.9->ip_dst,set_field:99->udp_src,ALL",
        "tp_dst=5,actions=NORMAL",
        "tp_dst=6,actions=CONTROLLER:128",
        "low_latency,tp_dst=7,actions=write_actions(set_field:10.8.8.8->ip_src,dec_ttl,output:4),goto_table:2",
        "low_latency,tp_dst=8,actions=goto_direct(3,0)",
        "tp_dst=9,actions=FLOOD",
        "tp_dst=10,actions=IN_PORT",
        "tp_dst=11,actions=drop",
        // UDP port 12 has no rule.
        "tp_dst=13,actions=pop_vlan,output:2",
        "tp_dst=14,actions=dec_ttl,output:2",
        "tp_dst=15,actions=output:4,CONTROLLER:65535,output:5,output:1",
        "tp_dst=16,actions=clear_actions,write_actions(push_vlan:0x8100,output:3)",
    ]
    .into_iter()
    .map(|rule| format!("priority=100,udp,{rule}"))
    .chain(
        [
            "priority=90,sctp,actions=set_field:5->sctp_src,output:2",
            "priority=90,tcp,actions=set_field:10.1.1.1->ip_dst,set_field:80->tcp_dst,output:3",
            "priority=80,ipv6,ipv6_dst=2001:db8::/32,actions=set_field:2001:db8::9->ipv6_dst,output:4",
            "priority=80,arp,actions=FLOOD,CONTROLLER:64",
            "priority=80,dl_vlan=5,actions=pop_vlan,output:3",
            "low_latency,table=2,priority=0,actions=write_metadata:1,goto_table:4",
            "low_latency,table=3,index=0,actions=write_actions(set_field:02:00:00:00:00:99->eth_dst),goto_table:4",
            "low_latency,table=4,priority=0,actions=goto_table:5",
        ]
        .into_iter()
        .map(String::from),
    )
    .chain((8..32).map(route))
    .chain((0..LISTED).map(listed))
    .collect()
}

/// Returns a route with a prefix of this length for table 5. There are so many routes that the table gets a
/// prefix engine.
pub fn route(length: u32) -> String {
    format!("low_latency,table=5,priority={length},ip,nw_dst=10.0.0.0/{length},actions=goto_table:6")
}

/// Returns a rule of the access list in table 6. There are too many rules for the engine `scan`.
pub fn listed(n: u32) -> String {
    let (source, destination) = (24 + n % 3, 8 + n % 9);
    let matching = format!("udp,nw_src=10.0.{n}.0/{source},nw_dst=10.0.0.0/{destination}");
    format!("low_latency,table=6,priority={},{matching},actions=output:2,output:3", 10 + n)
}

/// Returns the rules of table 1, which share one mask.
pub fn hashed_rules(port: u32) -> Vec<String> {
    (0..HASHED)
        .map(|n| {
            let out = if n % 5 == 0 {
                "NORMAL".into()
            } else {
                format!("output:{}", 1 + (port + u32::from(n)) % 5)
            };
            format!("table=1,priority=10,dl_dst=02:00:00:00:01:{n:02x},actions={out}")
        })
        .collect()
}

/// Returns a packet with its own source address that passes all low-latency tables. If `n` is below
/// [`LISTED`], a rule of the access list matches the packet.
pub fn wanderer(n: u32) -> Frame {
    let packet = PacketBuilder::ethernet([2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 5, 1]);
    Frame::from_bytes(
        &packet.ipv4([10, 0, n as u8, 1], [10, 0, 0, 1]).udp(1_000, 7).payload(&[0; 18]).build(),
    )
}

/// Returns the packets received on port `port`.
pub fn frames(port: u32) -> Vec<Frame> {
    let port = port as u8;
    let from = [2, 0, 0, 0, port, 1];
    let ethernet = |to: u8| PacketBuilder::ethernet([2, 0, 0, 0, 1, to], from);
    let udp = |to: u8, dst: u16| ethernet(to).ipv4([10, 0, port, 1], [10, 0, 0, to]).udp(1_000, dst);
    let mut frames = Vec::new();
    for dst in 1..=16 {
        frames.push(udp(port, dst).payload(&[0; 18]).build());
    }
    for to in 0..HASHED + 20 {
        frames.push(udp(to, 1).payload(b"which table").build());
    }
    // These addresses move from port to port, so NORMAL reports them each time.
    frames.push(
        PacketBuilder::ethernet([2, 0, 0, 0, 2, 2], [2, 0, 0, 0, 9, 9])
            .ipv4([1; 4], [2; 4])
            .udp(1, 5)
            .build(),
    );
    frames.push(PacketBuilder::ethernet([2, 0, 0, 0, 9, 9], from).ipv4([1; 4], [2; 4]).udp(1, 5).build());
    frames.push(ethernet(1).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ttl(1).udp(1, 14).build());
    frames.push(ethernet(1).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(4_000, 22).payload(&[3; 1_400]).build());
    frames.push(ethernet(1).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).sctp(4_000, 22, 9).payload(&[3; 300]).build());
    let far = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    frames.push(ethernet(1).ipv6([1; 16], far).udp(7, 8).payload(&[1; 33]).build());
    frames.push(ethernet(1).arp(1, from, [10, 0, 0, 1], [0; 6], [10, 0, 0, 2]).build());
    frames.push(ethernet(1).vlan(vlan::C_TAG, 5).ipv4([1; 4], [2; 4]).udp(1, 2_000).build());
    let mut frames: Vec<Frame> = frames.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
    // The driver returns frames of at least 14 bytes; this one has only an Ethernet header.
    frames.push(Frame::from_bytes(&[9; 14]));
    let bulk = ethernet(1).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(4_000, 23).payload(&[3; 9_000]).build();
    let mut bulk = Frame::from_bytes(&bulk);
    bulk.meta.checksum = Some(PartialChecksum { start: 34, offset: 16 });
    bulk.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: false, size: 1_448, header_len: 54 });
    frames.push(bulk);
    frames
}
