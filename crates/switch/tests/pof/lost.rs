// SPDX-License-Identifier: Apache-2.0
//! A controller that does not read its messages.

use crate::lab::{Lab, until};
use crate::peer::{apply, entry, frame, table};
use pof::PofMessage;
use pof::action::{PacketInAction, PofAction};
use pof::message::table::PofTableType;
use std::time::Instant;
use switch::control::{Client, ControlRequest, CountersReport};

#[test]
fn lost_messages_are_shown_and_logged() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[]));
    let to_controller = PofAction::PacketIn(PacketInAction { reason: 0 });
    peer.tell(&PofMessage::FlowMod(entry(0, vec![], vec![apply(vec![to_controller])])));
    let mut client = Client::connect(&lab.control).unwrap();
    let mut lost = |name: &str| {
        let counters: CountersReport = client.ask(&ControlRequest::Counters).unwrap();
        counters.controllers_lost[name]
    };
    assert_eq!(lost("packet_in"), 0);
    let mut packet = frame(0x0908, &[]);
    packet.resize(1_500, 7);
    let end = Instant::now() + crate::lab::LONG;
    while lost("packet_in") == 0 {
        assert!(Instant::now() < end, "no packet-in was lost");
        for _ in 0..64 {
            lab.ports[0].push(0, &packet);
        }
    }
    assert_eq!(["port_status", "reply", "flow_removed"].map(&mut lost), [0; 3]);
    until("the loss is logged", || {
        !lab.log.lines(&["messages for this controller were lost", "packet_in"]).is_empty()
    });
    // The losses of a closed channel still count.
    let before = lost("packet_in");
    drop(peer);
    until("the controller has left", || !lab.log.lines(&["connection lost"]).is_empty());
    assert!(lost("packet_in") >= before);
}
