// SPDX-License-Identifier: Apache-2.0
//! A program with every kind of instruction and action that the switch supports, as POF messages and as
//! flows. The flows were written by hand from the meaning of the messages.

use crate::peer::{Peer, apply, equals, field, goto, output, table};
use flow::TableId;
use pof::PofMessage;
use pof::action::*;
use pof::instruction::*;
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::table::{FlowCommand, LowLatencyFlag, PofFlowMod, PofTableType};
use pof::value::{METADATA_FIELD, PofCounterId, PofField, PofMatch, PofOperand};

/// The program in flow syntax.
pub const FLOWS: &[&str] = &[
    "table=0,priority=100,slice(base,96,16)=0x0800,actions=copy_field:slice(base,208,32)->slice(metadata,64,32),\
     move_base(14),goto_table:10",
    "table=0,priority=100,slice(base,96,16)=0x86dd,actions=set_field:0xbeef->slice(metadata,96,16),move_base(14),\
     goto_table:20",
    "table=0,priority=100,slice(base,96,16)=0x8100,actions=delete_field(96,32),output:2",
    "table=0,priority=50,slice(base,96,16)=0x8800/0xff00,actions=add_field(112,32,0xc0ffee01),\
     set_field:0x0908->slice(base,96,16),output:3",
    "table=0,priority=90,slice(base,96,16)=0xfffe,actions=output:4",
    "table=0,priority=1,low_latency,actions=output:2",
    "table=10,priority=8,slice(metadata,64,32)=0x0a000000/0xff000000,actions=\
     set_field:0/0x03->slice(base,8,8),set_field:0x40/0x40->slice(base,8,8),output:3,output:2",
    "table=10,priority=16,low_latency=false,slice(base,128,32)=0xc0a80000/0xffff0000,actions=move_base(20),goto_direct(25,3)",
    "table=10,priority=1,slice(base,128,32)=0/0x80000000,actions=modify_field:-1->slice(base,64,8),\
     calculate_checksum(80,16,0,160),goto_direct(25,1)",
    "table=10,priority=1,slice(base,128,32)=0x80000000/0x80000000,actions=goto_direct(25,2)",
    "table=20,priority=0,slice(base,48,8)=6,actions=copy_field:slice(metadata,96,16)->slice(base,16,16),output:2",
    "table=20,priority=0,slice(base,48,8)=17,actions=modify_field:100000->slice(base,0,32),\
     modify_field:-7->slice(base,56,8),output:3",
    "table=25,priority=0,index=1,low_latency,actions=move_base(-14),set_field:0x020000000009->slice(base,48,48),output:2",
    "table=25,priority=0,index=2,actions=output:3",
    "table=25,priority=0,index=3,actions=add_field(0,16,0xabcd),calculate_checksum(0,16,0,64),output:3",
    "table=20,priority=0,slice(base,48,8)=58,actions=add_field(320,16,0),\
     copy_field:slice(metadata,96,16)->slice(base,320,16),cut_front(base,40),output:3",
];

/// Number of entries. Each has a counter with its number, which is that of its line in [`FLOWS`].
pub const COUNTERS: u32 = 16;

/// Returns the packet that leaves port 4.
pub fn marker() -> Vec<u8> {
    crate::peer::frame(0xfffe, b"marker")
}

fn meta(offset_bits: u16, length_bits: u16) -> PofField {
    PofField { id: METADATA_FIELD, offset_bits, length_bits }
}

fn masked(field: PofField, value: u128, mask: u128) -> PofMatch {
    let shift = 128 - u32::from(field.length_bits);
    PofMatch { field, value: value << shift, mask: mask << shift }
}

fn add_field(offset_bits: u16, length_bits: u32, value: u128) -> PofAction {
    let value = value << (128 - length_bits);
    PofAction::AddField(AddFieldAction { id: 1, offset_bits, length_bits, value })
}

fn checksum(offset_bits: u16, sum_length_bits: u16) -> PofAction {
    PofAction::Checksum(ChecksumAction {
        checksum_offset_bits: offset_bits,
        checksum_length_bits: 16,
        sum_offset_bits: 0,
        sum_length_bits,
        ..ChecksumAction::default()
    })
}

