// SPDX-License-Identifier: Apache-2.0
//! PACKET_IN and PORT_STATUS: when they are sent, and ports that a dialect cannot express.

use crate::common;
use crate::rig::Rig;
use flow::{Match, PortNo, TableId};
use frame::Frame;
use model::agent::LostMessages;
use model::{AsyncMessage, PacketIn};
use pof::action::{PacketInAction, PofAction};
use pof::instruction::{ApplyActions, PofInstruction};
use pof::message::port::{PofPortReason, PofPortStatus};
use pof::message::setup::PofSwitchConfig;
use pof::message::table::{PofFlowMod, PofTableMod};
use pof::{PofDialect, PofMessage};
use pof_agent::{Miss, PofChannelEvent};

fn packet_in(in_port: u32) -> AsyncMessage {
    let mut frame = Frame::from_bytes(&[7; 60]);
    frame.meta.in_port = in_port;
    AsyncMessage::PacketIn(PacketIn {
        frame,
        table: TableId(1),
        entry: None,
        cookie: 2,
        reason: flow::PacketInReason::Action,
        max_len: u16::MAX,
        metadata: 0,
        tunnel_id: 0,
        question: None,
    })
}

/// Adds a port to the model. Returns the message that reports it.
fn port_status(rig: &mut Rig, number: u32) -> AsyncMessage {
    rig.model.add_port(rig.now, common::port(PortNo(number)), true).unwrap();
    let mut reported = common::poll_all(&mut rig.model, rig.now);
    assert!(matches!(reported[..], [AsyncMessage::PortStatus { .. }]), "{reported:?}");
    reported.remove(0)
}

fn is_async(message: &PofMessage) -> bool {
    matches!(message, PofMessage::PacketIn(_) | PofMessage::PortStatus(_))
}

