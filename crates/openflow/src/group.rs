// SPDX-License-Identifier: Apache-2.0
//! GROUP_MOD (section 7.3.4.2) and the buckets of groups.

use crate::action;
use crate::bytes::{Put, Reader, unless};
use crate::error::{self, DecodeError, ErrorCode};
use crate::flow_mod::ANY;
use flow::group::{Bucket, Group, GroupType};
use flow::{GroupId, PortNo};

/// Number that stands for all groups in a delete (OFPG_ALL).
pub const ALL: GroupId = GroupId(0xffff_fffc);
/// Length of a bucket without its actions, in bytes.
const BUCKET_BYTES: usize = 16;

/// Command for a group (OFPGC_*) or a meter (OFPMC_*). Both use the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupChange {
    /// Add the group or meter.
    Add,
    /// Modify the group or meter.
    Modify,
    /// Delete the group or meter. A missing group or meter is not an error.
    Delete,
}

impl GroupChange {
    pub(crate) fn decode(number: u16, code: ErrorCode) -> Result<Self, DecodeError> {
        match number {
            0 => Ok(Self::Add),
            1 => Ok(Self::Modify),
            2 => Ok(Self::Delete),
            _ => code.says(format!("command {number}; commands are 0 to 2")),
        }
    }
}

/// Change of a group. The caller must check the buckets' actions with `flow::validate::validate_action_set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// Command of the request.
    pub command: GroupChange,
    /// The group. A delete uses only its number, which may be [`ALL`].
    pub group: Group,
}

impl GroupMod {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let command = GroupChange::decode(r.u16()?, error::GROUP_BAD_COMMAND)?;
        let kind = decode_kind(r.u8()?)?;
        r.skip(1)?;
        let id = GroupId(r.u32()?);
        if id > flow::validate::GROUP_MAX && !(id == ALL && command == GroupChange::Delete) {
            return error::GROUP_INVALID
                .says(format!("group {id:#x} cannot exist; groups are numbered 0 to 0xffffff00"));
        }
        Ok(Self { command, group: Group { id, kind, buckets: decode_buckets(r)? } })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.command as u16);
        out.put(&[kind_number(self.group.kind), 0]);
        out.put_u32(self.group.id.0);
        encode_buckets(&self.group.buckets, out);
    }
}

pub(crate) fn decode_kind(number: u8) -> Result<GroupType, DecodeError> {
    match number {
        0 => Ok(GroupType::All),
        1 => Ok(GroupType::Select),
        2 => Ok(GroupType::Indirect),
        3 => Ok(GroupType::FastFailover),
        _ => error::GROUP_BAD_TYPE.says(format!("group type {number}; types are 0 to 3")),
    }
}

pub(crate) fn kind_number(kind: GroupType) -> u8 {
    match kind {
        GroupType::All => 0,
        GroupType::Select => 1,
        GroupType::Indirect => 2,
        GroupType::FastFailover => 3,
    }
}

/// Decodes the remaining bytes of the reader as buckets.
pub(crate) fn decode_buckets(r: &mut Reader<'_>) -> Result<Vec<Bucket>, DecodeError> {
    let mut buckets = Vec::new();
    while !r.is_empty() {
        let length = match r.peek_u16(0) {
            Ok(length) if usize::from(length) >= BUCKET_BYTES => usize::from(length),
            Ok(length) => {
                return error::GROUP_BAD_BUCKET
                    .says(format!("a bucket has {length} bytes; the minimum is 16"));
            }
            Err(_) => return error::GROUP_BAD_BUCKET.says("a bucket is cut short"),
        };
        let mut b = r.part(length, "a bucket", error::GROUP_BAD_BUCKET)?;
        b.skip(2)?;
        let weight = b.u16()?;
        let (watch_port, watch_group) =
            (unless(ANY, b.u32()?).map(PortNo), unless(ANY, b.u32()?).map(GroupId));
        b.skip(4)?;
        buckets.push(Bucket { weight, watch_port, watch_group, actions: action::decode_list(&mut b)? });
    }
    Ok(buckets)
}

pub(crate) fn encode_buckets(buckets: &[Bucket], out: &mut Vec<u8>) {
    for bucket in buckets {
        let start = out.len();
        out.zeros(2);
        out.put_u16(bucket.weight);
        out.put_u32(bucket.watch_port.map_or(ANY, u32::from));
        out.put_u32(bucket.watch_group.map_or(ANY, u32::from));
        out.zeros(4);
        action::encode_list(&bucket.actions, out);
        out.patch_length(start, start);
    }
}
