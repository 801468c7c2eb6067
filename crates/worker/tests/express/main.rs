// SPDX-License-Identifier: Apache-2.0
//! The express path with complete workers: packets must get the same treatment from path records as from the
//! tables, even if a record does not suffice to forward them.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod distant;
mod lab;
mod mac_limits;
mod moving;
mod storms;
mod vlans;

use dataplane::DataPlane;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};
use lab::{Lab, compare};
use model::{AsyncMessage, FlowCursor, FlowFilter, FlowRemoved};
use wire::PacketBuilder;

fn packet(dst: u8, ttl: u8) -> Vec<u8> {
    let mut bytes = PacketBuilder::ethernet([2, 0, 0, 0, 0, dst], [2, 0, 0, 0, 1, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 1, dst])
        .udp(1_000, 2_000)
        .payload(&[7; 40])
        .build();
    // Sets the TTL, and keeps the header checksum right.
    let delta = u16::from(bytes[22]).wrapping_sub(u16::from(ttl)) << 8;
    let sum = u32::from(u16::from_be_bytes([bytes[24], bytes[25]])) + u32::from(delta);
    let sum = (sum & 0xffff) + (sum >> 16);
    bytes[22] = ttl;
    bytes[24..26].copy_from_slice(&(sum as u16).to_be_bytes());
    bytes
}

fn with_ports(source: u16, destination: u16) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 1, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 1, 1])
        .udp(source, destination)
        .payload(&[7; 40])
        .build()
}

const ROUTER: [&str; 4] = [
    "table=0,priority=5,dl_dst=02:00:00:00:00:01,actions=goto_table:1",
    "table=1,ip,nw_dst=10.0.1.1,actions=set_field:02:00:00:00:00:99->eth_dst,set_field:02:00:00:00:00:98->eth_src,dec_ttl,goto_table:2",
    "table=2,priority=3,udp,tp_dst=2000,actions=output:3",
    "table=2,priority=2,dl_dst=02:00:00:00:00:99,actions=output:4",
];

#[test]
fn a_routed_flow_uses_its_record_unless_its_ttl_expires() {
    let hits = compare(&ROUTER, |lab| {
        for _ in 0..3 {
            let ttls = [64, 1, 63, 0, 2, 255];
            lab.burst(1, &ttls.map(|ttl| packet(1, ttl)));
        }
    });
    assert_eq!(hits, 12, "all packets of the second and third burst");
}

/// Packets of one flow, some of which no template recognises: short ones, fragments, and packets with IP
/// options.
#[test]
fn routed_packets_of_a_flow_keep_their_order_whatever_their_headers_are() {
    let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 1, 1]);
    let ip = || ethernet().ipv4([10, 0, 0, 1], [10, 0, 1, 1]);
    let numbered = |number: u8| {
        let end = [number; 40];
        match number % 6 {
            0 => ip().tcp(1_000, 80).tcp_numbers(number.into(), 0).build(),
            1 => ip().tcp(1_000, 80).payload(&end).build(),
            2 => ip().icmpv4(8, 0, [number; 4]).payload(&end).build(),
            3 => ip().ipv4_options(&[1; 4]).udp(1_000, 80).payload(&end).build(),
            4 => ip().ipv4_fragment(185, true).proto(17).payload(&end).build(),
            _ => ip().udp(1_000, 80).payload(&end).build(),
        }
    };
    let by_table = ["ip,nw_dst=10.0.1.1,actions=dec_ttl,output:3"];
    let by_ethernet = ["dl_dst=02:00:00:00:00:01,actions=dec_ttl,output:3"];
    for flows in [by_table, by_ethernet] {
        let hits = compare(&flows, |lab| {
            for begin in 0..8 {
                let packets: Vec<_> = (0..30).map(|at| numbered(begin * 31 + at)).collect();
                lab.burst(1, &packets);
            }
        });
        assert_eq!(hits, 7 * 30, "all bursts but the first");
    }
}

#[test]
fn non_ip_frames_do_not_share_records_of_ip() {
    let flows = ["table=0,actions=set_field:02:00:00:00:00:99->eth_dst,dec_ttl,output:3"];
    let mut arp = packet(1, 64);
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let hits = compare(&flows, |lab| {
        for _ in 0..3 {
            lab.burst(1, &[arp.clone(), packet(1, 64), packet(2, 1), arp.clone()]);
        }
    });
    assert!(hits >= 4, "{hits}");
}

