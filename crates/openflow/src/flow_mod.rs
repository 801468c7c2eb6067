// SPDX-License-Identifier: Apache-2.0
//! FLOW_MOD (section 7.3.4.1) and FLOW_REMOVED (7.4.2).

use crate::bytes::{Put, Reader, duration, put_duration, unless};
use crate::error::{self, DecodeError};
use crate::features::{ALL_TABLES, table_or_all};
use crate::header::{Header, VERSION, kind};
use crate::instruction;
use crate::matching::{self, MatchDecoder};
use crate::packet::NO_BUFFER;
use flow::{EntryFlags, FlowModCommand, GroupId, Instructions, Match, Nanos, PortNo, TableId};

/// Number that stands for any port or any group (OFPP_ANY, OFPG_ANY).
pub(crate) const ANY: u32 = 0xffff_ffff;

const COMMANDS: [FlowModCommand; 5] = [
    FlowModCommand::Add,
    FlowModCommand::Modify,
    FlowModCommand::ModifyStrict,
    FlowModCommand::Delete,
    FlowModCommand::DeleteStrict,
];

/// Flow-mod message. Decoding does not validate it; the caller must call `flow::validate::validate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowModMessage {
    /// Change of the tables.
    pub flow: flow::FlowMod,
    /// Buffered packet that is processed after the change, if there is one.
    pub buffer_id: Option<u32>,
}

/// Flow-mod whose instructions are not decoded, for callers that decode equal instructions only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowModParts<'a> {
    /// Change of the tables, without instructions and low-latency mark.
    pub flow: flow::FlowMod,
    /// Encoded instructions, for [`decode_instructions`].
    pub instructions: &'a [u8],
}

/// Decoder of flow-mods without instructions. It is faster than [`crate::decode`] if most of them have
/// similar matches.
#[derive(Debug, Default)]
pub struct FlowModDecoder {
    matches: MatchDecoder,
}

impl FlowModDecoder {
    /// Decodes a whole FLOW_MOD message except its instructions.
    ///
    /// # Errors
    /// Returns an error if the message is not a FLOW_MOD, or if another part than the instructions is
    /// malformed.
    pub fn decode<'a>(&mut self, message: &'a [u8]) -> Result<FlowModParts<'a>, DecodeError> {
        let (header, body) = Header::split(message)?;
        if (header.version, header.kind) != (VERSION, kind::FLOW_MOD) {
            return error::BAD_TYPE.says(format!("message type {} is not FLOW_MOD", header.kind));
        }
        let mut r = Reader::new(body, "the message", error::BAD_LEN);
        let decode_match = |r: &mut Reader<'_>| self.matches.decode(r);
        let FlowModMessage { flow, .. } = FlowModMessage::without_instructions(&mut r, decode_match)?;
        Ok(FlowModParts { flow, instructions: r.rest() })
    }
}

/// Decodes the instructions of [`FlowModParts`]. Returns them, and the low-latency mark if there is one.
///
/// # Errors
/// Returns an error if an instruction is malformed or unknown.
pub fn decode_instructions(bytes: &[u8]) -> Result<(Instructions, Option<bool>), DecodeError> {
    let decoded = instruction::decode_list(&mut Reader::new(bytes, "the message", error::BAD_LEN))?;
    Ok((decoded.instructions, decoded.low_latency))
}

