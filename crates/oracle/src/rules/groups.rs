// SPDX-License-Identifier: Apache-2.0
//! Random groups.

use super::{Scope, Style};
use fastrand::Rng;
use flow::group::{Bucket, Group, GroupType};
use flow::{Action, GroupId, QueueId};

impl Style {
    /// Returns a group with this number, which may refer to groups with lower numbers.
    pub fn group(&self, rng: &mut Rng, id: GroupId, scope: Scope<'_>) -> Group {
        let kind = [GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover]
            [rng.usize(0..4)];
        let buckets = match kind {
            GroupType::Indirect => 1,
            _ if rng.u8(0..16) == 0 => 0,
            _ => rng.usize(1..5),
        };
        let buckets = (0..buckets).map(|_| {
            let actions = self.bucket(rng, id, scope);
            self.watched(rng, id, kind, Bucket { actions, ..Bucket::default() })
        });
        Group { id, kind, buckets: buckets.collect() }
    }

    /// Returns a copy of the group with other weights and other watched ports and groups.
    pub fn reweighed(&self, rng: &mut Rng, group: &Group) -> Group {
        let buckets =
            group.buckets.iter().map(|b| self.watched(rng, group.id, group.kind, b.clone())).collect();
        Group { buckets, ..group.clone() }
    }

    /// Returns the bucket with a random weight and, in some cases, with a port or group to watch.
    fn watched(&self, rng: &mut Rng, id: GroupId, kind: GroupType, bucket: Bucket) -> Bucket {
        let watches = kind == GroupType::FastFailover || rng.u8(0..6) == 0;
        Bucket {
            weight: if kind == GroupType::Select { rng.u16(1..5) } else { 0 },
            watch_port: (watches && rng.u8(0..4) > 0).then(|| self.any_port(rng)),
            watch_group: (watches && id > GroupId(1) && rng.u8(0..4) == 0).then(|| GroupId(rng.u32(1..id.0))),
            ..bucket
        }
    }

    /// Returns the actions of a bucket. Most buckets send the packet, some through another queue.
    fn bucket(&self, rng: &mut Rng, id: GroupId, scope: Scope<'_>) -> Vec<Action> {
        let mut actions: Vec<Action> = (0..rng.usize(0..3))
            .map(|_| self.action(rng, scope))
            .filter(|action| !matches!(action, Action::Group(_) | Action::Edit(_)))
            .collect();
        if rng.u8(0..4) == 0 {
            actions.push(Action::SetQueue(QueueId(rng.u32(0..3))));
        }
        if rng.u8(0..8) > 0 {
            actions.push(self.output(rng, scope));
        }
        if id > GroupId(1) && rng.u8(0..4) == 0 {
            actions.push(Action::Group(GroupId(rng.u32(1..id.0))));
        }
        actions
    }
}
