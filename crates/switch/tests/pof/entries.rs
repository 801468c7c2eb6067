// SPDX-License-Identifier: Apache-2.0
//! Tables and entries by index: TABLE_MOD, FLOW_MOD, QUERYALL, and their errors.

use crate::lab::{Lab, until};
use crate::peer::{Peer, apply, entry, equals, field, frame, goto, output, table};
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::setup::{PofSwitchConfig, QueryAll, SlotConfig, SlotForwarding};
use pof::message::table::{FlowCommand, PofFlowMod, PofTableMod, PofTableType, TableCommand};
use pof::value::{METADATA_FIELD, PofCounterId, PofField, PofMatch};
use pof::{PofMessage, error};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn table_mod(message: PofMessage) -> PofTableMod {
    match message {
        PofMessage::TableMod(m) => m,
        other => panic!("{other:?}"),
    }
}

fn ethertype(value: u128) -> Vec<PofMatch> {
    vec![equals(field(96, 16), value)]
}

#[test]
fn tables_are_created_queried_and_deleted() {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    let good = table_mod(table(PofTableType::Mask, 3, &[field(96, 16), field(0, 48)]));
    let of = |command, m: &PofTableMod| PofMessage::TableMod(PofTableMod { command, ..m.clone() });
    assert_eq!(peer.refused(&of(TableCommand::Query, &good)).0, error::TABLE_MOD_TABLE_UNEXIST);
    assert_eq!(peer.refused(&of(TableCommand::Delete, &good)).0, error::TABLE_MOD_TABLE_UNEXIST);
    peer.tell(&PofMessage::TableMod(good.clone()));
    let expected = PofTableMod { command: TableCommand::QueryResult, ..good.clone() };
    assert_eq!(peer.ask(&of(TableCommand::Query, &good)), PofMessage::TableMod(expected));
    let other = PofTableMod { table: 4, ..good.clone() };
    let meta = |offset_bits| PofField { id: METADATA_FIELD, offset_bits, length_bits: 8 };
    let linear = PofTableMod { table_type: PofTableType::Linear, ..other.clone() };
    for (wrong, code) in [
        (good.clone(), error::TABLE_MOD_TABLE_EXIST),
        (PofTableMod { command: TableCommand::Modify, ..good.clone() }, error::TABLE_MOD_BAD_COMMAND),
        (PofTableMod { command: TableCommand::QueryResult, ..good.clone() }, error::TABLE_MOD_BAD_COMMAND),
        (PofTableMod { table: 10, ..good.clone() }, error::TABLE_MOD_BAD_TABLE_ID),
        (PofTableMod { slot: 3, ..other.clone() }, error::BAD_PORT),
        (PofTableMod { entries: 0, ..other.clone() }, error::TABLE_MOD_BAD_TABLE_SIZE),
        (PofTableMod { entries: (1 << 24) + 1, ..other.clone() }, error::TABLE_MOD_BAD_TABLE_SIZE),
        (PofTableMod { key_bits: 65, ..other.clone() }, error::TABLE_MOD_BAD_KEY_LEN),
        (PofTableMod { fields: vec![meta(0)], key_bits: 8, ..other.clone() }, error::TABLE_MOD_BAD_KEY_LEN),
        (
            PofTableMod { fields: vec![meta(32), meta(32)], key_bits: 16, ..other.clone() },
            error::TABLE_MOD_BAD_KEY_LEN,
        ),
        (linear, error::TABLE_MOD_BAD_KEY_LEN),
    ] {
        let (found, text) = peer.refused(&PofMessage::TableMod(wrong.clone()));
        assert_eq!(found, code, "{wrong:?}: {text}");
    }
    peer.tell(&of(TableCommand::Delete, &good));
    peer.tell(&PofMessage::TableMod(good));
}