#[test]
fn a_packet_never_returns_to_its_ingress_port_by_the_record_of_another_port() {
    let flows = ["dl_dst=02:00:00:00:00:01,actions=output:2"];
    let hits = compare(&flows, |lab| {
        for _ in 0..2 {
            lab.burst(1, &[packet(1, 64)]);
            lab.burst(2, &[packet(1, 64)]);
        }
    });
    assert_eq!(hits, 2);
}

#[test]
fn a_change_of_rules_outdates_the_records_that_it_concerns() {
    let hits = compare(&ROUTER, |lab| {
        let burst = [packet(1, 64), packet(2, 64)];
        lab.burst(1, &burst);
        lab.burst(1, &burst);
        lab.flow("table=2,priority=3,udp,tp_dst=2000", FlowModCommand::DeleteStrict);
        lab.burst(1, &burst);
        lab.burst(1, &burst);
        // The key becomes wider, because the rule examines a field that no rule examined before.
        lab.flow("table=0,priority=9,ip,nw_tos=0,actions=output:2", FlowModCommand::Add);
        lab.burst(1, &burst);
        lab.burst(1, &burst);
    });
    assert_eq!(hits, 7, "every second burst, and the miss after the removal; a miss is a separate path");
}

#[test]
fn short_frames_and_closed_ports_are_dropped_as_without_records() {
    let hits = compare(&["actions=output:3"], |lab| {
        let short = packet(1, 64)[..13].to_vec();
        lab.burst(1, &[packet(1, 64), short.clone()]);
        lab.burst(1, &[short, packet(1, 64)]);
        lab.model.set_link(lab.now, PortNo(3), false).unwrap();
        while lab.worker.apply() > 0 {}
        lab.burst(1, &[packet(1, 64)]);
        lab.burst(1, &[packet(1, 64)]);
    });
    assert!(hits >= 2, "{hits}");
}

/// Sends packets through NORMAL, and lets the model learn the source addresses. Each packet is a separate
/// burst, because a burst keeps only the order within each flow.
fn bridge(lab: &mut Lab, port: usize, packets: &[Vec<u8>]) {
    for packet in packets.chunks(1) {
        lab.burst(port, packet);
        while lab.model.poll(lab.now) {}
        while lab.worker.apply() > 0 {}
    }
}

/// Returns a packet between two stations.
fn between(from: u8, to: u8) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from])
        .ipv4([10, 0, 0, from], [10, 0, 0, to])
        .udp(1_000, 2_000)
        .build()
}

const NORMAL: [&str; 1] = ["priority=0,actions=NORMAL"];

#[test]
fn bridged_flows_follow_stations_that_move() {
    let hits = compare(&NORMAL, |lab| {
        let both = |lab: &mut Lab, port_of_1: usize, port_of_2: usize| {
            for _ in 0..3 {
                bridge(lab, port_of_1, &[between(1, 2), between(1, 3), between(1, 2)]);
                bridge(lab, port_of_2, &[between(2, 1), between(2, 2)]);
            }
        };
        both(lab, 1, 2);
        both(lab, 1, 4);
        both(lab, 3, 4);
        // Both stations are now at port 4, so packets between them must not be sent back.
        both(lab, 4, 4);
        both(lab, 1, 4);
        lab.model.set_link(lab.now, PortNo(4), false).unwrap();
        while lab.worker.apply() > 0 {}
        bridge(lab, 1, &[between(1, 2), between(1, 3)]);
    });
    assert!(hits >= 45, "{hits}");
}

