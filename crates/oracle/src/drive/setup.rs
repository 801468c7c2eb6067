// SPDX-License-Identifier: Apache-2.0
//! Set-up of a case: ports, workers, model, and the first rules.

use super::Driver;
use super::closed::ClosedPorts;
use crate::CaseOptions;
use crate::log::{OrderLog, Record, Recorder};
use crate::room::Room;
use crate::rules::{Reach, Style};
use crate::templates::{Family, Template};
use fastrand::Rng;
use flow::{EgressQueue, GroupId, MeterId, MirrorSelection, Nanos, PortNo, QueueId, RuleVersion, Settings};
use model::{GroupCommand, Learning, MeterCommand, Model, ModelConfig, PortDesc};
use port::Queue;
use port::mem::{self, MemHandle};
use reference::Reference;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use worker::{MirrorId, MirrorSetup, MirrorTarget, PortQueues, PortsUpdate, WorkerSet, build_with};

/// Capacity of a port's queue in packets.
const QUEUE_FRAMES: usize = 512;

/// Learning parameters: a few packets mark an entry as low-latency, and a short pause removes the mark.
const LEARNING: Learning = Learning { min_pps: 10, window: Nanos(100_000_000), min_timeout: Nanos(0) };

/// Capacity of a port's queue in a tight case, in which the driver does not always take frames from the
/// devices.
const TIGHT_QUEUE_FRAMES: usize = 8;

/// Ageing times of learned addresses in successive cases, each of which lasts about 20 s of virtual time.
const MAC_AGEING: [Nanos; 4] =
    [Nanos(300_000_000_000), Nanos(1_000_000_000), Nanos(2_500_000_000), Nanos(6_000_000_000)];

/// Packets are recorded for traces in every third block of three cases.
const RECORDED: u64 = 3;

/// Cases with egress queues, as remainders of the seed modulo 16. Odd seeds have two workers, even seeds have
/// one.
const QUEUED: [u64; 2] = [1, 8];

/// One in this many cases has frames that need a large buffer.
const LONG: u64 = 8;

/// Senders leave checksums and segmentation to the device in one of this many cases, and in all cases with
/// long frames.
const OFFLOADS: u64 = 4;

/// Two of this many cases have slices that may extend from L3 into L4.
const UPPER_SLICES: u64 = 7;

/// One in this many cases has distant slices, and no rule that needs headers.
const DISTANT_SLICES: u64 = 13;

/// Length of the longest frame in a case with long frames, in bytes.
const LONGEST: usize = 65_400;

/// Number of large buffers per worker in a case with long frames.
pub(super) const LARGE_FRAMES: usize = 256;

/// One in this many cases has a mirror, if there is enough space for all copies.
const MIRRORED: u64 = 5;

/// Port to which the mirror copies. It is no port of the model, so no rule leads to it.
const MIRROR_PORT: PortNo = PortNo(1_000);

/// Capacity of this port in frames.
const MIRROR_FRAMES: usize = 8_192;

/// One in this many cases is calm: rules rarely change, and nearly every packet must stay on the
/// fast-forwarding path.
const CALM: u64 = 7;

/// Ports: `handles` is the driver's side of each port, and `queues` is the workers' side.
struct Ports {
    handles: Vec<MemHandle>,
    queues: Vec<PortQueues>,
    /// Frames sent by each queue of each port.
    sent: Vec<(PortNo, usize, Vec<Vec<u8>>)>,
}

impl Ports {
    fn new(count: u32, workers: usize, tight: bool, egress: &[EgressQueue]) -> Self {
        let mut made = Self { handles: Vec::new(), queues: Vec::new(), sent: Vec::new() };
        for number in 1..=count {
            // One worker serves the last port, so other workers hand frames over to it.
            let queues = if number == count { 1 } else { workers };
            let capacity = if tight { TIGHT_QUEUE_FRAMES } else { QUEUE_FRAMES };
            let (pairs, handle) = mem::pair(number, queues, capacity);
            made.handles.push(handle);
            made.sent.extend((0..queues).map(|queue| (PortNo(number), queue, Vec::new())));
            let boxed =
                pairs.into_iter().enumerate().map(|(w, queue)| (w, Box::new(queue) as Box<dyn Queue>));
            made.queues.push(PortQueues {
                number: PortNo(number),
                queues: boxed.collect(),
                egress: egress.to_vec(),
            });
        }
        made
    }
}

/// Adds a mirror of these frames, if there are any.
fn add_mirror(plane: &mut WorkerSet, selection: Option<MirrorSelection>) {
    if let Some(selection) = selection {
        let setup = MirrorSetup { id: MirrorId(1), selection, target: MirrorTarget::Port(MIRROR_PORT) };
        plane.change_ports(PortsUpdate { mirrors_added: vec![setup], ..PortsUpdate::default() });
    }
}

