// SPDX-License-Identifier: Apache-2.0
//! Changes of rules while the controller is asked about a flow.

use crate::lab::{Lab, packet};
use flow::{Nanos, PortNo};

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
