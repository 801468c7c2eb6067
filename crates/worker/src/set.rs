// SPDX-License-Identifier: Apache-2.0
//! The set of workers as a data plane. All of it runs on the control thread.
//!
//! The set only connects its parts: the compiler turns operations into updates, the links carry the updates
//! to the workers, the reporter reads the workers' counters, and the recording collects records for traces.

use crate::background_compile::{BackgroundCompiler, BackgroundTask};
use crate::compiler::OperationCompiler;
use crate::config::WorkerSetConfig;
use crate::consistency::Consistency;
use crate::express_caches::ExpressState;
use crate::latency::Latencies;
use crate::link::Links;
use crate::lut_manager::LutState;
use crate::mirror::{MirrorCounts, MirrorId};
use crate::port_plan::{PortPlan, PortsChanged, PortsUpdate, PreparedPorts};
use crate::recording::Recording;
use crate::reporter::Reporter;
use crate::search::SearchWorker;
use crate::stopwatch::LookupCosts;
use dataplane::{
    DataPlane, DropCounts, EntryCounters, Event, ExpressFigures, GroupCounters, MeterCounters, PortCounters,
    PortQueue, SearcherEvent, TableCounters, Totals, TraceRecord,
};
use flow::{
    DropReason, EntryId, Field, GroupId, Match, MeterId, Nanos, Operation, PortNo, RuleVersion, TableId,
};
use frame::Frame;
use keys::{ExpressPlan, PlanVersion};
use pipeline::Update;
use port_cache::{MissFigures, MissUsage, PortCacheConfig};
use std::collections::{BTreeMap, BTreeSet};
use tables::RunInParallel;
use tables::compile::Maker;

/// The set of workers as a data plane, on the control thread.
pub struct WorkerSet {
    pub(crate) links: Links,
    pub(crate) reporter: Reporter,
    compiler: OperationCompiler,
    recording: Recording,
    ports: PortPlan,
    port_cache: Option<PortCacheConfig>,
    search_worker: Option<SearchWorker>,
    /// Workers whose searches the search worker does not answer.
    unanswered: BTreeSet<u16>,
}

impl WorkerSet {
    pub(crate) fn new(
        links: Links,
        reporter: Reporter,
        compiler: OperationCompiler,
        ports: PortPlan,
        config: &WorkerSetConfig,
        search_worker: Option<SearchWorker>,
    ) -> Self {
        let port_cache = config.port_cache.filter(|_| config.express_records > 0);
        let recording = Recording::new(config.stopwatch);
        let unanswered = BTreeSet::new();
        Self { links, reporter, compiler, recording, ports, port_cache, search_worker, unanswered }
    }

    /// Takes the search worker, if the port caches have one. Its owner calls [`SearchWorker::turn`]. Its
    /// waker is that of the worker after the last one. Without poll iterations, packets are soon looked up in
    /// the other workers' own tables.
    pub fn take_search_worker(&mut self) -> Option<SearchWorker> {
        self.search_worker.take()
    }

    /// Returns the number of workers whose searches the search worker does not answer. They look up packets
    /// in their own tables.
    #[must_use]
    pub fn unanswered_workers(&self) -> usize {
        self.unanswered.len()
    }

    /// Returns whether rule changes reach the search worker, if there is one.
    #[must_use]
    pub fn reaches_search_worker(&self) -> bool {
        self.links.reach_search_worker()
    }

    /// Changes the ports of the running workers. Each worker exchanges its parts between two bursts, after
    /// all operations submitted so far. A port cache has the ports of the start, so with one, no port is
    /// added or removed. The threads that sleep on the devices must be woken when the change is complete.
    pub fn change_ports(&mut self, update: PortsUpdate) -> PortsChanged {
        debug_assert!(
            self.port_cache.is_none() || (update.removed.is_empty() && update.added.is_empty()),
            "a port cache has the ports of the start"
        );
        let removed = update.removed.clone();
        let mirrors_removed = update.mirrors_removed.clone();
        let PreparedPorts { changes, reports, mirrors, changed } = self.ports.change(update);
        let egress = self.ports.egress();
        self.compiler.set_queues(!egress.is_empty());
        self.reporter.change_ports(&removed, reports, egress);
        self.reporter.change_mirrors(&mirrors_removed, mirrors);
        for (worker, change) in changes.into_iter().enumerate() {
            self.links.park_ports(worker, change);
        }
        self.reclaim_and_flush();
        changed
    }

    /// Sets the function that wakes a sleeping worker after an operation was queued for it.
    pub fn set_waker(&mut self, worker: usize, waker: Box<dyn FnMut() + Send>) {
        self.links.set_waker(worker, waker);
    }