/// Returns the frames that a mirror copies in the case with a seed, if there is a mirror. Adds the port to
/// which it copies, with space for all copies.
fn mirror(
    seed: u64,
    room: Room,
    options: CaseOptions,
    ports: &mut Vec<PortQueues>,
) -> Option<(MirrorSelection, MemHandle)> {
    if seed % MIRRORED != 2 || !room.is_ample() || options.port_cache.is_some() {
        return None;
    }
    let count = ports.len() as u32;
    let every = |first: u32| (first..=count).step_by(2).map(PortNo).collect();
    let vlans = if seed.is_multiple_of(3) { vec![0, 1, 2] } else { Vec::new() };
    let selection = MirrorSelection { ingress: every(1), egress: every(1 + seed as u32 % 2), vlans };
    let (pairs, handle) = mem::pair(MIRROR_PORT.0, 1, MIRROR_FRAMES);
    let queues = pairs.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
    ports.push(PortQueues { number: MIRROR_PORT, queues, egress: Vec::new() });
    Some((selection, handle))
}

/// Returns whether the case with this seed is calm.
pub(crate) fn is_calm(seed: u64) -> bool {
    seed.is_multiple_of(CALM)
}

/// Returns the bytes that the slices of the case with this seed may contain.
fn reach(seed: u64) -> Reach {
    match seed % DISTANT_SLICES {
        3 => Reach::Distant,
        _ if seed % UPPER_SLICES < 2 => Reach::Upper,
        _ => Reach::Near,
    }
}

fn worker_config(options: CaseOptions, room: Room) -> worker::WorkerSetConfig {
    worker::WorkerSetConfig {
        workers: options.workers,
        small_frames: room.small_frames,
        controller_frames: room.controller_frames,
        events: room.events,
        outbox_frames: room.outbox_frames,
        handovers: room.handovers,
        lut_entries: options.lut_entries,
        express_records: options.express_records,
        express_bypass: options.express_bypass,
        port_cache: options.port_cache,
        consistency: options.consistency,
        lanes: options.lanes,
        quanta: options.quanta,
        timed_bursts: 3,
        ..worker::WorkerSetConfig::default()
    }
}

/// Returns random templates, and near copies of some templates.
fn templates(
    rng: &mut Rng,
    family: Family,
    examined: usize,
    longest: usize,
    offloads: bool,
) -> Vec<Template> {
    let mut templates: Vec<Template> =
        (0..rng.usize(6..20)).map(|_| Template::random(rng, family, examined, longest, offloads)).collect();
    for _ in 0..[0, 1, 1, 2, 3][rng.usize(0..5)] {
        let copy = templates[rng.usize(0..templates.len())].near_copy(rng, examined);
        // The first templates are sent most often.
        templates.insert(rng.usize(0..=templates.len()), copy);
    }
    templates
}

/// Returns the settings of a case's model.
fn model_config(seed: u64, calm: bool) -> ModelConfig {
    // In a third of the cases, low-latency marks are learned, which must not change any other result.
    let learning = (seed.is_multiple_of(3) && !calm).then_some(LEARNING);
    ModelConfig { learning, mac_ageing: MAC_AGEING[(seed / 2 % 4) as usize], ..ModelConfig::default() }
}

impl Driver {
    pub fn new(seed: u64, options: CaseOptions) -> Self {
        let mut rng = Rng::with_seed(seed);
        let calm = is_calm(seed);
        // Half of the calm cases have no path records, so packets use the LUTs of the fast-forwarding path.
        let has_records = options.repeats && (!calm || seed.is_multiple_of(2));
        let style = Style::random(&mut rng, calm, has_records, reach(seed));
        let room = if calm { Room::AMPLE } else { Room::of(seed) };
        let scarce = !room.is_ample();
        let long = seed % LONG == 5 && !scarce;
        let (family, longest) = (Family::random(&mut rng), if long { LONGEST } else { 0 });
        let offloads = long || seed % OFFLOADS == 1;
        let templates = templates(&mut rng, family, style.examined_bytes(), longest, offloads);
        let homes = templates.iter().map(|_| style.any_port(&mut rng)).collect();
        let queued = QUEUED.contains(&(seed % 16)) || scarce && !seed.is_multiple_of(3);
        let config = worker::WorkerSetConfig {
            large_frames: if long { LARGE_FRAMES } else { 0 },
            // In some cases, random measurements repeatedly bypass LUTs, which removes and recreates the
            // LUTs.
            stopwatch: (seed % 8 == 3 && !calm).then_some(any_time),
            ..worker_config(options, room)
        };
        // In a tight case, devices do not always accept frames, so frames wait in queues.
        let tight = seed % 5 < 2 || queued || scarce;
        let egress = if queued { egress(&mut rng, room.queue_frames) } else { Vec::new() };
        let Ports { handles, mut queues, sent } = Ports::new(style.ports, options.workers, tight, &egress);
        let (selection, mirror) = mirror(seed, room, options, &mut queues).unzip();
        let (mut plane, workers) = build_with(&config, queues, OrderLog::default);
        let search = plane.take_search_worker();
        add_mirror(&mut plane, selection.clone());
        if seed % 4 < 2 {
            // Background compilations run immediately, and their results are applied with the next operation.
            plane.set_compiler(2, Box::new(|task| task()));
        }
        let mut recorder = Recorder::new(plane);
        if (seed / RECORDED).is_multiple_of(RECORDED) {
            recorder.plane.record(&flow::Match::any(), u64::MAX);
        }
        let settings = model_config(seed, calm);
        let mac_ageing = settings.mac_ageing;
        let mut model = Model::new(settings, recorder, Nanos(0));
        for number in style.port_numbers() {
            let added = model.add_port(Nanos(0), port_desc(number), true);
            debug_assert!(added.is_ok());
        }
        let per_port = |style: &Style, workers: usize| (0..style.ports).map(|_| vec![0; workers]).collect();
        Self {
            sequences: per_port(&style, options.workers),
            waiting: (0..style.ports).map(|_| vec![0; options.workers]).collect(),
            asked: Vec::new(),
            record: Record {
                egress,
                mac_ageing,
                room,
                unfinished: vec![Vec::new(); sent.len()],
                sent,
                mirror: selection,
                ..Record::default()
            },
            vlans: (options.vlans && !calm).then(|| Rng::with_seed(!seed)),
            rng,
            options,
            style,
            templates,
            homes,
            model,
            workers,
            search,
            handles,
            mirror,
            shadow: Reference::new(),
            shadowed: 0,
            now: Nanos(1),
            acknowledged: RuleVersion(0),
            tight,
            untaken: 0,
            closed: ClosedPorts::default(),
            large_taken: vec![0; options.workers],
            lookups: BTreeMap::new(),
        }
    }

