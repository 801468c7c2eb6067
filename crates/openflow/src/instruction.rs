// SPDX-License-Identifier: Apache-2.0
//! Instructions (section 7.2.4): type 16 bits, length 16 bits, content. Each type may occur once.

use crate::action;
use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::experimenter;
use flow::{Instructions, MeterId, Next, TableId};

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
const WRITE_ACTIONS: u16 = 3;
const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;
const EXPERIMENTER: u16 = 0xffff;

/// Decoded instructions, and the value of Shunt's `low_latency` instruction if there is one.
pub(crate) struct Decoded {
    pub instructions: Instructions,
    pub low_latency: Option<bool>,
}

/// Decodes the remaining bytes of the reader as a list of instructions.
pub(crate) fn decode_list(r: &mut Reader<'_>) -> Result<Decoded, DecodeError> {
    let mut made = Decoded { instructions: Instructions::default(), low_latency: None };
    let mut seen = 0u32;
    while !r.is_empty() {
        let mut header = r.part(4, "an instruction's header", error::INSTRUCTION_BAD_LEN)?;
        let (kind, length) = (header.u16()?, usize::from(header.u16()?));
        if length < 8 || length % 8 != 0 {
            return error::INSTRUCTION_BAD_LEN.says(format!(
                "instruction of type {kind} has length {length}; it must be a multiple of 8, and at least 8"
            ));
        }
        let mut body = r.part(length - 4, "an instruction", error::INSTRUCTION_BAD_LEN)?;
        let place = decode(kind, &mut body, &mut made)?;
        body.end()?;
        if seen & (1 << place) != 0 {
            return error::INSTRUCTION_UNSUPPORTED
                .says(format!("instruction of type {kind} occurs twice; give each type once"));
        }
        seen |= 1 << place;
    }
    Ok(made)
}

/// Decodes one instruction into `made`. Returns its position in the execution order.
fn decode(kind: u16, r: &mut Reader<'_>, made: &mut Decoded) -> Result<u16, DecodeError> {
    let i = &mut made.instructions;
    match kind {
        GOTO_TABLE => {
            i.next = Some(Next::Table(TableId(r.u8()?)));
            r.skip(3)?;
        }
        WRITE_METADATA => {
            r.skip(4)?;
            i.metadata = Some((r.u64()?, r.u64()?));
        }
        WRITE_ACTIONS | APPLY_ACTIONS => {
            r.skip(4)?;
            let list = if kind == WRITE_ACTIONS { &mut i.write } else { &mut i.apply };
            *list = action::decode_list(r)?;
        }
        CLEAR_ACTIONS => {
            r.skip(4)?;
            i.clear = true;
        }
        METER => i.meter = Some(MeterId(r.u32()?)),
        EXPERIMENTER => return experimenter(r, made),
        _ => {
            return error::INSTRUCTION_UNKNOWN
                .says(format!("instruction type {kind} is not known in OpenFlow 1.3"));
        }
    }
    Ok(kind)
}

fn experimenter(r: &mut Reader<'_>, made: &mut Decoded) -> Result<u16, DecodeError> {
    let id = r.u32()?;
    if id != experimenter::EXPERIMENTER {
        return error::INSTRUCTION_BAD_EXPERIMENTER
            .says(format!("instructions of experimenter {id:#x} are not known"));
    }
    match r.u16()? {
        experimenter::instruction::GOTO_DIRECT => {
            let table = r.u8()?;
            r.skip(1)?;
            made.instructions.next = Some(Next::Direct { table: TableId(table), index: r.u32()? });
            Ok(GOTO_TABLE)
        }
        experimenter::instruction::LOW_LATENCY => {
            let value = r.u8()?;
            r.skip(5)?;
            if value > 1 {
                return error::INSTRUCTION_UNSUPPORTED
                    .says(format!("low_latency is {value}; it must be 1, or 0 for a normal entry"));
            }
            made.low_latency = Some(value == 1);
            Ok(0)
        }
        subtype => error::INSTRUCTION_BAD_EXP_TYPE
            .says(format!("instruction {subtype} of experimenter {id:#x} is not known")),
    }
}

/// Writes instructions in their order of execution.
pub(crate) fn encode_list(i: &Instructions, low_latency: Option<bool>, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>, kind: u16, length: u16, number: u32| {
        out.put_u16(kind);
        out.put_u16(length);
        out.put_u32(number);
    };
    let actions = |out: &mut Vec<u8>, kind, list: &[flow::Action]| {
        if !list.is_empty() {
            let start = out.len();
            number(out, kind, 0, 0);
            action::encode_list(list, out);
            out.patch_length(start + 2, start);
        }
    };
    if let Some(meter) = i.meter {
        number(out, METER, 8, meter.0);
    }
    actions(out, APPLY_ACTIONS, &i.apply);
    if i.clear {
        number(out, CLEAR_ACTIONS, 8, 0);
    }
    actions(out, WRITE_ACTIONS, &i.write);
    if let Some((value, mask)) = i.metadata {
        number(out, WRITE_METADATA, 24, 0);
        out.put_u64(value);
        out.put_u64(mask);
    }
    if let Some(low_latency) = low_latency {
        number(out, EXPERIMENTER, 16, experimenter::EXPERIMENTER);
        out.put_u16(experimenter::instruction::LOW_LATENCY);
        out.put_u8(low_latency.into());
        out.zeros(5);
    }
    match i.next {
        None => {}
        Some(Next::Table(table)) => number(out, GOTO_TABLE, 8, u32::from(table.0) << 24),
        Some(Next::Direct { table, index }) => {
            number(out, EXPERIMENTER, 16, experimenter::EXPERIMENTER);
            out.put_u16(experimenter::instruction::GOTO_DIRECT);
            out.put(&[table.0, 0]);
            out.put_u32(index);
        }
    }
}
