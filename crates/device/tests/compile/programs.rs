// SPDX-License-Identifier: Apache-2.0
//! Programs of the use cases as flow files, and captured frames.

use std::path::PathBuf;
use std::{env, fs};

use wire::capture::CaptureReader;

use crate::frames::is_beyond_parser;

/// Layer 2 and 3: checks source addresses, removes VLAN tags, and routes by IPv4 and IPv6 prefixes.
pub const SWITCH: &str = "
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

/// Packet filter on 5-tuples.
pub const FILTER: &str = "
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

/// Tables and flows of programs for captured frames.
pub const PROGRAMS: [(&[u8], &str); 3] = [
    (&[1, 1], FILTER),
    (&[1, 2, 2], SWITCH),
    (&[1], "priority=1,dl_vlan=1,actions=pop_vlan,output:2\npriority=0,actions=dec_ttl,output:3"),
];

/// Returns the frames of the captures, and the number of those that the device cannot parse or take.
/// DEVICE_CAPTURES is the folder of others.
pub fn captured() -> (Vec<(u8, Vec<u8>)>, usize) {
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
