// SPDX-License-Identifier: Apache-2.0
//! Messages of a controller by choices. Small numbers make it likely that messages concern the same tables,
//! entries, groups and counters. Some messages have a number that the switch must refuse.

use crate::choices::Choices;
use flow::{GroupId, MeterId, TableId};
use pof::PofMessage;
use pof::action::*;
use pof::instruction::*;
use pof::message::packet::{NO_BUFFER, PofPacketOut};
use pof::message::port::{PofForwarding, PofPort, PofPortReason, PofPortStatus};
use pof::message::resource::*;
use pof::message::setup::{PofSwitchConfig, QueryAll, SlotConfig, SlotForwarding};
use pof::message::table::*;
use pof::value::{METADATA_FIELD, PofCounterId, PofField, PofMatch, PofOperand};

const TYPES: [PofTableType; 4] =
    [PofTableType::Mask, PofTableType::LongestPrefix, PofTableType::Exact, PofTableType::Linear];

/// Sets of fields of a table. The first is the most frequent.
const KEYS: [&[PofField]; 4] = [
    &[PofField { id: 1, offset_bits: 96, length_bits: 16 }],
    &[PofField { id: 1, offset_bits: 96, length_bits: 16 }],
    &[
        PofField { id: METADATA_FIELD, offset_bits: 16, length_bits: 8 },
        PofField { id: 1, offset_bits: 0, length_bits: 48 },
    ],
    &[],
];

/// Returns a small number, or an extreme one.
fn number(c: &mut Choices<'_>) -> u32 {
    match c.below(64) {
        62 => c.of(&[0xff00_0000, 0xff00_0001, 0xffff_fffd, u32::MAX, 0x8000_0000, 0x1_0001]),
        63 => u32::from(c.below(u16::MAX)),
        n => u32::from(n % 4),
    }
}

/// Returns an offset or a length in bits: whole bytes, or any number.
fn bits(c: &mut Choices<'_>) -> u16 {
    if c.one_in(48) { c.below(u16::MAX) } else { 8 + 8 * c.below(16) }
}

fn slot(c: &mut Choices<'_>) -> u16 {
    if c.one_in(64) { c.of(&[1, 0xffff]) } else { 0 }
}

fn field(c: &mut Choices<'_>) -> PofField {
    if c.one_in(3) {
        let offset_bits = if c.one_in(16) { bits(c) } else { 32 + 8 * c.below(8) };
        return PofField { id: METADATA_FIELD, offset_bits, length_bits: 8 + 8 * c.below(8) };
    }
    PofField { id: 1, offset_bits: bits(c), length_bits: bits(c) }
}

/// Returns a field of at most 32 bits, in most cases.
fn short_field(c: &mut Choices<'_>) -> PofField {
    let field = field(c);
    if c.one_in(16) { field } else { PofField { length_bits: 8 + 8 * c.below(4), ..field } }
}

fn operand(c: &mut Choices<'_>) -> PofOperand {
    if c.one_in(64) { PofOperand::Field(field(c)) } else { PofOperand::Number(number(c)) }
}

fn counter_id(c: &mut Choices<'_>) -> PofCounterId {
    PofCounterId(number(c))
}

/// Returns a condition, whose value is within its mask most of the time.
fn condition(field: PofField, c: &mut Choices<'_>) -> PofMatch {
    let value = u128::from(c.below(4)) << 120;
    let mask = c.of(&[u128::MAX, u128::MAX, value, 0xf << 120, 0]);
    PofMatch { field, value: if c.one_in(8) { value } else { value & mask }, mask }
}

fn action(c: &mut Choices<'_>) -> PofAction {
    match c.below(16) {
        0 => PofAction::SetField(PofMatch { field: field(c), value: u128::MAX, mask: u128::MAX << 120 }),
        1 => PofAction::SetFieldFromMetadata(SetFieldFromMetadataAction {
            field: field(c),
            metadata_offset_bits: c.of(&[32, 40, 16]),
        }),
        2 => PofAction::ModifyField(ModifyFieldAction { field: short_field(c), increment: -1 }),
        3 => PofAction::AddField(AddFieldAction {
            id: 1,
            offset_bits: bits(c),
            length_bits: bits(c).into(),
            value: 0x1234,
        }),
        4 => PofAction::DeleteField(DeleteFieldAction {
            offset_bits: bits(c),
            length_bits: if c.one_in(32) { operand(c) } else { PofOperand::Number(bits(c).into()) },
        }),
        5 => {
            let [checksum, sum] = [(); 2].map(|()| PofLocation::Packet);
            PofAction::Checksum(ChecksumAction {
                checksum_location: if c.one_in(64) { PofLocation::Metadata } else { checksum },
                sum_location: sum,
                checksum_offset_bits: bits(c),
                checksum_length_bits: c.of(&[16, 16, 16, 8, 32, 24]),
                sum_offset_bits: bits(c),
                sum_length_bits: bits(c),
            })
        }
        6 | 7 => PofAction::Group(GroupAction { group: GroupId(number(c)) }),
        8 => PofAction::Drop(DropAction::default()),
        9 => PofAction::PacketIn(PacketInAction { reason: c.of(&[1, 1, 1, 0, 2, 3]) }),
        10 | 11 => PofAction::Counter(CounterAction { counter: counter_id(c) }),
        12 => PofAction::Output(OutputAction {
            port: operand(c),
            metadata_offset_bits: c.of(&[32, 16, 0]),
            metadata_length_bits: bits(c),
            packet_offset_bytes: bits(c) / 4,
        }),
        _ => PofAction::Output(OutputAction { port: operand(c), ..OutputAction::default() }),
    }
}

