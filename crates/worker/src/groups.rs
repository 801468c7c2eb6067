// SPDX-License-Identifier: Apache-2.0
//! The control side of groups. Each group is compiled once, and has counters in each worker.

use actions::{CompiledGroup, GroupCells, GroupTable};
use dataplane::{GroupCounters, TrafficCount};
use flow::group::Group;
use flow::{GroupId, Nanos};
use pipeline::Update;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A compiled group, and its counters in each worker.
type Entry = (Arc<CompiledGroup>, Vec<Arc<GroupCells>>);

/// All groups by number.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Number of workers whose packets count.
    counted: usize,
    /// Number of all workers.
    workers: usize,
    groups: BTreeMap<GroupId, Entry>,
}

impl Groups {
    /// Creates no groups for `workers` workers. Only the packets of the first `counted` workers count.
    pub fn new(counted: usize, workers: usize) -> Self {
        Self { counted, workers, groups: BTreeMap::new() }
    }

    /// Adds or replaces a group; its counters start at 0. Ignores a group with a bucket larger than an action
    /// set.
    pub fn set(&mut self, group: &Group) {
        let Ok(compiled) = CompiledGroup::compile(group) else {
            // The model refuses such groups.
            debug_assert!(false, "a bucket of group {} is larger than an action set", group.id);
            return;
        };
        let cells = (0..self.workers).map(|_| Arc::new(GroupCells::new(group.buckets.len()))).collect();
        self.groups.insert(group.id, (Arc::new(compiled), cells));
    }

    /// Removes a group.
    pub fn remove(&mut self, id: GroupId) {
        self.groups.remove(&id);
    }

    /// Appends the table of groups to each worker's updates.
    pub fn updates(&self, parts: &mut [Vec<Update>]) {
        for (worker, parts) in parts.iter_mut().enumerate() {
            let of = |(id, (group, cells)): (&GroupId, &Entry)| {
                (*id, Arc::clone(group), Arc::clone(&cells[worker]))
            };
            let table = GroupTable::new(self.groups.iter().map(of).collect());
            parts.push(Update::SwapGroups(Arc::new(table)));
        }
    }

    /// Returns a group's counters, summed over the workers that forward packets.
    pub fn counters(&self, id: GroupId) -> Option<GroupCounters> {
        let (_, cells) = self.groups.get(&id)?;
        let buckets = cells.first().map_or(0, |cells| cells.buckets.len());
        let mut sum =
            GroupCounters { total: TrafficCount::default(), buckets: vec![TrafficCount::default(); buckets] };
        let add = |sum: &mut TrafficCount, (packets, bytes, _): (u64, u64, Nanos)| {
            sum.packets += packets;
            sum.bytes += bytes;
        };
        for cells in cells.iter().take(self.counted) {
            add(&mut sum.total, cells.total.read());
            for (sum, cell) in sum.buckets.iter_mut().zip(&cells.buckets) {
                add(sum, cell.read());
            }
        }
        Some(sum)
    }
}
