// SPDX-License-Identifier: Apache-2.0
//! Detects which rule changes may move a flow to another egress queue. After such a change, frames queued
//! earlier are sent before all later frames, which suspends priorities for a while.

use flow::group::Group;
use flow::{Action, GroupId, Instructions, TableId};
use std::collections::BTreeSet;

/// A value for each kind of action that may choose an egress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByAction<T> {
    set_queue: T,
    group: T,
}

impl ByAction<bool> {
    fn among(actions: &[Action]) -> Self {
        Self {
            set_queue: actions.iter().any(|action| matches!(action, Action::SetQueue(_))),
            group: actions.iter().any(|action| matches!(action, Action::Group(_))),
        }
    }
}

impl ByAction<usize> {
    fn add(&mut self, chooses: ByAction<bool>) {
        self.set_queue += usize::from(chooses.set_queue);
        self.group += usize::from(chooses.group);
    }

    fn remove(&mut self, chooses: ByAction<bool>) {
        self.set_queue = self.set_queue.saturating_sub(chooses.set_queue.into());
        self.group = self.group.saturating_sub(chooses.group.into());
    }
}

/// The ways in which instructions may choose an egress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Whether applied actions choose a queue. They affect this table and later ones.
    applies: ByAction<bool>,
    /// Whether the action set chooses a queue. Any later table may change the set or prevent its execution.
    writes: ByAction<bool>,
}

impl Choice {
    /// Returns the ways in which these instructions may choose a queue.
    pub fn of(instructions: &Instructions) -> Self {
        Self { applies: ByAction::among(&instructions.apply), writes: ByAction::among(&instructions.write) }
    }
}

/// Entries and active groups that may choose a queue.
#[derive(Debug, Default)]
pub(crate) struct Requeues {
    on: bool,
    /// For each table, the number of entries whose applied actions choose a queue.
    applies: Vec<ByAction<usize>>,
    /// Number of entries whose written action set chooses a queue.
    writes: ByAction<usize>,
    /// Groups with buckets that set a queue.
    groups: BTreeSet<GroupId>,
}

impl Requeues {
    /// Creates the counts without entries and groups. `on` states whether any port has egress queues.
    pub fn new(on: bool) -> Self {
        Self { on, applies: vec![ByAction::default(); usize::from(u8::MAX) + 1], ..Self::default() }
    }

    /// States whether any port has egress queues.
    pub fn set_on(&mut self, on: bool) {
        self.on = on;
    }

    /// Returns whether any port has egress queues.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Counts an entry that was added.
    pub fn add(&mut self, table: TableId, choice: Choice) {
        self.applies[table.index()].add(choice.applies);
        self.writes.add(choice.writes);
    }

    /// Counts an entry that was removed.
    pub fn remove(&mut self, table: TableId, choice: Choice) {
        self.applies[table.index()].remove(choice.applies);
        self.writes.remove(choice.writes);
    }

    /// Returns whether a change of a table's entries may move flows to another queue.
    pub fn by_table(&self, table: TableId) -> bool {
        let groups = !self.groups.is_empty();
        let counts = |entries: &ByAction<usize>| entries.set_queue > 0 || groups && entries.group > 0;
        self.on && (counts(&self.writes) || self.applies[table.index()..].iter().any(counts))
    }

    /// Adds or replaces a group. Returns whether flows may move to another queue.
    pub fn set_group(&mut self, group: &Group) -> bool {
        let before = self.by_groups();
        let mut actions = group.buckets.iter().flat_map(|bucket| &bucket.actions);
        if actions.any(|action| matches!(action, Action::SetQueue(_))) {
            self.groups.insert(group.id);
        } else {
            self.groups.remove(&group.id);
        }
        before || self.by_groups()
    }

    /// Removes a group. Returns whether flows may move to another queue.
    pub fn remove_group(&mut self, id: GroupId) -> bool {
        let before = self.by_groups();
        self.groups.remove(&id);
        before
    }

    /// Returns whether flows may move to another queue when a group chooses another bucket, for example after
    /// a link fails.
    pub fn by_groups(&self) -> bool {
        self.on && !self.groups.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::group::{Bucket, GroupType};
    use flow::{GroupId, PortNo, QueueId};

    fn choice(apply: Vec<Action>, write: Vec<Action>) -> Choice {
        Choice::of(&Instructions { apply, write, ..Instructions::default() })
    }

    #[test]
    fn only_tables_before_a_choice_requeue_unless_it_is_written() {
        let mut requeues = Requeues::new(true);
        let applies = choice(vec![Action::SetQueue(QueueId(1))], vec![]);
        assert!(!requeues.by_table(TableId(0)));
        requeues.add(TableId(2), applies);
        assert_eq!([0, 2, 3].map(|table| requeues.by_table(TableId(table))), [true, true, false]);
        let writes = choice(vec![], vec![Action::SetQueue(QueueId(1))]);
        requeues.add(TableId(0), writes);
        assert!(requeues.by_table(TableId(200)));
        requeues.remove(TableId(0), writes);
        requeues.remove(TableId(2), applies);
        assert!(!requeues.by_table(TableId(0)));
        requeues.add(TableId(0), choice(vec![Action::output(PortNo(1))], vec![]));
        assert!(!requeues.by_table(TableId(0)));
        let mut off = Requeues::new(false);
        off.add(TableId(2), applies);
        assert!(!off.by_table(TableId(0)));
    }

    #[test]
    fn groups_requeue_while_one_of_them_sets_a_queue() {
        let group = |id, actions| {
            let buckets = vec![Bucket { actions, ..Bucket::default() }];
            Group { id, kind: GroupType::Indirect, buckets }
        };
        let mut requeues = Requeues::new(true);
        requeues.add(TableId(1), choice(vec![Action::Group(GroupId(7))], vec![]));
        assert!(
            !requeues.set_group(&group(GroupId(7), vec![Action::output(PortNo(1))]))
                && !requeues.by_table(TableId(1))
        );
        assert!(
            requeues
                .set_group(&group(GroupId(7), vec![Action::SetQueue(QueueId(3)), Action::output(PortNo(1))]))
        );
        assert!(requeues.by_table(TableId(1)) && !requeues.by_table(TableId(2)) && requeues.by_groups());
        assert!(
            requeues.set_group(&group(GroupId(7), vec![Action::output(PortNo(1))])),
            "the group no longer sets a queue"
        );
        assert!(!requeues.by_groups() && !requeues.remove_group(GroupId(7)));
    }
}
