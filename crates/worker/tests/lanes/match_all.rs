// SPDX-License-Identifier: Apache-2.0
//! Tables whose entries examine few bits of a packet, or none, on the fast-forwarding path.

use crate::lab::{Lab, USUAL, udp};
use dataplane::DataPlane;
use flow::{DropReason, FlowModCommand};
use pipeline::LaneLimits;

/// Limits of 16 packets each for known normal packets, unknown packets and the hold queue.
const NARROW: LaneLimits = LaneLimits { normal: 16, unknown: 16, hold: 16 };

/// Rule sets under which all packets of [`flows`] are sent to port 3 by low-latency entries.
const RULE_SETS: &[&[&str]] = &[
    &["low_latency,actions=output:3"],
    &["low_latency,priority=7,actions=output:3", "priority=3,actions=drop"],
    &["low_latency,actions=goto_table:1", "table=1,low_latency,actions=output:3"],
    &[
        "low_latency,actions=goto_table:1",
        "table=1,low_latency,actions=write_metadata:5,goto_table:7",
        "table=7,low_latency,actions=output:3",
    ],
    // The match-all table follows a table that has a LUT, or precedes one.
    &[
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=goto_table:1",
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=goto_table:1",
        "low_latency,priority=0,actions=goto_table:1",
        "table=1,low_latency,actions=output:3",
    ],
    &[
        "low_latency,actions=goto_table:1",
        "table=1,low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3",
        "table=1,low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
        "table=1,low_latency,priority=0,actions=output:3",
    ],
    // All entries examine only the ingress port, or one entry examines it and another entry matches
    // everything.
    &["low_latency,in_port=1,actions=output:3", "low_latency,in_port=2,actions=output:3"],
    &["low_latency,in_port=1,actions=output:3", "low_latency,priority=1,actions=output:3"],
    // Only the presence of a header is examined.
    &["low_latency,ip,actions=output:3"],
    &["low_latency,vlan_tci=0x1000/0x1000,actions=output:4", "low_latency,priority=1,actions=output:3"],
    &["low_latency,vlan_tci=0/0x1000,actions=output:3"],
    // Packets are looked up by index in a linear table. The table also has an entry that matches everything,
    // or entries for which it needs a LUT.
    &[
        "low_latency,actions=goto_direct(table=1,index=2)",
        "table=1,low_latency,index=2,actions=output:3",
        "table=1,low_latency,actions=drop",
    ],
    &[
        "low_latency,actions=goto_direct(table=1,index=2)",
        "table=1,low_latency,index=2,actions=output:3",
        "table=1,low_latency,udp,nw_dst=10.0.0.0/24,actions=drop",
        "table=1,low_latency,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=drop",
    ],
];

/// Returns packets of eight flows.
fn flows() -> Vec<Vec<u8>> {
    (0..8).map(|flow| udp([10, 0, flow, 9], 5, 64, 0)).collect()
}

/// Sends packets of all flows slowly, until each flow is learned.
fn warm(lab: &mut Lab) {
    for _ in 0..3 {
        flows().iter().for_each(|packet| lab.push(1, packet));
        (0..8).for_each(|_| _ = lab.turn());
    }
    lab.pop(3);
}

/// Sends packets of learned flows. The fast-forwarding path must send all of them to port 3.
fn all_are_fast(lab: &mut Lab, of: &dyn std::fmt::Debug) {
    let before = lab.model.plane_mut().totals().fast;
    for _ in 0..10 {
        flows().iter().for_each(|packet| lab.push(1, packet));
        lab.turn();
    }
    (0..8).for_each(|_| _ = lab.turn());
    assert_eq!(lab.pop(3).len(), 80, "{of:?}");
    assert_eq!(lab.model.plane_mut().totals().fast - before, 80, "{of:?}");
}

#[test]
fn packets_of_low_latency_entries_take_the_path_for_any_match() {
    for lanes in [USUAL, LaneLimits::NONE] {
        for rules in RULE_SETS {
            let mut lab = Lab::new(lanes, 1_024, rules);
            warm(&mut lab);
            all_are_fast(&mut lab, rules);
        }
    }
}