#[test]
fn an_entry_is_named_by_its_index() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let first = entry(1, ethertype(0x0901), vec![apply(vec![output(2)])]);
    let of = |command, m: &PofFlowMod| PofMessage::FlowMod(PofFlowMod { command, ..m.clone() });
    for command in [FlowCommand::Modify, FlowCommand::Delete, FlowCommand::Query] {
        assert_eq!(peer.refused(&of(command, &first)).0, error::FLOW_MOD_ENTRY_UNEXIST);
    }
    peer.tell(&PofMessage::FlowMod(first.clone()));
    let expected = PofFlowMod { command: FlowCommand::QueryResult, ..first.clone() };
    assert_eq!(peer.ask(&of(FlowCommand::Query, &first)), PofMessage::FlowMod(expected));
    // The index and the match are taken.
    let (code, text) = peer.refused(&of(FlowCommand::Add, &entry(1, ethertype(0x0902), vec![])));
    assert!(code == error::FLOW_MOD_ENTRY_EXIST && text.contains("index 1 already"), "{text}");
    let (code, text) = peer.refused(&of(FlowCommand::Add, &entry(2, ethertype(0x0901), vec![])));
    assert!(code == error::FLOW_MOD_ENTRY_EXIST && text.contains("the entry with index 1"), "{text}");
    let second = entry(2, ethertype(0x0902), vec![apply(vec![output(3)])]);
    peer.tell(&PofMessage::FlowMod(second.clone()));
    let (code, text) = peer.refused(&of(FlowCommand::Modify, &entry(2, ethertype(0x0901), vec![])));
    assert!(code == error::FLOW_MOD_ENTRY_EXIST && text.contains("the entry with index 1"), "{text}");
    // MODIFY replaces match and instructions.
    let moved = entry(1, ethertype(0x0903), vec![apply(vec![output(4)])]);
    peer.tell(&of(FlowCommand::Modify, &moved));
    for kind in [0x0901, 0x0902, 0x0903] {
        lab.push(1, &frame(kind, &[]));
    }
    assert_eq!(lab.pop(4), frame(0x0903, &[]));
    assert_eq!(lab.pop(3), frame(0x0902, &[]));
    assert!(lab.is_quiet());
    // The old match is free, and so is the index of a deleted entry.
    peer.tell(&of(FlowCommand::Add, &entry(3, ethertype(0x0901), vec![])));
    peer.tell(&of(FlowCommand::Delete, &second));
    peer.tell(&of(FlowCommand::Add, &entry(2, ethertype(0x0904), vec![apply(vec![output(2)])])));
    lab.push(1, &frame(0x0902, &[]));
    lab.push(1, &frame(0x0904, &[]));
    assert_eq!(lab.pop(2), frame(0x0904, &[]));
    assert!(lab.is_quiet());
    let delete = PofTableMod { command: TableCommand::Delete, ..PofTableMod::default() };
    let (code, text) = peer.refused(&PofMessage::TableMod(delete));
    assert!(code == error::TABLE_MOD_TABLE_UNEMPTY && text.contains("3 entries"), "{text}");
}

#[test]
fn a_modified_entry_keeps_its_counts_if_its_match_stays() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let mut m = entry(1, ethertype(0x0901), vec![apply(vec![output(2)])]);
    m.counter = PofCounterId(3);
    peer.tell(&PofMessage::FlowMod(m.clone()));
    lab.push(1, &frame(0x0901, &[]));
    lab.pop(2);
    until("the packet is counted", || counted(&mut peer, 3) == 1);
    m.command = FlowCommand::Modify;
    m.instructions = vec![apply(vec![output(3)])];
    peer.tell(&PofMessage::FlowMod(m.clone()));
    lab.push(1, &frame(0x0901, &[]));
    lab.pop(3);
    until("both packets are counted", || counted(&mut peer, 3) == 2);
    // With another match, the entry starts at 0, but the counter keeps its packets.
    m.matches = ethertype(0x0902);
    peer.tell(&PofMessage::FlowMod(m));
    lab.push(1, &frame(0x0902, &[]));
    lab.pop(3);
    until("all packets are counted", || counted(&mut peer, 3) == 3);
}

