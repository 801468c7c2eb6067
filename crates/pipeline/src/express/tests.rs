// SPDX-License-Identifier: Apache-2.0
//! Tests of templates with located headers. Crate `keys` has further tests of templates.

use super::look_up::locate;
use flow::{Field, PortNo};
use frame::Frame;
use keys::{ExpressKey, ExpressPlan, PlanVersion, Templates};
use wire::{Layers, PacketBuilder};

#[test]
fn templates_serve_every_ethernet_frame_if_no_other_header_is_needed() {
    let fields = [Field::EthDst, Field::EthSrc, Field::VlanVid, Field::EthType];
    let examined = fields.map(|field| (field, field.full_mask())).to_vec();
    let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
    let reader = plan.reader().unwrap();
    let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 1, 9]);
    let arp = |outer: PacketBuilder| outer.arp(1, [3; 6], [4; 4], [5; 6], [6; 4]).pad_to(60).build();
    let packets = [
        arp(ethernet()),
        arp(ethernet().vlan(0x8100, 7)),
        arp(ethernet().vlan(0x88a8, 8).vlan(0x8100, 9)),
        ethernet().mpls(5, 0, 64).payload(&[1; 60]).build(),
        ethernet().ethertype(0x1234).payload(&[2; 60]).build(),
    ];
    let mut templates = Templates::default();
    for bytes in packets {
        let (frame, mut found) = (Frame::from_bytes(&bytes), Layers::default());
        locate(&frame, reader.depth(), &mut found);
        templates.begin(reader, PortNo(3));
        let template = templates.choose(reader, &found).unwrap();
        let mut keys = [ExpressKey::default(); 2];
        let window = frame.window().first_chunk().unwrap();
        match reader.hashed_words() {
            2 => template.write::<2>(None, window, &mut keys[0]),
            _ => template.write::<3>(None, window, &mut keys[0]),
        }
        reader.general_key(frame.bytes(), &found, PortNo(3), &mut keys[1]);
        assert_eq!(keys[0].words(), keys[1].words(), "{bytes:02x?}");
    }
}