    pub(super) fn first_rules(&mut self) -> Result<(), String> {
        self.other_settings();
        for id in 1..=self.style.meters {
            let meter = self.style.meter(&mut self.rng, MeterId(id));
            self.model.meter_mod(self.now, MeterCommand::Add, meter).map_err(|error| error.to_string())?;
        }
        for id in 1..=self.style.groups {
            let group = self.random_group(GroupId(id));
            self.model.group_mod(self.now, GroupCommand::Add, group).map_err(|error| error.to_string())?;
        }
        let mut mods = Vec::new();
        // Occasionally a table is large. An engine other than `scan` then serves it, and adding its entries
        // fills the workers' list of recent additions (the delta) more than once.
        let large = (self.rng.u8(0..8) == 0).then(|| self.rng.usize(0..self.style.tables.len()));
        for at in 0..self.style.tables.len() {
            let (table, kind) = (self.style.tables[at].number, &self.style.tables[at].kind);
            let most = if large == Some(at) || self.rng.u8(0..3) == 0 { kind.large() } else { 24 };
            // Most tables have an entry that handles packets which no other entry matches.
            if self.rng.u8(0..20) != 0 {
                mods.push(self.random_resort(table));
            }
            for _ in 0..self.rng.usize(2..most) {
                mods.push(self.random_entry(table));
            }
        }
        for _ in 0..self.rng.usize(2..20) {
            mods.push(self.random_entry(self.style.linear));
        }
        if self.rng.bool() {
            // Two entries of the bundle may have the same index of a linear table and different priorities.
            // The whole bundle is then refused.
            drop(self.model.bundle(self.now, mods.clone()));
        }
        for m in mods {
            drop(self.model.flow_mod(self.now, m));
        }
        self.follow()?;
        self.settle()
    }

    pub(super) fn other_settings(&mut self) {
        let settings = Settings {
            drop_fragments: self.rng.u8(0..8) == 0,
            report_invalid_ttl: self.rng.bool(),
            ask_controller: self.quenches() && self.rng.u8(0..8) != 0,
        };
        self.model.set_settings(settings);
        let stateless = self.style.stateless(&mut self.rng).map(Arc::new);
        let set = self.model.set_stateless(self.now, stateless);
        debug_assert!(set.is_ok(), "{set:?}");
        if let Some(rng) = &mut self.vlans {
            let bridge = self.style.bridge(rng, !self.record.room.lacks_frames());
            self.closed.set_bridge(&bridge);
            self.model.set_bridge(self.now, Some(Arc::new(bridge)));
        }
    }
}

/// Returns the description of a port for the model.
pub(super) fn port_desc(number: PortNo) -> PortDesc {
    PortDesc { number, name: format!("p{number}"), ..PortDesc::default() }
}

/// Clock of the workers' stopwatch, which returns arbitrary times.
fn any_time() -> Nanos {
    thread_local!(static CLOCK: Cell<u64> = const { Cell::new(0) });
    CLOCK.with(|clock| {
        let now = clock.get();
        clock.set(now + now.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 300 + 1);
        Nanos(now)
    })
}

/// Returns egress queues that hold `limit_frames` frames per lane. Some have a guaranteed or a maximum rate.
fn egress(rng: &mut Rng, limit_frames: u16) -> Vec<EgressQueue> {
    let queue = |rng: &mut Rng, id| EgressQueue {
        min_rate_kbps: rng.bool().then(|| rng.u32(1..1_000_000)),
        max_rate_kbps: rng.bool().then(|| [5, 20, 100, 1_000, 1_000_000][rng.usize(0..5)]),
        priority: rng.u8(0..3),
        limit_frames,
        ..EgressQueue::new(id)
    };
    EgressQueue::complete([0, 2].map(|id| queue(rng, QueueId(id))).to_vec())
}