#[test]
fn reserved_multicast_is_dropped_although_stations_are_known() {
    let mut bpdu = between(3, 2);
    bpdu[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
    compare(&NORMAL, |lab| {
        for _ in 0..3 {
            bridge(lab, 1, &[between(1, 2)]);
            bridge(lab, 2, &[between(2, 1)]);
        }
        // This packet uses the burst slot of an earlier packet. Both addresses of that packet were known.
        bridge(lab, 3, &[bpdu.clone(), bpdu.clone()]);
    });
}

#[test]
fn vlans_are_distinguished_after_a_frame_that_ends_within_its_tag() {
    let tagged = |vid: u16| {
        PacketBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
            .vlan(0x8100, vid)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .udp(1_000, 2_000)
            .build()
    };
    let flows = ["priority=2,dl_vlan=5,actions=output:3", "priority=1,dl_vlan=6,actions=output:4"];
    compare(&flows, |lab| {
        for _ in 0..3 {
            bridge(lab, 1, &[tagged(5)[..14].to_vec(), tagged(5), tagged(6), between(1, 2)]);
        }
    });
}

#[test]
fn bridged_packets_refresh_their_source_address() {
    let hits = compare(&NORMAL, |lab| {
        bridge(lab, 1, &[between(1, 2)]);
        bridge(lab, 2, &[between(2, 1)]);
        for _ in 0..9 {
            // Learned addresses are forgotten after 300 s.
            lab.now += Nanos(100_000_000_000);
            bridge(lab, 1, &[between(1, 2)]);
            bridge(lab, 3, &[between(3, 1)]);
        }
        // Only station 2 has been silent for more than 300 s.
        bridge(lab, 3, &[between(3, 2), between(3, 1)]);
    });
    assert!(hits >= 15, "{hits}");
}

/// Returns the number of packets that all flow entries together have counted so far.
fn counted(lab: &mut Lab) -> u64 {
    let flows = lab.model.flows(lab.now, &FlowFilter::default(), &mut FlowCursor::default(), usize::MAX);
    flows.iter().map(|flow| flow.packets).sum()
}

/// Returns the flow-removed message, if one was sent.
fn removal(lab: &mut Lab) -> Option<FlowRemoved> {
    while lab.model.poll(lab.now) {}
    while lab.worker.apply() > 0 {}
    while lab.model.poll(lab.now) {}
    let messages = std::iter::from_fn(|| lab.model.next_async_message());
    messages.into_iter().find_map(|message| match message {
        AsyncMessage::FlowRemoved(removed) => Some(removed),
        _ => None,
    })
}

#[test]
fn hits_are_counted_within_two_rounds_although_packets_keep_arriving() {
    let mut lab = Lab::new(1_024, &["table=0,priority=5,dl_dst=02:00:00:00:00:01,actions=output:2"]);
    let mut sent = vec![0];
    for number in 1..=4_000 {
        lab.now += Nanos(9_000);
        lab.burst(1, &[packet(1, 64), packet(1, 64)]);
        sent.push(2 * number);
        let counted = counted(&mut lab);
        assert!(counted <= 2 * number && counted >= sent[sent.len().saturating_sub(2_050)], "{number}");
        let until = lab.model.plane_mut().counted_until();
        let past = (lab.now.0.saturating_sub(until.0)) as usize / 10_000;
        assert!(counted >= sent[sent.len() - 1 - past.min(number as usize)].saturating_sub(2), "{number}");
    }
    assert!(counted(&mut lab) < 8_000, "hits are counted in rounds");
    lab.rest();
    assert_eq!((counted(&mut lab), lab.model.plane_mut().counted_until()), (8_000, Nanos::MAX));
}

#[test]
fn a_removed_entry_has_counted_the_hits_of_its_records() {
    let flow = "table=0,priority=5,send_flow_rem,dl_dst=02:00:00:00:00:01,actions=output:2";
    let mut lab = Lab::new(1_024, &[flow]);
    (0..5).for_each(|_| lab.burst(1, &[packet(1, 64)]));
    assert!(counted(&mut lab) < 5, "hits are counted in rounds");
    lab.flow("table=0,dl_dst=02:00:00:00:00:01", FlowModCommand::Delete);
    let removed = removal(&mut lab).unwrap();
    assert_eq!((removed.packets, removed.bytes), (5, 5 * packet(1, 64).len() as u64));
}

#[test]
fn an_operation_waits_until_the_hits_of_many_records_are_counted() {
    let flow = "table=0,priority=5,send_flow_rem,udp,actions=output:2";
    let mut lab = Lab::new(1_024, &[flow, "table=0,priority=1,udp,tp_src=9,tp_dst=9,actions=drop"]);
    let flows: Vec<_> = (0..500).map(|number| with_ports(1_000 + number, 7)).collect();
    for _ in 0..3 {
        flows.chunks(25).for_each(|burst| lab.burst(1, burst));
    }
    let counted_before = counted(&mut lab);
    assert!(counted_before < 1_500, "hits are counted in rounds");
    let flow = parse_flow("table=0,priority=5,udp", FlowModCommand::DeleteStrict, ParseOptions::default());
    lab.model.flow_mod(lab.now, flow.unwrap()).unwrap();
    let barrier = lab.model.barrier();
    let mut turns = 0;
    while !lab.model.is_applied(barrier) {
        // Packets keep arriving.
        lab.burst(1, &flows[..25]);
        turns += 1;
    }
    assert!((2..40).contains(&turns), "{turns}");
    // The packets of the last burst came after the removal.
    assert_eq!(removal(&mut lab).unwrap().packets, 1_500 + 25 * (turns - 1));
}

#[test]
fn an_entry_does_not_time_out_while_hits_of_its_records_are_not_counted() {
    let flow = "table=0,priority=5,idle_timeout=1,send_flow_rem,dl_dst=02:00:00:00:00:01,actions=output:2";
    let mut lab = Lab::new(1_024, &[flow]);
    (0..3).for_each(|_| lab.burst(1, &[packet(1, 64)]));
    lab.rest();
    lab.now += Nanos(999_990_000);
    lab.burst(1, &[packet(1, 64)]);
    let hit = lab.now;
    lab.now += Nanos(500_000);
    assert!(removal(&mut lab).is_none(), "the last hit was 500 us ago");
    assert!(lab.model.next_deadline().unwrap() > lab.now, "the control thread sleeps");
    lab.rest();
    lab.now = hit + Nanos(999_999_000);
    assert!(removal(&mut lab).is_none());
    lab.now = hit + Nanos(1_000_001_000);
    assert_eq!(removal(&mut lab).unwrap().packets, 4);
}

#[test]
fn a_slice_of_a_ttl_or_a_checksum_is_not_determined_by_its_arriving_bits() {
    let route = "table=0,priority=1,ip,actions=mod_dl_src:02:00:00:00:00:09,dec_ttl,goto_table:1";
    let address = "table=0,priority=1,ip,actions=set_field:10.9.9.9->ip_dst,goto_table:1";
    let others = ["table=1,priority=1,actions=output:3"];
    for (first, slice) in [
        (route, "slice(l3,64,4)=4"),
        (route, "slice(packet,176,4)=4"),
        (route, "slice(l3,80,4)=8"),
        (address, "udp,slice(l4,48,2)=1"),
    ] {
        let rule = format!("table=1,priority=2,ip,{slice},actions=output:2").replace("ip,udp", "udp");
        let hits = compare(&[first, &rule, others[0]], |lab| {
            for _ in 0..3 {
                lab.burst(1, &(0x40..0x60).map(|ttl| packet(1, ttl)).collect::<Vec<_>>());
                lab.burst(1, &(1..32).map(|dst| packet(dst, 64)).collect::<Vec<_>>());
            }
        });
        assert_eq!(hits, 0, "{slice}");
    }
    // The first entry does not change the payload, so the key determines a slice of the payload.
    let flows = [route, "table=1,priority=2,udp,slice(l4,64,8)=7,actions=output:2", others[0]];
    assert!(compare(&flows, |lab| (0..3).for_each(|_| lab.burst(1, &[packet(1, 64)]))) >= 1);
}

#[test]
fn a_slice_of_the_ip_header_holds_a_written_field_in_some_packets_only() {
    let builder = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 1, 1]);
    let ipv4 = |destination: u16| {
        builder().ipv4([10, 0, 0, 1], [10, 0, 1, 1]).tcp(9, destination).payload(&[7; 40]).build()
    };
    let mut options = ipv4(0x0101);
    // The header has six words, because it has four bytes of options.
    options[14] = 0x46;
    options.splice(34..34, [1, 1, 1, 1]);
    let ipv6 = builder().ipv6([1; 16], [2; 16]).tcp(9, 9).payload(&[7; 40]).build();
    let mut tos0 = ipv4(9);
    tos0[15] = 0;
    let port = "table=0,priority=1,actions=set_field:80->tcp_dst,goto_table:1";
    let dscp = "table=0,priority=1,actions=set_field:10->ip_dscp,goto_table:1";
    for (first, slice, packets) in [
        (port, "slice(l3,176,16)=80", [ipv4(0x0101), options]),
        (dscp, "slice(l3,8,8)=0x28", [tos0, ipv6]),
        (port, "slice(l3,288,16)=0x1234", [ipv4(1_000), ipv4(1_001)]),
    ] {
        let rule = format!("table=1,priority=2,{slice},actions=output:2");
        for first_packet in [0, 1] {
            let burst = [packets[first_packet].clone(), packets[1 - first_packet].clone()];
            let hits = compare(&[first, &rule, "table=1,priority=1,actions=output:3"], |lab| {
                for _ in 0..3 {
                    burst.iter().for_each(|packet| lab.burst(1, std::slice::from_ref(packet)));
                }
            });
            assert_eq!(hits, 0, "{slice}");
        }
    }
}

