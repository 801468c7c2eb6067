// SPDX-License-Identifier: Apache-2.0
//! Packets that are looked up after the controller was asked about their flow: they return to the queue, or
//! are dropped if something has counted or changed them.

use crate::lab::{Lab, TIMEOUT_NS, packet, quench};
use crate::one_slot;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{DropReason, GroupId, MeterId, Nanos, PortNo};
use model::{GroupCommand, MeterCommand};
use port_cache::MissFigures;

const LOW_LATENCY: &str = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
const OTHER: &str = "dl_dst=02:00:00:00:00:04,actions=goto_table:1";
const MISS_1: &str = "table=1,priority=0,actions=controller:200";

/// Returns a switch in which packets 2 to 19 of a flow were looked up after packet 1 led to a question. They
/// hit `rule` before the table-miss entry of table 1. `prepare` adds what the rule names.
fn looked_up(rule: &str, prepare: impl FnOnce(&mut Lab)) -> Lab {
    let mut lab = Lab::new(&one_slot(1), &[OTHER, LOW_LATENCY, MISS_1]);
    prepare(&mut lab);
    lab.flow(rule);
    lab.turns();
    lab.push(1, &packet(1, 4, 0));
    lab.turns();
    assert_eq!(lab.packet_ins().len(), 1);
    (0..20).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    assert_eq!(lab.packet_ins().len(), 1, "packet 0 finds no slot: {rule}");
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    lab.turns();
    lab
}

fn add_group(lab: &mut Lab) {
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets: vec![Bucket::default()] };
    lab.model.group_mod(lab.now, GroupCommand::Add, group).unwrap();
}

fn add_meter(lab: &mut Lab) {
    let band = MeterBand { band: Band::Drop, rate: 1_000_000, burst: 1_000 };
    let meter = Meter { id: MeterId(1), packets: true, stats: false, burst: true, bands: vec![band] };
    lab.model.meter_mod(lab.now, MeterCommand::Add, meter).unwrap();
}

#[test]
fn packets_that_were_changed_or_counted_do_not_return() {
    let nothing: fn(&mut Lab) = |_| {};
    for (actions, prepare, returned) in [
        ("goto_table:1", nothing, 18),
        ("set_field:9->ip_dscp,goto_table:1", nothing, 0),
        ("group:1,goto_table:1", add_group, 0),
        ("meter:1,goto_table:1", add_meter, 0),
    ] {
        let mut lab = looked_up(&format!("dl_dst=02:00:00:00:00:03,actions={actions}"), prepare);
        let MissFigures { asked, returned: counted, .. } = lab.figures();
        let dropped = lab.dropped(DropReason::PacketInQuenched);
        assert_eq!((asked, counted, dropped), (2, returned, 18 - returned), "{actions}");
        assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, returned), "{actions}");
    }
}

/// A packet that returned would be counted as a dropped copy again when it is looked up again.
#[test]
fn dropped_copies_are_counted_once() {
    let rule = "dl_dst=02:00:00:00:00:03,actions=output:2,output:3,goto_table:1";
    let mut lab = looked_up(rule, |lab| {
        (2..=3).for_each(|port| lab.model.set_link(lab.now, PortNo(port), false).unwrap());
    });
    assert_eq!((lab.figures().returned, lab.dropped(DropReason::PacketInQuenched)), (0, 18));
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    lab.turns();
    assert_eq!(lab.totals().copies_dropped.of(DropReason::PortDown), 40);
}

#[test]
fn the_answer_to_the_second_of_two_packet_ins_releases_the_waiting_packets() {
    let miss = "priority=0,actions=controller:64,controller:32";
    let mut lab = Lab::new(&quench(0), &["dl_dst=02:00:00:00:00:02,actions=output:2", miss]);
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), lab.totals().held), (2, 2));
    assert_eq!([packet_ins[0].data.len(), packet_ins[1].data.len()], [64, 32]);
    lab.packet_out(packet_ins[0].buffer_id, &[], PortNo(2));
    lab.turns();
    assert_eq!((lab.sent(2), lab.totals().held, lab.packet_ins().len()), (vec![0], 2, 0));
    lab.packet_out(packet_ins[1].buffer_id, &[], PortNo(2));
    lab.turns();
    assert_eq!((lab.sent(2), lab.totals().held, lab.packet_ins().len()), (vec![0], 1, 2));
}
