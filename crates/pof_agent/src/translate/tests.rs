// SPDX-License-Identifier: Apache-2.0
//! Tests of the translation: each instruction and action, and each refusal, by tables.

use super::*;
use flow::action::SetField;
use flow::{
    BitRange, CutOrigin, Edit, Field, FieldMatch, Match, MeterId, Next, PortNo, Slice, SliceBase, port_no,
};
use pof::PofErrorCode;
use pof::action::*;
use pof::instruction::*;
use pof::value::{METADATA_FIELD, PofMatch, PofOperand};

const NEW: PofDialect = PofDialect::V1_4;
const OLD: PofDialect = PofDialect::V1_2;

fn layout() -> TableLayout {
    TableLayout::new([10, 10, 5, 20])
}

fn field(offset_bits: u16, length_bits: u16) -> PofField {
    PofField { id: 1, offset_bits, length_bits }
}

fn meta(offset_bits: u16, length_bits: u16) -> PofField {
    PofField { id: METADATA_FIELD, offset_bits, length_bits }
}

fn moving(offset_bits: u16, length_bits: u16) -> Slice {
    Slice { base: SliceBase::Moving, offset_bits, length_bits }
}

fn ext(offset_bits: u16, length_bits: u16) -> Slice {
    Slice { base: SliceBase::Metadata, offset_bits, length_bits }
}

fn range(offset_bits: u16, length_bits: u16) -> BitRange {
    BitRange { offset_bits, length_bits }
}

fn set(slice: Slice, value: u128, mask: u128) -> Action {
    Action::SetField(SetField { field: Field::Slice(slice), value, mask })
}

fn apply(actions: Vec<PofAction>) -> PofInstruction {
    PofInstruction::ApplyActions(ApplyActions { actions })
}

fn output(port: u32) -> PofAction {
    PofAction::Output(OutputAction { port: PofOperand::Number(port), ..OutputAction::default() })
}

fn goto(table: u8, packet_offset_bytes: u16) -> PofInstruction {
    PofInstruction::GotoTable(GotoTable { table: TableId(table), packet_offset_bytes, fields: Vec::new() })
}

fn direct(table: u8, index: PofOperand) -> PofInstruction {
    let table = TableId(table);
    PofInstruction::GotoDirectTable(GotoDirectTable { table, packet_offset_bytes: 2, index })
}

fn calculate(calculation: PofCalculation, field: PofField, operand: PofOperand) -> PofInstruction {
    PofInstruction::CalculateField(CalculateField { calculation, field, operand })
}

fn shift(direction: PofDirection, bytes: u32) -> PofInstruction {
    let bytes = PofOperand::Number(bytes);
    PofInstruction::MovePacketOffset(MovePacketOffset { direction, bytes })
}

fn meter(number: u32) -> PofInstruction {
    PofInstruction::Meter(MeterInstruction { meter: MeterId(number) })
}

/// Translates the instructions of an entry in table 3.
fn translated(instructions: Vec<PofInstruction>, dialect: PofDialect) -> Result<Translated, PofRefusal> {
    translated_in(3, instructions, dialect)
}

/// Translates the instructions of an entry in a table.
fn translated_in(
    table: u8,
    instructions: Vec<PofInstruction>,
    dialect: PofDialect,
) -> Result<Translated, PofRefusal> {
    let m = PofFlowMod { instructions, ..PofFlowMod::default() };
    let key = TableKey { table: TableId(table), kind: PofTableType::Mask, fields: &[] };
    entry(&m, key, &layout(), dialect)
}

fn made(instructions: Vec<PofInstruction>, dialect: PofDialect) -> Instructions {
    let written = format!("{instructions:?}");
    translated(instructions, dialect)
        .unwrap_or_else(|refusal| panic!("{written}: {refusal}"))
        .flow
        .instructions
}

fn refused(instructions: Vec<PofInstruction>, dialect: PofDialect) -> PofRefusal {
    let written = format!("{instructions:?}");
    match translated(instructions, dialect) {
        Err(refusal) => refusal,
        Ok(made) => panic!("{written} is not refused but becomes {made:?}"),
    }
}

