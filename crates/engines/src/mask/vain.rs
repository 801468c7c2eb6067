// SPDX-License-Identifier: Apache-2.0
//! Control side: record of failed joins, which need not be retried each time a table changes a little. Failed
//! joins take a third of the time of compiling an access list.

/// The record is discarded once a quarter (1 / this number) of the table has changed.
const CHANGED_PART: usize = 4;

/// Joins are retried once more than an eighth (1 / 2^this number) of the rules are gone since the failure.
const FEWER_SHIFT: u32 = 3;

/// Number of rules whose joins failed, and number of rules changed since then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vain {
    /// Number of rules whose joins failed, or 0 if none did.
    rules: usize,
    changed: usize,
}

impl Vain {
    /// Returns the record for a table of `len` rules, of which `changed` changed since the last call.
    #[must_use]
    pub fn after(self, changed: usize, len: usize) -> Self {
        let changed = self.changed + changed;
        if changed * CHANGED_PART > len { Self::default() } else { Self { changed, ..self } }
    }

    /// Returns whether joining `rules` rules is worth trying.
    pub(super) fn suits(self, rules: usize) -> bool {
        self.rules == 0 || rules < self.rules - (self.rules >> FEWER_SHIFT)
    }

    /// Records that joining `rules` rules failed.
    pub(super) fn note(&mut self, rules: usize) {
        // Replaces an earlier failure, which had more rules.
        *self = Self { rules, changed: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::Vain;

    #[test]
    fn failed_joins_are_retried_with_fewer_or_changed_rules() {
        let mut vain = Vain::default();
        assert!(vain.suits(1) && vain.suits(10_000));
        vain.note(1_600);
        let same = vain.after(100, 1_700).after(300, 1_700);
        assert!(!same.suits(1_600) && !same.suits(1_500) && same.suits(1_300));
        assert!(same.after(26, 1_700).suits(1_600), "more than a quarter has changed");
    }

    #[test]
    fn joins_are_retried_after_an_eighth_fewer_rules_or_a_quarter_of_changes() {
        let mut vain = Vain::default();
        vain.note(1_600);
        assert!(!vain.suits(1_400) && vain.suits(1_399));
        assert!(!vain.after(400, 1_600).suits(1_600) && vain.after(401, 1_600).suits(1_600));
        let twice = vain.after(300, 1_600);
        assert!(!twice.after(100, 1_600).suits(1_600) && twice.after(101, 1_600).suits(1_600));
    }
}
