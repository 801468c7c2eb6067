// SPDX-License-Identifier: Apache-2.0
//! Deduplication of instructions. In large tables, most entries share their instructions with other entries.

use flow::Instructions;
use hashbrown::HashSet;
use std::sync::Arc;

/// Number of stored instruction sets before the first sweep for unused ones.
const SWEEP_MIN: usize = 1_024;

/// Instruction sets in use, and some unused ones that have not been discarded yet.
#[derive(Debug)]
pub(crate) struct Sharing {
    known: HashSet<Arc<Instructions>>,
    /// Number of instruction sets at which unused ones are discarded. It is twice the number that the
    /// previous sweep left.
    sweep_at: usize,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: SWEEP_MIN }
    }
}

impl Sharing {
    /// Returns a shared copy of these instructions.
    pub fn share(&mut self, instructions: Instructions) -> Arc<Instructions> {
        match self.known.get(&instructions) {
            Some(known) => Arc::clone(known),
            None => self.insert(Arc::new(instructions)),
        }
    }

    /// Returns the shared copy of these instructions. If there is none yet, `instructions` becomes it.
    pub fn adopt(&mut self, instructions: &Arc<Instructions>) -> Arc<Instructions> {
        match self.known.get(&**instructions) {
            Some(known) => Arc::clone(known),
            None => self.insert(Arc::clone(instructions)),
        }
    }

    fn insert(&mut self, new: Arc<Instructions>) -> Arc<Instructions> {
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = SWEEP_MIN.max(2 * self.known.len());
            self.known.shrink_to(self.sweep_at);
        }
        self.known.insert(Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Action, PortNo};

    #[test]
    fn equal_instructions_are_shared_and_unused_ones_discarded() {
        let mut sharing = Sharing::default();
        let to = |port| Instructions::apply(vec![Action::output(port)]);
        let kept = sharing.share(to(PortNo(1)));
        assert!(Arc::ptr_eq(&kept, &sharing.share(to(PortNo(1)))));
        let elsewhere = [1, 2].map(|port| Arc::new(to(PortNo(port))));
        assert!(Arc::ptr_eq(&kept, &sharing.adopt(&elsewhere[0])));
        assert!(Arc::ptr_eq(&elsewhere[1], &sharing.adopt(&elsewhere[1])));
        for port in 2..100_000 {
            drop(sharing.share(to(PortNo(port))));
        }
        assert!(sharing.known.len() <= SWEEP_MIN);
        assert!(Arc::ptr_eq(&kept, &sharing.share(to(PortNo(1)))));
    }
}
