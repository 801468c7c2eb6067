// SPDX-License-Identifier: Apache-2.0
//! Share of the traffic on the fast-forwarding path in calm cases. Nearly all traffic must be on the path.

use flow::TableId;
use std::collections::BTreeMap;
use std::fmt;

/// Minimum number of repeated packets that must reach a table before the table's share is checked.
const JUDGED_FROM: usize = 20;

/// Repeated packets that reached one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    /// Packets that reached the table on the path.
    pub reached: usize,
    /// Packets of `reached` that passed the table on the path.
    pub passed: usize,
    /// Lookup method on the path: a LUT, the table itself, or an index of a linear table.
    pub way: &'static str,
}

/// Use of the path by repeated packets. A packet is repeated if it hits only low-latency entries, and if its
/// worker had already finished a packet with the same values under the same rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathUse {
    /// Number of repeated packets, without packets that a full backlog refused.
    pub repeated: usize,
    /// Number of repeated packets that stayed on the path.
    pub fast: usize,
    /// Use of each table of a case; empty in a sum over cases.
    pub tables: BTreeMap<TableId, TableUse>,
    /// Number of tables checked, by lookup method.
    pub judged: BTreeMap<&'static str, usize>,
    /// Lowest share of repeated packets on the path in one case, in thousandths.
    pub least_of_cases: Option<u64>,
    /// Lowest share of repeated packets that passed one table on the path, in thousandths.
    pub least_of_tables: Option<u64>,
}

impl PathUse {
    /// Counts a repeated packet: the tables that it passed on the path, and the table at which it left the
    /// path.
    pub fn note(&mut self, passed: &[(TableId, &'static str)], left_at: Option<TableId>) {
        self.repeated += 1;
        self.fast += usize::from(left_at.is_none());
        for (table, way) in passed {
            let table_use = self.tables.entry(*table).or_default();
            table_use.reached += 1;
            table_use.passed += 1;
            table_use.way = way;
        }
        if let Some(table) = left_at {
            self.tables.entry(table).or_default().reached += 1;
        }
    }

    /// Returns the share of a case's repeated packets that stayed on the path, in thousandths, or `None` if
    /// there were none.
    #[must_use]
    pub fn permille(&self) -> Option<u64> {
        permille(self.fast, self.repeated)
    }

    /// Returns, for each table that enough repeated packets reached, the share that passed the table on the
    /// path, in thousandths.
    pub fn tables_permille(&self) -> impl Iterator<Item = (TableId, u64)> + '_ {
        let judged = self.tables.iter().filter(|(_, table_use)| table_use.reached >= JUDGED_FROM);
        judged.filter_map(|(table, table_use)| Some((*table, permille(table_use.passed, table_use.reached)?)))
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
