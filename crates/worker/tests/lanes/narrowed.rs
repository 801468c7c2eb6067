// SPDX-License-Identifier: Apache-2.0
//! The express path after rules were removed. LUTs still examine the bits of these rules, but the keys of
//! path records no longer do.

use crate::lab::{Lab, USUAL, normal, udp};
use flow::{FlowModCommand, Nanos};
use std::collections::BTreeMap;

/// The first packet of a flow waits, because its value has no LUT record. A packet of another flow leaves by
/// a LUT record. The packets differ only in a bit that a removed rule examined, so their keys are equal.
#[test]
fn a_record_lets_no_packet_overtake_one_with_its_key_and_another_lut_value() {
    let config = worker::WorkerSetConfig {
        small_frames: 1_024,
        large_frames: 0,
        lanes: USUAL,
        express_records: 1_024,
        ..worker::WorkerSetConfig::default()
    };
    let mut lab = Lab::with(
        &config,
        &[
            "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3",
            "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_src=7,actions=output:3",
            "priority=10,udp,nw_dst=10.1.0.0/16,actions=output:4",
        ],
    );
    let flow = |source_port, mark| udp([10, 0, 0, 9], source_port, 64, mark);
    for _ in 0..4 {
        lab.push(1, &flow(5, 0));
        lab.turn();
    }
    lab.change(FlowModCommand::Delete, "udp,nw_dst=10.0.0.0/16,tp_src=7");
    let examined = |lab: &mut Lab| {
        let plane = lab.model.plane_mut();
        let lut: BTreeMap<_, _> = plane.lut_examined().collect();
        let keys: BTreeMap<_, _> = plane.express_examined().collect();
        (lut.contains_key(&flow::Field::UdpSrc), keys.contains_key(&flow::Field::UdpSrc))
    };
    assert_eq!(examined(&mut lab), (true, true));
    for _ in 0..4 {
        lab.pass(Nanos(1_500_000_000));
        lab.turn();
    }
    assert_eq!(examined(&mut lab), (true, false), "the keys were narrowed");
    lab.pop(3);
    // The bursts are full, so the worker processes no backlog after them.
    let mut burst = |first: Vec<u8>| {
        lab.push(1, &first);
        (1..32).for_each(|_| lab.push(1, &normal()));
        lab.turn_alone();
    };
    burst(flow(6, 1));
    burst(flow(5, 2));
    burst(flow(6, 3));
    for _ in 0..16 {
        lab.turn();
    }
    let sent = lab.pop(3);
    let mut marks: Vec<u8> = sent.iter().filter_map(|bytes| bytes.last().copied()).collect();
    assert_eq!(marks.len(), 3);
    marks.retain(|mark| *mark != 2);
    assert_eq!(marks, [1, 3], "packets of one flow");
}
