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

/// Returns an Interest of Named Data Networking for a name of these components. A long packet has its name
/// two bytes later.
fn interest(name: &[&str], is_long: bool) -> Vec<u8> {
    let components: Vec<u8> =
        name.iter().flat_map(|part| [&[8, part.len() as u8], part.as_bytes()].concat()).collect();
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0x24, 5];
    bytes.extend(if is_long { vec![0xfd, 1, 0] } else { vec![0x40] });
    bytes.extend([7, components.len() as u8]);
    bytes.extend(components);
    bytes.resize(bytes.len() + if is_long { 300 } else { 20 }, 0x11);
    bytes
}

/// Names of several lengths at two positions: each table compares the first bytes of the name.
#[test]
fn flows_with_nested_slices_at_two_bases_have_records() {
    let mut flows: Vec<String> = [("0xfd", 18), ("0/0x80", 16)]
        .iter()
        .map(|(length, base)| {
            format!(
                "table=0,slice(base,96,16)=0x8624,slice(base,112,8)=5,slice(base,120,8)={length},\
                 actions=move_base({base}),goto_table:1"
            )
        })
        .collect();
    let names: [&[&str]; 4] =
        [&["edu"], &["edu", "a/b"], &["edu", "video"], &["edu", "video", "a-longer-component"]];
    for (number, name) in names.iter().enumerate() {
        let bytes = &interest(name, false)[18..];
        let length: usize = name.iter().map(|part| part.len() + 2).sum();
        let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let table = 10 + number;
        flows.push(format!(
            "table=1,slice(base,0,8)=7,slice(base,8,8)={length},actions=move_base(2),goto_table:{table}"
        ));
        let conditions: Vec<String> = (0..length)
            .step_by(16)
            .map(|at| {
                let end = length.min(at + 16);
                format!("slice(base,{},{})=0x{}", 8 * at, 8 * (end - at), hex(&bytes[at..end]))
            })
            .collect();
        flows.push(format!("table={table},{},actions=output:3", conditions.join(",")));
    }
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    let packets: Vec<Vec<u8>> =
        names.iter().flat_map(|name| [interest(name, false), interest(name, true)]).collect();
    let hits = compare(&flows, |lab| {
        for _ in 0..3 {
            lab.burst(1, &packets);
        }
    });
    assert_eq!(hits, 16, "all packets of the second and third burst");
}