#[test]
fn actions_keep_their_order_and_meaning() {
    let value = |value: u128, bits: u32| value << (128 - bits);
    let set_field = PofAction::SetField(PofMatch {
        field: field(96, 16),
        value: value(0x0806, 16),
        mask: value(0xff0f, 16),
    });
    let from_metadata = SetFieldFromMetadataAction { field: field(8, 24), metadata_offset_bits: 40 };
    let add = |id, bits, value| AddFieldAction { id, offset_bits: 16, length_bits: bits, value };
    let length_bits = PofOperand::Number(48);
    let checksum = ChecksumAction {
        checksum_offset_bits: 80,
        checksum_length_bits: 16,
        sum_offset_bits: 0,
        sum_length_bits: 160,
        ..ChecksumAction::default()
    };
    for (action, dialect, expected) in [
        (output(7), NEW, Action::output(PortNo(7))),
        (output(0x0001_0007), OLD, Action::output(PortNo(0x0001_0007))),
        (output(0xffff_0007), NEW, Action::output(PortNo(7))),
        (output(0xffff_fff8), NEW, Action::output(port_no::IN_PORT)),
        (output(0xffff_fffb), OLD, Action::output(port_no::FLOOD)),
        // The value within the mask is written to the whole field.
        (set_field, NEW, set(moving(96, 16), 0x0806 & 0xff0f, 0xffff)),
        (
            PofAction::SetFieldFromMetadata(from_metadata),
            NEW,
            Edit::CopyField { from: ext(72, 24), to: moving(8, 24) }.into(),
        ),
        (
            PofAction::ModifyField(ModifyFieldAction { field: field(64, 8), increment: -1 }),
            NEW,
            Edit::ModifyField { slice: moving(64, 8), increment: -1 }.into(),
        ),
        (
            PofAction::AddField(add(1, 24, value(0xabcdef, 24))),
            NEW,
            Edit::AddField { range: range(16, 24), value: 0xabcdef }.into(),
        ),
        (
            PofAction::AddField(add(1, 24, 0xff_abcdef)),
            OLD,
            Edit::AddField { range: range(16, 24), value: 0xabcdef }.into(),
        ),
        (
            PofAction::DeleteField(DeleteFieldAction { offset_bits: 8, length_bits }),
            NEW,
            Edit::DeleteField(range(8, 48)).into(),
        ),
        (
            PofAction::Checksum(checksum),
            NEW,
            Edit::CalculateChecksum { checksum: range(80, 16), covered: range(0, 160) }.into(),
        ),
        (PofAction::Group(GroupAction { group: GroupId(9) }), NEW, Action::Group(GroupId(9))),
        (
            PofAction::PacketIn(PacketInAction { reason: 2 }),
            NEW,
            Action::Output { port: port_no::CONTROLLER, max_len: flow::action::WHOLE_PACKET },
        ),
        (
            PofAction::Counter(CounterAction { counter: PofCounterId(12) }),
            NEW,
            Action::Group(GroupId(0xff00_000c)),
        ),
    ] {
        let written = format!("{action:?}");
        let last = output(2);
        let made = made(vec![apply(vec![action, last])], dialect);
        let expected = Instructions::apply(vec![expected, Action::output(PortNo(2))]);
        assert_eq!(made, expected, "{written}");
    }
}

