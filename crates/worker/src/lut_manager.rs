// SPDX-License-Identifier: Apache-2.0
//! The control side of the fast-forwarding path: selects how the path looks up packets in each table, and
//! translates rule changes to updates of the table's LUT. A LUT is an exact-match flow cache of one table.

use crate::bypass::{Bypass, BypassChoice, Measured};
use crate::consistency::{Consistency, list_max};
use crate::programs::is_low_latency;
use dataplane::{LutCounters, LutFigures};
use engines::KeyPlan;
use flow::{EntryId, Field, FlowEntry, Nanos, TableId};
use keys::Extractor;
use pipeline::{Clean, Coherence, FastMode, Inheritance, Lut, Update};
use std::sync::Arc;
use tables::RuleTable;
use tables::rule_table::RuleChange;

/// Method by which the fast-forwarding path looks up packets in a table.
#[derive(Debug, Default)]
enum TableMode {
    /// Packets leave the path at this table, because none of the table's entries is low-latency.
    #[default]
    Closed,
    /// By the table's own lookup, which is as fast as a LUT.
    Shared,
    /// By the table's own lookup, because a LUT would cost more than it saves.
    Bypassed,
    /// By a LUT.
    Lut {
        plan: Arc<KeyPlan>,
        mask: Vec<u64>,
        /// Examined bits of each field, ordered by field.
        examined: Vec<(Field, u128)>,
        /// Key layout of the previous LUT, if it differs from `plan`.
        before: Option<Arc<KeyPlan>>,
    },
}

#[derive(Debug, Default)]
struct Table {
    /// Number of low-latency entries in the table.
    low_latency: usize,
    mode: TableMode,
    /// Maximum number of changes with which workers compare a record. If there are more changes, the record
    /// is looked up instead.
    list_max: u32,
    /// Counters of each worker's LUT.
    counters: Vec<Arc<LutCounters>>,
    bypass: Bypass,
}

/// Lookup modes and LUTs of all tables.
#[derive(Debug)]
pub(crate) struct LutManager {
    /// Number of records per LUT. 0 turns the fast-forwarding path off.
    entries: usize,
    consistency: Consistency,
    tables: Vec<Table>,
}

impl LutManager {
    pub fn new(entries: usize, consistency: Consistency, workers: usize, tables: usize) -> Self {
        let mut made = Vec::with_capacity(tables);
        made.resize_with(tables, || Table {
            counters: (0..workers).map(|_| Arc::default()).collect(),
            ..Table::default()
        });
        Self { entries, consistency, tables: made }
    }

    /// Adds `by` to a table's number of low-latency entries.
    pub fn count(&mut self, table: TableId, by: isize) {
        let low_latency = &mut self.tables[table.index()].low_latency;
        *low_latency = low_latency.saturating_add_signed(by);
    }

    /// Updates a table's lookup mode and LUT after rule changes. `changes` have already been applied to
    /// `rule_table`. `lookup_ps` is the cost of a lookup in the table in picoseconds, or 0 if it is unknown.
    pub fn follow(
        &mut self,
        number: TableId,
        rule_table: &RuleTable,
        lookup_ps: u64,
        changes: &[RuleChange],
        parts: &mut [Vec<Update>],
    ) {
        if self.entries == 0 {
            return;
        }
        let table = &mut self.tables[number.index()];
        if table.low_latency == 0 {
            return close(number, table, parts);
        }
        if is_as_fast(rule_table) {
            return share(number, table, parts);
        }
        if matches!(table.mode, TableMode::Bypassed) {
            return;
        }
        let suits = |plan: &KeyPlan, mask: &[u64]| {
            *plan == **rule_table.plan() && examines_no_more(changes, plan, mask)
        };
        match &table.mode {
            TableMode::Lut { plan, mask, .. } if suits(plan, mask) => {}
            mode => {
                let plan = Arc::clone(rule_table.plan());
                let examined = rule_table.examined_fields();
                // The previous LUT stays in use beside the new LUT, and may have another key layout. The new
                // LUT inherits records from it only if packets with equal values in the new LUT also have
                // equal values in the previous LUT. Otherwise a packet that inherits a record could overtake
                // a packet with the same value that waits for the table.
                let before = match mode {
                    TableMode::Lut { plan: before, examined: known, .. } if includes(&examined, known) => {
                        Some(Arc::clone(before))
                    }
                    _ => None,
                };
                let other = before.clone().filter(|before| **before != *plan);
                if matches!(mode, TableMode::Lut { .. }) {
                    // The new LUT starts empty, with counters at 0.
                    table.bypass.reset();
                }
                let (mask, entries) = (rule_table.examined(), self.entries);
                swap(number, table, parts, |counters| {
                    let lut = Lut::new(&mask, entries, counters);
                    let extractor = || other.as_deref().map(|plan| Box::new(Extractor::new(plan)));
                    let inherits = before.is_some();
                    FastMode::Lut(Box::new(if inherits {
                        lut.inheriting(Inheritance { extractor: extractor() })
                    } else {
                        lut
                    }))
                });
                table.mode = TableMode::Lut { plan, mask, examined, before: other };
                table.list_max = 0;
            }
        }
        let list_max = list_max(rule_table, lookup_ps);
        if std::mem::replace(&mut table.list_max, list_max) != list_max {
            parts.iter_mut().for_each(|parts| parts.push(Update::ListMax(number, list_max)));
        }
        if let TableMode::Lut { plan, mask, before, .. } = &table.mode {
            let coherence = self.consistency.coherence(changes.len());
            let cleans = cleans(changes, coherence, plan, mask, before.as_deref());
            for parts in parts {
                parts.extend(cleans.iter().map(|clean| Update::Clean(number, coherence, clean.clone())));
            }
        }
    }