    /// Enables background compilation of table bases. A table gets a new base once `least` rules are in its
    /// delta; [`BACKGROUND_ADDITIONS_MIN`](crate::BACKGROUND_ADDITIONS_MIN) is a good value. `run` is called
    /// with one job at a time and must execute it on another thread.
    ///
    /// Without background compilation, a table is compiled by the rule change that overflows its delta.
    pub fn set_compiler(&mut self, least: usize, run: Box<dyn FnMut(BackgroundTask) + Send>) {
        self.compiler.tables.set_background(BackgroundCompiler::new(least, run));
    }

    /// Sets the function by which an operation that adds many entries is compiled by several threads. Without
    /// it, only the calling thread is used.
    pub fn set_run_in_parallel(&mut self, run_in_parallel: Option<RunInParallel>) {
        self.compiler.set_run_in_parallel(run_in_parallel);
    }

    /// Sets the function that builds the engines of all tables, starting with the next base of each table.
    /// Benchmarks use it for comparisons.
    pub fn set_maker(&mut self, maker: Maker) {
        self.compiler.tables.set_maker(maker);
    }

    /// Returns each port's link state as last reported by its queues: up if all of them are up. Ports with a
    /// queue that has not reported yet are omitted.
    #[must_use]
    pub fn port_links(&self) -> BTreeMap<PortNo, port::Link> {
        self.reporter.port_links()
    }

    /// Returns the name of the engine that serves a table, and the size in bytes of its compiled rules.
    #[must_use]
    pub fn engine(&self, table: TableId) -> (&'static str, usize) {
        let rule_table = self.compiler.tables.rule_table(table);
        (rule_table.engine_name(), rule_table.base_bytes())
    }

    /// Returns the tables on the fast-forwarding path, each with the figures of its LUT if it has one.
    pub fn fast_tables(&self) -> impl Iterator<Item = (TableId, Option<LutState>)> + '_ {
        self.compiler.tables.luts().tables()
    }

    /// Returns the bits of each field that the LUTs examine, for all tables. LUTs may examine more bits than
    /// the rules.
    pub fn lut_examined(&self) -> impl Iterator<Item = (Field, u128)> + '_ {
        let luts = self.compiler.tables.luts();
        TableId::all().flat_map(|table| luts.examined(table).iter().copied())
    }

    /// Returns the plan of the express path's keys.
    #[must_use]
    pub fn express_plan(&self) -> &ExpressPlan {
        self.compiler.express.plan()
    }

    /// Returns the bits of each field that the keys of path records hold. The keys may hold more bits than
    /// the plan, because records of the previous plan stay in use for a while.
    pub fn express_examined(&self) -> impl Iterator<Item = (Field, u128)> + '_ {
        self.compiler.records.examined()
    }

    /// Returns the version of the previous plan of the express path's keys, while its records are in use.
    #[must_use]
    pub fn express_previous(&self) -> Option<PlanVersion> {
        self.compiler.records.previous()
    }

    /// Returns the number of path records per worker, or 0 if the express path is off.
    #[must_use]
    pub fn express_records(&self) -> usize {
        self.compiler.records.records()
    }

    /// Returns the counters of the express path, summed over the workers.
    #[must_use]
    pub fn express_figures(&self) -> ExpressFigures {
        self.compiler.records.figures()
    }

    /// Returns the counters of a mirror since it was added, summed over the workers, or `None` if there is no
    /// such mirror.
    #[must_use]
    pub fn mirror_counts(&self, id: MirrorId) -> Option<MirrorCounts> {
        self.reporter.mirror_counts(id)
    }

    /// Returns the counters of the port caches, summed over the workers.
    #[must_use]
    pub fn miss_figures(&self) -> MissFigures {
        self.reporter.miss_figures()
    }

    /// Returns the settings of the port cache, or `None` if it is off.
    #[must_use]
    pub fn port_cache(&self) -> Option<&PortCacheConfig> {
        self.port_cache.as_ref()
    }

    /// Returns the counters of the port cache of each worker and port, and the use of its budgets. The first
    /// element is the number of the worker.
    pub fn port_caches(&self) -> impl Iterator<Item = (usize, PortNo, MissFigures, MissUsage)> {
        self.reporter.port_caches()
    }

    /// Returns whether packets that hit these entries, one in each table, can have a path record. `None`
    /// stands for a table miss.
    #[must_use]
    pub fn has_path_record(&self, entries: &[Option<EntryId>]) -> bool {
        let entries = entries.iter().map(|id| id.and_then(|id| self.compiler.entries.program(id)));
        keys::is_recordable(entries, self.compiler.records.permitted())
    }

    /// Returns the state of each worker's path records.
    pub fn express_states(&self) -> impl Iterator<Item = ExpressState> + '_ {
        self.compiler.records.states()
    }

    /// Returns the tables that packets can reach. The express path's keys hold the bits that these tables
    /// examine.
    pub fn express_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.compiler.express.reached()
    }

    /// Returns whether the fast-forwarding path uses the table without a LUT because the LUT would cost more
    /// than it saves.
    #[must_use]
    pub fn is_bypassed(&self, table: TableId) -> bool {
        self.compiler.tables.luts().is_bypassed(table)
    }

    /// Returns the measured cost of looking up a packet in a table.
    #[must_use]
    pub fn lookup_costs(&self, table: TableId) -> LookupCosts {
        self.compiler.tables.lookup_costs(table)
    }

    /// Returns how long frames stayed in the switch, by lane.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        self.reporter.latencies()
    }

    /// Returns the number of records that each LUT can hold, or 0 if there is no fast-forwarding path.
    #[must_use]
    pub fn lut_entries(&self) -> usize {
        self.compiler.tables.luts().entries()
    }

    /// Returns how LUT records are kept consistent with rule changes.
    #[must_use]
    pub fn consistency(&self) -> Consistency {
        self.compiler.tables.luts().consistency()
    }

    /// Makes every worker record the next `count` packets that match on receive. Returns false, and changes
    /// nothing, if a recording is active already.
    pub fn record(&mut self, matching: &Match, count: u64) -> bool {
        let started = self.recording.start(matching, count, &mut self.links);
        if started {
            self.reclaim_and_flush();
        }
        started
    }

    /// Ends the recording, if there is one, and discards records that were not taken.
    pub fn stop_recording(&mut self) {
        if self.recording.stop(&mut self.links) {
            self.reclaim_and_flush();
        }
    }

    /// Returns whether a recording is active.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.recording.is_active()
    }

    /// Takes the next record of the active recording, or `None` if there is none.
    pub fn next_record(&mut self) -> Option<TraceRecord> {
        self.recording.next_record()
    }

    /// Returns the number of recorded packets whose record was lost because the ring was full.
    #[must_use]
    pub fn records_lost(&self) -> u64 {
        self.recording.lost()
    }

    /// Queues each worker's updates after all earlier ones.
    fn send(&mut self, parts: Vec<Vec<Update>>) {
        for (worker, parts) in parts.into_iter().enumerate() {
            self.links.park(worker, parts);
        }
        self.reclaim_and_flush();
    }

    /// Moves parked updates into the rings, frees retired updates, and adds up the counters of retired pages
    /// that workers no longer use.
    fn reclaim_and_flush(&mut self) {
        self.links.flush();
        self.compiler.entries.fold(|worker| self.links.applied_by(worker));
    }
}

