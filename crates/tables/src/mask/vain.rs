// SPDX-License-Identifier: Apache-2.0
//! Control side: joins that were tried in vain take a third of the time of compiling an access list. While a table changes
//! a little at a time it is compiled again and again, and they are not tried each time.

/// A table of which more than this part has changed is another one.
const CHANGED_PART: usize = 4;

/// With so much less than what could not be joined it is tried again: an eighth.
const FEWER_SHIFT: u32 = 3;

/// How many rules could not be joined, and how many rules have changed since that was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vain {
    /// 0 if nothing was tried in vain.
    rules: usize,
    changed: usize,
}

impl Vain {
    /// What is known of a table of `len` rules, of which `changed` more are not those that they were.
    #[must_use]
    pub fn after(self, changed: usize, len: usize) -> Self {
        let changed = self.changed + changed;
        if changed * CHANGED_PART > len { Self::default() } else { Self { changed, ..self } }
    }

    /// Whether so many rules are worth a try.
    pub(super) fn suits(self, rules: usize) -> bool {
        self.rules == 0 || rules < self.rules - (self.rules >> FEWER_SHIFT)
    }

    /// So many rules were tried in vain.
    pub(super) fn note(&mut self, rules: usize) {
        // What was known before was about more.
        *self = Self { rules, changed: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::Vain;

    #[test]
    fn what_was_in_vain_is_tried_with_fewer_rules_or_others() {
        let mut vain = Vain::default();
        assert!(vain.suits(1) && vain.suits(10_000));
        vain.note(1_600);
        let same = vain.after(100, 1_700).after(300, 1_700);
        assert!(!same.suits(1_600) && !same.suits(1_500) && same.suits(1_300));
        assert!(same.after(26, 1_700).suits(1_600), "more than a quarter has changed");
    }
}