#[test]
fn instructions_keep_their_order_and_meaning() {
    let word = |value: u128| PofOperand::Number(value as u32);
    let write = |offset_bits, length_bits, value| {
        PofInstruction::WriteMetadata(WriteMetadata { offset_bits, length_bits, value })
    };
    let from_packet =
        WriteMetadataFromPacket { metadata_offset_bits: 128, packet_offset_bits: 48, length_bits: 32 };
    let modify = |increment| Edit::ModifyField { slice: moving(8, 16), increment }.into();
    for (instruction, dialect, expected) in [
        (write(32, 16, 0x1234 << 112), NEW, set(ext(64, 16), 0x1234, 0xffff)),
        (write(144, 16, 0x9_1234), OLD, set(ext(176, 16), 0x1234, 0xffff)),
        (
            PofInstruction::WriteMetadataFromPacket(from_packet),
            NEW,
            Edit::CopyField { from: moving(48, 32), to: ext(160, 32) }.into(),
        ),
        (calculate(PofCalculation::Add, field(8, 16), word(5)), NEW, modify(5)),
        (calculate(PofCalculation::Subtract, field(8, 16), word(5)), NEW, modify(-5)),
        (calculate(PofCalculation::Add, field(8, 16), word(0xffff_fffe)), NEW, modify(-2)),
        (calculate(PofCalculation::Subtract, field(8, 16), word(0x8000_0000)), NEW, modify(i32::MIN)),
        (calculate(PofCalculation::And, field(8, 12), word(0xffff_00f0)), NEW, set(moving(8, 12), 0, 0xf0f)),
        (
            calculate(PofCalculation::Or, field(8, 12), word(0xffff_00f0)),
            NEW,
            set(moving(8, 12), 0x0f0, 0x0f0),
        ),
        (shift(PofDirection::Forward, 14), NEW, Edit::MoveBase(14).into()),
        (shift(PofDirection::Backward, 14), NEW, Edit::MoveBase(-14).into()),
    ] {
        let written = format!("{instruction:?}");
        let made = made(vec![instruction, apply(vec![output(2)])], dialect);
        let expected = Instructions::apply(vec![expected, Action::output(PortNo(2))]);
        assert_eq!(made, expected, "{written}");
    }
    // These change no bit.
    for nothing in [
        calculate(PofCalculation::And, field(0, 8), word(0xff)),
        calculate(PofCalculation::Or, field(0, 8), word(0x100)),
        shift(PofDirection::Backward, 0),
    ] {
        assert_eq!(made(vec![nothing], NEW), Instructions::default());
    }
}

#[test]
fn gotos_move_the_base_and_end_the_entry() {
    let base = |bytes| Action::from(Edit::MoveBase(bytes));
    let next = |apply, next| Instructions { apply, next: Some(next), ..Instructions::default() };
    let table = Next::Table(TableId(4));
    assert_eq!(made(vec![goto(4, 14)], NEW), next(vec![base(14)], table));
    assert_eq!(made(vec![goto(4, 0)], OLD), next(vec![], table));
    // Dialect 1.4.0.015 has signed offsets.
    assert_eq!(made(vec![goto(4, 0xfff2)], NEW), next(vec![base(-14)], table));
    assert_eq!(made(vec![goto(4, (-1_536i16).cast_unsigned())], NEW), next(vec![base(-1_536)], table));
    let index = PofOperand::Number(70_000);
    let entry = Next::Direct { table: TableId(25), index: 70_000 };
    assert_eq!(made(vec![direct(25, index)], NEW), next(vec![base(2)], entry));
    let back = GotoDirectTable { table: TableId(25), packet_offset_bytes: 0xffff, index };
    let back = PofInstruction::GotoDirectTable(back);
    assert_eq!(made(vec![back.clone()], NEW), next(vec![base(-1)], entry));
    assert_eq!(refused(vec![back], OLD).code, error::INSTRUCTION_BAD_OFFSET);
    // What follows is unreachable, so it is not even checked.
    let after = vec![goto(24, 0), apply(vec![output(0)]), goto(1, 0), meter(1)];
    assert_eq!(made(after, NEW), next(vec![], Next::Table(TableId(24))));
}

#[test]
fn a_drop_ends_the_entry() {
    let drop = || PofAction::Drop(DropAction { reason: 3 });
    let rest = vec![apply(vec![output(1), drop(), output(2)]), goto(1, 0), meter(1)];
    assert_eq!(made(rest, NEW), Instructions::apply(vec![Action::output(PortNo(1))]));
    assert_eq!(made(vec![apply(vec![drop()]), goto(4, 0)], NEW), Instructions::default());
    assert_eq!(made(vec![], NEW), Instructions::default());
}

#[test]
fn a_meter_limits_the_packet_before_it_is_sent_or_counted() {
    let before = vec![shift(PofDirection::Forward, 1), meter(4), apply(vec![output(1)])];
    assert_eq!(made(before, NEW).meter, Some(MeterId(4)));
    let group = PofAction::Group(GroupAction { group: GroupId(1) });
    let packet_in = PofAction::PacketIn(PacketInAction { reason: 0 });
    let count = |number| PofAction::Counter(CounterAction { counter: PofCounterId(number) });
    assert_eq!(made(vec![apply(vec![count(0)]), meter(4)], NEW).meter, Some(MeterId(4)));
    // A COUNTER before the METER would count only what the METER passes.
    for action in [output(1), group, packet_in, count(1)] {
        let refusal = refused(vec![apply(vec![action]), meter(4)], NEW);
        assert_eq!(refusal.code, error::INSTRUCTION_UNSUPPORTED);
        assert!(refusal.problem.contains("place METER first"), "{refusal}");
    }
    assert!(refused(vec![meter(4), meter(4)], NEW).problem.contains("at most one METER"));
}