#[test]
fn later_tables_see_metadata_and_written_fields() {
    let flows = [
        "table=0,priority=1,dl_dst=02:00:00:00:00:01,actions=write_metadata:0x5,goto_table:1",
        "table=0,priority=1,dl_dst=02:00:00:00:00:02,actions=write_metadata:0x6/0xf,goto_table:1",
        "table=0,priority=1,dl_dst=02:00:00:00:00:03,actions=output:4,dec_ttl,write_metadata:0x7,goto_table:1",
        "table=0,priority=1,dl_dst=02:00:00:00:00:04,actions=write_actions(dec_ttl),goto_table:2",
        "table=1,priority=1,udp,metadata=5,actions=set_field:10.9.9.9->ip_dst,set_field:9->udp_src,goto_table:2",
        "table=1,priority=1,metadata=6,actions=goto_table:2",
        "table=1,priority=1,metadata=7,actions=output:3",
        "table=2,priority=2,ip,nw_dst=10.9.9.9,actions=output:3",
        "table=2,priority=2,ip,nw_dst=10.0.1.2,actions=output:4",
        "table=2,priority=1,actions=output:2",
    ];
    let burst: Vec<_> = (1..6).flat_map(|dst| [packet(dst, 64), packet(dst, 1)]).collect();
    let hits = compare(&flows, |lab| (0..4).for_each(|_| lab.burst(1, &burst)));
    assert_eq!(hits, 3 * 10);
}

