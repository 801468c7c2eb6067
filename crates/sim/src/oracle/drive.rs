// SPDX-License-Identifier: Apache-2.0
//! The driver of a case: packets, updates, turns of the workers and of the control thread, in random order.

use super::Options;
use super::log::{Arrival, OrderLog, Record, Recorder, STEP_NS_MAX};
use super::rules::{LINEAR, Style};
use super::templates::Template;
use super::views;
use fastrand::Rng;
use flow::operation::PacketOut;
use flow::{
    Action, Command, EgressQueue, EntryFlags, FlowMod, Instructions, Nanos, PortNo, Settings, port_no,
};
use model::{
    Change, Config, DataPlane, FlowCursor, FlowFilter, GroupCommand, Learning, Model, Notice, PortConfig,
    PortDesc, RemovedReason,
};
use port::Queue;
use port::mem::{self, MemHandle};
use reference::{Processed, Reference};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use worker::{PortQueues, Worker, build_with};

/// Frames of a worker: enough that nothing is lost for lack of room.
const FRAMES: usize = 4_096;

/// Packets that a port's queue holds.
const QUEUE_FRAMES: usize = 512;

/// A few packets mark an entry, a short silence unmarks it.
const LEARNING: Learning = Learning { min_pps: 10, window: 100_000_000, min_timeout: 0 };

/// The same of a port in a tight case, whose frames are not always taken: they wait in the outbox.
const TIGHT_QUEUE_FRAMES: usize = 8;

/// Turns in a row after which they are not, at most.
const UNTAKEN_MAX: usize = 3;

/// Packets that wait in one queue at most in a tight case.
const TIGHT_WAITING_MAX: usize = 8;

/// Packets that wait in one queue at most, so that a turn never has more copies than the outboxes hold.
const WAITING_MAX: usize = 24;

/// In one of so many runs of as many cases all packets are recorded for traces.
const RECORDED: u64 = 3;

/// Of 16 cases those in which ports have egress queues, one with one worker and one with two. One of the queues that rules
/// choose is not there.
const QUEUED: [u64; 2] = [1, 8];

/// Tries to find an update that changes what becomes of a packet in use.
const LIVE_TRIES: usize = 8;

pub(super) struct Driver {
    rng: Rng,
    options: Options,
    style: Style,
    templates: Vec<Template>,
    model: Model<Recorder>,
    workers: Vec<Worker<OrderLog>>,
    handles: Vec<MemHandle>,
    /// Runs ahead of the workers: every operation as soon as it is submitted.
    shadow: Reference,
    shadowed: usize,
    now: Nanos,
    sequences: Vec<Vec<u64>>,
    waiting: Vec<Vec<usize>>,
    acknowledged: u64,
    tight: bool,
    /// Turns since frames were taken.
    untaken: usize,
    /// For each table the lookups counted so far.
    lookups: [u64; LINEAR as usize + 1],
    record: Record,
}

