// SPDX-License-Identifier: Apache-2.0
//! The order of flows while a LUT takes the place of another and records are cleaned.

use crate::lab::{Lab, RULES, USUAL, low, udp};
use flow::Command;

/// Low-latency flows of one rule; with two packets of another flow, a burst.
const OTHERS: u8 = 30;
const OTHERS_RULE: &str = "priority=30,udp,nw_dst=10.2.0.0/16,actions=output:3";

/// Turns until a change of rules is cleaned, a slice of the LUT with each burst.
const CLEANING_TURNS: usize = 64;

fn push_others(lab: &mut Lab) {
    (0..OTHERS).for_each(|number| lab.push(1, &udp([10, 2, number, 1], 5, 64, 0)));
}

/// A record of the LUT before is inherited for the first packet of a burst. Then a record that is being cleaned bars the
/// LUT before, and the flow's next packets must not wait while later ones find the record that was inherited.
#[test]
fn a_flow_goes_on_by_the_record_that_was_inherited_for_it() {
    let others = format!("low_latency,{OTHERS_RULE}");
    let rules = [RULES, &[&others]].concat();
    // So many records that a change cleans them slice by slice.
    let frames = worker::Config { small_frames: 1_024, large_frames: 0, ..worker::Config::default() };
    let mut lab = Lab::with(&worker::Config { lanes: USUAL, lut_entries: 16_384, ..frames }, &rules);
    for _ in 0..CLEANING_TURNS {
        lab.push(1, &low(64, 0));
        push_others(&mut lab);
        lab.turn();
    }
    // Another LUT, which examines more bits.
    lab.rule("priority=1,udp,tp_src=77,actions=drop");
    push_others(&mut lab);
    lab.turn();
    let figures = lab.model.plane_mut().fast_tables().next().and_then(|(_, lut)| lut).unwrap().figures;
    assert_eq!((figures.records, figures.hits), (30, 30), "they have been inherited, and nothing else");
    lab.change(Command::ModifyStrict, &format!("low_latency=false,{OTHERS_RULE}"));
    // A full burst, behind which nothing is worked off.
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