impl DataPlane for WorkerSet {
    fn submit(&mut self, operation: Operation) -> RuleVersion {
        let version = self.links.begin_version();
        let parts = self.compiler.compile(operation, version);
        self.send(parts);
        version
    }

    fn tick(&mut self, now: Nanos) {
        self.links.tend(now);
        if let Some(parts) = self.compiler.tick(now) {
            // The version stays the same, because the method of lookup does not change its result.
            self.send(parts);
        }
    }

    fn applied(&mut self) -> RuleVersion {
        self.reclaim_and_flush();
        self.links.applied()
    }

    fn parked(&self) -> usize {
        self.links.parked()
    }

    fn counted_until(&mut self) -> Nanos {
        self.links.counted_until()
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        self.compiler.entries.counters(id)
    }

    fn release(&mut self, id: EntryId) {
        self.compiler.entries.release(id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        self.reporter.table_counters(table)
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        self.compiler.groups.counters(id)
    }

    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters> {
        self.compiler.meters.counters(id)
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        self.reporter.port_counters(port)
    }

    fn queues(&mut self, port: PortNo) -> Vec<PortQueue> {
        self.reporter.port_queues(port)
    }

    fn totals(&mut self) -> Totals {
        let (mut totals, unsent) = (self.reporter.totals(), self.compiler.unsent);
        totals.received += unsent;
        totals.dropped +=
            DropCounts::from_fn(|reason| if reason == DropReason::NoWorker { unsent } else { 0 });
        totals
    }

    fn next_event(&mut self) -> Option<Event> {
        let event = self.links.next_event();
        if let Some(Event::Searcher(SearcherEvent { worker, is_answering })) = event {
            if is_answering {
                self.unanswered.remove(&worker)
            } else {
                self.unanswered.insert(worker)
            };
        }
        event
    }

    fn recycle(&mut self, frame: Frame) {
        self.links.recycle(frame);
    }
}