impl Driver {
    pub fn new(seed: u64, options: Options) -> Self {
        let mut rng = Rng::with_seed(seed);
        let style = Style::random(&mut rng);
        let templates = (0..rng.usize(6..20)).map(|_| Template::random(&mut rng)).collect();
        let config = worker::Config {
            workers: options.workers,
            small_frames: FRAMES,
            large_frames: 0,
            controller_frames: 1_024,
            events: 4_096,
            lut_entries: options.lut_entries,
            consistency: options.consistency,
            lanes: options.lanes,
            quanta: options.quanta,
            // In some cases costs are measured, by chance: LUTs come and go.
            stopwatch: (seed % 8 == 3).then_some(any_time),
            timed_bursts: 3,
            ..worker::Config::default()
        };
        let queued = QUEUED.contains(&(seed % 16));
        // Frames wait in queues only where a device does not take them.
        let tight = seed % 5 < 2 || queued;
        let egress = if queued { egress(&mut rng) } else { Vec::new() };
        let mut handles = Vec::new();
        let mut ports = Vec::new();
        let mut sent = Vec::new();
        for number in 1..=style.ports {
            // The last port is served by one worker only: others hand frames over.
            let queues = if number == style.ports { 1 } else { options.workers };
            let (made, handle) =
                mem::pair(number, queues, if tight { TIGHT_QUEUE_FRAMES } else { QUEUE_FRAMES });
            handles.push(handle);
            sent.extend((0..queues).map(|queue| (number, queue, Vec::new())));
            let boxed = made.into_iter().enumerate().map(|(w, queue)| (w, Box::new(queue) as Box<dyn Queue>));
            ports.push(PortQueues { number, queues: boxed.collect(), egress: egress.clone() });
        }
        let (mut plane, workers) = build_with(&config, ports, OrderLog::default);
        if seed % 4 < 2 {
            // Compiled at once, in force with what comes next.
            plane.set_aside(2, Box::new(|errand| errand()));
        }
        let mut recorder = Recorder::new(plane);
        if (seed / RECORDED).is_multiple_of(RECORDED) {
            recorder.plane.record(&flow::Match::any(), u64::MAX);
        }
        // Marks are learned in a third of the cases: they come and go by themselves, and nothing else may change.
        let learning = seed.is_multiple_of(3).then_some(LEARNING);
        let mut model = Model::new(Config { learning, ..Config::default() }, recorder, 0);
        for number in 1..=style.ports {
            let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
            let added = model.add_port(0, desc, true);
            debug_assert!(added.is_ok());
        }
        let per_port = |style: &Style, workers: usize| (0..style.ports).map(|_| vec![0; workers]).collect();
        Self {
            sequences: per_port(&style, options.workers),
            waiting: (0..style.ports).map(|_| vec![0; options.workers]).collect(),
            record: Record {
                arrivals: Vec::new(),
                operations: Vec::new(),
                injected: BTreeMap::new(),
                submitted: Vec::new(),
                egress,
                logs: Vec::new(),
                sent,
                reported: Vec::new(),
                learned: Vec::new(),
                entries: Vec::new(),
                tables: Vec::new(),
                groups: Vec::new(),
                totals: model::Totals::default(),
                updates: 0,
                live_updates: 0,
                expired: 0,
                traced: 0,
                judged: 0,
                lookups: BTreeMap::new(),
                luts: pipeline::LutFigures::default(),
            },
            rng,
            options,
            style,
            templates,
            model,
            workers,
            handles,
            shadow: Reference::new(),
            shadowed: 0,
            now: 1,
            acknowledged: 0,
            tight,
            untaken: 0,
            lookups: [0; LINEAR as usize + 1],
        }
    }

    pub fn run(mut self) -> Result<Record, String> {
        self.first_rules()?;
        while self.record.arrivals.len() < self.options.packets {
            self.now += self.rng.u64(0..STEP_NS_MAX);
            match self.rng.u8(0..100) {
                0..55 => self.push(),
                55..85 => {
                    let worker = self.rng.usize(0..self.workers.len());
                    self.turn(worker)?;
                }
                85..92 => self.control()?,
                92..97 => self.update()?,
                _ => self.settle()?,
            }
        }
        self.settle()?;
        self.close();
        Ok(self.record)
    }

    fn first_rules(&mut self) -> Result<(), String> {
        self.other_settings();
        for id in 1..=self.style.groups {
            let group = self.style.group(&mut self.rng, id);
            self.model.group_mod(self.now, GroupCommand::Add, group).map_err(|error| error.to_string())?;
        }
        let mut mods = Vec::new();
        // Now and then a table is large: its additions fill a head more than once, modifies come as new pages, and an
        // engine serves it that walks nothing.
        let large = (self.rng.u8(0..8) == 0).then(|| self.rng.u8(0..self.style.tables));
        for table in (0..self.style.tables).chain([LINEAR]) {
            let most = match self.style.kinds.get(usize::from(table)) {
                Some(kind) if large == Some(table) || self.rng.bool() => kind.large(),
                _ => 24,
            };
            // Most tables have an entry for what no other takes.
            if table < LINEAR && self.rng.u8(0..4) != 0 {
                mods.push(self.style.last_resort(&mut self.rng, table));
            }
            for _ in 0..self.rng.usize(2..most) {
                let (template, port) = self.packet_in_use();
                mods.push(self.style.entry(&mut self.rng, table, &self.templates[template], port));
            }
        }
        // Half of the cases load by one bundle, the others one by one.
        if self.rng.bool() {
            // A linear place may be asked for twice with different priorities: then the bundle is refused as a whole.
            drop(self.model.bundle(self.now, mods.clone()));
        }
        for m in mods {
            drop(self.model.flow_mod(self.now, m));
        }
        self.follow()?;
        self.settle()
    }

