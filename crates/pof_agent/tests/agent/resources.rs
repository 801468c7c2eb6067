// SPDX-License-Identifier: Apache-2.0
//! Limits of tables, and slots and ports that do not exist.

use crate::common;
use crate::rig::Rig;
use flow::PortNo;
use model::{ModelConfig, ModelLimits};
use pof::action::{OutputAction, PofAction};
use pof::instruction::{ApplyActions, PofInstruction};
use pof::message::packet::{NO_BUFFER, PofPacketOut};
use pof::message::port::{PofPort, PofPortReason, PofPortStatus};
use pof::message::resource::*;
use pof::message::setup::QueryAll;
use pof::message::table::*;
use pof::value::{PofCounterId, PofField, PofMatch, PofOperand};
use pof::{PofDialect, PofErrorCode, PofMessage, error};
use pof_agent::{Miss, TableLayout};

/// Code of a FLOW_MOD for which there is no space (POFFMFC_TABLE_FULL).
const TABLE_FULL: PofErrorCode = PofErrorCode::new(5, 1);

/// Field of the masked table of the tests.
const FIELD: PofField = PofField { id: 1, offset_bits: 96, length_bits: 16 };

/// Returns a switch with space for a number of entries, whose handshake is complete.
fn rig(entries: usize, miss: Miss) -> Rig {
    let limits = ModelLimits { entries, ..ModelLimits::default() };
    let model = common::with(ModelConfig { limits, ..ModelConfig::default() });
    let mut rig = Rig::silent(model, PofDialect::V1_4, miss);
    rig.greet();
    rig.output();
    rig
}

/// Sends a message. Returns the code of its refusal, if it is refused.
fn refusal(rig: &mut Rig, message: &PofMessage) -> Option<PofErrorCode> {
    rig.send(message);
    let answers = rig.output();
    answers.iter().find_map(|answer| match answer {
        PofMessage::Error(error) => Some(error.error_code()),
        _ => None,
    })
}

fn masked_table(entries: u32) -> PofMessage {
    let definition = PofTableMod { entries, key_bits: 16, fields: vec![FIELD], ..PofTableMod::default() };
    PofMessage::TableMod(definition)
}

fn entry(command: FlowCommand, index: u32, value: u128) -> PofFlowMod {
    let matches = vec![PofMatch { field: FIELD, value: value << 112, mask: u128::MAX << 112 }];
    PofFlowMod { command, index, priority: 5, matches, ..PofFlowMod::default() }
}

#[test]
fn a_full_switch_refuses_entries_and_can_still_change_them() {
    use FlowCommand::{Add, Delete, Modify, Query};
    let mut rig = rig(4, Miss::Drop);
    assert_eq!(refusal(&mut rig, &masked_table(4)), None);
    // Another controller has an entry, so the table cannot be filled.
    rig.model.flow_mod(rig.now, common::add(1, flow::Match::any(), PortNo(1))).unwrap();
    for index in 0..3 {
        let add = PofMessage::FlowMod(entry(Add, index, index.into()));
        assert_eq!(refusal(&mut rig, &add), None);
    }
    // The refused entry does not create its counter.
    let id = PofCounterId(9);
    let last = PofMessage::FlowMod(PofFlowMod { counter: id, ..entry(Add, 3, 3) });
    assert_eq!(refusal(&mut rig, &last), Some(TABLE_FULL));
    let counter = PofCounter { command: CounterCommand::Request, counter: id, ..PofCounter::default() };
    assert_eq!(refusal(&mut rig, &PofMessage::CounterRequest(counter)), Some(error::COUNTER_UNEXIST));
    let query = PofMessage::FlowMod(entry(Query, 3, 3));
    assert_eq!(refusal(&mut rig, &query), Some(error::FLOW_MOD_ENTRY_UNEXIST));
    // An entry may get another match, or only other actions.
    for _ in 0..2 {
        assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(entry(Modify, 2, 7))), None);
    }
    assert_eq!((rig.model.flow_count(), rig.agent.records()), (4, 3));
    // The place of a deleted entry is free.
    assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(entry(Delete, 0, 0))), None);
    assert_eq!(refusal(&mut rig, &last), None);
    assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(entry(Add, 0, 0))), Some(TABLE_FULL));
    assert_eq!((rig.model.flow_count(), rig.agent.records()), (4, 3));
}