#[test]
fn each_worker_reports_its_record_size_and_bypass() {
    let flows = ["priority=9,udp,tp_src=1,actions=output:2", "priority=1,actions=output:3"];
    let states = |lab: &mut Lab| lab.model.plane_mut().express_states().collect::<Vec<_>>();
    let mut off = Lab::new(0, &flows);
    assert_eq!(states(&mut off), [worker::ExpressState::default()]);
    let mut lab = Lab::new(1_000, &flows);
    let udp = |port: u16| {
        PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 1, 1])
            .ipv4([10, 0, 0, 1], [10, 0, 1, 1])
            .udp(port, 2_000)
            .build()
    };
    let state = states(&mut lab)[0];
    assert_eq!((state.is_bypassed, state.size.records), (false, 1_024));
    assert!(state.size.bytes >= 1_024 * 130, "{state:?}");
    let ports: Vec<u16> = (2..17_000).collect();
    for ports in ports.chunks(32) {
        lab.burst(1, &ports.iter().map(|port| udp(*port)).collect::<Vec<_>>());
    }
    assert!(states(&mut lab)[0].is_bypassed, "every packet is of a new flow");
    let same = vec![udp(2); 32];
    (0..300).for_each(|_| lab.burst(1, &same));
    let state = states(&mut lab)[0];
    // The first sample is one in eight bursts.
    assert!(!state.is_bypassed && (6_500..9_000).contains(&state.figures.bypassed), "{state:?}");
}

/// Returns rules by which a packet passes this many tables, whose numbers have gaps.
fn chain(tables: usize) -> Vec<String> {
    let rule = |number: usize| match tables - number {
        1 => format!("table={},dl_dst=02:00:00:00:00:01,actions=output:3", 3 * number),
        _ => format!("table={},actions=goto_table:{}", 3 * number, 3 * number + 3),
    };
    (0..tables).map(rule).collect()
}

#[test]
fn long_paths_are_counted_in_every_table_and_follow_changes() {
    for tables in [6, 7, 20, 24, 25] {
        let flows = chain(tables);
        let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
        let last = 3 * (tables - 1);
        let hits = compare(&flows, |lab| {
            let burst = [packet(1, 64), packet(2, 64), packet(1, 64)];
            (0..3).for_each(|_| lab.burst(1, &burst));
            lab.flow(&format!("table={last},priority=9,udp,actions=output:4"), FlowModCommand::Add);
            (0..2).for_each(|_| lab.burst(1, &burst));
            lab.flow(&format!("table={}", 3 * (tables / 2)), FlowModCommand::Delete);
            (0..2).for_each(|_| lab.burst(1, &burst));
        });
        // After the deletion, the path ends in the middle.
        assert_eq!(hits, if tables > 24 { 3 } else { 4 * 3 }, "{tables}");
    }
}