#[test]
fn the_packet_ins_of_an_entry_have_the_reason_of_their_action() {
    use pof::message::packet::PofPacketInReason as Reason;
    let packet_in = |reason| PofAction::PacketIn(PacketInAction { reason });
    for (actions, expected) in [
        (vec![], Reason::Action),
        (vec![packet_in(0)], Reason::NoMatch),
        (vec![packet_in(1)], Reason::Action),
        (vec![packet_in(2), output(1), packet_in(2)], Reason::InvalidTtl),
        (vec![packet_in(0), PofAction::Drop(DropAction { reason: 0 }), packet_in(9)], Reason::NoMatch),
    ] {
        assert_eq!(translated(vec![apply(actions)], NEW).unwrap().packet_in_reason, expected);
    }
    for (actions, text) in [
        (vec![packet_in(3)], "PACKET_IN has reason 3"),
        (vec![packet_in(u32::MAX)], "PACKET_IN has reason 4294967295"),
        (vec![packet_in(1), packet_in(0)], "different reasons"),
    ] {
        let refusal = refused(vec![apply(actions)], NEW);
        assert_eq!(refusal.code, error::ACTION_BAD_ARGUMENT);
        assert!(refusal.problem.contains(text), "{refusal}");
    }
}

#[test]
fn the_action_counter_names_a_group_of_its_own() {
    let counter = |number| PofAction::Counter(CounterAction { counter: PofCounterId(number) });
    let made = translated(vec![apply(vec![counter(3), counter(0), counter(1)])], NEW).unwrap();
    assert_eq!(made.counters, [PofCounterId(3), PofCounterId(1)]);
    let group = |number: u32| Action::Group(GroupId(0xff00_0000 + number));
    assert_eq!(made.flow.instructions.apply, [group(3), group(1)]);
    let most = counter_group(PofCounterId(ACTION_COUNTER_MAX)).unwrap();
    assert_eq!(most, flow::validate::GROUP_MAX);
    let refusal = refused(vec![apply(vec![counter(ACTION_COUNTER_MAX + 1)])], NEW);
    assert_eq!(refusal.code, error::ACTION_BAD_ARGUMENT);
}

/// Checks code and a part of the sentence of each refusal.
fn check(cases: Vec<(PofInstruction, PofDialect, PofErrorCode, &str)>) {
    for (instruction, dialect, code, part) in cases {
        let written = format!("{instruction:?}");
        let refusal = refused(vec![instruction], dialect);
        assert_eq!(refusal.code, code, "{written}: {refusal}");
        assert!(refusal.problem.contains(part), "{written}: {refusal}");
    }
}

