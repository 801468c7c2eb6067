// SPDX-License-Identifier: Apache-2.0
//! The set of workers as a data plane: compiles operations, sends them to the workers, and reports counters
//! and events. All of it runs on the control thread.

use crate::background_compile::{BackgroundCompiler, BackgroundTask};
use crate::bypass::Measured;
use crate::cell_store::CellStore;
use crate::clock::Clock;
use crate::consistency::Consistency;
use crate::groups::Groups;
use crate::latency::{Latencies, LatencyCells};
use crate::lut_manager::{LutManager, LutState};
use crate::meters::Meters;
use crate::programs::{Programs, is_miss_entry};
use crate::published::{PortReport, PortReports, Published, WorkerUsage};
use crate::recording::Recording;
use crate::requeues::{Choice, Requeues};
use crate::sleep::{PublishFence, SleepFlag};
use crate::stopwatch::{Costs, LookupCosts};
use crate::wiring::WorkerSetConfig;
use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters,
    Totals,
};
use flow::operation::MAC_TABLE;
use flow::{DropReason, EgressQueue, EntryChange, EntryId, FlowEntry, Nanos, Operation, PortNo, PortState};
use frame::Frame;
use pipeline::{
    CompiledPacketOut, Counters, Extractor, PortTable, ProgramId, StatelessForwarder, Update, Updates,
};
use rtrb::{Consumer, Producer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tables::compile::Maker;
use tables::rule_table::RuleChange;
use tables::{RuleTable, TableUpdate};

/// Number of modified entries above which the cells are replaced page by page instead of one store each.
const MODIFIES_SINGLY: usize = 64;

/// The control thread's end of a worker's rings and shared state.
pub(crate) struct Link {
    pub requests: Producer<Box<Updates>>,
    pub retired: Consumer<Box<Updates>>,
    pub events: Consumer<Event>,
    pub recycle: Producer<Frame>,
    pub applied: Arc<AtomicU64>,
    pub sleeping: Arc<SleepFlag>,
    pub counters: Arc<Counters>,
    pub costs: Arc<Costs>,
    pub latencies: Arc<LatencyCells>,
    pub published: Published<WorkerUsage>,
    pub parked: VecDeque<Box<Updates>>,
    pub waker: Option<Box<dyn FnMut() + Send>>,
}

/// The compiled state of one entry.
#[derive(Clone, Copy, Debug)]
struct Running {
    program: ProgramId,
    miss_entry: bool,
    low_latency: bool,
    /// How the entry's instructions may choose an egress queue.
    choice: Choice,
}

/// Tables that an operation changes as a whole.
#[derive(Debug, Default)]
struct Changed {
    ports: bool,
    groups: bool,
    meters: bool,
    /// Whether flows may have moved to another egress queue because of a group.
    requeues: bool,
}

/// The set of workers as a data plane, on the control thread.
pub struct WorkerSet {
    pub(crate) links: Vec<Link>,
    pub(crate) port_reports: PortReports,
    rule_tables: Vec<RuleTable>,
    programs: Programs,
    /// Egress queues, by the number of each port that has any.
    pub(crate) egress: BTreeMap<PortNo, Vec<EgressQueue>>,
    requeues: Requeues,
    luts: LutManager,
    cells: CellStore,
    /// Compiled state by entry ID, for each entry that is not released yet.
    running: Vec<Option<Running>>,
    ports: BTreeMap<PortNo, PortState>,
    groups: Groups,
    meters: Meters,
    pub(crate) version: u64,
    next_link: usize,
    /// Compiles bases in the background, if a thread was provided for it.
    compiler: Option<BackgroundCompiler>,
    pub(crate) recording: Option<Recording>,
    /// Clock for the timestamps of recorded packets.
    pub(crate) clock: Option<fn() -> Nanos>,
    /// Clock for latencies.
    latency_clock: Clock,
}

impl WorkerSet {
    pub(crate) fn new(
        links: Vec<Link>,
        port_reports: PortReports,
        egress: BTreeMap<PortNo, Vec<EgressQueue>>,
        config: &WorkerSetConfig,
    ) -> Self {
        let mut rule_tables = Vec::with_capacity(usize::from(MAC_TABLE) + 1);
        rule_tables.resize_with(usize::from(MAC_TABLE) + 1, RuleTable::default);
        Self {
            luts: LutManager::new(config.lut_entries, config.consistency, links.len(), rule_tables.len()),
            cells: CellStore::new(links.len()),
            links,
            port_reports,
            rule_tables,
            programs: Programs::default(),
            requeues: Requeues::new(!egress.is_empty()),
            egress,
            running: Vec::new(),
            ports: BTreeMap::new(),
            groups: Groups::default(),
            meters: Meters::default(),
            version: 0,
            next_link: 0,
            compiler: None,
            recording: None,
            clock: config.stopwatch,
            latency_clock: config.clock,
        }
    }

    /// Sets the function that wakes a sleeping worker when an operation was queued for it.
    pub fn set_waker(&mut self, worker: usize, waker: Box<dyn FnMut() + Send>) {
        if let Some(link) = self.links.get_mut(worker) {
            link.waker = Some(waker);
        }
    }

    /// Enables background compilation of table bases. A table gets a new base once `least` rules are in its
    /// delta ([`BACKGROUND_ADDITIONS_MIN`](crate::BACKGROUND_ADDITIONS_MIN) is a good value). `run` gets one job at a time and executes
    /// it on another thread.
    ///
    /// Without background compilation, a table is compiled by the rule change that overflows its delta.
    pub fn set_compiler(&mut self, least: usize, run: Box<dyn FnMut(BackgroundTask) + Send>) {
        self.compiler = Some(BackgroundCompiler::new(least, run));
    }

    /// Sets the function that builds the engines of all tables, starting with the next base of each. For
    /// comparisons.
    pub fn set_maker(&mut self, maker: Maker) {
        self.rule_tables.iter_mut().for_each(|rule_table| rule_table.set_maker(maker));
    }

    /// Returns each port's link state as last reported by its queues: up if all of them are up. Omits ports
    /// of which a queue has not reported yet.
    #[must_use]
    pub fn port_links(&self) -> BTreeMap<PortNo, port::Link> {
        let mut links: BTreeMap<PortNo, port::Link> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (number, published) in &self.port_reports {
            match published.get() {
                Some(PortReport { link, .. }) => {
                    let join = |known: &mut port::Link| {
                        known.up &= link.up;
                        known.index = known.index.filter(|_| known.index == link.index);
                    };
                    links.entry(*number).and_modify(join).or_insert(link);
                }
                None => unknown.push(*number),
            }
        }
        links.retain(|number, _| !unknown.contains(number));
        links
    }

    /// Returns the name of the engine that serves a table, and the size in bytes of its compiled rules.
    #[must_use]
    pub fn engine(&self, table: u8) -> (&'static str, usize) {
        let rule_table = &self.rule_tables[usize::from(table)];
        (rule_table.engine_name(), rule_table.base_bytes())
    }

    /// Compiles an operation into updates. Tables that change as a whole are only marked, and compiled once
    /// at the end.
    fn take(&mut self, operation: Operation, changed: &mut Changed, parts: &mut [Vec<Update>]) {
        match operation {
            Operation::Entries(changes) => self.entries(&changes, parts),
            Operation::Port(state) => {
                self.ports.insert(state.number, state);
                (changed.ports, changed.requeues) = (true, changed.requeues || self.requeues.by_groups());
            }
            Operation::Group(group) => {
                self.groups.set(&group, self.links.len());
                changed.groups = true;
                changed.requeues |= self.requeues.is_on() && self.requeues.set_group(&group);
            }
            Operation::Meter(meter) => {
                changed.meters = true;
                if self.meters.set(&meter) {
                    parts.iter_mut().for_each(|parts| {
                        parts.push(Update::Lanes { promotes: true, requeues: false });
                    });
                }
            }
            Operation::RemoveMeter(id) => {
                self.meters.remove(id);
                changed.meters = true;
            }
            Operation::PacketOut(packet) => {
                // Only the first worker sends the packet. Its position among the updates preserves the order
                // of operations.
                if let Some(parts) = parts.first_mut() {
                    parts.push(Update::PacketOut(Box::new(CompiledPacketOut::compile(&packet))));
                }
            }
            Operation::RemoveGroup(id) => {
                self.groups.remove(id);
                changed.groups = true;
                changed.requeues |= self.requeues.remove_group(id);
            }
            Operation::RemovePort(number) => {
                self.ports.remove(&number);
                (changed.ports, changed.requeues) = (true, changed.requeues || self.requeues.by_groups());
            }
            Operation::Settings(settings) => {
                parts.iter_mut().for_each(|parts| parts.push(Update::Settings(settings)));
            }
            Operation::Stateless(config) => {
                let forwarder = config.map(|config| Arc::new(StatelessForwarder::compile(&config)));
                for parts in parts {
                    parts.push(Update::SwapStateless(forwarder.clone()));
                    // Flows may move between the tables and the stateless forwarder, and so to another lane
                    // or egress queue.
                    parts.push(Update::Lanes { promotes: true, requeues: true });
                }
            }
            Operation::All(_) => debug_assert!(false, "operations that are one do not nest"),
        }
    }

    /// Returns the tables on the fast-forwarding path, each with the figures of its LUT if it has one.
    pub fn fast_tables(&self) -> impl Iterator<Item = (u8, Option<LutState>)> + '_ {
        self.luts.tables()
    }

    /// Returns whether the fast-forwarding path uses the table without a LUT because the LUT would cost more
    /// than it saves.
    #[must_use]
    pub fn is_bypassed(&self, table: u8) -> bool {
        self.luts.is_bypassed(table)
    }

    /// Returns the measured cost of looking up a packet in a table.
    #[must_use]
    pub fn lookup_costs(&self, table: u8) -> LookupCosts {
        LookupCosts::over(self.links.iter().filter_map(|link| link.costs.table(table)))
    }

    /// Returns how long frames stayed in the switch, by lane.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        Latencies::over(&self.latency_clock, self.links.iter().map(|link| &*link.latencies))
    }

    /// Returns the number of records that each LUT can hold; 0: there is no fast-forwarding path.
    #[must_use]
    pub fn lut_entries(&self) -> usize {
        self.luts.entries()
    }

    /// Returns how LUT records are kept consistent with rule changes.
    #[must_use]
    pub fn consistency(&self) -> Consistency {
        self.luts.consistency()
    }

    fn entries(&mut self, changes: &[EntryChange], parts: &mut [Vec<Update>]) {
        let mut rules: BTreeMap<u8, Vec<RuleChange>> = BTreeMap::new();
        let mut modified: Vec<(EntryId, ProgramId)> = Vec::new();
        let mut reset: Vec<EntryId> = Vec::new();
        let mut marked: BTreeMap<u8, Vec<(EntryId, bool)>> = BTreeMap::new();
        let mut requeues = self.requeue(changes);
        for change in changes {
            match change {
                EntryChange::Add(entry) => {
                    self.add_entry(entry);
                    rules.entry(entry.table).or_default().push(RuleChange::Add(Arc::clone(entry)));
                }
                EntryChange::Modify { id, table, instructions, low_latency, reset_counts } => {
                    let Some(Some(running)) = self.running.get_mut(*id as usize) else { continue };
                    let low_latency = *low_latency && instructions.may_be_low_latency();
                    let program = self.programs.acquire(instructions, low_latency, running.miss_entry);
                    self.programs.release(std::mem::replace(&mut running.program, program));
                    let choice = Choice::of(instructions);
                    self.requeues.count(*table, std::mem::replace(&mut running.choice, choice), false);
                    self.requeues.count(*table, choice, true);
                    let before = std::mem::replace(&mut running.low_latency, low_latency);
                    if before != low_latency {
                        self.luts.count(*table, if low_latency { 1 } else { -1 });
                        rules.entry(*table).or_default();
                        marked.entry(*table).or_default().push((*id, low_latency));
                    }
                    modified.push((*id, program));
                    reset.extend(reset_counts.then_some(*id));
                }
                EntryChange::Remove { id, table } => {
                    if let Some(Some(running)) = self.running.get(*id as usize) {
                        self.requeues.count(*table, running.choice, false);
                        if running.low_latency {
                            self.luts.count(*table, -1);
                        }
                    }
                    rules.entry(*table).or_default().push(RuleChange::Remove(*id));
                }
            }
        }
        let big = modified.len() > MODIFIES_SINGLY;
        if big {
            let ids: Vec<EntryId> = modified.iter().map(|(id, _)| *id).collect();
            let running = &self.running;
            let program = |id: EntryId| Some((*running.get(id as usize)?)?.program);
            self.cells.replace(&ids, program, self.version);
        }
        self.cells.reset(&reset, self.version);
        self.programs.updates(parts);
        self.cells.updates(parts);
        let in_all = rules.values().map(Vec::len).sum();
        for (table, changes) in rules {
            self.table(table, &changes, in_all, parts);
        }
        for (table, marks) in marked {
            self.luts.marked(table, &marks, parts);
        }
        requeues |= self.requeue(changes);
        let lanes = lanes_after(changes);
        for parts in parts.iter_mut() {
            parts.extend(lanes.map(|promotes| Update::Lanes { promotes, requeues }));
        }
        if !big {
            for parts in parts {
                parts.extend(modified.iter().map(|(id, program)| Update::Entry(*id, *program)));
                // A new page of cells starts with counters at 0.
                parts.extend(reset.iter().map(|id| Update::ResetCounts(*id)));
            }
        }
    }

    /// Prepares an entry that is added: its program, its cell and what is counted by table.
    fn add_entry(&mut self, entry: &FlowEntry) {
        let miss_entry = is_miss_entry(entry);
        let low_latency = is_low_latency(entry);
        let program = self.programs.acquire(&entry.instructions, low_latency, miss_entry);
        self.cells.prepare(entry.id, program, entry.priority);
        let at = entry.id as usize;
        if self.running.len() <= at {
            self.running.resize(at + 1, None);
        }
        let choice = Choice::of(&entry.instructions);
        self.requeues.count(entry.table, choice, true);
        self.running[at] = Some(Running { program, miss_entry, low_latency, choice });
        self.luts.count(entry.table, isize::from(low_latency));
    }

    /// Returns whether these changes may move flows to another egress queue. Called before and after the
    /// changes are applied, because both the old and the new rules count.
    fn requeue(&self, changes: &[EntryChange]) -> bool {
        let table = |change: &EntryChange| match change {
            EntryChange::Add(entry) => entry.table,
            EntryChange::Modify { table, .. } | EntryChange::Remove { table, .. } => *table,
        };
        self.requeues.is_on() && changes.iter().any(|change| self.requeues.by_table(table(change)))
    }

    fn table(&mut self, number: u8, changes: &[RuleChange], in_all: usize, parts: &mut [Vec<Update>]) {
        if !changes.is_empty() {
            self.rules(number, changes, in_all, parts);
        }
        let lookup_ps = self.lookup_costs(number).lookup_ps;
        self.luts.follow(number, (&self.rule_tables[usize::from(number)], lookup_ps), changes, parts);
    }

    fn rules(&mut self, number: u8, changes: &[RuleChange], in_all: usize, parts: &mut [Vec<Update>]) {
        let rule_table = &mut self.rule_tables[usize::from(number)];
        let Ok(updates) = rule_table.change(changes, in_all, parts.len()) else {
            // The model refuses rules with more slices than a key holds.
            debug_assert!(false, "table {number} got more slices than a key holds");
            return;
        };
        if let Some(compiler) = &mut self.compiler {
            compiler.follow(number, rule_table);
        }
        push_table_updates(number, updates, parts);
    }

    /// Advances the installation of bases that were compiled in the background. Returns whether there are
    /// updates to send.
    fn catch_up(&mut self, parts: &mut [Vec<Update>]) -> bool {
        let Some(compiler) = &mut self.compiler else { return false };
        while let Some((number, compiled)) = compiler.next() {
            self.rule_tables[usize::from(number)].install(compiled);
        }
        let mut arrived = false;
        for number in 0..=MAC_TABLE {
            let rule_table = &mut self.rule_tables[usize::from(number)];
            let Ok(Some(swaps)) = rule_table.catch_up(parts.len()) else { continue };
            push_table_updates(number, swaps, parts);
            // With the new base, the fast-forwarding path may need a LUT for the table, or no longer need
            // one.
            self.table(number, &[], 0, parts);
            arrived = true;
        }
        arrived
    }

    fn port_table(&self, parts: &mut [Vec<Update>]) {
        let table = Arc::new(PortTable::new(self.ports.values().copied().collect()));
        for parts in parts {
            parts.push(Update::SwapPorts(Arc::clone(&table)));
        }
    }

    /// Queues each worker's updates after all earlier ones.
    fn send(&mut self, parts: Vec<Vec<Update>>) {
        for (link, parts) in self.links.iter_mut().zip(parts) {
            link.parked.push_back(Box::new(Updates { version: self.version, parts }));
        }
        self.reclaim_and_flush();
    }

    /// Moves parked updates into the rings, frees retired updates, and folds the counters of retired pages.
    pub(crate) fn reclaim_and_flush(&mut self) {
        for link in &mut self.links {
            while link.retired.pop().is_ok() {}
            let mut moved = false;
            while let Some(updates) = link.parked.pop_front() {
                if let Err(rtrb::PushError::Full(updates)) = link.requests.push(updates) {
                    link.parked.push_front(updates);
                    break;
                }
                moved = true;
            }
            if moved {
                wake_worker(link);
            }
        }
        let links = &self.links;
        self.cells.fold(|worker| links[worker].applied.load(Ordering::Acquire));
    }
}

