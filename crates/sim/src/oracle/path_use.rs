// SPDX-License-Identifier: Apache-2.0
//! How much of the traffic takes the fast-forwarding path in calm cases, where nearly all of it must.

use std::collections::BTreeMap;
use std::fmt;

/// Repeated packets that must reach a table before its share of them is judged.
const JUDGED_FROM: usize = 20;

/// How a table's repeated packets passed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// Packets that reached the table on the path.
    pub reached: usize,
    /// Of these, packets that went on along the path, or left the switch from it.
    pub passed: usize,
    /// What served them on the path: a LUT, the table itself, or an index of a linear table.
    pub way: &'static str,
}

/// What the path did with repeated packets. A packet is repeated if all entries that it hits are low-latency, and its worker
/// had finished an earlier packet of the same values before this one arrived, by the same rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathUse {
    /// Repeated packets, without those that found no room in a backlog.
    pub repeated: usize,
    /// Of these, packets that went all the way over the path.
    pub fast: usize,
    /// Each table of a case; empty in a sum of cases.
    pub tables: BTreeMap<u8, Passing>,
    /// How many tables were judged, by the way that the path passed them.
    pub judged: BTreeMap<&'static str, usize>,
    /// The least share of one case, in thousandths.
    pub least_of_cases: Option<u64>,
    /// The least share of one table, in thousandths.
    pub least_of_tables: Option<u64>,
}

impl PathUse {
    /// Takes down a repeated packet: the tables that it passed on the path, and the table at which it left the path.
    pub fn note(&mut self, passed: &[(u8, &'static str)], left_at: Option<u8>) {
        self.repeated += 1;
        self.fast += usize::from(left_at.is_none());
        for (table, way) in passed {
            let passing = self.tables.entry(*table).or_default();
            passing.reached += 1;
            passing.passed += 1;
            passing.way = way;
        }
        if let Some(table) = left_at {
            self.tables.entry(table).or_default().reached += 1;
        }
    }

    /// The share of a case's repeated packets that went all the way over the path, in thousandths; none without such packets.
    #[must_use]
    pub fn permille(&self) -> Option<u64> {
        permille(self.fast, self.repeated)
    }

    /// For each table of a case that enough repeated packets reached, the share that passed it on the path, in thousandths.
    pub fn tables_permille(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let judged = self.tables.iter().filter(|(_, passing)| passing.reached >= JUDGED_FROM);
        judged.filter_map(|(table, passing)| Some((*table, permille(passing.passed, passing.reached)?)))
    }

    /// Adds a case.
    pub fn add(&mut self, case: &Self) {
        self.repeated += case.repeated;
        self.fast += case.fast;
        self.least_of_cases = self.least_of_cases.into_iter().chain(case.permille()).min();
        for (table, share) in case.tables_permille() {
            *self.judged.entry(case.tables[&table].way).or_default() += 1;
            self.least_of_tables = self.least_of_tables.into_iter().chain([share]).min();
        }
    }
}

fn permille(part: usize, whole: usize) -> Option<u64> {
    (1_000 * part as u64).checked_div(whole as u64)
}

impl fmt::Display for PathUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} repeated packets took the path, at least {} per thousand in each case and {} at each table; \
             tables judged:",
            self.fast,
            self.repeated,
            self.least_of_cases.unwrap_or_default(),
            self.least_of_tables.unwrap_or_default()
        )?;
        self.judged.iter().try_for_each(|(way, tables)| write!(f, " {tables} by {way}"))
    }
}