#[test]
fn instructions_are_refused_by_name() {
    let (bad, unsupported) = (error::INSTRUCTION_BAD_OFFSET, error::INSTRUCTION_UNSUPPORTED);
    let operand = PofOperand::Field(field(0, 8));
    let write = |offset_bits, length_bits| {
        PofInstruction::WriteMetadata(WriteMetadata { offset_bits, length_bits, value: 0 })
    };
    let copy = |metadata_offset_bits, packet_offset_bits, length_bits| {
        let copy = WriteMetadataFromPacket { metadata_offset_bits, packet_offset_bits, length_bits };
        PofInstruction::WriteMetadataFromPacket(copy)
    };
    let moved = PofInstruction::MovePacketOffset(MovePacketOffset { bytes: operand, ..Default::default() });
    let zero = PofOperand::Number(0);
    check(vec![
        (goto(3, 0), NEW, error::INSTRUCTION_BAD_TABLE_ID, "must be higher"),
        (goto(0, 0), NEW, error::INSTRUCTION_BAD_TABLE_ID, "must be higher"),
        (goto(45, 0), NEW, error::INSTRUCTION_TABLE_UNEXIST, "tables 0 to 44"),
        (goto(25, 0), NEW, error::INSTRUCTION_BAD_TABLE_ID, "use GOTO_DIRECT_TABLE"),
        (direct(24, zero), NEW, error::INSTRUCTION_BAD_TABLE_ID, "use GOTO_TABLE"),
        (direct(45, zero), NEW, error::INSTRUCTION_TABLE_UNEXIST, "does not exist"),
        (direct(25, operand), NEW, unsupported, "index in a field"),
        (goto(4, 1537), NEW, bad, "1536"),
        (goto(4, 40_000), NEW, bad, "move_base(-25536)"),
        (goto(4, 0xfff2), OLD, bad, "moves by 65522 bytes"),
        (shift(PofDirection::Forward, 1_537), NEW, bad, "1536"),
        (shift(PofDirection::Backward, u32::MAX), NEW, bad, "1536"),
        (moved, NEW, unsupported, "in a field"),
        (write(0, 16), NEW, bad, "do not exist"),
        (write(16, 8), NEW, bad, "read-only"),
        (write(153, 8), NEW, bad, "do not exist"),
        (write(32, 0), NEW, bad, "impossible"),
        (write(32, 33), OLD, bad, "1 to 32"),
        (write(32, 129), NEW, bad, "1 to 128"),
        (copy(32, 0, 129), NEW, bad, "impossible"),
        (copy(16, 0, 8), NEW, bad, "cannot write"),
        (copy(160, 0, 8), NEW, bad, "do not exist"),
        (copy(32, 12_288, 8), NEW, bad, "impossible"),
        (PofInstruction::ConditionalJump(ConditionalJump::default()), NEW, unsupported, "CONDITIONAL_JMP"),
        (calculate(PofCalculation::Add, field(0, 8), operand), NEW, unsupported, "operand in a field"),
        (calculate(PofCalculation::Xor, field(0, 8), zero), NEW, unsupported, "(xor) is not supported"),
        (calculate(PofCalculation::Nor, field(0, 8), zero), NEW, unsupported, "(nor) is not supported"),
        (calculate(PofCalculation::ShiftLeft, field(0, 8), zero), NEW, unsupported, "(left shift)"),
        (calculate(PofCalculation::ShiftRight, field(0, 8), zero), NEW, unsupported, "(right shift)"),
        (calculate(PofCalculation::And, field(0, 33), zero), NEW, unsupported, "the maximum is 32"),
        (calculate(PofCalculation::Add, meta(16, 8), zero), NEW, unsupported, "cannot write"),
        (calculate(PofCalculation::Or, meta(16, 8), PofOperand::Number(1)), NEW, unsupported, "read-only"),
    ]);
}

