// SPDX-License-Identifier: Apache-2.0
//! Compiles operations into updates for each worker.
//!
//! Entries, tables, groups and meters each keep their own state; this module puts their updates into the
//! right order. Data that is replaced as a whole, such as the table of ports, is compiled once at the end of
//! an operation.

use crate::config::WorkerSetConfig;
use crate::entries::{Applied, Entries};
use crate::express_caches::ExpressCaches;
use crate::express_planner::ExpressPlanner;
use crate::groups::Groups;
use crate::mac_limits::MacLimits;
use crate::meters::Meters;
use crate::requeues::Requeues;
use crate::table_compiler::TableCompiler;
use actions::CompiledPacketOut;
use dataplane::PortTable;
use flow::operation::{MAC_TABLE, PacketOut, Releases};
use flow::{BridgeConfig, EntryChange, Nanos, Operation, PortNo, PortState, RuleVersion};
use pipeline::{Bridge, BypassLimits, Update};
use stateless::StatelessForwarder;
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::{PARALLEL_MIN, RunInParallel};

/// Data that an operation changed and that is replaced as a whole.
#[derive(Debug, Default)]
struct Changed {
    ports: bool,
    groups: bool,
    meters: bool,
    /// Whether flows may have moved to another egress queue because of a group.
    requeues: bool,
}

/// Compiled form of everything that operations can change.
pub(crate) struct OperationCompiler {
    /// Number of workers that forward packets.
    workers: usize,
    /// Number of these workers and search workers. Search workers come last, and have only tables.
    views: usize,
    pub entries: Entries,
    pub tables: TableCompiler,
    pub groups: Groups,
    pub meters: Meters,
    ports: BTreeMap<PortNo, PortState>,
    bridge: Option<Arc<Bridge>>,
    mac_limits: MacLimits,
    requeues: Requeues,
    pub express: ExpressPlanner,
    pub records: ExpressCaches,
    /// Whether packets may wait for packet-outs of the controller.
    quenches: bool,
    /// Number of packet-outs that were dropped, because there are no workers.
    pub unsent: u64,
    /// Runs two functions at the same time, if large additions may be compiled by several threads.
    run_in_parallel: Option<RunInParallel>,
}

impl OperationCompiler {
    pub fn new(tables: TableCompiler, requeues: Requeues, config: &WorkerSetConfig) -> Self {
        let (workers, views) = (config.workers, config.views());
        // Packets that bypass the express path would overtake packets that wait in the port cache.
        let bypass = if config.port_cache.is_some() { BypassLimits::NEVER } else { config.express_bypass };
        Self {
            workers,
            views,
            entries: Entries::new(workers, views),
            tables,
            groups: Groups::new(workers, views),
            meters: Meters::default(),
            ports: BTreeMap::new(),
            bridge: None,
            mac_limits: MacLimits::default(),
            requeues,
            express: ExpressPlanner::new(),
            records: ExpressCaches::new(workers, config.express_records, bypass),
            quenches: config.port_cache.is_some_and(|cache| cache.quench.is_some()),
            unsent: 0,
            run_in_parallel: None,
        }
    }

    /// States whether any port has egress queues.
    pub fn set_queues(&mut self, are_there: bool) {
        self.requeues.set_on(are_there);
    }

    /// Sets whether large additions may be compiled by several threads.
    pub fn set_run_in_parallel(&mut self, run_in_parallel: Option<RunInParallel>) {
        self.run_in_parallel = run_in_parallel;
        self.tables.set_run_in_parallel(run_in_parallel);
    }

    fn no_parts(&self) -> Vec<Vec<Update>> {
        (0..self.views).map(|_| Vec::new()).collect()
    }

    /// Compiles an operation that becomes active with `version`. Returns each worker's updates.
    pub fn compile(&mut self, operation: Operation, version: RuleVersion) -> Vec<Vec<Update>> {
        let mut parts = self.no_parts();
        let mut changed = Changed::default();
        match operation {
            Operation::All(all) => {
                for operation in all {
                    self.take(operation, version, &mut changed, &mut parts);
                }
            }
            one => self.take(one, version, &mut changed, &mut parts),
        }
        if changed.ports {
            let highest = self.ports.last_key_value().map_or(PortNo(0), |(number, _)| *number);
            self.express.set_highest_port(highest, &self.tables);
            self.port_table(&mut parts);
        }
        if changed.groups {
            self.groups.updates(&mut parts);
        }
        if changed.meters {
            // A search must take no tokens, so search workers have no meters.
            self.meters.updates(&mut parts[..self.workers]);
        }
        self.mac_limits.updates(self.workers, &mut parts);
        if changed.requeues {
            let lanes = || Update::Lanes { promotes: false, requeues: true };
            parts.iter_mut().for_each(|parts| parts.push(lanes()));
        }
        // The keys of the records must hold every bit that the new rules examine.
        self.records.follow(self.express.plan(), self.express.is_coarse(), &mut parts[..self.workers]);
        parts
    }

    /// Does background work. Returns each worker's updates, if there are any. They do not change the result
    /// of any lookup.
    pub fn tick(&mut self, now: Nanos) -> Option<Vec<Vec<Update>>> {
        let mut parts = self.no_parts();
        self.express.tick(now, &self.tables);
        let with_records = &mut parts[..self.workers];
        let mut is_new = self.records.tick(now, with_records);
        is_new |= self.records.follow(self.express.plan(), self.express.is_coarse(), with_records);
        (self.tables.tick(now, &mut parts) || is_new).then_some(parts)
    }