/// Packets may hit an entry until the workers have applied its removal.
#[test]
fn a_counter_has_each_packet_that_left_by_a_deleted_entry() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let counter = PofCounterId(3);
    peer.tell(&PofMessage::CounterMod(PofCounter { counter, ..PofCounter::default() }));
    let packet = frame(0x0901, &[]);
    let mut left = 0;
    for round in 0..60 {
        let add = PofFlowMod { counter, ..entry(1, ethertype(0x0901), vec![apply(vec![output(2)])]) };
        let delete = PofFlowMod { command: FlowCommand::Delete, ..add.clone() };
        peer.tell(&PofMessage::FlowMod(add));
        let (first, others) = lab.ports.split_at_mut(1);
        let mut drain = |time: Duration| {
            let end = Instant::now() + time;
            while Instant::now() < end {
                left += u64::from(others[0].pop(0).is_some());
            }
        };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..8 {
                        // The ring may be full.
                        let _ = first[0].push(0, &packet);
                    }
                    std::thread::sleep(Duration::from_micros(20));
                }
            });
            drain(Duration::from_millis(3));
            peer.send(&PofMessage::FlowMod(delete));
            drain(Duration::from_millis(10));
            stop.store(true, Ordering::Relaxed);
        });
        peer.settle();
        drain(Duration::from_millis(1));
        // Packets that the full ring of the port has lost are counted, too.
        until(&format!("all packets of round {round} are counted"), || counted(&mut peer, 3) >= left);
    }
    assert!(left > 0);
}