#[test]
fn actions_are_refused_by_name() {
    let bad = error::ACTION_BAD_ARGUMENT;
    let operand = PofOperand::Field(field(0, 8));
    let number = PofOperand::Number;
    let out = OutputAction { port: number(1), ..OutputAction::default() };
    let delete =
        |offset_bits, length_bits| PofAction::DeleteField(DeleteFieldAction { offset_bits, length_bits });
    let add = |offset_bits, length_bits| {
        PofAction::AddField(AddFieldAction { id: 1, offset_bits, length_bits, value: 0 })
    };
    let set = |field| PofAction::SetField(PofMatch { field, value: 0, mask: 0 });
    let modify = |field| PofAction::ModifyField(ModifyFieldAction { field, increment: 1 });
    let from = |field, metadata_offset_bits| {
        PofAction::SetFieldFromMetadata(SetFieldFromMetadataAction { field, metadata_offset_bits })
    };
    let sum = ChecksumAction { checksum_length_bits: 16, sum_length_bits: 16, ..ChecksumAction::default() };
    let group = PofAction::Group(GroupAction { group: GroupId(0xff00_0000) });
    let cases = vec![
        (PofAction::Output(OutputAction { metadata_length_bits: 8, ..out }), NEW, bad, "do not exist"),
        (PofAction::Output(OutputAction { packet_offset_bytes: 1_537, ..out }), NEW, bad, "1536 bytes"),
        (PofAction::Output(OutputAction { port: operand, ..out }), NEW, bad, "name the port"),
        (output(0x0002_0001), NEW, error::ACTION_BAD_OUT_PORT, "slot 2 does not exist"),
        (set(field(0, 0)), NEW, bad, "impossible"),
        (set(meta(16, 8)), NEW, bad, "read-only"),
        (set(meta(0, 8)), NEW, bad, "do not exist"),
        (modify(field(0, 33)), NEW, bad, "1 to 32"),
        (from(field(0, 16), 150), NEW, bad, "do not exist"),
        (from(meta(16, 8), 32), NEW, bad, "cannot write"),
        (add(4, 8), NEW, bad, "whole bytes"),
        (add(0, 12), NEW, bad, "whole bytes"),
        (add(0, 0), NEW, bad, "1 to 128"),
        (add(0, 136), NEW, bad, "1 to 128"),
        (add(0, 72), OLD, bad, "1 to 64"),
        (add(12_280, 16), NEW, bad, "12288"),
        (delete(0, number(0)), NEW, bad, "whole bytes"),
        (delete(4, number(8)), NEW, bad, "whole bytes"),
        (delete(0, number(65_536)), NEW, bad, "65536 bits"),
        (delete(0, operand), NEW, bad, "length in a field"),
        (PofAction::Checksum(ChecksumAction { checksum_length_bits: 24, ..sum }), NEW, bad, "8, 16 or 32"),
        (
            PofAction::Checksum(ChecksumAction { sum_location: PofLocation::Metadata, ..sum }),
            NEW,
            bad,
            "of metadata",
        ),
        (
            PofAction::Checksum(ChecksumAction { checksum_location: PofLocation::Metadata, ..sum }),
            NEW,
            bad,
            "of metadata",
        ),
        (group, NEW, error::ACTION_BAD_OUT_GROUP, "reserved for counters"),
    ];
    check(cases.into_iter().map(|(action, d, code, part)| (apply(vec![action]), d, code, part)).collect());
}

/// An OUTPUT of the packet from `cut` on, after `length` bits of the metadata from `offset` on.
fn part(port: u32, cut: u16, (offset, length): (u16, u16)) -> PofAction {
    PofAction::Output(OutputAction {
        port: PofOperand::Number(port),
        packet_offset_bytes: cut,
        metadata_offset_bits: offset,
        metadata_length_bits: length,
    })
}

/// The metadata is inserted before the other bytes are removed, because a removal pads short frames.
#[test]
fn an_output_of_a_part_inserts_metadata_and_removes_bytes() {
    let out = |port| Action::output(PortNo(port));
    let cut = |origin, bytes| Action::from(Edit::CutFront { origin, bytes });
    let insert = |at: u16, meta_bits, bits| -> [Action; 2] {
        let (from, to) = (ext(meta_bits, bits), moving(8 * at, bits));
        [Edit::AddField { range: range(8 * at, bits), value: 0 }.into(), Edit::CopyField { from, to }.into()]
    };
    // Public switches of the dialects count from different positions.
    for (dialect, origin) in [(OLD, CutOrigin::Packet), (NEW, CutOrigin::Base)] {
        let part_with = |bytes: u16, meta_bits, bits| {
            let [zeros, copy] = insert(bytes, meta_bits, bits);
            match (dialect, bytes) {
                (PofDialect::V1_2, 0) => vec![cut(origin, 0), zeros, copy, out(2)],
                (PofDialect::V1_2, _) => {
                    vec![cut(origin, 0), zeros, copy, cut(CutOrigin::Base, bytes), out(2)]
                }
                (PofDialect::V1_4, _) => vec![zeros, copy, cut(CutOrigin::Base, bytes), out(2)],
            }
        };
        for (actions, expected) in [
            (vec![part(2, 14, (0, 0))], vec![cut(origin, 14), out(2)]),
            (vec![part(2, 1_536, (0, 0))], vec![cut(origin, 1_536), out(2)]),
            (vec![part(2, 0, (32, 128))], part_with(0, 64, 128)),
            (vec![part(2, 1_520, (32, 128))], part_with(1_520, 64, 128)),
            (vec![part(2, 1, (16, 8))], part_with(1, 24, 8)),
            // Whole bytes of the metadata are sent.
            (vec![part(2, 0, (36, 9))], part_with(0, 68, 16)),
            // An offset without a length has no effect.
            (vec![part(2, 0, (99, 0)), output(3)], vec![out(2), out(3)]),
            // The whole packet may leave before, and the same part several times.
            (
                vec![
                    output(1),
                    part(2, 14, (0, 0)),
                    part(3, 14, (7, 0)),
                    PofAction::Drop(DropAction::default()),
                ],
                vec![out(1), cut(origin, 14), out(2), out(3)],
            ),
        ] {
            // The base may have any distance from the first byte.
            for table in [0, 1] {
                let found = translated_in(table, vec![apply(actions.clone())], dialect).unwrap();
                assert_eq!(found.flow.instructions.apply, expected, "{actions:?}");
            }
            assert_eq!(super::actions(&actions, dialect), Ok((expected.clone(), vec![])));
        }
    }
    let moved = vec![shift(PofDirection::Forward, 4), apply(vec![part(2, 14, (0, 0))])];
    let expected = [Edit::MoveBase(4).into(), cut(CutOrigin::Base, 14), out(2)];
    assert_eq!(translated_in(0, moved, NEW).unwrap().flow.instructions.apply, expected);
}