/// A trace derives from the rules whether a flow can have a path record. Workers must agree.
#[test]
fn the_control_side_knows_which_flows_can_have_a_record() {
    const ROUTE: &str = "actions=set_field:02:00:00:00:00:99->eth_dst,dec_ttl,goto_table:7";
    let last = "table=7,actions=output:3";
    let cases = [
        (vec!["dl_dst=02:00:00:00:00:01,actions=output:3"], 1, true),
        (vec!["actions=drop"], 1, true),
        (vec![ROUTE, last], 2, true),
        (vec![ROUTE], 2, true),
        (vec!["actions=set_field:10.9.9.9->ip_dst,goto_table:7", last], 2, true),
        (vec!["actions=write_metadata:0x5,goto_table:7", "table=7,metadata=5,actions=output:3"], 2, true),
        (vec!["ip,actions=dec_ttl,goto_table:7", "table=7,ip,slice(l3,64,4)=3,actions=output:3"], 2, false),
        (vec!["actions=push_vlan:0x8100,goto_table:7", last], 2, false),
        (vec!["actions=push_vlan:0x8100,output:3"], 1, true),
        (vec![""], 7, true),
        (vec![""], 24, true),
        (vec![""], 25, false),
    ];
    for (flows, tables, expected) in cases {
        let many = chain(tables);
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let flows = if flows[0].is_empty() { many } else { flows };
        let mut lab = Lab::new(64, &flows);
        let filter = FlowFilter::default();
        let entries = lab.model.flows(lab.now, &filter, &mut FlowCursor::default(), usize::MAX);
        let mut ids: Vec<_> = entries.iter().map(|flow| Some(flow.entry.id)).collect();
        ids.resize(tables, None);
        let plane = lab.model.plane_mut();
        assert_eq!(plane.has_path_record(&ids), expected, "{flows:?}");
        (0..2).for_each(|_| lab.burst(1, &[packet(1, 64)]));
        assert_eq!(lab.express(), u64::from(expected), "{flows:?}");
    }
}

/// Two flows pass these tables, with the destinations 1 and 2. Table 1 examines the destination that table 0
/// writes. Table 2 is not on their paths. The rules also examine ports and the metadata.
const BRANCH: [&str; 6] = [
    "table=0,priority=5,dl_dst=02:00:00:00:00:01,actions=set_field:02:00:00:00:00:99->eth_dst,goto_table:1",
    "table=0,priority=5,dl_dst=02:00:00:00:00:02,actions=output:3",
    "table=0,priority=1,tcp,tp_dst=1,actions=goto_table:2",
    "table=0,priority=1,in_port=9,metadata=7,actions=output:2",
    "table=1,priority=5,dl_dst=02:00:00:00:00:99,actions=output:4",
    "table=2,priority=5,udp,tp_dst=1,actions=output:4",
];

/// Sends packets of three flows before and after changes of rules: to destinations 1 and 2, and to
/// destination 3, which no entry of table 0 matches. Returns how many of the first packets after the changes
/// had a record. Treatment and counters must be the same as without records.
fn hits_after(flows: &[&str], change: impl Fn(&mut Lab)) -> u64 {
    let burst = [1, 2, 3].map(|dst| packet(dst, 64));
    let hits_of = |bursts_after: usize| {
        compare(flows, |lab| {
            rest(lab, 3);
            (0..2).for_each(|_| lab.burst(1, &burst));
            change(lab);
            (0..bursts_after).for_each(|_| lab.burst(1, &burst));
        })
    };
    let [before, after, all] = [0, 1, 2].map(hits_of);
    assert_eq!((before, all - after), (3, 3), "records are renewed at once");
    after - before
}

fn hits_after_flow(text: &str, command: FlowModCommand) -> u64 {
    hits_after(&BRANCH, |lab| lab.flow(text, command))
}

#[test]
fn an_added_rule_concerns_the_records_of_packets_that_may_hit_it() {
    use FlowModCommand::Add;
    for (rule, hits, why) in [
        (
            "table=0,priority=6,dl_dst=02:00:00:00:00:01,actions=output:2",
            2,
            "it matches the packets of one flow",
        ),
        ("table=0,priority=6,udp,tp_dst=2000,actions=output:2", 0, "all flows match it"),
        ("table=0,priority=6,udp,tp_dst=2001,actions=output:2", 3, "no flow has this port"),
        ("table=0,priority=6,tcp,tp_dst=2000,actions=output:2", 3, "it needs another header"),
        ("table=0,priority=6,in_port=1,dl_dst=02:00:00:00:00:01,actions=output:2", 2, "port 1"),
        ("table=0,priority=6,in_port=2,actions=output:2", 3, "no packet arrived there"),
        ("table=0,priority=6,metadata=1,actions=output:2", 3, "the metadata is 0"),
    ] {
        assert_eq!(hits_after_flow(rule, Add), hits, "{rule}: {why}");
    }
}

