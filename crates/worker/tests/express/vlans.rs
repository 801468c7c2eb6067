// SPDX-License-Identifier: Apache-2.0
//! NORMAL with VLANs of ports: records must not hide a tag that NORMAL would change.

use super::lab::{Lab, compare};
use super::{NORMAL, between, bridge};
use flow::PortNo;
use flow::bridge::{BridgeConfig, BridgePort, PortVlans, TrunkVlans};
use std::sync::Arc;
use wire::PacketBuilder;

fn set<const PORTS: usize>(lab: &mut Lab, ports: [(u32, PortVlans); PORTS]) {
    let ports = ports.map(|(port, vlans)| (PortNo(port), BridgePort { vlans, ..BridgePort::default() }));
    lab.model.set_bridge(lab.now, Some(Arc::new(BridgeConfig { ports: ports.into() })));
    while lab.worker.apply() > 0 {}
}

/// Returns a tagged packet between two stations.
fn tagged(from: u8, to: u8, tci: u16) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from])
        .vlan(0x8100, tci)
        .ipv4([10, 0, 0, from], [10, 0, 0, to])
        .udp(1_000, 2_000)
        .build()
}

/// Returns a frame without its tag, as a port sends it.
fn popped(mut frame: Vec<u8>) -> Vec<u8> {
    frame.drain(12..16);
    let len = frame.len().max(60);
    frame.resize(len, 0);
    frame
}

/// Takes the frames that a port has sent.
fn sent(lab: &mut Lab, port: usize) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| lab.handles[port - 1].pop(0)).collect()
}

/// Lets NORMAL learn stations 1 and 2 at ports 1 and 2, and takes the frames of this.
fn introduce(lab: &mut Lab, first: Vec<u8>, second: Vec<u8>) {
    bridge(lab, 1, &[first]);
    bridge(lab, 2, &[second]);
    (1..=4).for_each(|port| drop(sent(lab, port)));
}

#[test]
fn a_record_of_untagged_frames_does_not_send_a_priority_tag_to_an_access_port() {
    let hits = compare(&NORMAL, |lab| {
        set(lab, [(1, PortVlans::Access(10)), (2, PortVlans::Access(10))]);
        introduce(lab, between(1, 2), between(2, 1));
        for _ in 0..3 {
            bridge(lab, 1, &[between(1, 2), tagged(1, 2, 0xe000)]);
        }
        let both = [between(1, 2), popped(tagged(1, 2, 0xe000))];
        assert_eq!(sent(lab, 2), vec![both; 3].concat());
    });
    assert!(hits >= 2, "untagged frames leave by a record: {hits}");
}

#[test]
fn frames_between_known_stations_get_a_tag_although_they_have_a_record() {
    compare(&NORMAL, |lab| {
        set(lab, [(1, PortVlans::Access(10))]);
        introduce(lab, between(1, 2), tagged(2, 1, 10));
        for _ in 0..3 {
            bridge(lab, 1, &[between(1, 2)]);
            bridge(lab, 2, &[tagged(2, 1, 10)]);
        }
        assert_eq!(sent(lab, 2), vec![tagged(1, 2, 10); 3]);
        assert_eq!(sent(lab, 1), vec![popped(tagged(2, 1, 10)); 3]);
    });
}

#[test]
fn floods_reach_the_ports_of_the_vlan_with_their_tags() {
    compare(&NORMAL, |lab| {
        let only = |vids: &[u16]| TrunkVlans::Only(vids.iter().copied().collect());
        set(
            lab,
            [
                (1, PortVlans::Access(10)),
                (2, PortVlans::Trunk(only(&[10, 20]))),
                (3, PortVlans::NativeUntagged { native: 10, trunks: only(&[20]) }),
                (4, PortVlans::Access(20)),
            ],
        );
        bridge(lab, 1, &[between(1, 9)]);
        assert_eq!(sent(lab, 2), [tagged(1, 9, 10)]);
        assert_eq!(sent(lab, 3), [between(1, 9)]);
        assert_eq!(sent(lab, 4), Vec::<Vec<u8>>::new());
        // The answer comes from the trunk. A frame of VLAN 20 does not reach station 1.
        bridge(lab, 2, &[tagged(9, 1, 10), tagged(9, 1, 20)]);
        assert_eq!(sent(lab, 1), [popped(tagged(9, 1, 10))]);
        assert_eq!(sent(lab, 3), [tagged(9, 1, 20)]);
        assert_eq!(sent(lab, 4), [popped(tagged(9, 1, 20))]);
        // Port 1 does not admit tags, and port 3 does not carry VLAN 30.
        bridge(lab, 1, &[tagged(1, 9, 10)]);
        bridge(lab, 3, &[tagged(3, 9, 30)]);
        let dropped = lab.seen().dropped;
        assert_eq!(dropped.of(flow::DropReason::WrongVlan), 2);
    });
}

#[test]
fn a_change_of_vlans_ends_records_and_learned_addresses() {
    let hits = compare(&NORMAL, |lab| {
        let access = |lab: &mut Lab, vids: [u16; 2]| {
            set(lab, [(1, PortVlans::Access(vids[0])), (2, PortVlans::Access(vids[1]))]);
        };
        access(lab, [10, 10]);
        introduce(lab, between(1, 2), between(2, 1));
        bridge(lab, 1, &vec![between(1, 2); 5]);
        assert_eq!(sent(lab, 2).len(), 5);
        access(lab, [10, 20]);
        bridge(lab, 1, &vec![between(1, 2); 5]);
        assert_eq!(sent(lab, 2).len(), 0);
        // Ports 3 and 4 are trunks, because they have no settings.
        assert_eq!(sent(lab, 3), vec![tagged(1, 2, 10); 5]);
        assert_eq!(lab.model.macs(lab.now).len(), 1, "port 2 has lost its address");
        access(lab, [20, 20]);
        introduce(lab, between(1, 2), between(2, 1));
        bridge(lab, 1, &vec![between(1, 2); 5]);
        assert_eq!(sent(lab, 2).len(), 5);
        lab.model.set_bridge(lab.now, None);
        while lab.worker.apply() > 0 {}
        introduce(lab, between(1, 2), between(2, 1));
        bridge(lab, 1, &vec![between(1, 2); 5]);
        assert_eq!(sent(lab, 2), vec![between(1, 2); 5]);
    });
    assert!(hits >= 8, "{hits}");
}

#[test]
fn a_packet_with_further_actions_keeps_its_tag() {
    let flows = ["priority=1,in_port=1,actions=NORMAL,output:4", "priority=0,actions=NORMAL"];
    compare(&flows, |lab| {
        set(lab, [(1, PortVlans::Access(10)), (2, PortVlans::default()), (4, PortVlans::Access(7))]);
        introduce(lab, between(1, 2), tagged(2, 1, 10));
        bridge(lab, 1, &[between(1, 2)]);
        assert_eq!(sent(lab, 2), [tagged(1, 2, 10)]);
        assert_eq!(sent(lab, 4), [between(1, 2)], "rules ignore the VLANs of ports");
    });
}
