// SPDX-License-Identifier: Apache-2.0
//! OUTPUT. It may send a part of the packet, with bits of the metadata before it.
//!
//! Public switches cut the sent copy only. Edits change the packet itself, so such an OUTPUT must be the last
//! action of the entry. The switches of dialect 1.2 count the packet offset from the first byte of the
//! packet, and those of dialect 1.4.0.015 from the base.

use super::field::{metadata, packet};
use super::list::ActionList;
use crate::refusal::PofRefusal;
use crate::slot;
use flow::edit::CUT_BYTES_MAX;
use flow::{Action, BitRange, CutOrigin, Edit, PortNo, port_no};
use pof::action::OutputAction;
use pof::error;
use pof::value::PofOperand;
use pof::{PofDialect, PofErrorCode};

const BAD: PofErrorCode = error::ACTION_BAD_ARGUMENT;

/// What an OUTPUT sends if it is not the whole packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPart {
    /// Number of bytes at the start of the packet that are not sent.
    cut_bytes: u16,
    /// Bits of POF's metadata that are sent before the packet, or `None` if there are none.
    metadata: Option<BitRange>,
}

impl SentPart {
    /// Returns `None` if the OUTPUT sends the whole packet.
    fn of(output: &OutputAction) -> Option<Self> {
        let OutputAction { metadata_offset_bits, metadata_length_bits, packet_offset_bytes, .. } = *output;
        // Public switches send whole bytes of the metadata.
        let length_bits = metadata_length_bits.checked_next_multiple_of(8).unwrap_or(metadata_length_bits);
        let metadata = BitRange { offset_bits: metadata_offset_bits, length_bits };
        let metadata = Some(metadata).filter(|range| range.length_bits > 0);
        let cut_bytes = packet_offset_bytes;
        (cut_bytes > 0 || metadata.is_some()).then_some(Self { cut_bytes, metadata })
    }
}

/// Adds an OUTPUT to a list.
pub fn add(output: &OutputAction, list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    let port = output_port(output, dialect)?;
    let part = SentPart::of(output);
    if list.part.is_none() {
        if let Some(part) = part {
            cut(part, list, dialect)?;
        }
        list.part = part;
    } else if list.part != part {
        return Err(after_part());
    }
    list.sends = true;
    list.actions.push(Action::output(port));
    Ok(())
}

/// Returns the refusal of an action or instruction that follows an OUTPUT of a part of the packet.
pub fn after_part() -> PofRefusal {
    let problem = "only DROP, or OUTPUT with the same offsets, can follow an OUTPUT with a packet offset or \
                   metadata, because the switch does not keep the whole packet; place the other actions first";
    PofRefusal::new(error::ACTION_UNSUPPORTED_ORDER, problem)
}

/// Inserts the metadata before the bytes that are sent, and removes those that are not. A removal pads frames
/// to their minimum length, so it comes last.
fn cut(part: SentPart, list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    let (bytes, old) = (part.cut_bytes, dialect == PofDialect::V1_2);
    let Some(from) = part.metadata else {
        let origin = if old { CutOrigin::Packet } else { CutOrigin::Base };
        return list.edit(Edit::CutFront { origin, bytes }, BAD);
    };
    if old {
        // Moves the base to the first byte, because an insertion counts from the base.
        list.edit(Edit::CutFront { origin: CutOrigin::Packet, bytes: 0 }, BAD)?;
    }
    insert(from, bytes, list)?;
    if old && bytes == 0 {
        return Ok(());
    }
    list.edit(Edit::CutFront { origin: CutOrigin::Base, bytes }, BAD)
}

/// Inserts bits of the metadata at a distance from the base.
fn insert(from: BitRange, at_bytes: u16, list: &mut ActionList) -> Result<(), PofRefusal> {
    let wrong = |problem: String| PofRefusal::new(BAD, problem);
    let length_bits = from.length_bits;
    let from = metadata(from.offset_bits, length_bits).map_err(wrong)?;
    let end_bytes = at_bytes.saturating_add(length_bits / 8);
    if end_bytes > CUT_BYTES_MAX {
        return Err(wrong(format!(
            "OUTPUT with packet offset {at_bytes} and {length_bits} bits of metadata; they may have at most \
             {CUT_BYTES_MAX} bytes together"
        )));
    }
    let range = BitRange { offset_bits: 8 * at_bytes, length_bits };
    let to = packet(range.offset_bits, length_bits).map_err(wrong)?;
    list.edit(Edit::AddField { range, value: 0 }, BAD)?;
    list.edit(Edit::CopyField { from, to }, BAD)
}

fn output_port(output: &OutputAction, dialect: PofDialect) -> Result<PortNo, PofRefusal> {
    match output.port {
        PofOperand::Number(number) => port(number, dialect),
        PofOperand::Field(_) => {
            let problem = "OUTPUT to a port in a field is not supported; name the port";
            Err(PofRefusal::new(BAD, problem))
        }
    }
}

/// Returns the port of a port number on the wire. In dialect 1.4.0.015, its high 16 bits are the slot, unless
/// the number is one of OpenFlow's reserved ports.
pub fn port(number: u32, dialect: PofDialect) -> Result<PortNo, PofRefusal> {
    if dialect == PofDialect::V1_2 || number > port_no::MAX.0 {
        return Ok(PortNo(number));
    }
    let wrong = |refusal: PofRefusal| PofRefusal { code: error::ACTION_BAD_OUT_PORT, ..refusal };
    slot::check((number >> 16) as u16).map_err(wrong)?;
    Ok(PortNo(number & 0xffff))
}
