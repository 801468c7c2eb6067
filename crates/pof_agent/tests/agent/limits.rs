// SPDX-License-Identifier: Apache-2.0
//! Long changes, waiting requests, and controllers that do not read.

use crate::common;
use crate::rig::Rig;
use flow::{FlowMod, Match, Nanos, PortNo, TableId};
use frame::Frame;
use model::{AsyncMessage, PacketIn};
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::setup::{PofErrorMessage, PofSwitchConfig, QueryAll};
use pof::message::table::{FlowCommand, PofFlowMod, PofTableMod, PofTableType};
use pof::session::PofCloseReason;
use pof::value::PofCounterId;
use pof::{PofDialect, PofMessage, error};
use pof_agent::{Miss, PofChannelEvent};

fn rig(offloads: bool) -> Rig {
    Rig::new(PofDialect::V1_4, Miss::Drop, offloads)
}

/// Fills a linear table with this many entries.
fn fill(rig: &mut Rig, entries: u32) {
    let table_type = PofTableType::Linear;
    let definition = PofTableMod { table_type, entries: 1 << 20, ..PofTableMod::default() };
    rig.send(&PofMessage::TableMod(definition));
    fill_unchecked(rig, 0..entries);
    assert_eq!(rig.model.flow_count(), entries as usize);
}

/// Sends entries for the linear table with these indexes.
fn fill_unchecked(rig: &mut Rig, indexes: std::ops::Range<u32>) {
    for index in indexes {
        let table_type = PofTableType::Linear;
        rig.send(&PofMessage::FlowMod(PofFlowMod { table_type, index, ..PofFlowMod::default() }));
    }
}

#[test]
fn a_long_reset_is_left_to_the_driver() {
    let mut rig = rig(true);
    fill(&mut rig, 5_000);
    rig.output();
    rig.agent.close(rig.channel);
    rig.channel = rig.agent.open(rig.now, openflow::SessionConfig::default());
    rig.greet();
    // GET_CONFIG_REQUEST waits. Echoes are answered.
    assert!(rig.agent.has_work());
    let work = rig.agent.take_work().unwrap();
    rig.send_bytes(&[4, 2, 0, 8, 0, 0, 0, 9]);
    let [PofMessage::Hello, PofMessage::FeaturesReply(_), PofMessage::EchoReply] = rig.output()[..] else {
        panic!("the switch has not described itself before it is empty");
    };
    assert_eq!(rig.model.flow_count(), 5_000);
    let done = work.run(&mut rig.model);
    assert_eq!(rig.agent.finish(done), None);
    rig.run();
    assert_eq!(rig.model.flow_count(), 0);
    assert!(matches!(rig.output()[..], [PofMessage::GetConfigReply(_), PofMessage::ResourceReport(_), ..]));
    fill(&mut rig, 1);
}

#[test]
fn a_connection_may_end_during_its_long_change() {
    let mut rig = rig(true);
    fill(&mut rig, 5_000);
    rig.reconnect();
    let work = rig.agent.take_work().unwrap();
    rig.agent.close(rig.channel);
    let done = work.run(&mut rig.model);
    assert_eq!(rig.agent.finish(done), None);
    rig.channel = rig.agent.open(rig.now, openflow::SessionConfig::default());
    rig.greet();
    fill(&mut rig, 1);
}

#[test]
fn requests_wait_in_bounded_memory_while_the_data_plane_is_congested() {
    let mut rig = rig(false);
    fill(&mut rig, 1);
    rig.model.plane_mut().parked = 256;
    let table_type = PofTableType::Linear;
    let mut sent = 0;
    for index in 1..2_000 {
        if !rig.agent.channel(rig.channel).unwrap().wants_read() {
            break;
        }
        rig.send(&PofMessage::FlowMod(PofFlowMod { table_type, index, ..PofFlowMod::default() }));
        sent += 1;
    }
    assert!((100..1_000).contains(&sent), "{sent} requests wait");
    assert_eq!(rig.model.flow_count(), 1);
    rig.model.plane_mut().parked = 0;
    rig.run();
    assert_eq!(rig.model.flow_count(), 1 + sent);
}

