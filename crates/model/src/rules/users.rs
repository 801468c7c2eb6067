// SPDX-License-Identifier: Apache-2.0
//! Counts of the entries that use each group and meter.

use super::groups::Groups;
use super::records::Records;
use flow::meter::Meter;
use flow::{Action, GroupId, Instructions, MeterId};

/// What happens to entries that use groups and meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// This many entries are added.
    Begins(usize),
    /// One entry is removed.
    Ends,
}

/// Returns the groups to which instructions send, with repetitions.
pub(crate) fn groups_of(instructions: &Instructions) -> impl Iterator<Item = GroupId> + '_ {
    instructions.apply.iter().chain(&instructions.write).filter_map(|action| match action {
        Action::Group(group) => Some(*group),
        _ => None,
    })
}

/// Returns whether an entry with these instructions uses a group or a meter.
pub(crate) fn uses_any(instructions: &Instructions) -> bool {
    instructions.meter.is_some() || groups_of(instructions).next().is_some()
}

/// Updates the users of groups and meters when entries with these instructions are added, or one is removed.
pub(crate) fn note_use(
    groups: &mut Groups,
    meters: &mut Records<MeterId, Meter>,
    instructions: &Instructions,
    use_: Use,
) {
    let count = |users: &mut usize| match use_ {
        Use::Begins(entries) => *users += entries,
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
