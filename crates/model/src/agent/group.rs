// SPDX-License-Identifier: Apache-2.0
//! Groups in OpenFlow's words.

use super::table_features::ACTIONS;
use super::{Context, Refusal};
use crate::data_plane::DataPlane;
use crate::groups::{self, GroupCommand};
use flow::validate::GROUP_MAX;
use openflow::group::{ALL, Change, GroupMod};
use openflow::multipart::group_stats::{Counts, GroupFeatures, GroupStats};

/// OFPGFC_*: weights of select groups, chains, and their check for loops.
const CAPABILITIES: u32 = 1 | 4 | 8;

pub fn group_mod<D: DataPlane>(context: &mut Context<'_, D>, m: &GroupMod) -> Result<(), Refusal> {
    let command = match m.command {
        Change::Add => GroupCommand::Add,
        Change::Modify => GroupCommand::Modify,
        Change::Delete if m.group.id == ALL => GroupCommand::DeleteAll,
        Change::Delete => GroupCommand::Delete,
    };
    context.model.group_mod(context.now, command, m.group.clone())?;
    Ok(())
}

pub fn features() -> GroupFeatures {
    GroupFeatures {
        types: 0b1111,
        capabilities: CAPABILITIES,
        max_groups: [GROUP_MAX; 4],
        actions: [ACTIONS.iter().map(|number| 1 << number).sum(); 4],
    }
}

pub fn stats(stats: &groups::GroupStats) -> GroupStats {
    let counts = |(packets, bytes): (u64, u64)| Counts { packets, bytes };
    GroupStats {
        group: stats.group.id,
        references: u32::try_from(stats.references).unwrap_or(u32::MAX),
        total: counts(stats.counters.total),
        duration_ns: stats.duration_ns,
        buckets: stats.counters.buckets.iter().copied().map(counts).collect(),
    }
}