/// The test also shows that the driver is not asked for further steps meanwhile: `Rig::run` returns.
#[test]
fn features_are_answered_when_the_changes_before_are_applied() {
    let mut rig = rig(false);
    fill(&mut rig, 1);
    rig.output();
    rig.model.plane_mut().held = true;
    fill_unchecked(&mut rig, 1..2);
    rig.send(&PofMessage::FeaturesRequest);
    rig.send(&PofMessage::QueryAllRequest(QueryAll::default()));
    assert_eq!(rig.output(), []);
    rig.model.plane_mut().apply_all();
    rig.run();
    let answers = rig.output();
    assert!(matches!(answers.first(), Some(PofMessage::FeaturesReply(_))), "{answers:?}");
    assert_eq!(answers.last(), Some(&PofMessage::QueryAllFin));
}

#[test]
fn an_answer_in_parts_pauses_while_the_controller_does_not_read() {
    let mut rig = rig(false);
    fill(&mut rig, 1_000);
    rig.output();
    rig.send(&PofMessage::QueryAllRequest(QueryAll::default()));
    let mut found = 0;
    loop {
        let unread = rig.agent.channel(rig.channel).unwrap().output().len();
        assert!(unread < 64 * 1_024 + 65 * 2_192, "{unread} bytes are unread");
        let part = rig.output();
        found += part.iter().filter(|message| matches!(message, PofMessage::FlowMod(_))).count();
        if part.last() == Some(&PofMessage::QueryAllFin) {
            break;
        }
        assert!(!part.is_empty());
        rig.run();
    }
    assert_eq!(found, 1_000);
}

/// Waiting requests fill the queue, so the session does not read the controller's echo replies.
#[test]
fn a_controller_that_reads_a_long_answer_slowly_is_alive() {
    let mut rig = rig(false);
    fill(&mut rig, 5_000);
    rig.output();
    rig.send(&PofMessage::QueryAllRequest(QueryAll::default()));
    let mut index = 5_000;
    while rig.agent.channel(rig.channel).unwrap().wants_read() {
        fill_unchecked(&mut rig, index..index + 1);
        index += 1;
    }
    rig.events.clear();
    // Returns whether the session is closed after a second in which the controller reads this many bytes.
    let mut second = |bytes: usize| {
        let channel = rig.agent.channel(rig.channel).unwrap();
        channel.consume(channel.output().len().min(bytes));
        rig.now = Nanos(rig.now.0 + 1_000_000_000);
        rig.run();
        rig.events.iter().any(|event| matches!(event, PofChannelEvent::Closed(_)))
    };
    for n in 0..100 {
        assert!(!second(32 * 1_024), "the session is closed after {n} s");
    }
    // A controller that no longer reads is dead.
    assert!((0..60).any(|_| second(0)));
}

#[test]
fn packet_ins_are_lost_and_counted_if_the_controller_does_not_read() {
    let mut rig = rig(false);
    rig.output();
    let mut frame = Frame::from_bytes(&[7; 3_000]);
    frame.meta.in_port = 2;
    let packet_in = AsyncMessage::PacketIn(PacketIn {
        frame,
        table: TableId(1),
        entry: None,
        cookie: 2,
        reason: flow::PacketInReason::Action,
        max_len: u16::MAX,
        metadata: 0,
        tunnel_id: 0,
        question: None,
    });
    rig.agent.report(&packet_in);
    let [PofMessage::PacketIn(sent)] = &rig.output()[..] else { panic!("expected one packet-in") };
    assert_eq!((sent.total_length_bytes, sent.data.len(), sent.port), (3_000, 2_048, 2));
    for _ in 0..100_000 {
        rig.agent.report(&packet_in);
    }
    let unread = rig.agent.channel(rig.channel).unwrap().output().len();
    let lost = rig.agent.lost().packet_in;
    assert_eq!(unread as u64 / 2_080 + lost, 100_000);
    assert!(lost > 0 && unread < 16 * 1_024 * 1_024, "{lost} lost, {unread} bytes unread");
    rig.run();
    assert!(rig.events.iter().any(|event| matches!(event, PofChannelEvent::Lost(_))));
    // The losses of a closed channel still count.
    rig.agent.close(rig.channel);
    assert_eq!(rig.agent.lost().packet_in, lost);
}

