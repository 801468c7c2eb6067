// SPDX-License-Identifier: Apache-2.0
//! Statistics of groups (section 7.3.5.9), their descriptions (7.3.5.10), and capabilities (7.3.5.11).

use super::kind;
use super::parts::private::Coded;
use crate::bytes::{Put, Reader, duration, put_duration};
use crate::error::{self, DecodeError};
use crate::group::{decode_buckets, decode_kind, encode_buckets, kind_number};
use flow::group::Group;
use flow::{GroupId, Nanos};

/// Number of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
}

impl Counts {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { packets: r.u64()?, bytes: r.u64()? })
    }

    /// Decodes the remaining bytes of the reader as a list of counters.
    pub(crate) fn decode_list(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let mut list = Vec::new();
        while !r.is_empty() {
            list.push(Self::decode(r)?);
        }
        Ok(list)
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
    }
}

/// Statistics of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupStatsEntry {
    /// Group number.
    pub group: GroupId,
    /// Number of entries and groups that refer to the group.
    pub references: u32,
    /// Packets and bytes that the group processed.
    pub total: Counts,
    /// Time since the group was added.
    pub duration_ns: Nanos,
    /// Packets and bytes that each bucket processed.
    pub buckets: Vec<Counts>,
}

impl Coded for GroupStatsEntry {
    const KIND: u16 = kind::GROUP;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(0)?);
        let mut part = r.part(length, "a group's statistics", error::BAD_LEN)?;
        let r = &mut part;
        r.skip(4)?;
        let (group, references) = (GroupId(r.u32()?), r.u32()?);
        r.skip(4)?;
        Ok(Self {
            group,
            references,
            total: Counts::decode(r)?,
            duration_ns: duration(r)?,
            buckets: Counts::decode_list(r)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.zeros(4);
        out.put_u32(self.group.0);
        out.put_u32(self.references);
        out.zeros(4);
        self.total.encode(out);
        put_duration(out, self.duration_ns);
        self.buckets.iter().for_each(|bucket| bucket.encode(out));
        out.patch_length(start, start);
    }
}

/// A group as an item of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupDescription(pub Group);

impl Coded for GroupDescription {
    const KIND: u16 = kind::GROUP_DESC;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(0)?);
        let mut part = r.part(length, "a group", error::BAD_LEN)?;
        part.skip(2)?;
        let kind = decode_kind(part.u8()?)?;
        part.skip(1)?;
        Ok(Self(Group { id: GroupId(part.u32()?), kind, buckets: decode_buckets(&mut part)? }))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.zeros(2);
        out.put(&[kind_number(self.0.kind), 0]);
        out.put_u32(self.0.id.0);
        encode_buckets(&self.0.buckets, out);
        out.patch_length(start, start);
    }
}

/// Capabilities and limits of groups. Arrays are indexed by type: all, select, indirect, fast failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupFeatures {
    /// Supported types, as a bitmap. Bit `n` stands for type `n`.
    pub types: u32,
    /// Capabilities (OFPGFC_*): 1 for weights, 2 for liveness, 4 for chaining, 8 for detection of loops.
    pub capabilities: u32,
    /// Maximum number of groups per type.
    pub max_groups: [u32; 4],
    /// Supported actions for each type, as bitmaps. Bit `n` stands for action type `n`.
    pub actions: [u32; 4],
}

impl GroupFeatures {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut features = Self { types: r.u32()?, capabilities: r.u32()?, ..Self::default() };
        for number in features.max_groups.iter_mut().chain(&mut features.actions) {
            *number = r.u32()?;
        }
        Ok(features)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.types);
        out.put_u32(self.capabilities);
        self.max_groups.iter().chain(&self.actions).for_each(|number| out.put_u32(*number));
    }
}
