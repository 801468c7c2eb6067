// SPDX-License-Identifier: Apache-2.0
//! Path records of flows whose base moves, or whose packets grow or shrink, before a later lookup.

use crate::lab::compare;
use crate::packet;

#[test]
fn flows_with_constant_bases_have_records() {
    let flows = [
        "table=0,slice(base,96,16)=0x800,actions=move_base(14),goto_table:1",
        "table=1,slice(base,0,4)=4,actions=move_base(20),goto_table:2",
        "table=2,priority=2,slice(base,16,16)=2000,actions=modify_field:-1->slice(base,16,16),output:3",
        "table=2,priority=1,actions=output:4",
    ];
    let hits = compare(&flows, |lab| {
        for _ in 0..3 {
            lab.burst(1, &[packet(1, 64), packet(2, 64)]);
        }
    });
    assert_eq!(hits, 4, "all packets of the second and third burst");
}

#[test]
fn flows_whose_packets_leave_from_the_base_on_have_records() {
    let flows = [
        "table=0,slice(base,96,16)=0x800,actions=move_base(14),goto_table:1",
        "table=0,priority=1,actions=move_base(4),goto_table:1",
        // Packets reach this entry with two bases.
        "table=1,priority=2,slice(base,128,8)=10,actions=cut_front(base,20),goto_table:2",
        "table=1,priority=1,actions=cut_front(packet,12),add_field(0,16,0xabcd),output:4",
        "table=2,priority=2,slice(base,16,16)=2000,actions=output:3",
        "table=2,priority=1,actions=output:4",
    ];
    let hits = compare(&flows, |lab| {
        for _ in 0..3 {
            lab.burst(1, &[packet(1, 64), packet(2, 64)]);
        }
    });
    assert_eq!(hits, 4, "all packets of the second and third burst");
}

#[test]
fn flows_with_constant_inserts_and_deletes_have_records() {
    let flows = [
        "table=0,actions=add_field(96,32,0x81000007),move_base(12),goto_table:1",
        "table=1,slice(base,0,16)=0x8100,slice(base,32,16)=0x800,actions=delete_field(0,32),goto_table:2",
        "table=2,priority=2,slice(base,288,16)=2000,actions=output:3",
        "table=2,priority=1,slice(packet,40,8)=1,actions=output:4",
    ];
    let hits = compare(&flows, |lab| {
        for _ in 0..3 {
            lab.burst(1, &[packet(1, 64), packet(2, 64)]);
        }
    });
    assert_eq!(hits, 4, "all packets of the second and third burst");
}
