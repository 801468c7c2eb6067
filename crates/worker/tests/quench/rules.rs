// SPDX-License-Identifier: Apache-2.0
//! Changes of rules while the controller is asked about a flow.

use crate::lab::{LATE_NS, Lab, MISS, packet, quench};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};

/// The worker did not run between the first packet and the rule. The 10 ms for the packet-out begin when the
/// worker runs again.
#[test]
fn a_packet_out_may_follow_a_rule_although_the_worker_was_idle() {
    let mut lab = Lab::usual();
    lab.push(1, &packet(1, 3, 1));
    lab.turns();
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), lab.pending()), (1, 1));
    lab.now += Nanos(100_000_000);
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", None);
    lab.push(1, &packet(1, 3, 2));
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), (vec![], 1), "packet 2 does not overtake packet 1");
    lab.packet_out(packet_ins[0].buffer_id, &[], PortNo(3));
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), (vec![1, 2], 0));
}

/// An operation with many removals is not a rule for each flow.
#[test]
fn the_removal_of_many_entries_ends_no_question() {
    let fields = "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2";
    let others: Vec<String> =
        (0..65).map(|flow| format!("dl_dst=02:00:00:00:00:04,udp,tp_dst={flow},actions=output:2")).collect();
    let rules: Vec<&str> = others.iter().map(String::as_str).chain([fields, MISS]).collect();
    let mut lab = Lab::new(&quench(0), &rules);
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 2));
    let all =
        parse_flow("dl_dst=02:00:00:00:00:04", FlowModCommand::Delete, ParseOptions::default()).unwrap();
    lab.model.flow_mod(lab.now, all).unwrap();
    lab.turns();
    lab.now += LATE_NS * 2;
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (0, 2));
    // An added entry for another flow ends no question either.
    lab.flow("dl_dst=02:00:00:00:00:05,udp,tp_dst=9,actions=output:2");
    lab.turns();
    lab.now += LATE_NS * 2;
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (0, 2));
}
