// SPDX-License-Identifier: Apache-2.0
//! How the records of the fast-forwarding path are kept right while rules change: what the operator may choose, and what
//! is done by itself.

use pipeline::Manner;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use tables::Master;

/// More changes than this at once are not told one by one: each record is held against the table.
const CHANGES_SINGLY: usize = 64;

/// How records are kept right. Verdicts and counters are the same with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// What costs least: eager, lazy while more is under way than can be worked off, by generation for more than 64
    /// changes at once.
    #[default]
    Auto,
    /// What a change concerns goes at once.
    Eager,
    /// At its next hit a record is held against the changes since the last.
    Lazy,
    /// At its next hit after a change a record is held against the table.
    Generation,
}

impl Consistency {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Eager, Self::Lazy, Self::Generation];

    /// Its name in configurations and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::Generation => "generation",
        }
    }

    /// How so many changes of a table at once are taken in.
    pub(crate) fn manner(self, changes: usize) -> Manner {
        match self {
            _ if changes > CHANGES_SINGLY => Manner::Generation,
            Self::Eager => Manner::Eager,
            Self::Auto => Manner::Auto,
            Self::Lazy => Manner::Lazy,
            Self::Generation => Manner::Generation,
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

/// Changes that are walked in the time of one lookup; a record with a longer list is looked up. A lookup takes what the
/// workers measured, picoseconds, or 0 where they have not yet. The answer is a power of two, so that it changes seldom
/// while a table grows.
pub(crate) fn list_max(master: &Master, lookup_ps: u64) -> u32 {
    let lookup_ps = match (lookup_ps, master.engine_name()) {
        (0, "scan") => 10_000 + 1_000 * master.len() as u64,
        (0, "lpm") => 40_000,
        (0, _) => 100_000,
        _ => lookup_ps,
    };
    let rules = (lookup_ps / WALKED_PS).clamp(1, u64::from(u16::MAX));
    rules.next_power_of_two() as u32
}

/// What holding a record against one change takes: the bench `consistency` measures it.
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
    fn more_than_64_changes_at_once_go_by_generation() {
        use Consistency as C;
        let manners = [
            (C::Auto, Manner::Auto),
            (C::Eager, Manner::Eager),
            (C::Lazy, Manner::Lazy),
            (C::Generation, Manner::Generation),
        ];
        for (chosen, manner) in manners {
            assert_eq!([0, 1, 64].map(|changes| chosen.manner(changes)), [manner; 3]);
            assert_eq!(chosen.manner(65), Manner::Generation, "{chosen}");
        }
    }

    #[test]
    fn a_list_is_as_long_as_can_be_walked_in_a_lookup() {
        let master = Master::default();
        // A change takes 5 ns.
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
            assert_eq!(list_max(&master, lookup_ps), changes, "{lookup_ps} ps");
        }
        // Until a lookup was measured.
        assert_eq!((master.engine_name(), list_max(&master, 0)), ("scan", 2));
    }
}