#[test]
fn an_added_rule_must_beat_the_entry_of_a_record() {
    use FlowModCommand::Add;
    for (rule, hits, why) in [
        ("table=0,priority=6,actions=output:2", 0, "above all"),
        ("table=0,priority=5,actions=output:2", 2, "the older entry of equal priority wins; one flow misses"),
        ("table=0,priority=4,actions=output:2", 2, "only the flow without an entry hits it"),
        ("table=0,priority=0,dl_dst=02:00:00:00:00:03,actions=output:2", 2, "a miss is below every priority"),
        ("table=0,priority=0,dl_dst=02:00:00:00:00:04,actions=output:2", 3, "a miss stays a miss"),
        ("table=2,priority=9,actions=output:2", 3, "no path leads over the table"),
    ] {
        assert_eq!(hits_after_flow(rule, Add), hits, "{rule}: {why}");
    }
}

#[test]
fn rewritten_bits_may_match_a_rule_of_a_later_table() {
    use FlowModCommand::Add;
    for (rule, hits, why) in [
        ("table=1,priority=6,dl_dst=02:00:00:00:00:99,actions=output:2", 2, "table 0 writes this address"),
        ("table=1,priority=6,dl_dst=02:00:00:00:00:01,actions=output:2", 2, "a needless renewal"),
        ("table=1,priority=6,udp,tp_dst=2001,actions=output:2", 3, "table 0 writes no ports"),
        ("table=1,priority=5,dl_dst=02:00:00:00:00:99/ff:ff:00:00:00:ff,actions=output:2", 3, "priority"),
    ] {
        assert_eq!(hits_after_flow(rule, Add), hits, "{rule}: {why}");
    }
}

#[test]
fn removed_and_modified_entries_concern_the_records_that_name_them() {
    use FlowModCommand::{DeleteStrict, ModifyStrict};
    for (rule, command, hits) in [
        ("table=0,priority=5,dl_dst=02:00:00:00:00:01", DeleteStrict, 2),
        ("table=1,priority=5,dl_dst=02:00:00:00:00:99", DeleteStrict, 2),
        ("table=0,priority=1,tcp,tp_dst=1", DeleteStrict, 3),
        ("table=0,priority=5,dl_dst=02:00:00:00:00:02,actions=output:4", ModifyStrict, 2),
        ("table=0,priority=5,dl_dst=02:00:00:00:00:02,actions=goto_table:2", ModifyStrict, 2),
        ("table=2,priority=5,udp,tp_dst=1,actions=output:2", ModifyStrict, 3),
    ] {
        assert_eq!(hits_after_flow(rule, command), hits, "{rule}");
    }
}

#[test]
fn a_record_is_compared_with_at_most_4096_changes() {
    let add = |lab: &mut Lab, number: u32| {
        let rule = format!("table=0,priority=6,udp,tp_dst={},actions=output:2", 10_000 + number);
        lab.flow(&rule, FlowModCommand::Add);
    };
    for (changes, hits) in [(1, 3), (200, 3), (4_096, 3), (4_097, 0)] {
        assert_eq!(hits_after(&BRANCH, |lab| (0..changes).for_each(|n| add(lab, n))), hits, "{changes}");
    }
    // One of many changes affects a record.
    let all = |lab: &mut Lab| {
        (0..30).for_each(|number| add(lab, number));
        lab.flow("table=0,priority=5,dl_dst=02:00:00:00:00:01", FlowModCommand::DeleteStrict);
        (30..60).for_each(|number| add(lab, number));
    };
    assert_eq!(hits_after(&BRANCH, all), 2);
}

#[test]
fn removing_an_entry_of_no_recorded_path_outdates_no_record() {
    let mut lab = Lab::new(1_024, &BRANCH);
    (0..2).for_each(|_| lab.burst(1, &[packet(2, 64)]));
    lab.flow("table=0,priority=5,dl_dst=02:00:00:00:00:01", FlowModCommand::DeleteStrict);
    lab.burst(1, &[packet(2, 64)]);
    assert_eq!((lab.express(), lab.model.plane_mut().express_figures().verified), (2, 0));
}