fn instruction(c: &mut Choices<'_>) -> PofInstruction {
    let table = TableId(if c.one_in(8) { c.below(9) as u8 } else { 2 + c.below(3) as u8 });
    match c.below(16) {
        0 | 1 => PofInstruction::GotoTable(GotoTable {
            table,
            packet_offset_bytes: bits(c),
            fields: c.list(3, field),
        }),
        2 | 3 => PofInstruction::GotoDirectTable(GotoDirectTable {
            table: if c.one_in(8) { table } else { TableId(5 + c.below(2) as u8) },
            packet_offset_bytes: bits(c),
            index: operand(c),
        }),
        4 | 5 => PofInstruction::Meter(MeterInstruction { meter: MeterId(number(c)) }),
        6 => PofInstruction::WriteMetadata(WriteMetadata {
            offset_bits: c.of(&[32, 40, 16]),
            length_bits: bits(c),
            value: 0x77,
        }),
        7 => PofInstruction::WriteMetadataFromPacket(WriteMetadataFromPacket {
            metadata_offset_bits: c.of(&[32, 40, 16]),
            packet_offset_bits: bits(c),
            length_bits: bits(c),
        }),
        8 => {
            let calculations = [
                PofCalculation::Add,
                PofCalculation::Subtract,
                PofCalculation::And,
                PofCalculation::Or,
                PofCalculation::Xor,
            ];
            let calculation = c.of(&calculations);
            PofInstruction::CalculateField(CalculateField {
                calculation,
                field: short_field(c),
                operand: operand(c),
            })
        }
        9 => PofInstruction::MovePacketOffset(MovePacketOffset {
            direction: c.of(&[PofDirection::Forward, PofDirection::Backward]),
            bytes: operand(c),
        }),
        10 if c.one_in(4) => PofInstruction::ConditionalJump(ConditionalJump::default()),
        _ => PofInstruction::ApplyActions(ApplyActions { actions: c.list(4, action) }),
    }
}

/// Returns the type and number of a table. Each type has at most two.
fn table(c: &mut Choices<'_>) -> (PofTableType, u8) {
    (c.of(&TYPES), if c.one_in(64) { 2 } else { c.below(2) as u8 })
}

/// Returns the fields of a table, which depend on its place, so that entries fit in most cases.
fn key(kind: PofTableType, table: u8, c: &mut Choices<'_>) -> &'static [PofField] {
    match kind {
        PofTableType::Linear if !c.one_in(64) => &[],
        _ if c.one_in(64) => c.of(&KEYS),
        _ => KEYS[usize::from(table & 1) + 1],
    }
}

/// Returns the TABLE_MODs that create all tables.
pub fn all_tables() -> Vec<PofMessage> {
    let tables = TYPES.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]);
    // Behind the end of the choices, each is the first.
    tables.map(|(kind, table)| table_mod(TableCommand::Add, kind, table, &mut Choices(&[]))).collect()
}

fn flow_mod(c: &mut Choices<'_>) -> PofMessage {
    use FlowCommand as Command;
    let command = match c.below(12) {
        0..6 => Command::Add,
        6 | 7 => Command::Modify,
        8 | 9 => Command::Delete,
        10 => Command::Query,
        _ => c.of(&[Command::ModifyStrict, Command::DeleteStrict, Command::QueryResult]),
    };
    let (table_type, table) = table(c);
    let matches = key(table_type, table, c).iter().map(|field| condition(*field, c)).collect();
    PofMessage::FlowMod(PofFlowMod {
        command,
        low_latency: c.of(&[LowLatencyFlag::Unstated, LowLatencyFlag::LowLatency, LowLatencyFlag::Normal]),
        counter: counter_id(c),
        cookie: 5,
        table,
        table_type,
        idle_timeout_s: c.of(&[0, 0, 1]),
        hard_timeout_s: c.of(&[0, 0, 1, 2]),
        priority: c.below(3),
        index: if c.one_in(64) { number(c) } else { c.below(8).into() },
        slot: slot(c),
        matches,
        instructions: c.list(3, instruction),
        ..PofFlowMod::default()
    })
}

