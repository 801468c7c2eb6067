// SPDX-License-Identifier: Apache-2.0
//! What groups and meters have in common: numbers, when they were added, and how many entries use them.

use crate::groups::Groups;
use crate::meters::Meters;
use flow::{Action, Instructions, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group or a meter.
#[derive(Debug)]
pub(crate) struct Record<T> {
    pub what: Arc<T>,
    /// When it was added; a modify does not change it.
    pub since: Nanos,
    /// Entries in tables that use it.
    pub users: usize,
}

/// All of a kind, by number.
pub(crate) type Records<T> = BTreeMap<u32, Record<T>>;

/// The first number of a range that is taken.
pub(crate) fn first<T>(records: &Records<T>, from: u32, to: u32) -> Option<u32> {
    // A map does not take an empty range.
    if from > to { None } else { records.range(from..=to).next().map(|(number, _)| *number) }
}

/// Whether an entry comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Begins,
    Ends,
}

/// Groups that instructions send to; each as often as they do.
pub(crate) fn groups_of(instructions: &Instructions) -> impl Iterator<Item = u32> + '_ {
    instructions.apply.iter().chain(&instructions.write).filter_map(|action| match action {
        Action::Group(group) => Some(*group),
        _ => None,
    })
}

/// Keeps the counts of users right when an entry with these instructions comes or goes.
pub(crate) fn note_use(groups: &mut Groups, meters: &mut Meters, instructions: &Instructions, use_: Use) {
    let count = |users: &mut usize| match use_ {
        Use::Begins => *users += 1,
        Use::Ends => *users = users.saturating_sub(1),
    };
    if let Some(record) = instructions.meter.and_then(|meter| meters.get_mut(&meter)) {
        count(&mut record.users);
    }
    for (at, group) in groups_of(instructions).enumerate() {
        // An entry that sends to a group several times is one user.
        if groups_of(instructions).take(at).all(|earlier| earlier != group)
            && let Some(record) = groups.get_mut(group)
        {
            count(&mut record.users);
        }
    }
}