#[test]
fn no_asynchronous_message_is_sent_before_the_handshake_is_complete() {
    for dialect in [PofDialect::V1_2, PofDialect::V1_4] {
        let mut rig = Rig::silent(common::plain(), dialect, Miss::Drop);
        common::poll_all(&mut rig.model, rig.now);
        let steps = [
            PofMessage::Hello,
            PofMessage::FeaturesRequest,
            PofMessage::SetConfig(PofSwitchConfig::default()),
        ];
        let mut ports = 3..;
        let mut report = |rig: &mut Rig| {
            let status = port_status(rig, ports.next().unwrap());
            rig.agent.report(&status);
            rig.agent.report(&packet_in(2));
        };
        report(&mut rig);
        for step in steps {
            rig.send(&step);
            report(&mut rig);
        }
        let before = rig.output();
        assert!(!before.iter().any(is_async), "{before:?}");
        // The last answer of the handshake describes all ports, so no change is lost.
        rig.send(&PofMessage::GetConfigRequest);
        let described = rig.output();
        let [PofMessage::GetConfigReply(_), PofMessage::ResourceReport(_), statuses @ ..] = &described[..]
        else {
            panic!("{described:?}");
        };
        let number = |message: &PofMessage| match message {
            PofMessage::PortStatus(PofPortStatus { reason: PofPortReason::Add, port }) => port.number,
            other => panic!("{other:?}"),
        };
        assert_eq!(statuses.iter().map(number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        // Messages that were not sent for this reason are not lost messages.
        assert_eq!(rig.agent.lost(), LostMessages::default());
        report(&mut rig);
        let [PofMessage::PortStatus(status), PofMessage::PacketIn(_)] = &rig.output()[..] else {
            panic!("no messages after the handshake");
        };
        assert_eq!((status.reason, status.port.number), (PofPortReason::Add, 7));
    }
}

/// The tables are emptied on another thread. The controller must see their end before a packet.
#[test]
fn no_asynchronous_message_is_sent_while_a_handshake_empties_the_tables() {
    let mut rig = Rig::new(PofDialect::V1_4, Miss::Drop, true);
    rig.send(&PofMessage::TableMod(PofTableMod { entries: 1 << 20, ..PofTableMod::default() }));
    for priority in 0..5_000 {
        let entry = common::add(priority, Match::any(), PortNo(1));
        rig.model.flow_mod(rig.now, entry).unwrap();
    }
    common::poll_all(&mut rig.model, rig.now);
    rig.output();
    rig.reconnect();
    let work = rig.agent.take_work().expect("a reset of 5,000 entries is long");
    rig.agent.report(&packet_in(2));
    let answers = rig.output();
    assert!(matches!(answers[..], [PofMessage::Hello, PofMessage::FeaturesReply(_)]), "{answers:?}");
    let done = work.run(&mut rig.model);
    assert_eq!(rig.agent.finish(done), None);
    rig.agent.report(&packet_in(2));
    assert_eq!(rig.output(), []);
    rig.run();
    assert!(matches!(rig.output()[0], PofMessage::GetConfigReply(_)));
    rig.agent.report(&packet_in(2));
    assert!(matches!(rig.output()[..], [PofMessage::PacketIn(_)]));
}

#[test]
fn ports_that_the_dialect_cannot_express_are_not_reported() {
    for (number, dialect, is_hidden) in [
        (65_535, PofDialect::V1_4, false),
        (65_536, PofDialect::V1_4, true),
        (0xffff_ff00, PofDialect::V1_4, true),
        (0xffff_ff00, PofDialect::V1_2, false),
    ] {
        let mut rig = Rig::new(dialect, Miss::Drop, false);
        common::poll_all(&mut rig.model, rig.now);
        rig.output();
        let status = port_status(&mut rig, number);
        rig.agent.report(&status);
        let sent: Vec<_> = rig.output().iter().map(described).collect();
        assert_eq!(sent, if is_hidden { vec![] } else { vec![number] }, "{number} {dialect}");
        // A PACKET_IN has port 0 instead, never the low bits of the number. Dialect 1.2 has no such field.
        rig.agent.report(&packet_in(number));
        let [PofMessage::PacketIn(sent)] = &rig.output()[..] else { panic!("expected one packet-in") };
        let expected = if is_hidden || dialect == PofDialect::V1_2 { 0 } else { number as u16 };
        assert_eq!((sent.port, sent.slot), (expected, 0), "{number} {dialect}");
        // The handshake describes the other ports. The event occurs once.
        rig.events.clear();
        rig.reconnect();
        let hidden = PofChannelEvent::HiddenPorts(1);
        assert_eq!(rig.events.contains(&hidden), is_hidden, "{:?}", rig.events);
        let ports =
            rig.output().iter().filter(|message| matches!(message, PofMessage::PortStatus(_))).count();
        assert_eq!(ports, 3 - usize::from(is_hidden));
        rig.events.clear();
        rig.send(&PofMessage::GetConfigRequest);
        assert_eq!(rig.events, []);
        assert_eq!(rig.agent.lost(), LostMessages::default());
    }
}

fn described(message: &PofMessage) -> u32 {
    match message {
        PofMessage::PortStatus(status) => status.port.number,
        other => panic!("{other:?}"),
    }
}

/// OpenFlow would take an entry of priority 0 for all packets for a table-miss entry.
#[test]
fn a_packet_in_has_the_reason_of_its_entry() {
    use flow::PacketInReason as Reason;
    use pof::message::packet::PofPacketInReason as PofReason;
    let mut rig = Rig::new(PofDialect::V1_4, Miss::Controller, false);
    rig.send(&PofMessage::TableMod(PofTableMod { table: 1, entries: 8, ..PofTableMod::default() }));
    let find = |rig: &Rig| rig.model.find(TableId(1), 0, &Match::any());
    let reported = |rig: &mut Rig, found, reason| {
        let AsyncMessage::PacketIn(packet_in) = packet_in(2) else { unreachable!() };
        rig.output();
        rig.agent.report(&AsyncMessage::PacketIn(PacketIn { entry: found, reason, ..packet_in }));
        match &rig.output()[..] {
            [PofMessage::PacketIn(sent)] => sent.reason,
            other => panic!("{other:?}"),
        }
    };
    let miss = find(&rig);
    let to_controller = PofAction::PacketIn(PacketInAction { reason: 2 });
    let apply = ApplyActions { actions: vec![to_controller] };
    let instructions = vec![PofInstruction::ApplyActions(apply)];
    rig.send(&PofMessage::FlowMod(PofFlowMod { table: 1, instructions, ..PofFlowMod::default() }));
    let entry = find(&rig);
    assert!(entry.is_some() && entry != miss);
    // The table-miss entry, PACKET_OUT and entries of other controllers have the reason of OpenFlow.
    for (found, reason, expected) in [
        (entry, Reason::NoMatch, PofReason::InvalidTtl),
        (entry, Reason::Action, PofReason::InvalidTtl),
        (miss, Reason::NoMatch, PofReason::NoMatch),
        (None, Reason::NoMatch, PofReason::NoMatch),
        (None, Reason::Action, PofReason::Action),
        (None, Reason::InvalidTtl, PofReason::InvalidTtl),
    ] {
        assert_eq!(reported(&mut rig, found, reason), expected, "{found:?} {reason:?}");
    }
}