/// Appends the updates of a table's views to each worker's parts.
fn push_table_updates(number: u8, updates: Vec<Vec<TableUpdate>>, parts: &mut [Vec<Update>]) {
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

/// Returns whether packets that hit the entry stay low-latency: it is marked, and its instructions permit it.
pub(crate) fn is_low_latency(entry: &FlowEntry) -> bool {
    entry.low_latency && entry.instructions.may_be_low_latency()
}

/// Returns whether flows may change their lane by these changes; `Some(true)`: also from normal to
/// low-latency. A packet is low-latency if all entries that it hits are. MAC table entries do not count.
fn lanes_after(changes: &[EntryChange]) -> Option<bool> {
    let promotes = changes.iter().filter_map(|change| match change {
        EntryChange::Add(entry) => (entry.table != MAC_TABLE).then_some(entry.low_latency),
        EntryChange::Modify { table, low_latency, .. } => (*table != MAC_TABLE).then_some(*low_latency),
        // After the removal, another entry may match its packets.
        EntryChange::Remove { table, .. } => (*table != MAC_TABLE).then_some(true),
    });
    promotes.reduce(|one, other| one || other)
}

/// Wakes a worker if it sleeps.
fn wake_worker(link: &mut Link) {
    if link.sleeping.is_set(&PublishFence::new())
        && let Some(waker) = &mut link.waker
    {
        waker();
    }
}

impl DataPlane for WorkerSet {
    fn submit(&mut self, operation: Operation) -> u64 {
        self.version += 1;
        let mut parts: Vec<Vec<Update>> = self.links.iter().map(|_| Vec::new()).collect();
        let mut changed = Changed::default();
        match operation {
            Operation::All(all) => {
                for operation in all {
                    self.take(operation, &mut changed, &mut parts);
                }
            }
            one => self.take(one, &mut changed, &mut parts),
        }
        if changed.ports {
            self.port_table(&mut parts);
        }
        if changed.groups {
            self.groups.updates(&mut parts);
        }
        if changed.meters {
            self.meters.updates(&mut parts);
        }
        if changed.requeues {
            let lanes = || Update::Lanes { promotes: false, requeues: true };
            parts.iter_mut().for_each(|parts| parts.push(lanes()));
        }
        self.send(parts);
        self.version
    }

    fn tick(&mut self, now: Nanos) {
        let mut parts: Vec<Vec<Update>> = self.links.iter().map(|_| Vec::new()).collect();
        let mut changed = self.catch_up(&mut parts);
        if let Some(compiler) = &mut self.compiler {
            let rule_tables = (0..=u8::MAX).zip(&mut self.rule_tables);
            rule_tables.for_each(|(number, rule_table)| compiler.rest(now, number, rule_table));
        }
        for (number, rule_table) in (0..=u8::MAX).zip(&self.rule_tables) {
            let measured = || Measured::over(self.links.iter().filter_map(|link| link.costs.table(number)));
            changed |= self.luts.choose_mode(now, number, rule_table, measured, &mut parts);
        }
        if changed {
            // The version stays: which way packets are looked up does not change the result.
            self.send(parts);
        }
    }

    fn applied(&mut self) -> u64 {
        self.reclaim_and_flush();
        self.links.iter().map(|link| link.applied.load(Ordering::Acquire)).min().unwrap_or(self.version)
    }

    fn parked(&self) -> usize {
        self.links.iter().map(|link| link.parked.len()).max().unwrap_or(0)
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        self.cells.counters(id)
    }

    fn release(&mut self, id: EntryId) {
        if let Some(running) = self.running.get_mut(id as usize).and_then(Option::take) {
            self.programs.release(running.program);
        }
        self.cells.release(id);
    }

    fn table_counters(&mut self, table: u8) -> TableCounters {
        let mut sum = TableCounters::default();
        for link in &self.links {
            let (lookups, matches) = link.counters.table(table);
            sum.lookups += lookups;
            sum.matches += matches;
        }
        sum
    }

    fn group_counters(&mut self, id: u32) -> Option<GroupCounters> {
        self.groups.counters(id)
    }

    fn meter_counters(&mut self, id: u32) -> Option<MeterCounters> {
        self.meters.counters(id)
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        let mut sum = port::Statistics::default();
        let (mut known, mut queue_full) = (false, 0);
        for (_, published) in self.port_reports.iter().filter(|(number, _)| *number == port) {
            let report = published.get().unwrap_or_default();
            sum.add(&report.statistics);
            queue_full += report.queues.iter().map(|queue| queue.dropped).sum::<u64>();
            known = true;
        }
        let queue_drop = (queue_full > 0).then_some((DropReason::QueueFull.name(), queue_full));
        known.then(|| PortCounters {
            rx_packets: sum.rx_packets,
            rx_bytes: sum.rx_bytes,
            tx_packets: sum.tx_packets,
            tx_bytes: sum.tx_bytes,
            rx_dropped: sum.rx_dropped(),
            tx_dropped: sum.tx_dropped() + queue_full,
            by_name: sum.named_drops().filter(|(_, count)| *count != 0).chain(queue_drop).collect(),
        })
    }

    fn queues(&mut self, port: PortNo) -> Vec<PortQueue> {
        self.port_queues(port)
    }

    fn totals(&mut self) -> Totals {
        let mut totals = Totals {
            dropped: vec![0; DropReason::ALL.len()],
            copies_dropped: vec![0; DropReason::ALL.len()],
            ..Totals::default()
        };
        for link in &self.links {
            let (burst_counters, held) = link.counters.read();
            totals.received += burst_counters.received;
            totals.forwarded += burst_counters.forwarded;
            totals.consumed += burst_counters.consumed;
            totals.fast += burst_counters.fast;
            totals.stateless += burst_counters.stateless;
            totals.held_back += burst_counters.held_back;
            totals.copies += burst_counters.copies;
            totals.held += held;
            for (sum, count) in totals.dropped.iter_mut().zip(burst_counters.dropped) {
                *sum += count;
            }
            for (sum, count) in totals.copies_dropped.iter_mut().zip(burst_counters.copies_dropped) {
                *sum += count;
            }
        }
        totals
    }

    fn next_event(&mut self) -> Option<Event> {
        for _ in 0..self.links.len() {
            let at = self.next_link;
            self.next_link = (at + 1) % self.links.len();
            if let Ok(event) = self.links[at].events.pop() {
                return Some(event);
            }
        }
        None
    }

    fn recycle(&mut self, frame: Frame) {
        let worker = usize::from(frame.home() & !crate::egress::STOCK);
        if let Some(link) = self.links.get_mut(worker) {
            // The ring's capacity is the size of the whole stock of controller frames.
            let pushed = link.recycle.push(frame);
            debug_assert!(pushed.is_ok(), "more frames come home than there are");
        }
    }
}