#[test]
fn outputs_of_a_part_are_refused_where_the_flow_model_cannot_express_them() {
    let (bad, order) = (error::ACTION_BAD_ARGUMENT, error::ACTION_UNSUPPORTED_ORDER);
    let cut = || part(2, 14, (0, 0));
    let count = PofAction::Counter(CounterAction { counter: PofCounterId(1) });
    for (table, instructions, code, text) in [
        (0, vec![apply(vec![part(2, 1_537, (0, 0))])], bad, "maximum is 1536 bytes"),
        (0, vec![apply(vec![part(2, 0xffff, (0, 0))])], bad, "maximum is 1536 bytes"),
        (0, vec![apply(vec![part(2, 1_521, (32, 128))])], bad, "at most 1536 bytes together"),
        (0, vec![apply(vec![part(2, 0xffff, (32, 8))])], bad, "at most 1536 bytes together"),
        (0, vec![apply(vec![part(2, 0, (0, 16))])], bad, "do not exist"),
        (0, vec![apply(vec![part(2, 0, (153, 1))])], bad, "do not exist"),
        (0, vec![apply(vec![part(2, 0, (32, 0xffff))])], bad, "do not exist"),
        (0, vec![apply(vec![cut(), output(3)])], order, "same offsets"),
        (0, vec![apply(vec![cut(), part(3, 15, (0, 0))])], order, "same offsets"),
        (0, vec![apply(vec![cut(), count])], order, "place the other actions first"),
        (0, vec![apply(vec![cut()]), apply(vec![output(3)])], order, "same offsets"),
        (0, vec![apply(vec![cut()]), goto(1, 0)], order, "place the other actions first"),
        (0, vec![apply(vec![cut()]), shift(PofDirection::Forward, 1)], order, "place the other actions"),
    ] {
        let written = format!("{instructions:?}");
        let refusal = translated_in(table, instructions, NEW).unwrap_err();
        assert_eq!(refusal.code, code, "{written}: {refusal}");
        assert!(refusal.problem.contains(text), "{written}: {refusal}");
    }
}

#[test]
fn conditions_are_those_of_the_table() {
    let fields = [field(96, 16), meta(16, 8)];
    let key = TableKey { table: TableId(3), kind: PofTableType::Mask, fields: &fields };
    let matched = |matches: &[PofMatch]| {
        let m = PofFlowMod { matches: matches.to_vec(), priority: 9, ..PofFlowMod::default() };
        entry(&m, key, &layout(), NEW).map(|made| (made.flow.priority, made.flow.matching))
    };
    let port = PofMatch { field: meta(16, 8), value: 2 << 120, mask: 0xff << 120 };
    // The number of a field is only a name, and bits behind its end have no effect.
    let name = PofField { id: 77, ..field(96, 16) };
    let kind = PofMatch { field: name, value: 0x0800 << 112 | 5, mask: 0xff00 << 112 | 1 };
    let condition = |slice, value, mask| FieldMatch { field: Field::Slice(slice), value, mask };
    let expected =
        Match::new([condition(moving(96, 16), 0x0800, 0xff00), condition(ext(24, 8), 2, 0xff)]).unwrap();
    assert_eq!(matched(&[kind, port]), Ok((9, expected)));
    // A field without mask bits is no condition.
    let any = |m: PofMatch| PofMatch { value: 0, mask: 0, ..m };
    assert_eq!(matched(&[any(kind), any(port)]), Ok((9, Match::any())));
    let longer = PofMatch { field: field(96, 17), ..kind };
    let moved = PofMatch { field: field(95, 16), ..kind };
    let in_metadata = PofMatch { field: meta(96, 16), ..kind };
    for (matches, code, part) in [
        (vec![kind], error::MATCH_BAD_FIELD, "has 1 match fields, but TABLE_MOD gave table 3 2"),
        (vec![port, kind], error::MATCH_BAD_FIELD, "match field 0 is metadata bits 16"),
        (vec![longer, port], error::MATCH_BAD_FIELD, "length 17, but TABLE_MOD"),
        (vec![moved, port], error::MATCH_BAD_FIELD, "packet bits 95"),
        (vec![in_metadata, port], error::MATCH_BAD_FIELD, "metadata bits 96"),
        (
            vec![PofMatch { value: 0x0801 << 112, ..kind }, port],
            error::MATCH_BAD_WILDCARDS,
            "value 0x801 has bits outside its mask 0xff00",
        ),
    ] {
        let refusal = matched(&matches).unwrap_err();
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(refusal.problem.contains(part), "{refusal}");
    }
}

