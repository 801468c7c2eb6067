// SPDX-License-Identifier: Apache-2.0
//! Entries at the borders of what the device can do: the first 128 bytes of a frame, and short frames.

use device::compile::CompileError;
use flow::port_no;

use crate::device;
use crate::pair::Left;

/// Returns frames without a tag, with one and with two, whose payload has this EtherType.
fn long_frames(eth_type: u16, length: usize) -> Vec<(u8, Vec<u8>)> {
    let frames = (0..3).map(|tags| {
        let mut frame = vec![2; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        frame.extend(eth_type.to_be_bytes());
        frame.extend((frame.len()..length).map(|byte| byte as u8));
        (1, frame)
    });
    frames.collect()
}

/// Adds a flow. If it is accepted, long frames leave as by the reference, and at least one leaves.
fn accepts(tables: &[u8], before: &str, flow: &str) -> bool {
    let mut pair = device(tables);
    pair.add_all(before);
    match pair.add(flow) {
        Ok(_) => {
            let left = pair.compare(&long_frames(0x88b9, 300));
            assert!(left > 0, "{flow}");
            true
        }
        Err(refusal) => {
            assert!(matches!(refusal, CompileError::Reach { .. }), "{flow}: {refusal}");
            assert_eq!(refusal.openflow(), (2, 5));
            false
        }
    }
}

#[test]
fn edits_reach_the_last_copied_byte_and_no_further() {
    let flow = |action: &str| format!("dl_type=0x88b9,vlan_tci=0,actions={action},output:2");
    for (action, wanted) in [
        ("set_field:7->slice(packet,1008,16)", true),
        ("set_field:7->slice(packet,1016,8)", true),
        ("set_field:7->slice(packet,1016,16)", false),
        ("set_field:7->slice(packet,1024,8)", false),
        ("set_field:7->slice(packet,1600,8)", false),
        ("set_field:7->slice(l3,840,8)", true),
        ("set_field:7->slice(l3,848,8)", false),
        ("set_field:7->slice(l3,1600,8)", false),
        ("delete_field(1008,16)", true),
        ("delete_field(1016,16)", false),
        ("delete_field(1600,16)", false),
        ("add_field(1024,16,0xbeef)", true),
        ("add_field(1032,16,0xbeef)", false),
        ("add_field(1600,16,0xbeef)", false),
        ("delete_field(800,16),set_field:7->slice(packet,1000,8)", true),
        ("delete_field(800,16),set_field:7->slice(packet,1008,8)", false),
    ] {
        assert_eq!(accepts(&[3], "", &flow(action)), wanted, "{action}");
    }
}

#[test]
fn edits_of_later_tables_reach_what_earlier_ones_have_left() {
    let before = "table=0,dl_type=0x88b9,vlan_tci=0,actions=delete_field(112,128),goto_table:1";
    let flow = |action: &str| format!("table=1,dl_type=0x88b9,vlan_tci=0,actions={action},output:2");
    for (action, wanted) in [
        ("set_field:7->slice(packet,888,8)", true),
        ("set_field:7->slice(packet,896,8)", false),
        ("set_field:7->slice(l3,712,8)", true),
        ("set_field:7->slice(l3,720,8)", false),
    ] {
        assert_eq!(accepts(&[1, 2], before, &flow(action)), wanted, "{action}");
    }
}

#[test]
fn an_insertion_behind_the_copied_bytes_of_a_later_table_is_refused() {
    let before = "table=0,dl_type=0x88b9,vlan_tci=0,actions=goto_table:1";
    for (offset, wanted) in [(112, true), (113, false)] {
        let bits = offset * 8;
        let flow = format!(
            "table=1,dl_type=0x88b9,vlan_tci=0,actions=add_field({bits},16,0xbeef),delete_field(112,8),output:2"
        );
        assert_eq!(accepts(&[1, 3], before, &flow), wanted, "{offset}");
    }
}

#[test]
fn frames_that_end_before_an_edit_are_dropped() {
    let mut pair = device(&[2]);
    pair.add_all(
        "priority=5,dl_type=0x88b9,vlan_tci=0,actions=set_field:7->slice(packet,1016,8),output:2
         priority=1,actions=output:3",
    );
    let frames: Vec<_> = (120..136).flat_map(|length| long_frames(0x88b9, length)).collect();
    pair.compare(&frames);
    assert_eq!(pair.forward(1, &frames[0].1), Left::Nothing);
}

#[test]
fn frames_without_a_partly_written_byte_are_dropped() {
    for matching in ["", "slice(l3,336,16)=0x3839,", "slice(l3,352,8)=0x3a,", "slice(l3,320,4)=3,"] {
        let mut pair = device(&[1]);
        pair.add_all(&format!(
            "priority=5,dl_type=0x88b9,vlan_tci=0,{matching}actions=set_field:3->slice(l3,324,4),output:2
             priority=1,actions=output:3"
        ));
        let frames: Vec<_> = (50..64).flat_map(|length| long_frames(0x88b9, length)).collect();
        pair.compare(&frames);
        assert!(matches!(pair.forward(1, &frames[39].1), Left::Port(2, _)), "{matching}");
    }
}

#[test]
fn packets_of_the_controller_have_its_port() {
    let mut pair = device(&[1]);
    let [controller, local] = [port_no::CONTROLLER.0, port_no::LOCAL.0];
    pair.add_all(&format!(
        "priority=9,in_port={local},actions=output:4
         priority=5,in_port={controller},actions=output:2
         priority=1,actions=output:3"
    ));
    let frame = &long_frames(0x88b9, 64)[0].1;
    // The daemon sends a packet-out of the controller with port 0.
    assert_eq!(pair.forward(0, frame), Left::Port(2, frame.clone()));
    assert_eq!(pair.forward(1, frame), Left::Port(3, frame.clone()));
}
