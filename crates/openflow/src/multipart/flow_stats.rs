// SPDX-License-Identifier: Apache-2.0
//! Statistics of flow entries (section 7.3.5.2), sums of these statistics (7.3.5.3), and statistics of tables
//! (7.3.5.4).

use super::kind;
use super::parts::private::Coded;
use crate::bytes::{Put, Reader, duration, put_duration, unless};
use crate::error::{self, DecodeError};
use crate::features::{ALL_TABLES, table_or_all};
use crate::flow_mod::{ANY, decode_flags, flag_bits};
use crate::{instruction, matching};
use flow::{EntryFlags, GroupId, Instructions, Match, Nanos, PortNo, TableId};

/// Filter of the requested entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowQuery {
    /// Table of the entries, or `None` for all tables.
    pub table: Option<TableId>,
    /// Port to which the entries output, or `None` for any port.
    pub out_port: Option<PortNo>,
    /// Group that the entries use, or `None` for all entries.
    pub out_group: Option<GroupId>,
    /// Cookie value that the entries must have, in the bits of `cookie_mask`.
    pub cookie: u64,
    /// Bits of the cookie to compare. 0 accepts any cookie.
    pub cookie_mask: u64,
    /// Match that must cover the entries' matches.
    pub matching: Match,
}

impl FlowQuery {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let table = table_or_all(r.u8()?);
        r.skip(3)?;
        let (out_port, out_group) = (unless(ANY, r.u32()?).map(PortNo), unless(ANY, r.u32()?).map(GroupId));
        r.skip(4)?;
        let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
        Ok(Self { table, out_port, out_group, cookie, cookie_mask, matching: matching::decode(r)? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put(&[self.table.unwrap_or(ALL_TABLES).0, 0, 0, 0]);
        out.put_u32(self.out_port.map_or(ANY, u32::from));
        out.put_u32(self.out_group.map_or(ANY, u32::from));
        out.zeros(4);
        out.put_u64(self.cookie);
        out.put_u64(self.cookie_mask);
        matching::encode(&self.matching, out);
    }
}

/// Statistics of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowStatsEntry {
    /// Table of the entry.
    pub table: TableId,
    /// Time since the entry was added.
    pub duration_ns: Nanos,
    /// Priority of the entry.
    pub priority: u16,
    /// Idle timeout in seconds, or 0 if there is none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds, or 0 if there is none.
    pub hard_timeout_s: u16,
    /// Flags of the entry.
    pub flags: EntryFlags,
    /// Cookie of the entry.
    pub cookie: u64,
    /// Number of packets that hit the entry.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
    /// Match of the entry.
    pub matching: Match,
    /// Instructions of the entry.
    pub instructions: Instructions,
    /// Configured low-latency mark, or `None` if the mark is not sent.
    pub low_latency: Option<bool>,
}

impl Coded for FlowStatsEntry {
    const KIND: u16 = kind::FLOW;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(0)?);
        let mut part = r.part(length, "an entry's statistics", error::BAD_LEN)?;
        let r = &mut part;
        r.skip(2)?;
        let table = r.u8()?;
        r.skip(1)?;
        let (duration_ns, priority) = (duration(r)?, r.u16()?);
        let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
        let flags = decode_flags(r.u16()?)?;
        r.skip(4)?;
        let (cookie, packets, bytes) = (r.u64()?, r.u64()?, r.u64()?);
        let matching = matching::decode(r)?;
        let instruction::Decoded { instructions, low_latency } = instruction::decode_list(r)?;
        Ok(Self {
            table: TableId(table),
            duration_ns,
            priority,
            idle_timeout_s,
            hard_timeout_s,
            flags,
            cookie,
            packets,
            bytes,
            matching,
            instructions,
            low_latency,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.zeros(2);
        out.put(&[self.table.0, 0]);
        put_duration(out, self.duration_ns);
        out.put_u16(self.priority);
        out.put_u16(self.idle_timeout_s);
        out.put_u16(self.hard_timeout_s);
        out.put_u16(flag_bits(self.flags));
        out.zeros(4);
        out.put_u64(self.cookie);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        matching::encode(&self.matching, out);
        instruction::encode_list(&self.instructions, self.low_latency, out);
        out.patch_length(start, start);
    }
}

/// Sums over several entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AggregateStats {
    /// Number of packets that hit the entries.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
    /// Number of entries.
    pub flows: u32,
}

impl AggregateStats {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let sums = Self { packets: r.u64()?, bytes: r.u64()?, flows: r.u32()? };
        r.skip(4)?;
        Ok(sums)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        out.put_u32(self.flows);
        out.zeros(4);
    }
}

/// Statistics of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableStatsEntry {
    /// Table number.
    pub table: TableId,
    /// Number of entries.
    pub active: u32,
    /// Number of packets looked up.
    pub lookups: u64,
    /// Number of packets that hit an entry.
    pub matches: u64,
}

impl Coded for TableStatsEntry {
    const KIND: u16 = kind::TABLE;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let table = r.u8()?;
        r.skip(3)?;
        Ok(Self { table: TableId(table), active: r.u32()?, lookups: r.u64()?, matches: r.u64()? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put(&[self.table.0, 0, 0, 0]);
        out.put_u32(self.active);
        out.put_u64(self.lookups);
        out.put_u64(self.matches);
    }
}
