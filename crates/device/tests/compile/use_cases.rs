// SPDX-License-Identifier: Apache-2.0
//! The use cases of the hardware pipeline, as flow files.

use fastrand::Rng;
use wire::PacketBuilder;

use crate::device;
use crate::frames::{frame, is_beyond_parser};
use crate::pair::{Left, PORTS, Pair};
use crate::programs::{FILTER, ICN, PROGRAMS, SWITCH, captured, icn_frame};

/// Frames from all ports.
fn frames(seed: u64, count: usize) -> Vec<(u8, Vec<u8>)> {
    let mut rng = Rng::with_seed(seed);
    let made = (0..count).map(|_| (rng.u8(1..=PORTS as u8), frame(&mut rng)));
    made.filter(|(_, frame)| !is_beyond_parser(frame)).collect()
}

fn check(pair: &mut Pair) {
    let left = pair.compare(&frames(1, 3000));
    assert!((500..2900).contains(&left), "{left} frames left");
}

#[test]
fn exact_destinations_are_forwarded_as_by_the_reference() {
    let mut pair = device(&[1]);
    pair.add_all(
        "dl_dst=02:00:00:00:00:01,actions=output:1
         dl_dst=02:00:00:00:00:02,actions=output:2
         priority=0,actions=CONTROLLER",
    );
    check(&mut pair);
}

#[test]
fn a_switch_for_layers_2_and_3_compiles() {
    let mut pair = device(&[1, 2, 2]);
    pair.add_all(SWITCH);
    check(&mut pair);
}

#[test]
fn a_filter_on_5_tuples_compiles() {
    let mut pair = device(&[1, 1]);
    pair.add_all(FILTER);
    check(&mut pair);
}

#[test]
fn a_forwarder_without_a_parser_compiles() {
    let mut pair = device(&[1, 1]);
    pair.add_all(ICN);
    let mut rng = Rng::with_seed(3);
    let made: Vec<(u8, Vec<u8>)> = (0..500).map(|_| (1, icn_frame(&mut rng))).collect();
    let left = pair.compare(&made);
    assert!(left > 100, "{left} frames left");
    assert_eq!(pair.forward(1, &made[0].1[..14]), Left::Nothing);
}

#[test]
fn packets_pass_tables_to_which_they_are_not_sent() {
    let mut pair = device(&[1, 1, 1, 2]);
    pair.add_all(
        "table=0,in_port=1,actions=goto_table:1
         table=0,in_port=2,actions=write_metadata:0x22/0xff,goto_table:2
         table=0,in_port=3,actions=write_metadata:0x33,goto_table:3
         table=0,in_port=4,actions=write_actions(output:6),goto_table:1
         table=1,priority=3,dl_dst=02:00:00:00:00:01,metadata=0,actions=goto_table:3
         table=1,priority=1,actions=goto_table:2
         table=2,metadata=0x20/0xf0,actions=set_field:02:00:00:00:00:77->eth_dst,goto_table:3
         table=2,priority=1,ip,actions=pop_vlan,set_field:02:00:00:00:00:88->eth_dst,write_actions(output:1)
         table=2,priority=0,actions=goto_table:3
         table=3,priority=9,metadata=0x22,actions=write_actions(output:5)
         table=3,priority=9,metadata=0x33,actions=write_actions(output:IN_PORT)
         table=3,priority=9,tcp,actions=dec_ttl,set_field:80->tcp_src,set_field:02:00:00:00:00:99->eth_dst
         table=3,priority=1,actions=write_actions(output:CONTROLLER)",
    );
    check(&mut pair);
}

#[test]
fn absent_slices_match_nothing() {
    let mut pair = device(&[1]);
    pair.add_all(
        "priority=3,slice(l4,0,16)=0,actions=output:1
         priority=2,slice(l3,40,16)=0,actions=output:2
         priority=1,slice(packet,112,8)=0,actions=output:3
         priority=0,actions=output:4",
    );
    let mut made = Vec::new();
    for length in 14..40 {
        let mut frame = vec![0; length];
        frame[12] = 0x88;
        made.push((6, frame));
    }
    for ports in [0, 7] {
        made.push((6, PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([1; 4], [2; 4]).udp(ports, 9).build()));
    }
    assert_eq!(pair.compare(&made), made.len());
}

#[test]
fn captured_frames_are_forwarded_as_by_the_reference() {
    let (frames, beyond) = captured();
    assert!(frames.len() > 3 * beyond && frames.len() > 100, "{} frames, {beyond} beyond", frames.len());
    for (tables, text) in PROGRAMS {
        let mut pair = device(tables);
        pair.add_all(text);
        pair.compare(&frames);
    }
}
