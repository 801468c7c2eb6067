// SPDX-License-Identifier: Apache-2.0
//! Equal instructions are kept once: of a million entries most do what others do.

use flow::Instructions;
use hashbrown::HashSet;
use std::sync::Arc;

/// Instructions kept before the first look for those that nobody uses any more.
const SWEEP_MIN: usize = 1_024;

/// Instructions in use, and some that were.
#[derive(Debug)]
pub(crate) struct Sharing {
    known: HashSet<Arc<Instructions>>,
    /// How many there may be before the unused ones are thrown away: then at most half of them are new since the last
    /// time, so that a look at each costs little for each that came.
    sweep_at: usize,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: SWEEP_MIN }
    }
}

impl Sharing {
    /// These instructions, shared with all who have equal ones.
    pub fn share(&mut self, instructions: Instructions) -> Arc<Instructions> {
        if let Some(known) = self.known.get(&instructions) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = SWEEP_MIN.max(2 * self.known.len());
            self.known.shrink_to(self.sweep_at);
        }
        let new = Arc::new(instructions);
        self.known.insert(Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Action;

    #[test]
    fn equal_instructions_are_one_and_unused_ones_go() {
        let mut sharing = Sharing::default();
        let to = |port| Instructions::apply(vec![Action::output(port)]);
        let kept = sharing.share(to(1));
        assert!(Arc::ptr_eq(&kept, &sharing.share(to(1))));
        for port in 2..100_000 {
            drop(sharing.share(to(port)));
        }
        assert!(sharing.known.len() <= SWEEP_MIN);
        assert!(Arc::ptr_eq(&kept, &sharing.share(to(1))));
    }
}