fn modify(field: PofField, increment: i32) -> PofAction {
    PofAction::ModifyField(ModifyFieldAction { field, increment })
}

fn calculate(calculation: PofCalculation, field: PofField, operand: u32) -> PofInstruction {
    let operand = PofOperand::Number(operand);
    PofInstruction::CalculateField(CalculateField { calculation, field, operand })
}

fn direct(packet_offset_bytes: u16, index: u32) -> PofInstruction {
    let index = PofOperand::Number(index);
    PofInstruction::GotoDirectTable(GotoDirectTable { table: TableId(25), packet_offset_bytes, index })
}

/// Entries of a table: priority, conditions and instructions. Each has the next index and counter.
struct Entries {
    list: Vec<PofMessage>,
    counter: u32,
}

impl Entries {
    fn add(
        &mut self,
        (table_type, index): (PofTableType, u32),
        priority: u16,
        matches: Vec<PofMatch>,
        instructions: Vec<PofInstruction>,
    ) {
        self.counter += 1;
        let low_latency = match self.counter {
            6 | 13 => LowLatencyFlag::LowLatency,
            8 => LowLatencyFlag::Normal,
            _ => LowLatencyFlag::Unstated,
        };
        self.list.push(PofMessage::FlowMod(PofFlowMod {
            command: FlowCommand::Add,
            low_latency,
            table_type,
            index,
            priority,
            matches,
            instructions,
            counter: PofCounterId(self.counter),
            ..PofFlowMod::default()
        }));
    }
}

/// Returns the messages that install the program.
pub fn messages() -> Vec<PofMessage> {
    let (kind, source, target, next) = (field(96, 16), meta(32, 32), field(128, 32), field(48, 8));
    let list = vec![
        table(PofTableType::Mask, 0, &[kind]),
        table(PofTableType::LongestPrefix, 0, &[source, target]),
        table(PofTableType::Exact, 0, &[next]),
        table(PofTableType::Linear, 0, &[]),
    ];
    let mut entries = Entries { list, counter: 0 };
    first_table(&mut entries, kind);
    ipv4_table(&mut entries, source, target);
    let exact = |index| (PofTableType::Exact, index);
    let from = SetFieldFromMetadataAction { field: field(16, 16), metadata_offset_bits: 64 };
    let copy = apply(vec![PofAction::SetFieldFromMetadata(from), output(2)]);
    entries.add(exact(0), 0, vec![equals(next, 6)], vec![copy]);
    let more = vec![
        calculate(PofCalculation::Add, field(0, 32), 100_000),
        calculate(PofCalculation::Subtract, field(56, 8), 7),
        apply(vec![output(3)]),
    ];
    entries.add(exact(1), 0, vec![equals(next, 17)], more);
    let linear = |index| (PofTableType::Linear, index);
    let back = MovePacketOffset { direction: PofDirection::Backward, bytes: PofOperand::Number(14) };
    let set = PofAction::SetField(equals(field(48, 48), 0x0200_0000_0009));
    let rewrite = vec![PofInstruction::MovePacketOffset(back), apply(vec![set, output(2)])];
    entries.add(linear(1), 7, vec![], rewrite);
    // What follows DROP has no effect.
    let drop = PofAction::Drop(DropAction { reason: 1 });
    entries.add(linear(2), 8, vec![], vec![apply(vec![output(3), drop, output(2)])]);
    let insert = apply(vec![add_field(0, 16, 0xabcd), checksum(0, 64), output(3)]);
    entries.add(linear(3), 9, vec![], vec![insert]);
    let part = OutputAction {
        port: PofOperand::Number(3),
        metadata_offset_bits: 64,
        metadata_length_bits: 16,
        packet_offset_bytes: 40,
    };
    entries.add(exact(2), 0, vec![equals(next, 58)], vec![apply(vec![PofAction::Output(part)])]);
    assert_eq!(entries.counter, COUNTERS);
    entries.list
}