/// Returns the number of packets of a counter.
fn counted(peer: &mut Peer, number: u32) -> u64 {
    let counter = PofCounterId(number);
    let request = PofCounter { command: CounterCommand::Request, counter, ..PofCounter::default() };
    match peer.ask(&PofMessage::CounterRequest(request)) {
        PofMessage::CounterReply(found) => found.packets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_entries_get_their_error() {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let good = entry(1, ethertype(0x0901), vec![]);
    let group = pof::action::PofAction::Group(pof::action::GroupAction { group: flow::GroupId(77) });
    let meter = pof::instruction::MeterInstruction { meter: flow::MeterId(9) };
    let with = |instruction| PofFlowMod { instructions: vec![instruction], ..good.clone() };
    for (wrong, code) in [
        (PofFlowMod { table: 1, ..good.clone() }, error::FLOW_MOD_BAD_TABLE_ID),
        (PofFlowMod { table: 10, ..good.clone() }, error::FLOW_MOD_BAD_TABLE_ID),
        (PofFlowMod { slot: 1, ..good.clone() }, error::BAD_PORT),
        (PofFlowMod { index: 1_000, ..good.clone() }, error::FLOW_MOD_BAD_ENTRY_ID),
        (PofFlowMod { command: FlowCommand::ModifyStrict, ..good.clone() }, error::FLOW_MOD_BAD_COMMAND),
        (PofFlowMod { command: FlowCommand::DeleteStrict, ..good.clone() }, error::FLOW_MOD_BAD_COMMAND),
        (PofFlowMod { command: FlowCommand::QueryResult, ..good.clone() }, error::FLOW_MOD_BAD_COMMAND),
        (PofFlowMod { matches: vec![], ..good.clone() }, error::MATCH_BAD_FIELD),
        (with(goto(0, 0)), error::INSTRUCTION_BAD_TABLE_ID),
        (with(goto(45, 0)), error::INSTRUCTION_TABLE_UNEXIST),
        (with(apply(vec![group])), error::ACTION_BAD_OUT_GROUP),
        (with(apply(vec![output(0)])), error::ACTION_BAD_OUT_PORT),
        (with(pof::instruction::PofInstruction::Meter(meter)), pof::PofErrorCode::new(12, 3)),
    ] {
        let (found, text) = peer.refused(&PofMessage::FlowMod(wrong.clone()));
        assert_eq!(found, code, "{wrong:?}: {text}");
    }
    // None of them took the index.
    peer.tell(&PofMessage::FlowMod(good));
}

#[test]
fn an_expired_entry_frees_its_index_and_match() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let mut m = entry(1, ethertype(0x0901), vec![apply(vec![output(2)])]);
    m.hard_timeout_s = 1;
    m.counter = PofCounterId(3);
    peer.tell(&PofMessage::FlowMod(m.clone()));
    std::thread::sleep(Duration::from_millis(1_200));
    lab.push(1, &frame(0x0901, &[]));
    assert!(lab.is_quiet());
    let query = PofMessage::FlowMod(PofFlowMod { command: FlowCommand::Query, ..m.clone() });
    assert_eq!(peer.refused(&query).0, error::FLOW_MOD_ENTRY_UNEXIST);
    // Another index may have the match, and the index another match and counter.
    peer.tell(&PofMessage::FlowMod(entry(2, ethertype(0x0901), vec![apply(vec![output(3)])])));
    let other = PofFlowMod { matches: ethertype(0x0902), counter: PofCounterId(4), ..m };
    peer.tell(&PofMessage::FlowMod(other));
    lab.push(1, &frame(0x0901, &[]));
    lab.push(1, &frame(0x0902, &[]));
    lab.pop(3);
    lab.pop(2);
    let of = |number| PofCounter {
        command: CounterCommand::Request,
        counter: PofCounterId(number),
        ..Default::default()
    };
    assert_eq!(peer.refused(&PofMessage::CounterRequest(of(3))).0, error::COUNTER_UNEXIST);
}

#[test]
fn queryall_lists_all_tables_and_entries() {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    let tables = [
        table(PofTableType::Mask, 0, &[field(96, 16)]),
        table(PofTableType::Mask, 1, &[]),
        table(PofTableType::Linear, 0, &[]),
    ];
    tables.iter().for_each(|m| peer.tell(m));
    // More entries than one part of the answer has, added in another order.
    let mut entries: Vec<PofFlowMod> =
        (0..300).map(|n| entry(n * 3, ethertype(n.into()), vec![apply(vec![output(2)])])).collect();
    for m in entries.iter().rev() {
        peer.send(&PofMessage::FlowMod(m.clone()));
    }
    let mut linear = entry(9, vec![], vec![]);
    linear.table_type = PofTableType::Linear;
    peer.tell(&PofMessage::FlowMod(linear.clone()));
    let mut expected = Vec::new();
    let listed = |m: &PofMessage| match m {
        PofMessage::TableMod(m) => {
            PofMessage::TableMod(PofTableMod { command: TableCommand::QueryResult, ..m.clone() })
        }
        other => panic!("{other:?}"),
    };
    let found = |m: PofFlowMod| PofMessage::FlowMod(PofFlowMod { command: FlowCommand::QueryResult, ..m });
    expected.push(listed(&tables[0]));
    expected.extend(entries.drain(..).map(found));
    expected.extend([listed(&tables[1]), listed(&tables[2]), found(linear), PofMessage::QueryAllFin]);
    let asked = peer.send(&PofMessage::QueryAllRequest(QueryAll { slot: 0xffff }));
    for (n, expected) in expected.into_iter().enumerate() {
        assert_eq!(peer.receive(), (asked, expected), "message {n}");
    }
    let wrong = PofMessage::QueryAllRequest(QueryAll { slot: 1 });
    assert_eq!(peer.refused(&wrong).0, error::BAD_PORT);
}

#[test]
fn slots_and_configuration_are_checked() {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    let slot = |slot, forwarding| PofMessage::SlotConfig(SlotConfig { slot, forwarding });
    peer.tell(&slot(0, SlotForwarding::Enabled));
    peer.tell(&slot(0xffff, SlotForwarding::Enabled));
    assert_eq!(peer.refused(&slot(1, SlotForwarding::Enabled)).0, error::BAD_PORT);
    assert_eq!(peer.refused(&slot(0, SlotForwarding::Disabled)).0, error::BAD_PORT);
    let config = PofSwitchConfig { device_id: 5, flags: 1, miss_send_length: 128 };
    peer.tell(&PofMessage::SetConfig(config.clone()));
    let expected = PofSwitchConfig { device_id: 7, ..config.clone() };
    assert_eq!(peer.ask(&PofMessage::GetConfigRequest), PofMessage::GetConfigReply(expected));
    let wrong = PofMessage::SetConfig(PofSwitchConfig { flags: 2, ..config });
    assert_eq!(peer.refused(&wrong).0, error::SWITCH_CONFIG_BAD_FLAGS);
}