/// A controller that counts its indexes up, and whose entries expire.
#[test]
fn the_records_of_expired_entries_are_removed() {
    let mut rig = rig(false);
    let table_type = PofTableType::Linear;
    let definition = PofTableMod { table_type, entries: 1 << 20, ..PofTableMod::default() };
    rig.send(&PofMessage::TableMod(definition));
    for index in 0..100_000 {
        let m = PofFlowMod { table_type, index, hard_timeout_s: 1, ..PofFlowMod::default() };
        rig.send(&PofMessage::FlowMod(m));
        if index % 100 == 0 {
            rig.now = Nanos(rig.now.0 + 100_000_000);
            common::poll_all(&mut rig.model, rig.now);
            rig.output();
        }
    }
    // A second has 1,000 entries.
    let (entries, records) = (rig.model.flow_count(), rig.agent.records());
    assert!((900..1_300).contains(&entries), "{entries} entries");
    assert!(records < 2 * entries, "{records} records of {entries} entries");
}

#[test]
fn a_counter_ends_when_its_entries_have_expired() {
    let mut rig = rig(false);
    rig.send(&PofMessage::TableMod(PofTableMod { entries: 8, ..PofTableMod::default() }));
    let counter = |command| PofCounter { command, counter: PofCounterId(5), ..PofCounter::default() };
    let add = PofFlowMod { counter: PofCounterId(5), hard_timeout_s: 1, ..PofFlowMod::default() };
    let request = PofMessage::CounterRequest(counter(CounterCommand::Request));
    for is_kept in [false, true] {
        if is_kept {
            rig.send(&PofMessage::CounterMod(counter(CounterCommand::Add)));
        }
        rig.send(&PofMessage::FlowMod(add.clone()));
        rig.send(&request);
        assert!(matches!(rig.output().last(), Some(PofMessage::CounterReply(_))));
        // It is in use.
        rig.send(&PofMessage::CounterMod(counter(CounterCommand::Delete)));
        assert!(matches!(rig.output()[..], [PofMessage::Error(_)]));
        rig.now = Nanos(rig.now.0 + 2_000_000_000);
        common::poll_all(&mut rig.model, rig.now);
        if is_kept {
            rig.send(&request);
            assert!(matches!(rig.output()[..], [PofMessage::CounterReply(_)]));
            rig.send(&PofMessage::CounterMod(counter(CounterCommand::Delete)));
            assert_eq!(rig.output(), []);
        }
        rig.send(&request);
        let [PofMessage::Error(error)] = &rig.output()[..] else { panic!("counter 5 exists") };
        assert_eq!(error.error_code(), error::COUNTER_UNEXIST);
    }
}

/// A cleared counter starts at 0, whatever happens to its users.
#[test]
fn a_cleared_counter_counts_up_while_its_users_change() {
    let mut rig = rig(false);
    rig.send(&PofMessage::TableMod(PofTableMod { entries: 8, ..PofTableMod::default() }));
    let id = PofCounterId(5);
    let counter = |command| PofCounter { command, counter: id, ..PofCounter::default() };
    let count = |rig: &mut Rig| {
        rig.output();
        rig.send(&PofMessage::CounterRequest(counter(CounterCommand::Request)));
        match &rig.output()[..] {
            [PofMessage::CounterReply(reply)] => reply.packets,
            other => panic!("{other:?}"),
        }
    };
    let entry = |index, priority| PofFlowMod { index, priority, counter: id, ..PofFlowMod::default() };
    let hit = |rig: &mut Rig, priority, packets| {
        let found = rig.model.find(TableId(0), priority, &Match::any()).unwrap();
        let entry = rig.model.entry_of(found).unwrap().id;
        rig.model.plane_mut().hit(entry, packets, Nanos(0));
    };
    rig.send(&PofMessage::FlowMod(entry(0, 1)));
    rig.send(&PofMessage::FlowMod(entry(1, 2)));
    hit(&mut rig, 1, 10);
    hit(&mut rig, 2, 20);
    assert_eq!(count(&mut rig), 30);
    rig.send(&PofMessage::CounterMod(counter(CounterCommand::Clear)));
    assert_eq!(count(&mut rig), 0);
    hit(&mut rig, 1, 3);
    assert_eq!(count(&mut rig), 3);
    // An entry that expires takes nothing from the counts of the other.
    let expiring = PofFlowMod { command: FlowCommand::Modify, hard_timeout_s: 1, ..entry(1, 9) };
    rig.send(&PofMessage::FlowMod(expiring));
    assert_eq!(count(&mut rig), 3);
    rig.now = Nanos(rig.now.0 + 2_000_000_000);
    common::poll_all(&mut rig.model, rig.now);
    hit(&mut rig, 1, 1);
    assert_eq!(count(&mut rig), 4);
    // An entry that changes its counter leaves its counts.
    let moved = PofFlowMod { command: FlowCommand::Modify, counter: PofCounterId(6), ..entry(0, 1) };
    rig.send(&PofMessage::FlowMod(entry(2, 3)));
    rig.send(&PofMessage::FlowMod(moved));
    assert_eq!(count(&mut rig), 4);
    let deleted = PofFlowMod { command: FlowCommand::Delete, ..entry(2, 3) };
    hit(&mut rig, 3, 5);
    assert_eq!(count(&mut rig), 9);
    rig.send(&PofMessage::FlowMod(entry(3, 4)));
    rig.send(&PofMessage::FlowMod(deleted));
    assert_eq!(count(&mut rig), 9);
}

