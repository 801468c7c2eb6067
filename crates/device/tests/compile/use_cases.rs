// SPDX-License-Identifier: Apache-2.0
//! The use cases of the hardware pipeline, as flow files.

use std::path::PathBuf;
use std::{env, fs};

use fastrand::Rng;
use wire::PacketBuilder;
use wire::capture::CaptureReader;

use crate::device;
use crate::frames::{frame, is_beyond_parser};
use crate::pair::{Left, PORTS, Pair};

const SWITCH: &str = "
         table=0,priority=9,dl_src=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop
         table=0,priority=5,ip,vlan_tci=0x1000/0x1000,actions=pop_vlan,goto_table:1
         table=0,priority=5,ipv6,vlan_tci=0x1000/0x1000,actions=pop_vlan,goto_table:2
         table=0,priority=4,ip,actions=goto_table:1
         table=0,priority=4,ipv6,actions=goto_table:2
         table=0,priority=3,arp,actions=CONTROLLER
         table=1,priority=32,ip,nw_dst=10.0.1.2,actions=dec_ttl,set_field:02:00:00:00:00:aa->eth_src,set_field:02:00:00:00:00:bb->eth_dst,output:3
         table=1,priority=24,ip,nw_dst=10.0.1.0/24,actions=dec_ttl,set_field:02:00:00:00:00:aa->eth_src,output:4
         table=1,priority=8,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,set_field:02:00:00:00:00:ac->eth_src,set_field:10.9.9.9->ip_src,output:5
         table=1,priority=1,ip,actions=CONTROLLER
         table=2,priority=9,ipv6,ipv6_dst=2001:db8:0:1::/64,actions=dec_ttl,set_field:02:00:00:00:00:aa->eth_src,output:6
         table=2,priority=8,ipv6,ipv6_dst=2001:db8::/32,actions=dec_ttl,set_field:2001:db8::99->ipv6_src,output:5";

const FILTER: &str = "
         table=0,priority=2,ip,actions=goto_table:1
         table=0,priority=2,arp,actions=output:2
         table=1,priority=40,tcp,nw_src=10.0.0.1,nw_dst=10.0.1.2,tp_src=80,tp_dst=443,actions=output:3
         table=1,priority=30,tcp,nw_src=10.0.0.0/24,tp_dst=80,actions=output:2
         table=1,priority=30,udp,nw_dst=10.0.2.0/24,tp_dst=53,actions=CONTROLLER
         table=1,priority=25,udp,nw_dst=10.1.0.0/16,tp_src=0x0040/0xfff0,actions=drop
         table=1,priority=20,ip,nw_proto=17,nw_src=10.0.0.0/23,actions=output:4
         table=1,priority=10,ip,nw_proto=6,nw_dst=10.1.0.0/16,actions=drop
         table=1,priority=5,icmp,actions=output:5
         table=1,priority=1,ip,nw_src=10.0.0.0/8,actions=output:6";

/// Frames from all ports.
fn frames(seed: u64, count: usize) -> Vec<(u8, Vec<u8>)> {
    let mut rng = Rng::with_seed(seed);
    let made = (0..count).map(|_| (rng.u8(1..=PORTS as u8), frame(&mut rng)));
    made.filter(|(_, frame)| !is_beyond_parser(frame)).collect()
}

fn check(pair: &mut Pair) {
    let left = pair.compare(&frames(1, 3000));
    assert!((500..2900).contains(&left), "{left} frames left");
}

#[test]
fn exact_destinations_are_forwarded_as_by_the_reference() {
    let mut pair = device(&[1]);
    pair.add_all(
        "dl_dst=02:00:00:00:00:01,actions=output:1
         dl_dst=02:00:00:00:00:02,actions=output:2
         priority=0,actions=CONTROLLER",
    );
    check(&mut pair);
}

#[test]
fn a_switch_for_layers_2_and_3_compiles() {
    let mut pair = device(&[1, 2, 2]);
    pair.add_all(SWITCH);
    check(&mut pair);
}

#[test]
fn a_filter_on_5_tuples_compiles() {
    let mut pair = device(&[1, 1]);
    pair.add_all(FILTER);
    check(&mut pair);
}