impl FlowModMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut made = Self::without_instructions(r, matching::decode)?;
        let instruction::Decoded { instructions, low_latency } = instruction::decode_list(r)?;
        (made.flow.instructions, made.flow.low_latency) = (instructions, low_latency);
        Ok(made)
    }

    fn without_instructions<'a>(
        r: &mut Reader<'a>,
        decode_match: impl FnOnce(&mut Reader<'a>) -> Result<Match, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let (cookie, cookie_mask, table) = (r.u64()?, r.u64()?, table_or_all(r.u8()?));
        let command = r.u8()?;
        let Some(command) = COMMANDS.get(usize::from(command)).copied() else {
            return error::FLOW_MOD_BAD_COMMAND
                .says(format!("flow-mod command {command}; commands are 0 to 4"));
        };
        let (idle_timeout_s, hard_timeout_s, priority) = (r.u16()?, r.u16()?, r.u16()?);
        let buffer_id = unless(NO_BUFFER, r.u32()?);
        let (out_port, out_group) = (unless(ANY, r.u32()?).map(PortNo), unless(ANY, r.u32()?).map(GroupId));
        let flags = decode_flags(r.u16()?)?;
        r.skip(2)?;
        let flow = flow::FlowMod {
            command,
            table,
            priority,
            matching: decode_match(r)?,
            instructions: Instructions::default(),
            idle_timeout_s,
            hard_timeout_s,
            cookie,
            cookie_mask,
            flags,
            out_port,
            out_group,
            low_latency: None,
        };
        Ok(Self { flow, buffer_id })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let f = &self.flow;
        out.put_u64(f.cookie);
        out.put_u64(f.cookie_mask);
        out.put(&[f.table.unwrap_or(ALL_TABLES).0, f.command as u8]);
        out.put_u16(f.idle_timeout_s);
        out.put_u16(f.hard_timeout_s);
        out.put_u16(f.priority);
        out.put_u32(self.buffer_id.unwrap_or(NO_BUFFER));
        out.put_u32(f.out_port.map_or(ANY, u32::from));
        out.put_u32(f.out_group.map_or(ANY, u32::from));
        out.put_u16(flag_bits(f.flags));
        out.zeros(2);
        matching::encode(&f.matching, out);
        instruction::encode_list(&f.instructions, f.low_latency, out);
    }
}

pub(crate) fn decode_flags(bits: u16) -> Result<EntryFlags, DecodeError> {
    if bits >> 5 != 0 {
        return error::FLOW_MOD_BAD_FLAGS.says(format!("flow-mod flags {bits:#x}; bits 0 to 4 are known"));
    }
    let bit = |n: u16| bits >> n & 1 == 1;
    Ok(EntryFlags {
        send_flow_removed: bit(0),
        check_overlap: bit(1),
        reset_counts: bit(2),
        no_packet_counts: bit(3),
        no_byte_counts: bit(4),
    })
}

pub(crate) fn flag_bits(flags: EntryFlags) -> u16 {
    [
        flags.send_flow_removed,
        flags.check_overlap,
        flags.reset_counts,
        flags.no_packet_counts,
        flags.no_byte_counts,
    ]
    .into_iter()
    .zip(0u16..)
    .map(|(set, n)| u16::from(set) << n)
    .sum()
}

/// Reason why an entry was removed (OFPRR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowRemovedReason {
    /// The idle timeout expired.
    IdleTimeout,
    /// The hard timeout expired.
    HardTimeout,
    /// A request deleted the entry.
    Delete,
    /// The entry's group was deleted.
    GroupDelete,
}

/// Notification that an entry was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemovedMessage {
    /// Cookie of the entry.
    pub cookie: u64,
    /// Priority of the entry.
    pub priority: u16,
    /// Reason for the removal.
    pub reason: FlowRemovedReason,
    /// Table of the entry.
    pub table: TableId,
    /// Lifetime of the entry.
    pub duration_ns: Nanos,
    /// Idle timeout of the entry in seconds.
    pub idle_timeout_s: u16,
    /// Hard timeout of the entry in seconds.
    pub hard_timeout_s: u16,
    /// Number of packets that hit the entry.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
    /// Match of the entry.
    pub matching: Match,
}

impl FlowRemovedMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (cookie, priority) = (r.u64()?, r.u16()?);
        let reason = match r.u8()? {
            0 => FlowRemovedReason::IdleTimeout,
            1 => FlowRemovedReason::HardTimeout,
            2 => FlowRemovedReason::Delete,
            3 => FlowRemovedReason::GroupDelete,
            reason => {
                return error::BAD_TYPE.says(format!("flow-removed reason {reason}; reasons are 0 to 3"));
            }
        };
        Ok(Self {
            cookie,
            priority,
            reason,
            table: TableId(r.u8()?),
            duration_ns: duration(r)?,
            idle_timeout_s: r.u16()?,
            hard_timeout_s: r.u16()?,
            packets: r.u64()?,
            bytes: r.u64()?,
            matching: matching::decode(r)?,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.cookie);
        out.put_u16(self.priority);
        out.put(&[self.reason as u8, self.table.0]);
        put_duration(out, self.duration_ns);
        out.put_u16(self.idle_timeout_s);
        out.put_u16(self.hard_timeout_s);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        matching::encode(&self.matching, out);
    }
}
