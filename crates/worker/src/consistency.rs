// SPDX-License-Identifier: Apache-2.0
//! Consistency of LUT records while rules change: the modes that the operator may choose, and the automatic
//! choice.

use pipeline::Coherence;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use tables::RuleTable;

/// If one operation changes more rules of a table than this, the changes are not tracked one by one. Instead,
/// each record is looked up again at its next hit.
const CHANGES_SINGLY: usize = 64;

/// Mode of keeping LUT records consistent with rule changes. Results and counters are the same in all modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// The cheapest mode for each change: normally `Eager`, but `Lazy` while more changes are pending than
    /// can be cleaned up in time, and `Generation` for more than 64 changes in one operation.
    #[default]
    Auto,
    /// Records that a change affects are removed immediately.
    Eager,
    /// At its next hit, a record is compared with the changes since its last check.
    Lazy,
    /// At its next hit after a change, a record is looked up in the table.
    Generation,
}

impl Consistency {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Eager, Self::Lazy, Self::Generation];

    /// Returns the mode's name in configurations and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::Generation => "generation",
        }
    }

    /// Returns the coherence mode in which a worker must handle `changes` changes of a table in one
    /// operation.
    pub(crate) fn coherence(self, changes: usize) -> Coherence {
        match self {
            _ if changes > CHANGES_SINGLY => Coherence::Generation,
            Self::Eager => Coherence::Eager,
            Self::Auto => Coherence::Auto,
            Self::Lazy => Coherence::Lazy,
            Self::Generation => Coherence::Generation,
        }
    }
}

impl Display for Consistency {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Consistency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|one| one.name() == text);
        named.ok_or_else(|| {
            format!("\"{text}\" is unknown; use \"auto\", \"eager\", \"lazy\" or \"generation\"")
        })
    }
}

/// Returns the number of changes with which a record can be compared in the time of one table lookup, rounded
/// up to a power of two. `lookup_ps` is the measured cost of a lookup in picoseconds, or 0 if it is unknown.
pub(crate) fn list_max(rule_table: &RuleTable, lookup_ps: u64) -> u32 {
    let lookup_ps = match (lookup_ps, rule_table.engine_name()) {
        (0, "scan") => 10_000 + 1_000 * rule_table.len() as u64,
        (0, "lpm") => 40_000,
        (0, _) => 100_000,
        _ => lookup_ps,
    };
    let rules = (lookup_ps / WALKED_PS).clamp(1, u64::from(u16::MAX));
    rules.next_power_of_two() as u32
}

/// Cost in picoseconds of comparing a record with one change, as measured by the benchmark `consistency`.
const WALKED_PS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for one in Consistency::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        assert_eq!(Consistency::default(), Consistency::Auto);
        assert!("Auto".parse::<Consistency>().is_err_and(|problem| problem.contains("\"Auto\" is unknown")));
    }

    #[test]
    fn more_than_64_changes_in_one_operation_use_generations() {
        use Consistency as C;
        let manners = [
            (C::Auto, Coherence::Auto),
            (C::Eager, Coherence::Eager),
            (C::Lazy, Coherence::Lazy),
            (C::Generation, Coherence::Generation),
        ];
        for (chosen, coherence) in manners {
            assert_eq!([0, 1, 64].map(|changes| chosen.coherence(changes)), [coherence; 3]);
            assert_eq!(chosen.coherence(65), Coherence::Generation, "{chosen}");
        }
    }

    #[test]
    fn a_list_is_as_long_as_can_be_compared_during_a_lookup() {
        let rule_table = RuleTable::default();
        // Comparing a record with one change takes 5 ns.
        for (lookup_ps, changes) in [
            (1, 1),
            (5_000, 1),
            (9_999, 1),
            (10_000, 2),
            (15_000, 4),
            (20_000, 4),
            (25_000, 8),
            (5_000 * 65_534, 65_536),
            (u64::MAX, 65_536),
        ] {
            assert_eq!(list_max(&rule_table, lookup_ps), changes, "{lookup_ps} ps");
        }
        // Until the first lookup is measured, a lookup in an empty table that uses `scan` is assumed to take
        // 10 ns.
        assert_eq!((rule_table.engine_name(), list_max(&rule_table, 0)), ("scan", 2));
    }
}
