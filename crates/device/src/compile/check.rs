// SPDX-License-Identifier: Apache-2.0
//! Finds out whether changes are possible. One change of an entry seldom needs more than a look at the free
//! space; other changes are executed on a clone.

use std::sync::Arc;

use flow::{EntryChange, EntryId, FlowEntry};

use crate::compile::error::CompileError;
use crate::compile::plan::{Plan, plan, tag_of_table};
use crate::compile::{Compiler, Transition};

/// Changes that the device can execute, and the compiler's state after them.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    changes: Vec<EntryChange>,
    after: Compiler,
    transition: Transition,
}

impl Trial {
    pub(super) fn is_of(&self, changes: &[EntryChange]) -> bool {
        self.changes == changes
    }
}

impl Compiler {
    /// Checks whether [`Self::apply`] of these changes is possible.
    ///
    /// # Errors
    /// The device cannot execute one of the entries.
    pub fn check(&mut self, changes: &[EntryChange]) -> Result<(), CompileError> {
        self.trial = None;
        if changes.iter().all(|change| matches!(change, EntryChange::Remove { .. })) {
            return Ok(());
        }
        if let [change] = changes
            && let Some(verdict) = self.quick_check(change)
        {
            return verdict;
        }
        self.trial = Some(Box::new(self.attempt(changes)?));
        Ok(())
    }

    /// Executes changes on a clone.
    pub(super) fn attempt(&self, changes: &[EntryChange]) -> Result<Trial, CompileError> {
        let begin = || {
            let mut begin = Self { commands: Vec::new(), ..self.clone() };
            begin.free_unused();
            begin
        };
        let (mut after, mut transition) = (begin(), Transition::Seamless);
        // New entries first, so that no packet misses an entry that is replaced by an equal one.
        let is_removal = |change: &&EntryChange| matches!(change, EntryChange::Remove { .. });
        let (last, first): (Vec<_>, Vec<_>) = changes.iter().partition(is_removal);
        let done = first.iter().chain(&last).try_for_each(|change| after.change(change));
        if let Err(refusal) = done {
            // A new entry may be possible only without an old one.
            if last.is_empty() || changes.len() < 2 {
                return Err(refusal);
            }
            (after, transition) = (begin(), Transition::Gap);
            changes.iter().try_for_each(|change| after.change(change))?;
        }
        Ok(Trial { changes: changes.to_vec(), after, transition })
    }

    /// Takes the state behind changes.
    pub(super) fn take(&mut self, trial: Trial) -> Transition {
        let mut commands = std::mem::take(&mut self.commands);
        *self = trial.after;
        commands.append(&mut self.commands);
        self.commands = commands;
        trial.transition
    }

    /// Returns the verdict on one change, or `None` if only its execution shows it.
    fn quick_check(&self, change: &EntryChange) -> Option<Result<(), CompileError>> {
        match change {
            EntryChange::Add(entry) => match plan(entry, &self.layout) {
                Ok(plan) => self.quick_install(entry.id, &plan),
                Err(refusal) => Some(Err(refusal)),
            },
            EntryChange::Modify { id, instructions, .. } => {
                let Some(old) = self.entries.get(id) else { return Some(Ok(())) };
                if old.entry.instructions == *instructions {
                    return Some(Ok(()));
                }
                let entry = FlowEntry { instructions: Arc::clone(instructions), ..(*old.entry).clone() };
                match plan(&entry, &self.layout) {
                    Ok(new) if old.is_alike(&new) => {
                        Some(self.facts.check(Some(&old.facts), &new.facts, self.layout.tables()))
                    }
                    Ok(new) => self.quick_install(*id, &new),
                    Err(refusal) => Some(Err(refusal)),
                }
            }
            EntryChange::Remove { .. } => Some(Ok(())),
        }
    }

    /// Returns whether an entry can be installed beside its older version, if only its head gets rows.
    fn quick_install(&self, id: EntryId, plan: &Plan) -> Option<Result<(), CompileError>> {
        let old = self.entries.get(&id).map(|old| &old.facts);
        if let Err(refusal) = self.facts.check(old, &plan.facts, self.layout.tables()) {
            return Some(Err(refusal));
        }
        let head = self.layout.head(plan.facts.table)?;
        let mut space = self.ppus[head].check(plan.rows.iter().map(|row| &row.conditions));
        if plan.to_controller {
            space = space.and_then(|()| self.codes[plan.facts.table].next().map(|_| ()));
        }
        if let Err(refusal) = space {
            // The change would free rows that are not in use.
            let unused = self.later.values().any(|later| later.users == 0)
                || self.passing.values().any(|count| *count == 0);
            return (!unused).then_some(Err(refusal));
        }
        let passes = |(table, from): (usize, usize)| {
            let (tag, until) = (tag_of_table(table) as u8, self.layout.head(table).unwrap_or(from));
            let mut heads = self.layout.heads_in(from..until);
            heads.all(|head| self.passing.get(&(head, tag)).is_some_and(|count| *count > 0))
        };
        let in_use =
            |words| self.later.values().any(|later| later.users > 0 && later.is_same(head + 1, words));
        let ready = plan.bypass.is_none_or(passes)
            && plan.rows.iter().all(|row| row.rest.is_empty() || in_use(&row.rest));
        ready.then_some(Ok(()))
    }
}
