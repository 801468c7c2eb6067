// SPDX-License-Identifier: Apache-2.0
//! Groups: one action that stands for several lists of them.

use crate::Action;

/// How a group uses its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// All buckets, each on its own copy.
    All,
    /// One bucket, chosen by a hash of the packet's flow.
    Select,
    /// The only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// One list of actions in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Share of the packets, for select groups.
    pub weight: u16,
    /// The port that must be up, for fast failover.
    pub watch_port: Option<u32>,
    /// The group that must be live, for fast failover.
    pub watch_group: Option<u32>,
    /// What is done, as an action set.
    pub actions: Vec<Action>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// How it uses its buckets.
    pub kind: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}