    /// Compiles one operation, except for data that is replaced as a whole.
    fn take(
        &mut self,
        operation: Operation,
        version: RuleVersion,
        changed: &mut Changed,
        parts: &mut [Vec<Update>],
    ) {
        match operation {
            Operation::Entries(changes) => self.change_entries(&changes, version, parts),
            Operation::Port(state) => {
                self.ports.insert(state.number, state);
                (changed.ports, changed.requeues) = (true, changed.requeues || self.requeues.by_groups());
            }
            Operation::Group(group) => {
                self.groups.set(&group);
                self.express.set_group(&group, &self.tables);
                changed.groups = true;
                changed.requeues |= self.requeues.set_group(&group);
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
            Operation::PacketOut(packet) => self.send_packet(&packet, parts),
            Operation::EndWaits(flows) => {
                for (worker, parts) in parts.iter_mut().take(self.workers).enumerate() {
                    let of_worker = flows.iter().filter(|flow| usize::from(flow.worker) == worker);
                    parts.push(Update::EndWaits(of_worker.copied().collect()));
                }
            }
            Operation::RemoveGroup(id) => {
                self.groups.remove(id);
                self.express.remove_group(id);
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
                    // Flows may move between the tables and the stateless forwarder, and thereby to another
                    // lane or egress queue.
                    parts.push(Update::Lanes { promotes: true, requeues: true });
                }
            }
            Operation::Bridge(config) => self.set_bridge(config.as_deref(), parts),
            Operation::All(_) => {
                debug_assert!(false, "an operation in `Operation::All` is not another `All`")
            }
        }
    }

    /// Queues a packet-out for one worker: the one that holds later packets of the flow, or the first. The
    /// packet is queued among the updates, so that the order of operations is preserved.
    fn send_packet(&mut self, packet: &PacketOut, parts: &mut [Vec<Update>]) {
        if self.workers == 0 {
            self.unsent += 1;
        }
        let sender = match packet.releases {
            Releases::Held(flow) => usize::from(flow.worker),
            Releases::SameFlow | Releases::Nothing => 0,
        };
        for (worker, parts) in parts.iter_mut().take(self.workers).enumerate() {
            if worker == sender {
                parts.push(Update::PacketOut(Box::new(CompiledPacketOut::compile(packet))));
            } else if self.quenches && packet.releases == Releases::SameFlow {
                parts.push(Update::PacketOut(Box::new(CompiledPacketOut::only_answer(packet))));
            }
        }
    }

    fn set_bridge(&mut self, config: Option<&BridgeConfig>, parts: &mut [Vec<Update>]) {
        self.express.set_bridge(config.is_some(), &self.tables);
        self.bridge = config.map(|config| Arc::new(Bridge::compile(config, self.bridge.as_deref())));
        self.mac_limits.set(config);
        let for_search_workers = self.bridge.as_ref().map(|bridge| Arc::new(bridge.without_limits()));
        for (number, parts) in parts.iter_mut().enumerate() {
            let bridge = if number < self.workers { &self.bridge } else { &for_search_workers };
            parts.push(Update::SwapBridge(bridge.clone()));
        }
    }

    fn change_entries(&mut self, changes: &[EntryChange], version: RuleVersion, parts: &mut [Vec<Update>]) {
        let mut requeues = self.requeue(changes);
        let run_in_parallel = self.run_in_parallel.filter(|_| is_large_addition(changes));
        let is_parallel = run_in_parallel.is_some();
        let Applied { tables, modified, lanes } =
            self.entries.apply(changes, version, is_parallel, &mut self.requeues);
        if tables.contains_key(&MAC_TABLE) {
            self.mac_limits.note(changes);
        }
        let mut table_parts = self.no_parts();
        let mut compile = || self.tables.change(&tables, &mut table_parts);
        let mut is_narrow = false;
        match run_in_parallel {
            Some(run_in_parallel) => {
                let mut note = || {
                    self.entries.prepare_all(changes);
                    is_narrow = self.express.note(changes);
                };
                run_in_parallel(&mut note, &mut compile);
            }
            None => {
                compile();
                is_narrow = self.express.note(changes);
            }
        }
        // The programs come before the rules that need them.
        self.entries.updates(parts);
        parts.iter_mut().zip(table_parts).for_each(|(parts, of_tables)| parts.extend(of_tables));
        if is_narrow {
            self.express.widen(&self.tables);
        }
        let with_records = &mut parts[..self.workers];
        self.records.note(changes, |table| self.express.is_reached(table), with_records);
        requeues |= self.requeue(changes);
        for parts in parts.iter_mut() {
            parts.extend(lanes.map(|promotes| Update::Lanes { promotes, requeues }));
        }
        modified.updates(parts);
    }

    /// Returns whether these changes may move flows to another egress queue. Called before and after the
    /// changes are applied, because the old and the new rules both matter.
    fn requeue(&self, changes: &[EntryChange]) -> bool {
        let table = |change: &EntryChange| match change {
            EntryChange::Add(entry) => entry.table,
            EntryChange::Modify { table, .. } | EntryChange::Remove { table, .. } => *table,
        };
        self.requeues.is_on() && changes.iter().any(|change| self.requeues.by_table(table(change)))
    }

    fn port_table(&self, parts: &mut [Vec<Update>]) {
        let table = Arc::new(PortTable::new(self.ports.values().copied().collect()));
        for parts in parts {
            parts.push(Update::SwapPorts(Arc::clone(&table)));
        }
    }
}

/// Returns whether these changes add so many entries that a second thread is worthwhile, and modify none.
fn is_large_addition(changes: &[EntryChange]) -> bool {
    let is_modify = |change: &EntryChange| matches!(change, EntryChange::Modify { .. });
    changes.len() >= PARALLEL_MIN && !changes.iter().any(is_modify)
}