#[test]
fn a_forwarder_without_a_parser_compiles() {
    let mut pair = device(&[1, 1]);
    pair.add_all(
        "table=0,dl_type=0x88b9,vlan_tci=0,actions=goto_table:1
         table=0,priority=1,actions=drop
         table=1,priority=9,dl_type=0x88b9,vlan_tci=0,slice(packet,112,16)=0x0001,actions=set_field:0x77->slice(packet,136,8),output:2
         table=1,priority=9,dl_type=0x88b9,vlan_tci=0,slice(packet,112,16)=0x0200/0xff00,slice(packet,128,8)=0x01,actions=output:3
         table=1,priority=8,dl_type=0x88b9,vlan_tci=0,slice(l3,4,12)=0x101,actions=add_field(112,16,0xbeef),output:4
         table=1,priority=7,slice(l3,0,16)=0x0100/0xff00,actions=CONTROLLER",
    );
    let mut rng = Rng::with_seed(3);
    let made: Vec<(u8, Vec<u8>)> = (0..500)
        .map(|_| {
            let mut frame = vec![2; 64];
            frame[12..14].copy_from_slice(&[0x88, 0xb9]);
            frame[14..20].copy_from_slice(&[rng.u8(0..3), rng.u8(0..3), rng.u8(0..3), 9, 9, 9]);
            (1, frame)
        })
        .collect();
    let left = pair.compare(&made);
    assert!(left > 100, "{left} frames left");
    assert_eq!(pair.forward(1, &made[0].1[..14]), Left::Nothing);
}

#[test]
fn packets_pass_tables_to_which_they_are_not_sent() {
    let mut pair = device(&[1, 1, 1, 2]);
    pair.add_all(
        "table=0,in_port=1,actions=goto_table:1
         table=0,in_port=2,actions=write_metadata:0x22/0xff,goto_table:2
         table=0,in_port=3,actions=write_metadata:0x33,goto_table:3
         table=0,in_port=4,actions=write_actions(output:6),goto_table:1
         table=1,priority=3,dl_dst=02:00:00:00:00:01,metadata=0,actions=goto_table:3
         table=1,priority=1,actions=goto_table:2
         table=2,metadata=0x20/0xf0,actions=set_field:02:00:00:00:00:77->eth_dst,goto_table:3
         table=2,priority=1,ip,actions=pop_vlan,set_field:02:00:00:00:00:88->eth_dst,write_actions(output:1)
         table=2,priority=0,actions=goto_table:3
         table=3,priority=9,metadata=0x22,actions=write_actions(output:5)
         table=3,priority=9,metadata=0x33,actions=write_actions(output:IN_PORT)
         table=3,priority=9,tcp,actions=dec_ttl,set_field:80->tcp_src,set_field:02:00:00:00:00:99->eth_dst
         table=3,priority=1,actions=write_actions(output:CONTROLLER)",
    );
    check(&mut pair);
}

#[test]
fn absent_slices_match_nothing() {
    let mut pair = device(&[1]);
    pair.add_all(
        "priority=3,slice(l4,0,16)=0,actions=output:1
         priority=2,slice(l3,40,16)=0,actions=output:2
         priority=1,slice(packet,112,8)=0,actions=output:3
         priority=0,actions=output:4",
    );
    let mut made = Vec::new();
    for length in 14..40 {
        let mut frame = vec![0; length];
        frame[12] = 0x88;
        made.push((6, frame));
    }
    for ports in [0, 7] {
        made.push((6, PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([1; 4], [2; 4]).udp(ports, 9).build()));
    }
    assert_eq!(pair.compare(&made), made.len());
}

/// Returns the frames of the captures, and the number of those that the device cannot parse or take.
/// DEVICE_CAPTURES is the folder of others.
fn captured() -> (Vec<(u8, Vec<u8>)>, usize) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let folder = "crates/wire/tests/data";
    let names = ["802.1ad_QinQ.pcap", "built.pcap", "built.pcapng", "mpls-over-udp.pcap"];
    let mut paths: Vec<PathBuf> = names.iter().map(|name| format!("{root}{folder}/{name}").into()).collect();
    paths.push(format!("{root}scripts/data/ptp_ethernet.pcap").into());
    if let Ok(folder) = env::var("DEVICE_CAPTURES") {
        paths.extend(fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
    }
    let (mut frames, mut beyond) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| path.extension().is_some()) {
        let mut capture = CaptureReader::open(path).unwrap();
        while let Some(packet) = capture.next_packet().unwrap() {
            // Ethernet devices pad the frames that their host captures.
            let mut frame = packet.bytes.to_vec();
            frame.resize(frame.len().max(60), 0);
            if is_beyond_parser(&frame) || frame.len() > 1518 {
                beyond += 1;
            } else {
                frames.push((1, frame));
            }
        }
    }
    (frames, beyond)
}

#[test]
fn captured_frames_are_forwarded_as_by_the_reference() {
    let programs: [(&[u8], &str); 3] = [
        (&[1, 1], FILTER),
        (&[1, 2, 2], SWITCH),
        (&[1], "priority=1,dl_vlan=1,actions=pop_vlan,output:2\npriority=0,actions=dec_ttl,output:3"),
    ];
    let (frames, beyond) = captured();
    assert!(frames.len() > 3 * beyond && frames.len() > 100, "{} frames, {beyond} beyond", frames.len());
    for (tables, text) in programs {
        let mut pair = device(tables);
        pair.add_all(text);
        pair.compare(&frames);
    }
}