#[test]
fn a_change_of_everything_outdates_all_records() {
    let port = |lab: &mut Lab| {
        lab.model.set_link(lab.now, PortNo(3), false).unwrap();
        while lab.worker.apply() > 0 {}
    };
    assert_eq!(hits_after(&BRANCH, port), 0);
}

#[test]
fn recompiled_bases_outdate_no_records() {
    let flows: Vec<String> = (0..200)
        .map(|number| format!("table=0,priority=2,udp,tp_dst={},actions=output:2", 3_000 + number))
        .chain(BRANCH.map(str::to_owned))
        .collect();
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    let mut lab = Lab::new(1_024, &flows);
    let (tasks, queue) = std::sync::mpsc::channel::<worker::BackgroundTask>();
    lab.model.plane_mut().set_compiler(2, Box::new(move |task| tasks.send(task).unwrap()));
    (0..40).for_each(|number| {
        let rule = format!("table=0,priority=6,udp,tp_dst={},actions=output:2", 10_000 + number);
        lab.flow(&rule, FlowModCommand::Add);
    });
    let burst = [1, 2, 3].map(|dst| packet(dst, 64));
    lab.burst(1, &burst);
    lab.burst(1, &burst);
    let verified = |lab: &mut Lab| lab.model.plane_mut().express_figures().verified;
    let (before, hits) = (verified(&mut lab), lab.express());
    let mut bases = 0;
    for _ in 0..5 {
        lab.now += Nanos(1_000_000_000);
        while lab.model.poll(lab.now) {}
        for task in queue.try_iter() {
            task();
            bases += 1;
        }
        while lab.worker.apply() > 0 {}
    }
    assert!(bases > 0, "no base was compiled");
    lab.burst(1, &burst);
    assert_eq!((verified(&mut lab), lab.express()), (before, hits + 3));
}

/// Lets time pass without rule changes, and lets the control thread do its background work.
fn rest(lab: &mut Lab, seconds: u64) {
    for _ in 0..2 {
        lab.now += Nanos(seconds * 1_000_000_000);
        while lab.model.poll(lab.now) {}
        while lab.worker.apply() > 0 {}
    }
}

#[test]
fn the_records_of_a_narrower_plan_serve_until_a_wider_one_has_records() {
    use FlowModCommand::Add;
    let new_fields = "dl_src=02:00:00:00:01:01";
    for (rule, hits, why) in [
        (format!("table=0,priority=6,{new_fields},udp,tp_dst=2001,actions=output:2"), 3, "another port"),
        (format!("table=0,priority=6,{new_fields},dl_dst=02:00:00:00:00:01,actions=output:2"), 2, "one flow"),
        (format!("table=0,priority=4,{new_fields},dl_dst=02:00:00:00:00:01,actions=output:2"), 3, "below"),
        ("table=0,priority=6,dl_src=02:00:00:00:01:09,actions=output:2".to_owned(), 0, "unknown bits"),
    ] {
        assert_eq!(hits_after_flow(&rule, Add), hits, "{rule}: {why}");
    }
    let twice = |lab: &mut Lab| {
        for field in ["nw_tos=4", "nw_ecn=1", "nw_src=10.9.9.9"] {
            lab.flow(&format!("table=0,priority=4,udp,tp_dst=1,{field},actions=output:2"), Add);
        }
    };
    assert_eq!(hits_after(&BRANCH, twice), 3, "the records of the first plan stay in use");
    let late = |lab: &mut Lab| {
        lab.flow("table=0,priority=4,udp,tp_dst=1,nw_tos=4,actions=output:2", Add);
        rest(lab, 3);
    };
    assert_eq!(hits_after(&BRANCH, late), 0, "the previous records are no longer in use");
}

#[test]
fn the_records_of_a_wider_plan_serve_a_narrower_one() {
    let plan = |lab: &mut Lab| lab.model.plane_mut().express_plan().version();
    let narrower = |lab: &mut Lab| {
        let before = plan(lab);
        lab.flow("table=0,priority=1,in_port=9,metadata=7", FlowModCommand::DeleteStrict);
        lab.flow("table=0,priority=1,tcp,tp_dst=1", FlowModCommand::DeleteStrict);
        rest(lab, 1);
        assert_ne!(plan(lab), before);
    };
    assert_eq!(hits_after(&BRANCH, narrower), 3);
}
