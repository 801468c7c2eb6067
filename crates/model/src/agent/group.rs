// SPDX-License-Identifier: Apache-2.0
//! Conversion of groups between OpenFlow messages and the model.

use crate::changes::{Change, GroupCommand};
use crate::queries::GroupStats;
use dataplane::TableCapabilities;
use dataplane::TrafficCount;
use flow::Limits;
use openflow::group::{ALL, GroupChange as Do, GroupMod};
use openflow::multipart::group_stats::{Counts, GroupFeatures, GroupStatsEntry};

/// Group capabilities (OFPGFC_*): weights and liveness of select groups, chaining of groups, and detection of
/// loops.
const CAPABILITIES: u32 = 1 | 2 | 4 | 8;

pub fn change(m: &GroupMod) -> Change {
    let command = match m.command {
        Do::Add => GroupCommand::Add,
        Do::Modify => GroupCommand::Modify,
        Do::Delete if m.group.id == ALL => GroupCommand::DeleteAll,
        Do::Delete => GroupCommand::Delete,
    };
    Change::Group(command, m.group.clone())
}

pub fn features(able: &TableCapabilities) -> GroupFeatures {
    if !able.groups_meters_queues {
        return GroupFeatures { types: 0, capabilities: 0, max_groups: [0; 4], actions: [0; 4] };
    }
    GroupFeatures {
        types: 0b1111,
        capabilities: CAPABILITIES,
        max_groups: [Limits::GROUPS_PER_TYPE as u32; 4],
        actions: [able.actions.iter().map(|number| 1 << number).sum(); 4],
    }
}

pub fn stats(stats: &GroupStats) -> GroupStatsEntry {
    let counts = |count: TrafficCount| Counts { packets: count.packets, bytes: count.bytes };
    GroupStatsEntry {
        group: stats.group.id,
        references: u32::try_from(stats.references).unwrap_or(u32::MAX),
        total: counts(stats.counters.total),
        duration_ns: stats.duration_ns,
        buckets: stats.counters.buckets.iter().copied().map(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_the_numbers_of_the_specification() {
        let features = features(&TableCapabilities::all());
        // The types are all, select, indirect and fast failover. The capabilities are bits 0 to 3: weights,
        // liveness, chaining and detection of loops.
        assert_eq!((features.types, features.capabilities), (0b1111, 0b1111));
        assert_eq!(features.max_groups, [4_096; 4]);
        // The actions are output, TTLs, VLAN and MPLS tags, queue, group, set-field and PBB tags.
        let actions = 1 | 1 << 11 | 1 << 12 | (15..=27).map(|action| 1 << action).sum::<u32>();
        assert_eq!(features.actions, [actions; 4]);
    }
}