/// A table has as many indexes as its TABLE_MOD states, whatever space the switch has.
#[test]
fn a_full_table_refuses_entries_by_their_index() {
    let mut rig = rig(100, Miss::Drop);
    assert_eq!(refusal(&mut rig, &masked_table(2)), None);
    for index in 0..2 {
        let add = PofMessage::FlowMod(entry(FlowCommand::Add, index, index.into()));
        assert_eq!(refusal(&mut rig, &add), None);
    }
    let third = |index| PofMessage::FlowMod(entry(FlowCommand::Add, index, 9));
    assert_eq!(refusal(&mut rig, &third(2)), Some(error::FLOW_MOD_BAD_ENTRY_ID));
    assert_eq!(refusal(&mut rig, &third(1)), Some(error::FLOW_MOD_ENTRY_EXIST));
    assert_eq!(rig.model.flow_count(), 2);
}

/// Without space for its table-miss entry, a table is not created.
#[test]
fn a_table_needs_space_for_its_table_miss_entry() {
    let mut rig = rig(2, Miss::Controller);
    assert_eq!(refusal(&mut rig, &masked_table(2)), None);
    rig.model.flow_mod(rig.now, common::add(1, flow::Match::any(), PortNo(1))).unwrap();
    let exact = PofTableMod { table_type: PofTableType::Exact, entries: 2, ..PofTableMod::default() };
    let exact = PofMessage::TableMod(exact);
    assert_eq!(refusal(&mut rig, &exact), Some(TABLE_FULL));
    let query =
        PofTableMod { command: TableCommand::Query, table_type: PofTableType::Exact, ..Default::default() };
    assert_eq!(refusal(&mut rig, &PofMessage::TableMod(query)), Some(error::TABLE_MOD_TABLE_UNEXIST));
    // The table-miss entry leaves its place to the first entry that matches all packets.
    let all = PofMatch { field: FIELD, value: 0, mask: 0 };
    let any = PofFlowMod { matches: vec![all], ..PofFlowMod::default() };
    assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(any)), None);
    assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(entry(FlowCommand::Add, 1, 1))), Some(TABLE_FULL));
}

/// Port numbers have the slot in their high 16 bits, so a port above 65,535 would name another slot.
#[test]
fn slots_and_ports_beyond_16_bits_are_refused() {
    let mut rig = rig(100, Miss::Drop);
    rig.model.add_port(rig.now, common::port(PortNo(0x1_0002)), true).unwrap();
    assert_eq!(refusal(&mut rig, &masked_table(8)), None);
    let output =
        |number| PofAction::Output(OutputAction { port: PofOperand::Number(number), ..Default::default() });
    let add = |index, number| {
        let apply = ApplyActions { actions: vec![output(number)] };
        let instructions = vec![PofInstruction::ApplyActions(apply)];
        PofMessage::FlowMod(PofFlowMod { instructions, ..entry(FlowCommand::Add, index, index.into()) })
    };
    let packet_out = |in_port, number| {
        PofMessage::PacketOut(PofPacketOut {
            buffer_id: NO_BUFFER,
            in_port,
            packet_length_bytes: 60,
            actions: vec![output(number)],
            data: vec![7; 60],
        })
    };
    // Slot 0, all slots, and the ports of OpenFlow.
    for (index, number) in [2, 0xffff_0002, 0xffff_fffd].into_iter().enumerate() {
        assert_eq!(refusal(&mut rig, &add(index as u32, number)), None, "{number:#x}");
    }
    assert_eq!(refusal(&mut rig, &packet_out(2, 2)), None);
    let out_port = Some(error::ACTION_BAD_OUT_PORT);
    let bad_port = Some(error::BAD_PORT);
    let counter = |slot| PofCounter {
        command: CounterCommand::Add,
        slot,
        counter: PofCounterId(1),
        ..Default::default()
    };
    let meter = |slot| PofMeterMod { slot, rate_kbps: 1_000, meter: flow::MeterId(1), ..Default::default() };
    let bucket = PofBucket { watch_slot: 1, actions: vec![output(2)], ..Default::default() };
    let port = PofPort { slot: 1, number: 2, ..PofPort::default() };
    for (message, expected) in [
        (add(3, 0x1_0002), out_port),
        (packet_out(2, 0x1_0002), out_port),
        (packet_out(0x1_0002, 2), bad_port),
        (PofMessage::CounterMod(counter(1)), bad_port),
        (PofMessage::CounterRequest(counter(1)), bad_port),
        (PofMessage::MeterMod(meter(1)), bad_port),
        (PofMessage::QueryAllRequest(QueryAll { slot: 1 }), bad_port),
        (PofMessage::GroupMod(PofGroupMod { slot: 1, ..Default::default() }), bad_port),
        (PofMessage::BucketGroupMod(PofBucketGroupMod { slot: 1, ..Default::default() }), bad_port),
        (
            PofMessage::BucketGroupMod(PofBucketGroupMod { buckets: vec![bucket], ..Default::default() }),
            bad_port,
        ),
        (PofMessage::PortMod(PofPortStatus { reason: PofPortReason::Modify, port }), bad_port),
        (PofMessage::FlowMod(PofFlowMod { slot: 1, ..entry(FlowCommand::Add, 7, 7) }), bad_port),
        (PofMessage::TableMod(PofTableMod { slot: 1, table: 1, entries: 1, ..Default::default() }), bad_port),
    ] {
        let written = format!("{message:?}");
        assert_eq!(refusal(&mut rig, &message), expected, "{written}");
    }
    assert_eq!((rig.model.flow_count(), rig.model.group_numbered(flow::GroupId(0)).is_none()), (3, true));
}