/// On 17 ports, more packets arrive than the tables can process.
#[test]
fn no_packet_of_a_learned_flow_is_lost_as_unknown_under_load() {
    let config = worker::WorkerSetConfig {
        small_frames: 16_384,
        large_frames: 0,
        lanes: NARROW,
        ..worker::WorkerSetConfig::default()
    };
    for rules in RULE_SETS.iter().filter(|rules| !rules.iter().any(|rule| rule.contains("in_port"))) {
        let mut lab = Lab::with_ports(18, 4_096, &config, rules);
        warm(&mut lab);
        let (flows, mut sent) = (flows(), 0);
        for turn in 0..60 {
            for port in (1..=18).filter(|port| *port != 3) {
                (0..32).for_each(|at| lab.push(port, &flows[(turn + at) % flows.len()]));
                sent += 32;
            }
            lab.turn();
            sent -= lab.pop(3).len();
        }
        while lab.turn().received > 0 {
            sent -= lab.pop(3).len();
        }
        (0..8).for_each(|_| _ = lab.turn());
        sent -= lab.pop(3).len();
        assert_eq!((lab.dropped(DropReason::BacklogUnknown), sent), (0, 0), "{rules:?}");
    }
}

/// In each round, the number of bits that a table examines grows and shrinks to 0, and the table is emptied
/// and filled again.
#[test]
fn a_table_may_stop_and_resume_examining_bits() {
    let routes = [
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3",
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
    ];
    for lanes in [USUAL, LaneLimits::NONE] {
        let mut lab = Lab::new(lanes, 1_024, &["low_latency,priority=1,actions=output:3"]);
        let check = |lab: &mut Lab, step: &str| {
            warm(lab);
            all_are_fast(lab, &step);
        };
        for round in 0..3 {
            check(&mut lab, "only the entry that matches everything");
            routes.iter().for_each(|rule| lab.rule(rule));
            check(&mut lab, "with routes");
            lab.change(FlowModCommand::Delete, "udp,nw_dst=10.0.0.0/16");
            check(&mut lab, "routes deleted");
            lab.change(FlowModCommand::Delete, "");
            lab.rule("low_latency,priority=2,actions=output:3");
            check(&mut lab, "emptied and filled again");
            // There are so many rules that the table is recompiled both after they are added and after they
            // are deleted.
            for host in 0..=255 {
                lab.rule(&format!(
                    "low_latency,priority={},nw_dst=10.8.{host}.0/24,ip,actions=drop",
                    9 + round
                ));
                lab.rule(&format!("low_latency,priority=8,nw_src=10.8.{host}.0/24,ip,actions=drop"));
            }
            check(&mut lab, "with many");
            lab.change(FlowModCommand::Delete, "ip");
            check(&mut lab, "many rules deleted");
        }
    }
}

/// A modify command makes an entry low-latency. In the second case, the table first has other entries, which
/// examine bits and are deleted before the command.
#[test]
fn an_entry_that_matches_everything_may_become_low_latency() {
    for others in
        [&[][..], &["priority=9,udp,nw_dst=10.9.0.0/16,actions=drop", "priority=9,tcp,actions=drop"]]
    {
        let mut lab = Lab::new(USUAL, 1_024, &["priority=1,actions=output:3"]);
        others.iter().for_each(|rule| lab.rule(rule));
        warm(&mut lab);
        assert_eq!(lab.model.plane_mut().totals().fast, 0);
        others.iter().for_each(|rule| {
            let matching = rule.rsplit_once(",actions").map_or("", |(matching, _)| matching);
            lab.change(FlowModCommand::DeleteStrict, matching);
        });
        lab.change(FlowModCommand::ModifyStrict, "low_latency,priority=1,actions=output:3");
        warm(&mut lab);
        all_are_fast(&mut lab, &others);
    }
}
