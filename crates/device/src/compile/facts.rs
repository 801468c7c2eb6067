// SPDX-License-Identifier: Apache-2.0
//! Checks what depends on several entries: outputs of action sets, and the growth of frames.

use std::collections::BTreeMap;

use crate::compile::conditions::MOVE_BYTES_MAX;
use crate::compile::error::CompileError;
use crate::compile::plan::Facts;

/// Facts of all entries. Most entries have the same facts as others, so each is kept once.
#[derive(Clone, Debug, Default)]
pub struct FactCounts {
    entries: BTreeMap<Facts, usize>,
}

impl FactCounts {
    /// Adds the facts of an entry.
    pub fn add(&mut self, facts: Facts) {
        *self.entries.entry(facts).or_default() += 1;
    }

    /// Removes the facts of an entry.
    pub fn remove(&mut self, facts: &Facts) {
        if let Some(count) = self.entries.get_mut(facts) {
            *count -= 1;
            if *count == 0 {
                self.entries.remove(facts);
            }
        }
    }

    /// Checks facts of an entry that replaces the entry with the facts `old`, if any.
    ///
    /// # Errors
    /// The facts contradict the facts of other entries.
    pub fn check(&self, old: Option<&Facts>, new: &Facts, tables: usize) -> Result<(), CompileError> {
        let remain = |(facts, count): &(&Facts, &usize)| **count > 1 || old != Some(*facts);
        let others = self.entries.iter().filter(remain).map(|(facts, _)| facts);
        let all: Vec<&Facts> = others.chain(std::iter::once(new)).collect();
        let (mut inserted, mut removed) = (vec![0; tables], vec![0; tables]);
        for facts in &all {
            inserted[facts.table] = facts.inserted.max(inserted[facts.table]);
            removed[facts.table] = facts.removed.max(removed[facts.table]);
        }
        if [inserted, removed].iter().any(|bytes| bytes.iter().sum::<u16>() > MOVE_BYTES_MAX) {
            return Err(CompileError::Growth);
        }
        // Whether a packet may reach a table with an output in its action set.
        let mut pending = vec![false; tables];
        for table in 0..tables {
            for facts in all.iter().filter(|facts| facts.table == table) {
                let carries = pending[table] && !facts.clear;
                if carries && facts.apply_output {
                    return Err(CompileError::Outputs(
                        "the action set may have an output of an earlier table",
                    ));
                }
                if pending[table] && facts.clear && !facts.set_output && facts.next.is_some() {
                    return Err(CompileError::Instruction(
                        "clear_actions behind a table that writes an output",
                    ));
                }
                if let Some(next) = facts.next {
                    pending[next] |= carries || facts.set_output;
                }
            }
        }
        Ok(())
    }
}
