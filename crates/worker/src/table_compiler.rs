// SPDX-License-Identifier: Apache-2.0
//! The control side of tables: turns rule changes into updates of each table and of its LUT, and installs
//! bases that were compiled in the background.

use crate::background_compile::BackgroundCompiler;
use crate::bypass::Measured;
use crate::entries::TableChanges;
use crate::lut_manager::LutManager;
use crate::stopwatch::{Costs, LookupCosts, TableCosts};
use flow::operation::MAC_TABLE;
use flow::{Nanos, TableId};
use keys::Extractor;
use pipeline::Update;
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::compile::Maker;
use tables::rule_table::RuleChange;
use tables::{RuleTable, RunInParallel, TableUpdate};

/// All tables, with their LUTs.
pub(crate) struct TableCompiler {
    rule_tables: Vec<RuleTable>,
    luts: LutManager,
    /// Measured costs of lookups in each worker.
    costs: Vec<Arc<Costs>>,
    /// Compiles bases in the background, if a thread was provided for it.
    background: Option<BackgroundCompiler>,
}

impl TableCompiler {
    /// Creates empty tables for workers with the given costs. `luts` creates the manager of the LUTs for the
    /// given number of tables.
    pub fn new(costs: Vec<Arc<Costs>>, luts: impl FnOnce(usize) -> LutManager) -> Self {
        let mut rule_tables = Vec::with_capacity(MAC_TABLE.index() + 1);
        rule_tables.resize_with(MAC_TABLE.index() + 1, RuleTable::default);
        Self { luts: luts(rule_tables.len()), rule_tables, costs, background: None }
    }

    /// Sets the thread that compiles bases in the background.
    pub fn set_background(&mut self, compiler: BackgroundCompiler) {
        self.background = Some(compiler);
    }

    /// Sets the function that builds the engines of all tables.
    pub fn set_maker(&mut self, maker: Maker) {
        self.rule_tables.iter_mut().for_each(|rule_table| rule_table.set_maker(maker));
    }

    /// Sets whether large additions may be compiled by several threads.
    pub fn set_run_in_parallel(&mut self, run_in_parallel: Option<RunInParallel>) {
        self.rule_tables.iter_mut().for_each(|rule_table| rule_table.set_run_in_parallel(run_in_parallel));
    }

    /// Returns the LUTs of all tables.
    pub fn luts(&self) -> &LutManager {
        &self.luts
    }

    /// Returns a table's rules.
    pub fn rule_table(&self, number: TableId) -> &RuleTable {
        &self.rule_tables[number.index()]
    }

    /// Returns the measured cost of looking up a packet in a table.
    pub fn lookup_costs(&self, number: TableId) -> LookupCosts {
        LookupCosts::over(self.costs(number))
    }

    fn costs(&self, number: TableId) -> impl Iterator<Item = &TableCosts> + Clone {
        self.costs.iter().filter_map(move |costs| costs.table(number))
    }

    /// Applies the changes that one operation makes to all tables.
    pub fn change(&mut self, tables: &BTreeMap<TableId, TableChanges>, parts: &mut [Vec<Update>]) {
        let in_all = tables.values().map(|changes| changes.rules.len()).sum();
        for (number, changes) in tables {
            self.luts.count(*number, changes.low_latency);
            if !changes.rules.is_empty() {
                self.rules(*number, &changes.rules, in_all, parts);
            }
            self.follow(*number, &changes.rules, parts);
        }
        for (number, changes) in tables.iter().filter(|(_, changes)| !changes.marks.is_empty()) {
            self.luts.marked(*number, &changes.marks, &mut parts[..self.costs.len()]);
        }
    }

    /// Applies rule changes to a table. `in_all` is the total number of changes in all tables.
    fn rules(&mut self, number: TableId, changes: &[RuleChange], in_all: usize, parts: &mut [Vec<Update>]) {
        let rule_table = &mut self.rule_tables[number.index()];
        let Ok(updates) = rule_table.change(changes, in_all, parts.len()) else {
            // The model refuses rules with more slices than fit into a key.
            debug_assert!(false, "table {number} got more slices than a key holds");
            return;
        };
        if let Some(background) = &mut self.background {
            background.follow(number, rule_table);
        }
        push_table_updates(number, updates, parts);
    }

    /// Updates the LUT of a table after its rules changed or it got a new base.
    fn follow(&mut self, number: TableId, changes: &[RuleChange], parts: &mut [Vec<Update>]) {
        let lookup_ps = self.lookup_costs(number).lookup_ps;
        let rule_table = &self.rule_tables[number.index()];
        // Search workers have no LUTs.
        self.luts.follow(number, rule_table, lookup_ps, changes, &mut parts[..self.costs.len()]);
    }

    /// Installs bases that were compiled in the background, requests further bases, and chooses how the
    /// fast-forwarding path looks up packets in each table. Returns whether there are updates to send.
    pub fn tick(&mut self, now: Nanos, parts: &mut [Vec<Update>]) -> bool {
        let mut changed = self.catch_up(parts);
        if let Some(background) = &mut self.background {
            let rule_tables = TableId::all().zip(&mut self.rule_tables);
            rule_tables.for_each(|(number, rule_table)| background.rest(now, number, rule_table));
        }
        for (number, rule_table) in TableId::all().zip(&self.rule_tables) {
            let costs = self.costs.iter().filter_map(|costs| costs.table(number));
            let parts = &mut parts[..self.costs.len()];
            changed |= self.luts.choose_mode(now, number, rule_table, || Measured::over(costs), parts);
        }
        changed
    }

    /// Advances the installation of bases that were compiled in the background. Returns whether there are
    /// updates to send.
    fn catch_up(&mut self, parts: &mut [Vec<Update>]) -> bool {
        let Some(background) = &mut self.background else { return false };
        while let Some((number, compiled)) = background.next() {
            self.rule_tables[number.index()].install(compiled);
        }
        let mut arrived = false;
        for number in TableId::all() {
            let rule_table = &mut self.rule_tables[number.index()];
            let Ok(Some(swaps)) = rule_table.catch_up(parts.len()) else { continue };
            push_table_updates(number, swaps, parts);
            // With the new base, the fast-forwarding path may need a LUT for the table, or no longer need
            // one.
            self.follow(number, &[], parts);
            arrived = true;
        }
        arrived
    }
}

/// Appends the updates of a table's views to each worker's updates.
fn push_table_updates(number: TableId, updates: Vec<Vec<TableUpdate>>, parts: &mut [Vec<Update>]) {
    for (parts, updates) in parts.iter_mut().zip(updates) {
        parts.extend(updates.into_iter().map(|update| match update {
            TableUpdate::Swap(table) => {
                let extractor = Extractor::new(table.plan());
                Update::SwapTable(number, Some(Box::new((*table, extractor))))
            }
            single => Update::Table(number, single),
        }));
    }
}
