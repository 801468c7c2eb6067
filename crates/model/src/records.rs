// SPDX-License-Identifier: Apache-2.0
//! Common bookkeeping of groups and meters: number, time of addition and number of users.

use crate::groups::Groups;
use crate::meters::Meters;
use flow::{Action, Instructions, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group or a meter with its bookkeeping.
#[derive(Debug)]
pub(crate) struct Record<T> {
    pub what: Arc<T>,
    /// Time when it was added; a modify does not change it.
    pub since: Nanos,
    /// Number of entries in tables that use it.
    pub users: usize,
}

/// All groups or all meters, by number.
pub(crate) type Records<T> = BTreeMap<u32, Record<T>>;

/// Returns the lowest number in use within a range.
pub(crate) fn first<T>(records: &Records<T>, from: u32, to: u32) -> Option<u32> {
    // `BTreeMap::range` panics if the start is above the end.
    if from > to { None } else { records.range(from..=to).next().map(|(number, _)| *number) }
}

/// Whether an entry is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Begins,
    Ends,
}

/// Returns the groups that instructions send to, with repetitions.
pub(crate) fn groups_of(instructions: &Instructions) -> impl Iterator<Item = u32> + '_ {
    instructions.apply.iter().chain(&instructions.write).filter_map(|action| match action {
        Action::Group(group) => Some(*group),
        _ => None,
    })
}

/// Updates the numbers of users when an entry with these instructions is added or removed.
pub(crate) fn note_use(groups: &mut Groups, meters: &mut Meters, instructions: &Instructions, use_: Use) {
    let count = |users: &mut usize| match use_ {
        Use::Begins => *users += 1,
        Use::Ends => *users = users.saturating_sub(1),
    };
    if let Some(record) = instructions.meter.and_then(|meter| meters.get_mut(&meter)) {
        count(&mut record.users);
    }
    for (at, group) in groups_of(instructions).enumerate() {
        // An entry that sends to a group several times counts as one user.
        if groups_of(instructions).take(at).all(|earlier| earlier != group)
            && let Some(record) = groups.get_mut(group)
        {
            count(&mut record.users);
        }
    }
}
