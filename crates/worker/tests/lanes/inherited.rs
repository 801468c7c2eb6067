// SPDX-License-Identifier: Apache-2.0
//! Tests the order of the packets of a flow while a LUT is replaced and its records are cleaned.

use crate::lab::{Lab, RULES, USUAL, low, udp};
use flow::FlowModCommand;

/// Number of low-latency flows of one rule. One packet of each flow and two packets of another flow fill a
/// burst.
const OTHERS: u8 = 30;
const OTHERS_RULE: &str = "priority=30,udp,nw_dst=10.2.0.0/16,actions=output:3";

/// Number of poll iterations in which the LUT is cleaned after a rule change, one part of it per burst.
const CLEANING_TURNS: usize = 64;

fn push_others(lab: &mut Lab) {
    (0..OTHERS).for_each(|number| lab.push(1, &udp([10, 2, number, 1], 5, 64, 0)));
}

/// The first packet of a burst inherits a record of the previous LUT. Then the previous LUT is blocked
/// because one of its records is being cleaned. The next packets of the flow must not wait in the backlog:
/// later packets would find the inherited record and overtake them.
#[test]
fn a_flow_continues_with_its_inherited_record() {
    let others = format!("low_latency,{OTHERS_RULE}");
    let rules = [RULES, &[&others]].concat();
    // There are so many records that the cleaning after a change takes several bursts.
    let frames = worker::WorkerSetConfig {
        small_frames: 1_024,
        large_frames: 0,
        ..worker::WorkerSetConfig::default()
    };
    let mut lab = Lab::with(&worker::WorkerSetConfig { lanes: USUAL, lut_entries: 16_384, ..frames }, &rules);
    for _ in 0..CLEANING_TURNS {
        lab.push(1, &low(64, 0));
        push_others(&mut lab);
        lab.turn();
    }
    // The added rule makes the table create another LUT, which examines more bits.
    lab.rule("priority=1,udp,tp_src=77,actions=drop");
    push_others(&mut lab);
    lab.turn();
    let figures = lab.model.plane_mut().fast_tables().next().and_then(|(_, lut)| lut).unwrap().figures;
    assert_eq!((figures.records, figures.hits), (30, 30), "30 records were inherited and hit");
    lab.change(FlowModCommand::ModifyStrict, &format!("low_latency=false,{OTHERS_RULE}"));
    // The burst is full, so no backlog is processed after it.
    lab.push(1, &low(64, 1));
    push_others(&mut lab);
    lab.push(1, &low(64, 2));
    lab.turn_alone();
    lab.push(1, &low(64, 3));
    for _ in 0..8 {
        lab.turn();
    }
    let marks: Vec<u8> =
        lab.pop(3).iter().filter_map(|bytes| bytes.last().copied()).filter(|mark| *mark > 0).collect();
    assert_eq!(marks, [1, 2, 3]);
}

/// After a rule is deleted, its table may no longer examine addresses. Packets of two flows, with different
/// values in the previous LUT, then have the same value in the new LUT. If a packet of one flow inherits a
/// record, packets of the other flow must not use the record to overtake a packet that waits for the table.
#[test]
fn flows_with_the_same_new_value_do_not_share_inherited_records() {
    let host = "priority=30,udp,nw_dst=10.2.0.1";
    // The entries have two masks. The table therefore has a LUT, whichever entry is deleted.
    let rules = [
        &format!("low_latency,{host},actions=output:3"),
        "low_latency,priority=20,udp,tp_dst=0x10/0xfff0,actions=output:3",
        "low_latency,priority=10,udp,actions=output:3",
        "priority=0,actions=drop",
    ];
    let mut lab = Lab::new(USUAL, 1_024, &rules);
    let packet = |host: u8, mark: u8| udp([10, 2, 0, host], 5, 64, mark);
    (1..=2).for_each(|host| lab.push(1, &packet(host, 0)));
    lab.turn();
    lab.change(FlowModCommand::DeleteStrict, host);
    for _ in 0..CLEANING_TURNS {
        lab.push(1, &packet(2, 0));
        lab.turn();
    }
    // This rule examines another field, so the table is recompiled.
    lab.rule("priority=1,dl_src=02:00:00:00:00:77,actions=drop");
    // The entry of the first packet's record is deleted, so this packet waits for the table. The burst is
    // full, so the backlog is not processed after it.
    lab.push(1, &packet(1, 1));
    (0..31).for_each(|_| lab.push(1, &packet(2, 0)));
    lab.turn_alone();
    lab.push(1, &packet(1, 2));
    for _ in 0..8 {
        lab.turn();
    }
    let marks: Vec<u8> =
        lab.pop(3).iter().filter_map(|bytes| bytes.last().copied()).filter(|mark| *mark > 0).collect();
    assert_eq!(marks, [1, 2]);
}