#[test]
fn entries_of_linear_tables_are_found_by_their_index() {
    let key = TableKey { table: TableId(25), kind: PofTableType::Linear, fields: &[] };
    let m = PofFlowMod { index: 70_000, priority: 5, ..PofFlowMod::default() };
    let made = entry(&m, key, &layout(), NEW).unwrap().flow;
    assert_eq!((made.priority, made.matching), (0, Match::at_index(70_000)));
    let matches = vec![PofMatch::default()];
    let refusal = entry(&PofFlowMod { matches, ..m }, key, &layout(), NEW).unwrap_err();
    assert_eq!(refusal.code, error::MATCH_BAD_FIELD);
}

/// Public switches of dialect 1.4.0.015 compare prefixes, and those of dialect 1.2 priorities.
#[test]
fn the_longest_prefix_or_the_priority_decides_in_prefix_tables() {
    let fields = [field(96, 32), meta(32, 8)];
    let prefix = |bits: u32| u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    for (kind, dialect, expected) in [
        (PofTableType::LongestPrefix, NEW, [0, 8, 16, 32, 40]),
        (PofTableType::LongestPrefix, OLD, [9; 5]),
        (PofTableType::Mask, NEW, [9; 5]),
        (PofTableType::Exact, NEW, [9; 5]),
    ] {
        let key = TableKey { table: TableId(11), kind, fields: &fields };
        for ((first, second), expected) in
            [(0, 0), (8, 0), (8, 8), (32, 0), (32, 8)].into_iter().zip(expected)
        {
            // Bits behind the end of a field do not count.
            let behind = u128::from(u8::MAX);
            let first = PofMatch { field: fields[0], value: 0, mask: prefix(first) | behind };
            let second = PofMatch { field: fields[1], value: 0, mask: prefix(second) | behind };
            let m = PofFlowMod { priority: 9, matches: vec![first, second], ..PofFlowMod::default() };
            assert_eq!(
                entry(&m, key, &layout(), dialect).unwrap().flow.priority,
                expected,
                "{kind:?} {dialect}"
            );
        }
    }
}

#[test]
fn an_entry_keeps_its_timeouts_cookie_and_mark() {
    for (flag, mark) in [
        (LowLatencyFlag::Unstated, None),
        (LowLatencyFlag::LowLatency, Some(true)),
        (LowLatencyFlag::Normal, Some(false)),
    ] {
        let m = PofFlowMod {
            low_latency: flag,
            idle_timeout_s: 7,
            hard_timeout_s: 8,
            cookie: 9,
            cookie_mask: 10,
            ..PofFlowMod::default()
        };
        let key = TableKey { table: TableId(11), kind: PofTableType::LongestPrefix, fields: &[] };
        let made = entry(&m, key, &layout(), NEW).unwrap().flow;
        assert_eq!(made.low_latency, mark);
        assert_eq!((made.idle_timeout_s, made.hard_timeout_s, made.cookie), (7, 8, 9));
        assert_eq!((made.table, made.cookie_mask), (Some(TableId(11)), 0));
    }
}
