// SPDX-License-Identifier: Apache-2.0
//! Tests of how ovs-ofctl's commands affect packets.

use crate::lab::{Lab, frame};
use openflow::Message;

#[test]
fn a_non_strict_delete_removes_more_specific_entries() {
    let lab = Lab::start(1, 2, "");
    lab.ofctl(&["del-flows"]);
    for line in ["priority=5,tcp", "priority=6,tcp,tcp_dst=80", "table=3,tcp,in_port=1", "udp", "ip"] {
        lab.ofctl(&["add-flow", &format!("{line},actions=drop")]);
    }
    lab.ofctl(&["del-flows", "tcp"]);
    let mut left = lab.flows();
    left.sort();
    assert_eq!(left, ["ip actions=drop", "udp actions=drop"]);
}

#[test]
fn ports_follow_port_mods() {
    let mut lab = Lab::start(1, 3, "");
    lab.ofctl(&["add-flow", "in_port=1,actions=controller,output:2,output:3"]);
    lab.ofctl(&["add-flow", "in_port=3,actions=output:2"]);
    for (no, yes) in [("down", "up"), ("no-forward", "forward")] {
        lab.ofctl(&["mod-port", "2", no]);
        lab.push(1, &frame(2, 1));
        assert_eq!(lab.pop(3), frame(2, 1), "{no}");
        assert_eq!(lab.ports[1].pop(0), None, "{no}");
        lab.ofctl(&["mod-port", "2", yes]);
        lab.push(1, &frame(2, 4));
        assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 4), frame(2, 4)), "{yes}");
    }
    for (no, yes) in [("no-receive", "receive"), ("down", "up")] {
        lab.ofctl(&["mod-port", "1", no]);
        lab.push(1, &frame(2, 1));
        lab.push(3, &frame(2, 3));
        assert_eq!(lab.pop(2), frame(2, 3), "{no}");
        lab.ofctl(&["mod-port", "1", yes]);
        lab.push(1, &frame(2, 5));
        assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 5), frame(2, 5)), "{yes}");
    }

    let mut peer = lab.peer();
    lab.ofctl(&["mod-port", "1", "no-packet-in"]);
    lab.push(1, &frame(2, 1));
    assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 1), frame(2, 1)));
    lab.ofctl(&["mod-port", "1", "packet-in"]);
    lab.push(1, &frame(2, 6));
    let reported = loop {
        if let (_, Message::PacketIn(packet)) = peer.receive() {
            break packet;
        }
    };
    assert_eq!(reported.data, frame(2, 6), "the first packet that is reported");
}

#[test]
fn tables_count_lookups_and_matches() {
    let mut lab = Lab::start(1, 2, "");
    lab.ofctl(&["del-flows"]);
    lab.ofctl(&["add-flow", "in_port=1,dl_dst=02:00:00:00:00:02,actions=output:2"]);
    lab.push(1, &frame(3, 1));
    for _ in 0..2 {
        lab.push(1, &frame(2, 1));
        lab.pop(2);
    }
    let text = lab.ofctl(&["dump-tables"]);
    assert!(text.contains("active=1, lookup=3, matched=2"), "{text}");
}

#[test]
fn groups_of_each_type_forward() {
    let mut lab = Lab::start(1, 3, "");
    for group in [
        "type=select,bucket=output:2",
        "type=ff,bucket=watch_port:3,output:3,bucket=watch_port:2,output:2",
        "type=indirect,bucket=output:2",
    ] {
        lab.ofctl(&["del-groups"]);
        lab.ofctl(&["add-group", &format!("group_id=1,{group}")]);
        lab.ofctl(&["add-flow", "in_port=1,actions=group:1"]);
        // With port 3 down, the first bucket of the fast-failover group is unusable.
        lab.ofctl(&["mod-port", "3", "down"]);
        lab.push(1, &frame(2, 1));
        assert_eq!(lab.pop(2), frame(2, 1), "{group}");
        lab.ofctl(&["mod-port", "3", "up"]);
    }
}