    fn other_settings(&mut self) {
        let settings =
            Settings { drop_fragments: self.rng.u8(0..4) == 0, report_invalid_ttl: self.rng.bool() };
        self.model.set_settings(settings);
        let lane = self.style.lane(&mut self.rng).map(Arc::new);
        let set = self.model.set_stateless(self.now, lane);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    fn packet_in_use(&mut self) -> (usize, PortNo) {
        (self.rng.usize(0..self.templates.len()), self.rng.u32(1..=self.style.ports))
    }

    /// Pushes some packets into one queue.
    fn push(&mut self) {
        let port = self.rng.u32(1..=self.style.ports);
        let at = port as usize - 1;
        let worker = self.rng.usize(0..self.handles[at].queues());
        for _ in 0..self.rng.usize(1..12) {
            let most = if self.tight { TIGHT_WAITING_MAX } else { WAITING_MAX };
            if self.waiting[at][worker] == most {
                return;
            }
            // Some flows send more than others.
            let most = self.rng.usize(1..=self.templates.len());
            let template = self.rng.usize(0..most);
            let tag = self.record.arrivals.len();
            let bytes = if self.style.ttl_varies && self.rng.bool() {
                let ttl = [0, 1, 1, 2, 2, 3, 64][self.rng.usize(0..7)];
                self.templates[template].with_ttl(ttl).tagged(tag)
            } else {
                self.templates[template].tagged(tag)
            };
            if !self.handles[at].push(worker, &bytes) {
                return;
            }
            // The driver drops what is too short for an Ethernet header: it never arrives.
            if bytes.len() < port::MIN_FRAME_BYTES {
                continue;
            }
            self.waiting[at][worker] += 1;
            let sequence = self.sequences[at][worker];
            self.sequences[at][worker] += 1;
            let flow = if self.templates[template].broken { 1 << 32 | tag as u64 } else { template as u64 };
            self.record.arrivals.push(Arrival {
                port,
                worker,
                sequence,
                flow,
                bytes,
                acknowledged: self.acknowledged,
            });
        }
    }

    fn turn(&mut self, worker: usize) -> Result<(), String> {
        self.workers[worker].turn(self.now);
        self.count_lookups();
        for waiting in &mut self.waiting {
            waiting[worker] = 0;
        }
        self.untaken += 1;
        if !self.tight || self.untaken > UNTAKEN_MAX || self.rng.u8(0..3) == 0 {
            self.collect();
        }
        self.record.judged += views::judge(&mut self.model)?;
        Ok(())
    }

    /// Notes which engines have served the lookups since the last turn.
    fn count_lookups(&mut self) {
        let plane = self.model.plane_mut();
        for table in (0..self.style.tables).chain([LINEAR]) {
            let lookups = plane.table_counters(table).lookups;
            let before = std::mem::replace(&mut self.lookups[usize::from(table)], lookups);
            *self.record.lookups.entry(plane.engine(table)).or_default() += lookups - before;
        }
    }

    /// Takes what has come out of the ports.
    fn collect(&mut self) {
        self.untaken = 0;
        for (port, queue, frames) in &mut self.record.sent {
            while let Some(bytes) = self.handles[*port as usize - 1].pop(*queue) {
                frames.push(bytes);
            }
        }
    }

    /// One turn of the control thread.
    fn control(&mut self) -> Result<(), String> {
        while self.model.poll(self.now) {
            self.notices();
        }
        self.notices();
        let barrier = self.model.barrier();
        if self.model.is_applied(barrier) {
            self.acknowledged = barrier;
        }
        self.follow()
    }

    fn notices(&mut self) {
        while let Some(notice) = self.model.next_notice() {
            match notice {
                Notice::PacketIn(packet_in) => self.model.recycle(packet_in.frame),
                Notice::FlowRemoved(removed) => {
                    let expired =
                        matches!(removed.reason, RemovedReason::IdleTimeout | RemovedReason::HardTimeout);
                    self.record.expired += usize::from(expired);
                }
                Notice::PortStatus { .. } => {}
            }
        }
    }

    /// Takes operations over into the shadow and notes where each worker's log stood.
    fn follow(&mut self) -> Result<(), String> {
        let lengths: Vec<usize> = self.workers.iter_mut().map(|w| w.probe().entries.len()).collect();
        let recorder = self.model.plane_mut();
        for operation in &recorder.operations[self.shadowed..] {
            self.shadow
                .apply(operation)
                .map_err(|what| format!("the model made a wrong operation: {what}"))?;
            self.record.submitted.push(lengths.clone());
        }
        self.shadowed = recorder.operations.len();
        Ok(())
    }

    /// Turns everything until all packets are through and all operations in force.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..1_000 {
            let mut idle = true;
            for worker in 0..self.workers.len() {
                let turn = self.workers[worker].turn(self.now);
                self.count_lookups();
                idle &= turn.is_idle();
                self.waiting.iter_mut().for_each(|waiting| waiting[worker] = 0);
                self.collect();
                self.record.judged += views::judge(&mut self.model)?;
            }
            self.control()?;
            let barrier = self.model.barrier();
            if idle && self.model.is_applied(barrier) && self.model.pending_removals() == 0 {
                return Ok(());
            }
        }
        Err("workers and control thread do not come to rest".into())
    }

    /// A random change, made so that it changes what becomes of a packet in use.
    fn update(&mut self) -> Result<(), String> {
        self.control()?;
        // A port that is down comes back before anything else changes.
        let down = self.model.ports().find(|p| !p.is_up() || p.config.no_recv).map(|p| p.desc.number);
        if let Some(number) = down {
            drop(self.model.set_link(self.now, number, true));
            drop(self.model.set_port_config(self.now, number, PortConfig::default()));
            self.follow()?;
        }
        // A packet that gets as far as the tables.
        let mut in_use = self.packet_in_use();
        for _ in 0..LIVE_TRIES {
            if !self.shadow.process(in_use.1, &self.templates[in_use.0].bytes).hits.is_empty() {
                break;
            }
            in_use = self.packet_in_use();
        }
        let (template, port) = in_use;
        views::compare(&self.model, &mut self.shadow, port, &self.templates[template].bytes)?;
        self.record.traced += 1;
        let bytes = self.templates[template].bytes.clone();
        if !self.record.egress.is_empty() && self.rng.u8(0..4) == 0 {
            return self.requeue(template, port);
        }
        if self.rng.u8(0..14) == 0 && down.is_none() {
            let before = self.shadow.process(port, &bytes);
            let egress = before.sent.first().map_or(port, |copy| copy.port);
            self.port_change(egress);
            return self.account(&before, port, &bytes);
        }
        if self.rng.u8(0..8) == 0 {
            return self.inject(template);
        }
        if self.rng.u8(0..20) == 0 {
            // Most packets do not notice: it is no update that counts.
            self.other_settings();
            return self.follow();
        }
        if self.style.groups > 0 && self.rng.u8(0..10) == 0 {
            let before = self.shadow.process(port, &bytes);
            let id = self.rng.u32(1..=self.style.groups);
            let group = self.style.group(&mut self.rng, id);
            self.model.group_mod(self.now, GroupCommand::Modify, group).map_err(|error| error.to_string())?;
            self.follow()?;
            // Only a group in use is an update that counts.
            let live = usize::from(self.shadow.process(port, &bytes) != before);
            self.record.updates += live;
            self.record.live_updates += live;
            return Ok(());
        }
        if self.rng.u8(0..24) == 0 {
            // Many changes at once: a swap. Deletes a whole table, or all entries of a cookie.
            let before = self.shadow.process(port, &bytes);
            let table = before.hits.first().map_or(0, |(table, _)| *table);
            let mut mods =
                vec![FlowMod { command: Command::Delete, table: Some(table), ..FlowMod::default() }];
            if self.rng.u8(0..4) == 0 {
                mods[0].cookie = self.rng.u64(0..4);
                mods[0].cookie_mask = 3;
            }
            for _ in 0..self.rng.usize(0..80) {
                let (template, port) = self.packet_in_use();
                mods.push(self.style.entry(&mut self.rng, table, &self.templates[template], port));
            }
            if self.rng.u8(0..4) == 0 {
                // All entries of the table do something else.
                mods.clear();
                let instructions = self.style.instructions(&mut self.rng, table);
                mods.push(FlowMod {
                    command: Command::Modify,
                    table: Some(table),
                    instructions,
                    flags: EntryFlags { reset_counts: self.rng.bool(), ..EntryFlags::default() },
                    ..FlowMod::default()
                });
            }
            let mut changes: Vec<Change> = mods.into_iter().map(Change::Flow).collect();
            if self.style.groups > 0 && self.rng.bool() {
                let id = self.rng.u32(1..=self.style.groups);
                let group = self.style.group(&mut self.rng, id);
                changes.insert(self.rng.usize(0..=changes.len()), Change::Group(GroupCommand::Modify, group));
            }
            drop(self.model.bundle(self.now, changes));
            return self.account(&before, port, &bytes);
        }
        let before = self.shadow.process(port, &bytes);
        for _ in 0..LIVE_TRIES {
            let m = self.change(template, port, &before);
            let operations = self.model.plane_mut().operations.len();
            let done = self.model.flow_mod(self.now, m);
            if done.is_ok() && self.model.plane_mut().operations.len() > operations {
                return self.account(&before, port, &bytes);
            }
        }
        Ok(())
    }

    /// Brings a flow to another egress queue of the port that it leaves by, by an entry that makes nothing low-latency.
    fn requeue(&mut self, template: usize, port: PortNo) -> Result<(), String> {
        let before = self.shadow.process(port, &self.templates[template].bytes);
        let egress = before.sent.first().map_or(port, |copy| copy.port);
        let table = before.hits.first().map_or(0, |(table, _)| *table);
        let apply = vec![Action::SetQueue(self.rng.u32(0..3)), Action::output(egress)];
        let entry = self.style.entry(&mut self.rng, table, &self.templates[template], port);
        let requeues = FlowMod {
            // Before all others.
            priority: 1_000 + self.shadowed.min(10_000) as u16,
            instructions: Instructions::apply(apply),
            low_latency: Some(false),
            ..entry
        };
        drop(self.model.flow_mod(self.now, requeues));
        self.follow()
    }

    /// Sends a packet of the controller's.
    fn inject(&mut self, template: usize) -> Result<(), String> {
        let tag = self.record.arrivals.len();
        let in_port = if self.rng.bool() { port_no::CONTROLLER } else { self.rng.u32(1..=self.style.ports) };
        let mut actions = self.style.instructions(&mut self.rng, LINEAR).apply;
        if self.rng.bool() {
            actions.push(Action::output(port_no::TABLE));
        }
        let bytes = self.templates[template].tagged(tag);
        let packet = PacketOut { in_port, actions, bytes: bytes.clone() };
        if self.model.packet_out(packet).is_ok() {
            let version = self.model.barrier();
            self.record.injected.insert(version, tag);
            // A flow of its own.
            let flow = 1 << 40 | tag as u64;
            let arrival = Arrival {
                port: in_port,
                worker: 0,
                sequence: 0,
                flow,
                bytes,
                acknowledged: self.acknowledged,
            };
            self.record.arrivals.push(arrival);
        }
        self.follow()
    }

    /// Counts an update, and whether it changed what becomes of the packet.
    fn account(&mut self, before: &Processed, port: PortNo, bytes: &[u8]) -> Result<(), String> {
        self.follow()?;
        let after = self.shadow.process(port, bytes);
        self.record.updates += 1;
        self.record.live_updates += usize::from(after != *before);
        Ok(())
    }

    fn port_change(&mut self, port: PortNo) {
        if self.rng.u8(0..4) > 0 {
            let up = self.model.port(port).is_some_and(|p| p.link_up);
            drop(self.model.set_link(self.now, port, !up));
        } else {
            let config = PortConfig {
                down: self.rng.u8(0..6) == 0,
                no_recv: self.rng.u8(0..6) == 0,
                no_fwd: self.rng.u8(0..4) == 0,
                no_flood: self.rng.u8(0..4) == 0,
                no_packet_in: self.rng.u8(0..4) == 0,
            };
            drop(self.model.set_port_config(self.now, port, config));
        }
    }

    /// A flow-mod that bears on an entry which the packet hits, or on what it misses.
    fn change(&mut self, template: usize, port: PortNo, before: &Processed) -> FlowMod {
        let hits: Vec<_> =
            before.hits.iter().filter(|(table, _)| *table < LINEAR || self.rng.u8(0..3) == 0).collect();
        let (table, entry) = match hits.len() {
            0 => (0, None),
            n => *hits[self.rng.usize(0..n)],
        };
        let hit = entry.and_then(|id| self.shadow.entries(table).iter().find(|e| e.id == id).cloned());
        let Some(hit) = hit else {
            return self.style.entry(&mut self.rng, table, &self.templates[template], port);
        };
        let same = FlowMod {
            flags: EntryFlags { reset_counts: self.rng.u8(0..4) == 0, ..EntryFlags::default() },
            table: Some(table),
            priority: hit.priority,
            matching: hit.matching.clone(),
            cookie: 0,
            ..FlowMod::default()
        };
        let instructions = self.style.instructions(&mut self.rng, table);
        match self.rng.u8(0..10) {
            0..3 => FlowMod { command: Command::DeleteStrict, ..same },
            3 => FlowMod { command: Command::Delete, ..same },
            4..6 => FlowMod { command: Command::ModifyStrict, instructions, ..same },
            6 => FlowMod { command: Command::Modify, instructions, ..same },
            7 => FlowMod { instructions, ..same },
            _ => FlowMod {
                priority: hit.priority.saturating_add(self.rng.u16(1..4)),
                ..self.style.entry(&mut self.rng, table, &self.templates[template], port)
            },
        }
    }

    /// Reads what there is at the end.
    fn close(&mut self) {
        let mut cursor = FlowCursor::default();
        while !cursor.is_done() {
            let part = self.model.flows(self.now, &FlowFilter::default(), &mut cursor, 1_000);
            let plane = self.model.plane_mut();
            for flow in part {
                let counters = plane.entry_counters(flow.entry.id);
                self.record.entries.push((flow.entry.id, counters));
            }
        }
        let plane = self.model.plane_mut();
        self.record.tables = (0..=LINEAR).map(|table| (table, plane.table_counters(table))).collect();
        self.record.groups =
            (1..=self.style.groups).filter_map(|id| Some((id, plane.group_counters(id)?))).collect();
        self.record.totals = plane.totals();
        for (_, lut) in plane.plane.fast_tables() {
            self.record.luts.add(&lut.map(|lut| lut.figures).unwrap_or_default());
        }
        self.record.operations = std::mem::take(&mut plane.operations);
        self.record.reported = std::mem::take(&mut plane.reported);
        self.record.learned = std::mem::take(&mut plane.learned);
        self.record.logs = self.workers.iter_mut().map(|w| std::mem::take(&mut w.probe().entries)).collect();
    }
}

/// A clock that goes as it likes.
fn any_time() -> Nanos {
    thread_local!(static CLOCK: Cell<Nanos> = const { Cell::new(0) });
    CLOCK.with(|clock| {
        let now = clock.get();
        clock.set(now + now.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 300 + 1);
        now
    })
}

/// Queues without a greatest rate, over which order is the law's, and with room for all.
fn egress(rng: &mut Rng) -> Vec<EgressQueue> {
    let queue = |rng: &mut Rng, id| EgressQueue {
        min_rate_kbps: rng.bool().then(|| rng.u32(1..1_000_000)),
        priority: rng.u8(0..3),
        limit_frames: EgressQueue::FRAMES_MAX,
        ..EgressQueue::new(id)
    };
    EgressQueue::complete([0, 2].map(|id| queue(rng, id)).to_vec())
}
