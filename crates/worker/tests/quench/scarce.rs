// SPDX-License-Identifier: Apache-2.0
//! Packet-ins that cannot be made or sent because frames for the controller are used up.

use crate::lab::{BURST, Lab, MISS, packet, quench};
use flow::DropReason;
use pipeline::LaneLimits;
use worker::WorkerSetConfig;

/// The path of a packet whose packet-in had no frame is not recorded: later packets of the flow would hit
/// the record, so that each of them would send a packet-in.
#[test]
fn a_flow_is_quenched_after_its_first_packet_in_found_no_frame() {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let fields = "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2";
    for lanes in [LaneLimits::NONE, lanes] {
        let config = WorkerSetConfig { lanes, controller_frames: BURST, ..quench(0) };
        let mut lab = Lab::new(&config, &[fields, low_latency, MISS]);
        // The control thread does not take these packet-ins yet.
        for flow in 100..120 + BURST as u16 {
            lab.push(1, &packet(flow, 3, 0));
            lab.turns();
        }
        assert!(lab.dropped(DropReason::PacketInFull) > 0, "a packet-in found no frame: {lanes:?}");
        lab.packet_ins();
        let flow = 119 + BURST as u16;
        (1..11).for_each(|number| lab.push(1, &packet(flow, 3, number)));
        lab.turns();
        assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 9), "{lanes:?}");
    }
}