fn first_table(entries: &mut Entries, kind: PofField) {
    let at = |index| (PofTableType::Mask, index);
    let keep_source =
        WriteMetadataFromPacket { metadata_offset_bits: 32, packet_offset_bits: 208, length_bits: 32 };
    let keep_source = PofInstruction::WriteMetadataFromPacket(keep_source);
    entries.add(at(0), 100, vec![equals(kind, 0x0800)], vec![keep_source, goto(10, 14)]);
    let write = WriteMetadata { offset_bits: 64, length_bits: 16, value: 0xbeef << 112 };
    let write = PofInstruction::WriteMetadata(write);
    entries.add(at(1), 100, vec![equals(kind, 0x86dd)], vec![write, goto(20, 14)]);
    let tag = DeleteFieldAction { offset_bits: 96, length_bits: PofOperand::Number(32) };
    let untag = apply(vec![PofAction::DeleteField(tag), output(2)]);
    entries.add(at(2), 100, vec![equals(kind, 0x8100)], vec![untag]);
    // The mask of SET_FIELD does not protect the old bits.
    let set = PofAction::SetField(masked(kind, 0x0908, 0xffff));
    let wrap = apply(vec![add_field(112, 32, 0xc0ff_ee01), set, output(3)]);
    entries.add(at(3), 50, vec![masked(kind, 0x8800, 0xff00)], vec![wrap]);
    entries.add(at(4), 90, vec![equals(kind, 0xfffe)], vec![apply(vec![output(4)])]);
    entries.add(at(5), 1, vec![masked(kind, 0, 0)], vec![apply(vec![output(2)])]);
}

fn ipv4_table(entries: &mut Entries, source: PofField, target: PofField) {
    let at = |index| (PofTableType::LongestPrefix, index);
    let (any_source, any_target) = (masked(source, 0, 0), masked(target, 0, 0));
    let mark = vec![
        calculate(PofCalculation::And, field(8, 8), 0xfc),
        calculate(PofCalculation::Or, field(8, 8), 0x40),
        apply(vec![output(3)]),
        apply(vec![output(2)]),
    ];
    // The priority of this message contradicts the number of mask bits, which decides.
    entries.add(at(0), 20, vec![masked(source, 0x0a00_0000, 0xff00_0000), any_target], mark);
    let local = masked(target, 0xc0a8_0000, 0xffff_0000);
    entries.add(at(1), 16, vec![any_source, local], vec![direct(20, 3)]);
    let decrement = apply(vec![modify(field(64, 8), -1), checksum(80, 160)]);
    entries.add(at(2), 1, vec![any_source, masked(target, 0, 0x8000_0000)], vec![decrement, direct(0, 1)]);
    let upper = masked(target, 0x8000_0000, 0x8000_0000);
    entries.add(at(3), 1, vec![any_source, upper], vec![direct(0, 2)]);
}

/// Returns the packets of a counter.
pub fn count(peer: &mut Peer, number: u32) -> u64 {
    let counter = PofCounterId(number);
    let request = PofCounter { command: CounterCommand::Request, counter, ..PofCounter::default() };
    match peer.ask(&PofMessage::CounterRequest(request)) {
        PofMessage::CounterReply(found) => found.packets,
        other => panic!("{other:?}"),
    }
}

/// Returns a packet that is likely to hit an entry of the program. Some packets are too short for it.
pub fn random_packet(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..random.usize(14..160)).map(|_| random.u8(..)).collect();
    let kind = match random.u8(0..10) {
        0..4 => 0x0800,
        4..6 => 0x86dd,
        6 => 0x8100,
        7 => 0x8800 | u16::from(random.u8(..)),
        8 => 0xfffe,
        _ => random.u16(..),
    };
    bytes[12..14].copy_from_slice(&kind.to_be_bytes());
    let mut set = |at: usize, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    };
    match kind {
        0x0800 => {
            set(14, &[0x45]);
            if random.bool() {
                set(26, &[10]);
            }
            if random.bool() {
                set(30, &[192, 168]);
            }
        }
        0x86dd => set(20, &[[6, 17, 58][random.usize(0..3)]]),
        _ => {}
    }
    bytes
}