    /// Updates a table's LUT records after entries became low-latency or normal.
    pub fn marked(&self, number: TableId, marks: &[(EntryId, bool)], parts: &mut [Vec<Update>]) {
        if !matches!(self.tables[number.index()].mode, TableMode::Lut { .. }) {
            return;
        }
        let coherence = self.consistency.coherence(marks.len());
        let cleans: Vec<Clean> = match coherence {
            Coherence::Generation => vec![Clean::All],
            _ => marks.iter().map(|(id, low_latency)| Clean::Marked(*id, *low_latency)).collect(),
        };
        for parts in parts {
            parts.extend(cleans.iter().map(|clean| Update::Clean(number, coherence, clean.clone())));
        }
    }

    /// Returns the bits of each field that the LUT of a table examines, ordered by field. The LUT may examine
    /// more bits than the rules.
    pub fn examined(&self, number: TableId) -> &[(Field, u128)] {
        match &self.tables[number.index()].mode {
            TableMode::Lut { examined, .. } => examined,
            TableMode::Closed | TableMode::Shared | TableMode::Bypassed => &[],
        }
    }

    /// Returns the mode in which LUT records are kept consistent with rule changes.
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// Bypasses a table's LUT or tries it again, depending on the measurements. Returns whether an update was
    /// added to `parts`.
    pub fn choose_mode(
        &mut self,
        now: Nanos,
        number: TableId,
        rule_table: &RuleTable,
        measured: impl FnOnce() -> Measured,
        parts: &mut [Vec<Update>],
    ) -> bool {
        let table = &mut self.tables[number.index()];
        if !matches!(table.mode, TableMode::Lut { .. } | TableMode::Bypassed) {
            return false;
        }
        let figures = figures(table);
        match table.bypass.choose_mode(now, measured(), figures) {
            BypassChoice::Stay => return false,
            BypassChoice::GiveUp => {
                table.mode = TableMode::Bypassed;
                swap(number, table, parts, |_| FastMode::Shared);
            }
            BypassChoice::Try => {
                table.mode = TableMode::Closed;
                self.follow(number, rule_table, 0, &[], parts);
            }
        }
        true
    }

    /// Returns whether a table's LUT is bypassed because it costs more than it saves.
    pub fn is_bypassed(&self, number: TableId) -> bool {
        matches!(self.tables[number.index()].mode, TableMode::Bypassed)
    }

    /// Returns the number of records per LUT.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the tables on the fast-forwarding path, each with the state of its LUT if it has one.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, Option<LutState>)> + '_ {
        TableId::all().zip(&self.tables).filter_map(|(number, table)| match &table.mode {
            TableMode::Closed => None,
            TableMode::Shared | TableMode::Bypassed => Some((number, None)),
            TableMode::Lut { mask, .. } => {
                let figures = figures(table);
                let bytes = Lut::bytes(mask.len(), self.entries) * table.counters.len();
                Some((
                    number,
                    Some(LutState {
                        key_bits: mask.iter().map(|word| word.count_ones()).sum(),
                        bytes,
                        figures,
                    }),
                ))
            }
        })
    }
}

/// State of a table's LUTs, summed over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LutState {
    /// Number of compared bits per record, including presence bits.
    pub key_bits: u32,
    /// Size of the LUTs in bytes.
    pub bytes: usize,
    /// Counters of the LUTs.
    pub figures: LutFigures,
}

/// Returns whether a lookup in the table takes no longer than one in a LUT. A table without key words has the
/// same result for all packets, and a LUT cannot hold an empty key.
fn is_as_fast(rule_table: &RuleTable) -> bool {
    rule_table.plan().words() == 0 || matches!(rule_table.engine_name(), "exact" | "index")
}