#[test]
fn the_text_of_an_error_cannot_end_a_line_of_the_log() {
    let mut rig = rig(false);
    rig.events.clear();
    let text = "y\nWARN shunt: forged".into();
    rig.send(&PofMessage::Error(PofErrorMessage { kind: 1, text, ..PofErrorMessage::default() }));
    let [PofChannelEvent::Error(text)] = &rig.events[..] else { panic!("{:?}", rig.events) };
    assert!(text.starts_with("y\\nWARN shunt: forged (") && !text.contains('\n'), "{text}");
}

/// Only one controller has entries at a time. A peer that has not completed its handshake changes nothing.
#[test]
fn a_completed_handshake_replaces_other_controllers() {
    let mut rig = rig(false);
    fill(&mut rig, 3);
    let first = rig.channel;
    rig.channel = rig.agent.open(rig.now, openflow::SessionConfig::default());
    let drops_fragments = PofSwitchConfig { flags: 1, ..PofSwitchConfig::default() };
    for message in [PofMessage::Hello, PofMessage::FeaturesRequest, PofMessage::SetConfig(drops_fragments)] {
        rig.send(&message);
    }
    assert_eq!((rig.model.flow_count(), rig.model.settings().drop_fragments), (3, false));
    // Requests of the first controller wait. They must not be executed after the tables were emptied.
    let second = std::mem::replace(&mut rig.channel, first);
    rig.model.plane_mut().parked = 256;
    fill_unchecked(&mut rig, 3..10);
    rig.model.plane_mut().parked = 0;
    rig.channel = second;
    rig.send(&PofMessage::GetConfigRequest);
    assert_eq!((rig.model.flow_count(), rig.model.settings().drop_fragments), (0, true));
    rig.channel = first;
    rig.events.clear();
    rig.run();
    assert_eq!(rig.events, [PofChannelEvent::Closed(PofCloseReason::Replaced)]);
    assert_eq!((rig.model.flow_count(), rig.agent.channel(first).unwrap().is_busy()), (0, false));
    rig.agent.close(first);
    rig.channel = second;
    fill(&mut rig, 3);
}

#[test]
fn an_entry_of_another_controller_is_not_an_entry_of_the_agent() {
    let mut rig = rig(false);
    rig.send(&PofMessage::TableMod(PofTableMod { entries: 8, ..PofTableMod::default() }));
    let other = common_entry();
    rig.model.flow_mod(rig.now, other).unwrap();
    // It has no index, and takes none.
    rig.send(&PofMessage::FlowMod(PofFlowMod { index: 3, priority: 5, ..PofFlowMod::default() }));
    assert!(!rig.output().iter().any(|message| matches!(message, PofMessage::Error(_))));
    assert_eq!(rig.model.flow_count(), 1);
}

/// Returns a flow-mod with the match and priority of the POF entry in the test before.
fn common_entry() -> FlowMod {
    common::add(5, Match::any(), PortNo(1))
}