/// A controller that creates tables as large as RESOURCE_REPORT states, and fills them, is never refused.
#[test]
fn the_announced_entries_of_all_types_fit_together() {
    for (counts, entries, expected) in [
        ([10, 10, 5, 20], 16_777_216, [4_194_304; 4]),
        ([2, 2, 1, 2], 103, [25; 4]),
        ([1, 0, 0, 2], 100, [50, 0, 0, 50]),
        ([0, 0, 7, 0], 100, [0, 0, 100, 0]),
    ] {
        let limits = ModelLimits { entries, ..ModelLimits::default() };
        let model = common::with(ModelConfig { limits, ..ModelConfig::default() });
        let mut rig = Rig::of(model, TableLayout::new(counts), PofDialect::V1_4, Miss::Drop);
        rig.greet();
        let answers = rig.output();
        let Some(PofMessage::ResourceReport(report)) = answers.get(3) else { panic!("{answers:?}") };
        assert_eq!(report.tables.map(|resource| resource.entries), expected);
        for resource in report.tables.iter().filter(|resource| resource.tables > 0) {
            let (table_type, entries) = (resource.table_type, resource.entries);
            let is_linear = table_type == PofTableType::Linear;
            let (key_bits, fields) = if is_linear { (0, Vec::new()) } else { (16, vec![FIELD]) };
            let table = PofTableMod { table_type, entries, key_bits, fields, ..PofTableMod::default() };
            assert_eq!(refusal(&mut rig, &PofMessage::TableMod(table)), None);
            let sample = if entries > 100 { entries - 1..entries } else { 0..entries };
            for index in sample {
                let mut add =
                    PofFlowMod { table_type, ..entry(FlowCommand::Add, index, (index & 0xffff).into()) };
                add.matches.truncate(usize::from(!is_linear));
                assert_eq!(refusal(&mut rig, &PofMessage::FlowMod(add)), None);
            }
        }
        // The space of all types together is the limit of one table.
        let table_type =
            report.tables.iter().find(|resource| resource.tables > 1).map(|found| found.table_type);
        for (entries, expected) in [(entries, None), (entries + 1, Some(error::TABLE_MOD_BAD_TABLE_SIZE))] {
            let (table_type, table) = (table_type.unwrap(), 1);
            let remove =
                PofTableMod { command: TableCommand::Delete, table, table_type, ..Default::default() };
            let add = PofTableMod { table, table_type, entries: entries as u32, ..PofTableMod::default() };
            assert_eq!(refusal(&mut rig, &PofMessage::TableMod(add)), expected);
            refusal(&mut rig, &PofMessage::TableMod(remove));
        }
    }
}