fn any_table_mod(c: &mut Choices<'_>) -> PofMessage {
    use TableCommand as Command;
    let commands = [Command::Add, Command::Add, Command::Add, Command::Delete, Command::Query];
    let command = if c.one_in(16) { Command::Modify } else { c.of(&commands) };
    let (table_type, table) = table(c);
    table_mod(command, table_type, table, c)
}

fn table_mod(command: TableCommand, table_type: PofTableType, table: u8, c: &mut Choices<'_>) -> PofMessage {
    let fields = key(table_type, table, c).to_vec();
    let key_bits = fields.iter().map(|field| field.length_bits).sum();
    PofMessage::TableMod(PofTableMod {
        command,
        table,
        table_type,
        entries: if c.one_in(16) { number(c) } else { 8 },
        key_bits: if c.one_in(16) { bits(c) } else { key_bits },
        slot: slot(c),
        fields,
        ..PofTableMod::default()
    })
}

fn group_mod(c: &mut Choices<'_>) -> PofMessage {
    let command = c.of(&[PofGroupCommand::Add, PofGroupCommand::Modify, PofGroupCommand::Delete]);
    let group_type =
        c.of(&[PofGroupType::All, PofGroupType::Select, PofGroupType::Indirect, PofGroupType::FastFailover]);
    let (group, counter, slot) = (GroupId(number(c)), counter_id(c), slot(c));
    if c.one_in(2) {
        let actions = c.list(5, action);
        return PofMessage::GroupMod(PofGroupMod { command, group_type, group, counter, slot, actions });
    }
    let buckets = c.list(4, |c| PofBucket {
        weight: c.below(3),
        watch_slot: 0,
        watch_port: c.below(4) as u8,
        watch_group: GroupId(c.below(4).into()),
        actions: c.list(3, action),
    });
    PofMessage::BucketGroupMod(PofBucketGroupMod { command, group_type, group, counter, slot, buckets })
}

fn packet_out(c: &mut Choices<'_>) -> PofMessage {
    let data = vec![7; c.below(2_049).into()];
    PofMessage::PacketOut(PofPacketOut {
        buffer_id: if c.one_in(16) { 1 } else { NO_BUFFER },
        in_port: number(c),
        packet_length_bytes: data.len() as u32,
        actions: c.list(5, action),
        data,
    })
}

/// Returns a message. It may be one that the dialect does not have.
pub fn message(c: &mut Choices<'_>) -> PofMessage {
    let counter = |command, c: &mut Choices<'_>| PofCounter {
        command,
        counter: counter_id(c),
        ..PofCounter::default()
    };
    match c.below(32) {
        0..2 => any_table_mod(c),
        2..6 => group_mod(c),
        6 => PofMessage::MeterMod(PofMeterMod {
            command: c.of(&[PofMeterCommand::Add, PofMeterCommand::Modify, PofMeterCommand::Delete]),
            slot: slot(c),
            rate_kbps: number(c) & 0xffff,
            meter: MeterId(number(c)),
        }),
        7 => PofMessage::CounterRequest(counter(CounterCommand::Request, c)),
        8 => {
            use CounterCommand as Command;
            let command = c.of(&[Command::Add, Command::Delete, Command::Clear, Command::Reply]);
            PofMessage::CounterMod(counter(command, c))
        }
        9 => PofMessage::QueryAllRequest(QueryAll { slot: slot(c) }),
        10 => packet_out(c),
        11 => {
            let forwarding = c.of(&[PofForwarding::Enabled, PofForwarding::Disabled]);
            let port =
                PofPort { slot: slot(c), number: number(c) & 0xffff, forwarding, ..PofPort::default() };
            PofMessage::PortMod(PofPortStatus { reason: PofPortReason::Modify, port })
        }
        12 => {
            let forwarding = c.of(&[SlotForwarding::Enabled, SlotForwarding::Disabled]);
            PofMessage::SlotConfig(SlotConfig { slot: slot(c), forwarding })
        }
        13 => PofMessage::SetConfig(PofSwitchConfig { flags: c.below(3), ..PofSwitchConfig::default() }),
        14 => c.of(&[PofMessage::GetConfigRequest, PofMessage::FeaturesRequest, PofMessage::EchoRequest]),
        15 => c.of(&[PofMessage::QueryAllFin, PofMessage::EchoReply, PofMessage::Hello]),
        _ => flow_mod(c),
    }
}