/// Returns the counters of a table's LUTs.
fn figures(table: &Table) -> LutFigures {
    let mut figures = LutFigures::default();
    table.counters.iter().for_each(|counters| figures.add(&counters.read()));
    figures
}

/// Takes a table off the fast-forwarding path, unless it is already off the path.
fn close(number: TableId, table: &mut Table, parts: &mut [Vec<Update>]) {
    if !matches!(table.mode, TableMode::Closed) {
        table.mode = TableMode::Closed;
        table.bypass.reset();
        swap(number, table, parts, |_| FastMode::Closed);
    }
}

/// Makes the fast-forwarding path use the table's own lookup, unless it already does.
fn share(number: TableId, table: &mut Table, parts: &mut [Vec<Update>]) {
    if !matches!(table.mode, TableMode::Shared) {
        table.mode = TableMode::Shared;
        table.bypass.reset();
        swap(number, table, parts, |_| FastMode::Shared);
    }
}

/// Sends each worker a new lookup mode for a table.
fn swap(
    number: TableId,
    table: &mut Table,
    parts: &mut [Vec<Update>],
    mode: impl Fn(Arc<LutCounters>) -> FastMode,
) {
    for (parts, counters) in parts.iter_mut().zip(&mut table.counters) {
        // The worker updates the old counters until it gets the new mode.
        *counters = Arc::default();
        parts.push(Update::SwapFastMode(number, mode(Arc::clone(counters))));
    }
}

/// Returns whether `wider` has every field of `narrower` with every examined bit. Both are ordered by field.
fn includes(wider: &[(Field, u128)], narrower: &[(Field, u128)]) -> bool {
    narrower.iter().all(|(field, mask)| {
        let found = wider.binary_search_by_key(field, |(field, _)| *field).ok().and_then(|at| wider.get(at));
        found.is_some_and(|(_, wider)| mask & !wider == 0)
    })
}

/// Returns whether the added rules examine only bits in `mask`.
fn examines_no_more(changes: &[RuleChange], plan: &KeyPlan, mask: &[u64]) -> bool {
    changes.iter().filter_map(added).all(|entry| {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&entry.matching, &mut values, &mut masks);
        masks.iter().zip(mask).all(|(rule, lut)| rule & !lut == 0)
    })
}

/// Returns the entry that a change adds. Returns `None` if the change adds none, or if the entry is looked up
/// by index.
fn added(change: &RuleChange) -> Option<&FlowEntry> {
    match change {
        RuleChange::Add(entry) if entry.matching.index().is_none() => Some(entry),
        RuleChange::Add(_) | RuleChange::Remove(_) => None,
    }
}

/// Translates changes to updates of the records in a LUT of layout `plan`, and in the previous LUT. `before`
/// is the layout of the previous LUT if it differs from `plan`.
fn cleans(
    changes: &[RuleChange],
    coherence: Coherence,
    plan: &KeyPlan,
    mask: &[u64],
    before: Option<&KeyPlan>,
) -> Vec<Clean> {
    if changes.len() > 1 && coherence == Coherence::Generation {
        return vec![Clean::All];
    }
    let row = |plan: &KeyPlan, entry: &FlowEntry| -> Box<[u64]> {
        let known = entry.matching.fields().into_iter().filter(|c| plan.fields().contains(&c.field));
        let (mut row, mut masks) = (Vec::new(), Vec::new());
        plan.encode_fields(known, &mut row, &mut masks);
        row.append(&mut masks);
        row.into()
    };
    let clean = |change: &RuleChange| match (change, added(change)) {
        (RuleChange::Remove(id), _) => Some(Clean::Removed(*id)),
        (_, Some(entry)) => {
            let row_of = row(plan, entry);
            let is_single = is_low_latency(entry) && row_of[row_of.len() / 2..] == *mask;
            Some(Clean::Added {
                priority: entry.priority,
                row: row_of,
                before: before.map(|before| row(before, entry)),
                id: entry.id,
                single: is_single,
            })
        }
        _ => None,
    };
    changes.iter().filter_map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_bits_are_included() {
        let known = [(Field::EthType, 0xffff), (Field::Ipv4Dst, 0xffff_ff00)];
        let wider = [(Field::EthType, 0xffff), (Field::IpProto, 0xff), (Field::Ipv4Dst, 0xffff_ffff)];
        assert!(includes(&known, &known) && includes(&wider, &known) && includes(&known, &[]));
        assert!(!includes(&known, &wider), "a field and bits of another field are missing");
        assert!(!includes(&[(Field::EthType, 0xffff), (Field::Ipv4Dst, 0xff)], &known), "bits are missing");
        assert!(!includes(&[], &known));
    }
}
