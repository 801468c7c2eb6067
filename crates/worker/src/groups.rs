// SPDX-License-Identifier: Apache-2.0
//! The control side of groups: compiled once, counted by each worker.

use flow::group::Group;
use model::GroupCounters;
use pipeline::{CompiledGroup, GroupCells, GroupTable, Update};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group and its cells in each worker.
type Entry = (Arc<CompiledGroup>, Vec<Arc<GroupCells>>);

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<u32, Entry>,
}

impl Groups {
    /// Adds or replaces a group; it counts from 0. A group whose buckets are larger than an action set is not taken.
    pub fn set(&mut self, group: &Group, workers: usize) {
        let Ok(compiled) = CompiledGroup::compile(group) else {
            // The model accepts none.
            debug_assert!(false, "a bucket of group {} is larger than an action set", group.id);
            return;
        };
        let cells = (0..workers).map(|_| Arc::new(GroupCells::new(group.buckets.len()))).collect();
        self.groups.insert(group.id, (Arc::new(compiled), cells));
    }

    /// Takes a group away.
    pub fn remove(&mut self, id: u32) {
        self.groups.remove(&id);
    }

    /// Appends the groups to each worker's parts.
    pub fn updates(&self, parts: &mut [Vec<Update>]) {
        for (worker, parts) in parts.iter_mut().enumerate() {
            let of =
                |(id, (group, cells)): (&u32, &Entry)| (*id, Arc::clone(group), Arc::clone(&cells[worker]));
            let table = GroupTable::new(self.groups.iter().map(of).collect());
            parts.push(Update::SwapGroups(Arc::new(table)));
        }
    }

    /// A group's counters over all workers.
    pub fn counters(&self, id: u32) -> Option<GroupCounters> {
        let (_, cells) = self.groups.get(&id)?;
        let buckets = cells.first().map_or(0, |cells| cells.buckets.len());
        let mut sum = GroupCounters { total: (0, 0), buckets: vec![(0, 0); buckets] };
        let add = |sum: &mut (u64, u64), (packets, bytes, _): (u64, u64, u64)| {
            sum.0 += packets;
            sum.1 += bytes;
        };
        for cells in cells {
            add(&mut sum.total, cells.total.read());
            for (sum, cell) in sum.buckets.iter_mut().zip(&cells.buckets) {
                add(sum, cell.read());
            }
        }
        Some(sum)
    }
}
