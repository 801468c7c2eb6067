// SPDX-License-Identifier: Apache-2.0
//! Random sequences of messages, some of them damaged. `POF_MESSAGES` (default 20,000) sets their number, and
//! `POF_SEED` (default 1) their seed.

use super::{DIALECT, Rig, common};
use flow::{GroupId, MeterId, Nanos, TableId};
use pof::action::*;
use pof::instruction::*;
use pof::message::resource::*;
use pof::message::setup::QueryAll;
use pof::message::table::*;
use pof::value::{PofCounterId, PofField, PofMatch, PofOperand};
use pof::{PofMessage, encode};
use pof_agent::PofChannelEvent;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

const TYPES: [PofTableType; 4] =
    [PofTableType::Mask, PofTableType::LongestPrefix, PofTableType::Exact, PofTableType::Linear];

const FIELD: PofField = PofField { id: 1, offset_bits: 96, length_bits: 16 };

fn action(random: &mut fastrand::Rng) -> PofAction {
    let number = random.u32(0..4);
    match random.u8(0..8) {
        0 => PofAction::Counter(CounterAction { counter: PofCounterId(number) }),
        1 => PofAction::Group(GroupAction { group: GroupId(number) }),
        2 => PofAction::ModifyField(ModifyFieldAction { field: FIELD, increment: -1 }),
        3 => PofAction::AddField(AddFieldAction { length_bits: 8 * number, ..AddFieldAction::default() }),
        4 => PofAction::Drop(DropAction::default()),
        _ => PofAction::Output(OutputAction { port: PofOperand::Number(number), ..OutputAction::default() }),
    }
}

fn instruction(random: &mut fastrand::Rng) -> PofInstruction {
    let table = TableId(random.u8(0..9));
    match random.u8(0..6) {
        0 => PofInstruction::GotoTable(GotoTable { table, ..GotoTable::default() }),
        1 => PofInstruction::GotoDirectTable(GotoDirectTable { table, ..GotoDirectTable::default() }),
        2 => PofInstruction::Meter(MeterInstruction { meter: MeterId(random.u32(0..3)) }),
        _ => PofInstruction::ApplyActions(ApplyActions {
            actions: (0..random.usize(0..4)).map(|_| action(random)).collect(),
        }),
    }
}

fn flow_mod(random: &mut fastrand::Rng) -> PofMessage {
    let table_type = TYPES[random.usize(0..4)];
    let value = random.u128(0..4) << 112;
    let matches =
        vec![PofMatch { field: FIELD, value, mask: if random.bool() { 0xffff << 112 } else { value } }];
    PofMessage::FlowMod(PofFlowMod {
        command: [FlowCommand::Add, FlowCommand::Add, FlowCommand::Modify, FlowCommand::Delete]
            [random.usize(0..4)],
        table: random.u8(0..2),
        table_type,
        index: random.u32(0..9),
        priority: random.u16(0..2),
        counter: PofCounterId(random.u32(0..4)),
        hard_timeout_s: random.u16(0..3),
        matches: if table_type == PofTableType::Linear { Vec::new() } else { matches },
        instructions: (0..random.usize(0..3)).map(|_| instruction(random)).collect(),
        ..PofFlowMod::default()
    })
}

fn message(random: &mut fastrand::Rng) -> PofMessage {
    let number = random.u32(0..4);
    let counter = PofCounter { counter: PofCounterId(number), ..PofCounter::default() };
    match random.u8(0..20) {
        0..2 => {
            let table_type = TYPES[random.usize(0..4)];
            let is_linear = table_type == PofTableType::Linear;
            PofMessage::TableMod(PofTableMod {
                command: if random.u8(0..4) == 0 { TableCommand::Delete } else { TableCommand::Add },
                table: random.u8(0..2),
                table_type,
                entries: 8,
                key_bits: if is_linear { 0 } else { 16 },
                fields: if is_linear { Vec::new() } else { vec![FIELD] },
                ..PofTableMod::default()
            })
        }
        2 => PofMessage::GroupMod(PofGroupMod {
            command: [PofGroupCommand::Add, PofGroupCommand::Modify, PofGroupCommand::Delete]
                [random.usize(0..3)],
            group: GroupId(number),
            counter: PofCounterId(random.u32(0..4)),
            actions: vec![action(random)],
            ..PofGroupMod::default()
        }),
        3 => PofMessage::MeterMod(PofMeterMod {
            command: [PofMeterCommand::Add, PofMeterCommand::Delete][random.usize(0..2)],
            rate_kbps: 1_000,
            meter: MeterId(number),
            ..PofMeterMod::default()
        }),
        4 => PofMessage::CounterRequest(PofCounter { command: CounterCommand::Request, ..counter }),
        5 => {
            let commands = [CounterCommand::Add, CounterCommand::Delete, CounterCommand::Clear];
            PofMessage::CounterMod(PofCounter { command: commands[random.usize(0..3)], ..counter })
        }
        6 => PofMessage::QueryAllRequest(QueryAll::default()),
        _ => flow_mod(random),
    }
}

/// Compares the answer to QUERYALL with the entries of the model.
fn check(rig: &mut Rig) {
    rig.output();
    rig.send(&PofMessage::QueryAllRequest(QueryAll::default()));
    let answer = rig.output();
    assert_eq!(answer.last(), Some(&PofMessage::QueryAllFin));
    let listed = answer.iter().filter(|message| matches!(message, PofMessage::FlowMod(_))).count();
    assert_eq!(listed, rig.model.flow_count());
}

#[test]
fn the_agent_and_the_model_have_the_same_entries_after_any_messages() {
    let mut random = fastrand::Rng::with_seed(number("POF_SEED", 1));
    let mut rig = Rig::new(false);
    let (mut added, mut refused) = (0, 0);
    for n in 0..number("POF_MESSAGES", 20_000) {
        let mut bytes = Vec::new();
        encode(&message(&mut random), n as u32, DIALECT, &mut bytes).unwrap();
        // Damages some bytes behind the header, where the length stays right.
        if random.u8(0..4) == 0 && bytes.len() > 8 {
            for _ in 0..random.usize(1..4) {
                let end = bytes.len().min(64);
                bytes[random.usize(8..end)] = random.u8(..);
            }
        }
        let before = rig.model.flow_count();
        rig.send_bytes(&bytes);
        added += u32::from(rig.model.flow_count() > before);
        refused += rig.events.drain(..).filter(|e| matches!(e, PofChannelEvent::Refused(_))).count();
        if random.u8(0..20) == 0 {
            rig.now = Nanos(rig.now.0 + 300_000_000);
            common::poll_all(&mut rig.model, rig.now);
        }
        rig.output();
        if n % 100 == 0 {
            check(&mut rig);
        }
        if n % 5_000 == 4_999 {
            rig.reconnect();
            assert_eq!(rig.model.flow_count(), 0);
        }
    }
    check(&mut rig);
    assert!(added > 500 && refused > 1_000, "{added} messages added entries, and {refused} were refused");
}
