// SPDX-License-Identifier: Apache-2.0
//! The device as a data plane: compiles operations, sends commands, and collects counters and events.
//!
//! [`DevicePlane`] exchanges datagrams over a [`DeviceLink`], which does not block. While the device does not
//! answer, operations change only the compiler. When it answers, its entries are read. If they differ from
//! those that the rules require, they are rewritten, and packets are dropped meanwhile.

mod capabilities;
mod counters;
mod packet_out;
mod sync;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PacketInEvent, PlaneRefusal, PortCounters,
    TableCapabilities, TableCounters, Totals,
};
use flow::action::WHOLE_PACKET;
use flow::{
    Action, DropReason, EntryChange, EntryId, FlowEntry, GroupId, MeterId, Nanos, Operation, PacketInReason,
    PortNo, PortState, RuleVersion, TableId, port_no,
};
use frame::{Frame, Pool};

use crate::command::PpuCommand;
use crate::compile::{Compiler, DeviceCommand, PpuLayout, Sender};
use crate::key::TernaryKey;
use crate::message::EntryState;
use crate::session::{DeviceEvent, DeviceSession};
use counters::DeviceCounters;
use sync::Sync;

/// Exchanges datagrams with the device. It never blocks.
pub trait DeviceLink {
    /// Sends a datagram. It may be lost.
    fn send(&mut self, datagram: &[u8]);
    /// Takes a datagram of the device.
    fn receive(&mut self) -> Option<Vec<u8>>;
}

/// Maximum number of datagrams that one call takes.
const DATAGRAMS_MAX: usize = 1_024;
/// Frames for packets to the controller.
const FRAMES: usize = 256;
/// Bytes of each of these frames.
const FRAME_BYTES: usize = 2_048;
/// Home number of these frames.
const HOME: u16 = u16::MAX - 1;
/// Maximum number of packets that wait for the caller.
const EVENTS_MAX: usize = FRAMES;
/// Time between two readings of all counters.
const COUNT_INTERVAL: Nanos = Nanos(500_000_000);

/// Value of a counter that the device does not keep, as in OpenFlow.
const UNKNOWN: u64 = u64::MAX;
/// Time in which a device in the local network answers.
const ANSWER_TIME: Nanos = Nanos(100_000);
/// Shortest time to the next look whether counters were read.
const COUNT_PAUSE: Nanos = Nanos(20_000_000);
/// Time after which a device of another size that does not answer again is silent.
const WRONG_SIZE_TIME: Nanos = Nanos(3_000_000_000);
/// Maximum number of places that are read while commands wait.
const COUNT_PORTION: usize = 16;

/// Counters of an entry.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    used: Nanos,
}

/// Place of a row whose hits are counted.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Entry of the row, or `None` for the table miss.
    entry: Option<EntryId>,
    /// Hits when they were read last.
    seen: u64,
    /// Number of this use of the place.
    generation: u64,
    /// Key of the row.
    key: TernaryKey,
}

/// A request whose answer is awaited.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Command,
    /// Reads the hits of a place, unless its row was overwritten since.
    Hits {
        generation: u64,
        /// Entry that then counts from 0.
        reset: Option<EntryId>,
    },
    /// Reads the hits of a row before it is overwritten.
    LastHits(Place),
    /// Reads an entry to compare it.
    Compare,
    Stats,
}

/// Agreement between the data plane and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// The device does not answer.
    Silent,
    /// The device has not the expected size.
    WrongSize {
        /// Number of PPUs.
        ppus: u8,
        /// Entries of each PPU.
        entries: u16,
    },
    /// The device answers, and its entries are read.
    Reading,
    /// The device has the entries that the rules require, or gets them.
    Ready {
        /// Number of times that a device had other entries and was rewritten.
        rewrites: u64,
    },
}

/// The data plane.
#[derive(Debug)]
pub struct DevicePlane<L> {
    link: L,
    is_held: bool,
    session: DeviceSession,
    compiler: Compiler,
    sync: Sync,
    entries: BTreeMap<EntryId, Arc<FlowEntry>>,
    counts: BTreeMap<EntryId, Count>,
    places: BTreeMap<(u8, u16), Place>,
    generation: u64,
    /// Size of the device and time at which it reported it, if it is not the expected one.
    wrong_size: Option<(u8, u16, Nanos)>,
    /// Number of times that a device had other entries than the rules require.
    rewrites: u64,
    misses: BTreeMap<TableId, u64>,
    matches: BTreeMap<TableId, u64>,
    ports: BTreeMap<PortNo, PortState>,
    /// Requests in the order of their answers.
    awaited: VecDeque<Awaited>,
    /// Number of awaited answers behind which a version is active.
    versions: VecDeque<(RuleVersion, u64)>,
    /// Number of answers so far.
    answered: u64,
    /// Number of requests so far.
    asked: u64,
    version: RuleVersion,
    applied: RuleVersion,
    now: Nanos,
    /// Time at which the session must be polled.
    due: Nanos,
    /// Time at which the device last was not in the expected state.
    restarted: Nanos,
    /// Begin of the last reading of all counters that is complete.
    counted: Nanos,
    /// Start time of the current reading, and its next place.
    counting: Option<(Nanos, (u8, u16))>,
    counters: DeviceCounters,
    lost: BTreeMap<DropReason, u64>,
    events: VecDeque<Event>,
    pool: Pool,
}

impl<L: DeviceLink> DevicePlane<L> {
    /// Returns the data plane of a device with these tables. `session` is down.
    #[must_use]
    pub fn new(link: L, session: DeviceSession, layout: PpuLayout) -> Self {
        Self {
            link,
            is_held: false,
            session,
            compiler: Compiler::new(layout),
            sync: Sync::Down,
            entries: BTreeMap::new(),
            counts: BTreeMap::new(),
            places: BTreeMap::new(),
            generation: 0,
            wrong_size: None,
            rewrites: 0,
            misses: BTreeMap::new(),
            matches: BTreeMap::new(),
            ports: BTreeMap::new(),
            awaited: VecDeque::new(),
            versions: VecDeque::new(),
            answered: 0,
            asked: 0,
            version: RuleVersion(0),
            applied: RuleVersion(0),
            now: Nanos(0),
            due: Nanos(0),
            restarted: Nanos(0),
            counted: Nanos(0),
            counting: None,
            counters: DeviceCounters::default(),
            lost: BTreeMap::new(),
            events: VecDeque::new(),
            pool: Pool::new(HOME, FRAMES, FRAME_BYTES),
        }
    }

    /// Returns the link.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Returns the link for changes.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &DeviceSession {
        &self.session
    }

    /// Returns the layout of the tables.
    #[must_use]
    pub fn layout(&self) -> &PpuLayout {
        self.compiler.layout()
    }

    /// Returns the counters of data plane, shell and control path by name.
    pub fn device_counters(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counters.by_name()
    }

    /// Returns the agreement with the device.
    #[must_use]
    pub fn state(&self) -> DeviceState {
        match (&self.sync, self.wrong_size) {
            (Sync::Down, Some((ppus, entries, at))) if self.now.saturating_sub(at) < WRONG_SIZE_TIME => {
                DeviceState::WrongSize { ppus, entries }
            }
            (Sync::Down, _) => DeviceState::Silent,
            (Sync::Reading(_), _) => DeviceState::Reading,
            (Sync::Ready, _) => DeviceState::Ready { rewrites: self.rewrites },
        }
    }

    /// Returns whether an answer may arrive so soon that sleeping would take longer.
    #[must_use]
    pub fn expects_answer(&self, now: Nanos) -> bool {
        self.session.last_request().is_some_and(|sent| now.saturating_sub(sent) < ANSWER_TIME)
    }

    /// Returns the time at which [`Self::exchange`] must be called at the latest.
    #[must_use]
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// Returns whether the device answers and has the entries that the rules require.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.sync, Sync::Ready) && self.awaited.is_empty()
    }

    /// Returns how often a device had other entries than the rules require.
    #[must_use]
    pub fn rewrites(&self) -> u64 {
        self.rewrites
    }

    /// Does not exchange datagrams until [`Self::release_link`], so that a device keeps its entries while the
    /// rules of the start are submitted.
    pub fn hold_link(&mut self) {
        self.is_held = true;
    }

    /// Begins to exchange datagrams.
    pub fn release_link(&mut self) {
        self.is_held = false;
    }

    /// Sends what is due, and takes what has arrived.
    pub fn exchange(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.is_held {
            return;
        }
        // Receive before repeating, so that no answered request is repeated.
        for _ in 0..DATAGRAMS_MAX {
            let Some(datagram) = self.link.receive() else { break };
            self.session.receive(&datagram, self.now);
            self.take_events();
        }
        self.poll_session();
        self.count_periodically();
        self.poll_session();
    }

    /// Sends what is due.
    fn poll_session(&mut self) {
        self.due = self.session.poll(self.now);
        while let Some(datagram) = self.session.next_datagram() {
            self.link.send(&datagram);
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.next_event() {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: DeviceEvent) {
        match event {
            DeviceEvent::Down => self.lose(),
            DeviceEvent::Up { ppus, entries } => self.begin_sync(ppus, entries),
            DeviceEvent::PacketIn { port, ppu, code, frame } => self.packet_in(port, ppu, code, &frame),
            answer => {
                self.answered += 1;
                let awaited = self.awaited.pop_front();
                if let Some(awaited) = awaited
                    && !self.answer(awaited, answer)
                {
                    // The device is not in the expected state: it was reset, or a command was refused.
                    if self.now.saturating_sub(self.restarted) < COUNT_INTERVAL {
                        self.session.pause(self.now);
                    } else {
                        self.session.restart(self.now);
                    }
                    self.restarted = self.now;
                    return self.take_events();
                }
                self.advance();
            }
        }
    }

    /// Takes the answer to a request. Returns whether the device is in the expected state.
    fn answer(&mut self, awaited: Awaited, answer: DeviceEvent) -> bool {
        match (awaited, answer) {
            (Awaited::Command, DeviceEvent::Executed { done }) => done,
            (Awaited::Hits { generation, reset }, DeviceEvent::Entry(state)) => {
                let is_expected = self.count_hits(generation, &state);
                if let Some(count) = reset.and_then(|id| self.counts.get_mut(&id)) {
                    count.packets = 0;
                }
                is_expected
            }
            (Awaited::LastHits(place), DeviceEvent::Entry(state)) => self.hits(place, &state),
            (Awaited::Compare, DeviceEvent::Entry(state)) => {
                self.compare(state);
                true
            }
            (Awaited::Stats, DeviceEvent::Stats(counters)) => {
                self.counters.update(counters);
                true
            }
            _ => false,
        }
    }

    /// Adds the hits of a place that was read. If its row is to be overwritten, the last hits begin behind
    /// these.
    fn count_hits(&mut self, generation: u64, state: &EntryState) -> bool {
        let place = self.places.get_mut(&(state.ppu, state.index));
        let last = self.awaited.iter_mut().find_map(|awaited| match awaited {
            Awaited::LastHits(place) if place.generation == generation => Some(place),
            _ => None,
        });
        let place = place.filter(|place| place.generation == generation).or(last);
        let Some(place) = place else { return true };
        let before = *place;
        place.seen = state.packets;
        self.hits(before, state)
    }

    /// The session is down: nothing that was asked is answered.
    fn lose(&mut self) {
        self.sync = Sync::Down;
        self.awaited.clear();
        self.counting = None;
        self.asked = self.answered;
        // Versions are active together when the device has been rewritten.
        if let Some((last, _)) = self.versions.pop_back() {
            self.versions.clear();
            self.versions.push_back((last, u64::MAX));
        }
    }

    fn advance(&mut self) {
        while let Some(&(version, position)) = self.versions.front()
            && position <= self.answered
        {
            self.applied = version;
            self.versions.pop_front();
        }
    }

    fn ask(&mut self, awaited: Awaited) {
        self.awaited.push_back(awaited);
        self.asked += 1;
    }

    /// Sends commands. Hits of rows that are overwritten are read before.
    fn send(&mut self, commands: Vec<DeviceCommand>) {
        let mut touched = Vec::new();
        for (ppu, command) in commands {
            let place = (ppu, command.index());
            let overwrites = matches!(command, PpuCommand::Write { .. } | PpuCommand::Remove { .. });
            if overwrites {
                if let Some(used) = self.places.remove(&place) {
                    self.session.read(place.0, place.1);
                    self.ask(Awaited::LastHits(used));
                }
                touched.push(place);
            }
            self.session.execute(ppu, command);
            self.ask(Awaited::Command);
        }
        self.note_owners(touched);
    }

    fn note_owners(&mut self, places: impl IntoIterator<Item = (u8, u16)>) {
        for (ppu, index) in places {
            let Some(row) = self.compiler.installed_row(ppu, index).filter(|row| row.owner.is_some()) else {
                continue;
            };
            let (entry, key) = (row.owner, row.key);
            self.generation += 1;
            self.places.insert((ppu, index), Place { entry, seen: 0, generation: self.generation, key });
        }
    }

    /// Adds the hits of a place since it was read last. Returns whether the device has this row with at least
    /// as many hits.
    fn hits(&mut self, before: Place, state: &EntryState) -> bool {
        let is_row = state.valid && state.key == before.key;
        let Some(new) = state.packets.checked_sub(before.seen).filter(|_| is_row) else { return false };
        let table = self.compiler.layout().table(state.ppu.into()).map(|table| TableId(table as u8));
        let Some(table) = table.filter(|_| new > 0) else { return true };
        let Some(entry) = before.entry else {
            *self.misses.entry(table).or_default() += new;
            return true;
        };
        *self.matches.entry(table).or_default() += new;
        // The counters of a released entry are gone.
        if let Some(count) = self.counts.get_mut(&entry) {
            count.packets += new;
            count.used = self.now;
        }
        true
    }

    /// Reads counters in portions, so that commands do not wait for all of them.
    fn count_periodically(&mut self) {
        let is_counting = |awaited: &Awaited| matches!(awaited, Awaited::Hits { .. } | Awaited::Stats);
        // Commands go first, but do not keep counters from being read for long.
        let is_late = self.now.saturating_sub(self.counted) >= 2 * COUNT_INTERVAL;
        let may = self.awaited.is_empty() || is_late && !self.awaited.iter().any(is_counting);
        if !matches!(self.sync, Sync::Ready) || !may {
            return;
        }
        let (begin, from) = match self.counting {
            Some(cycle) => cycle,
            None if self.now.saturating_sub(self.counted) >= COUNT_INTERVAL => (self.now, (0, 0)),
            None => return,
        };
        let portion: Vec<((u8, u16), u64)> = self
            .places
            .range(from..)
            .take(COUNT_PORTION)
            .map(|(place, used)| (*place, used.generation))
            .collect();
        let Some(&((ppu, index), _)) = portion.last() else {
            // All places were read since the begin.
            self.counted = begin;
            self.counting = None;
            return;
        };
        self.counting = Some((begin, (ppu, index.saturating_add(1))));
        for ((ppu, index), generation) in portion {
            self.session.read(ppu, index);
            self.ask(Awaited::Hits { generation, reset: None });
        }
        self.session.ask_stats();
        self.ask(Awaited::Stats);
    }

    fn packet_in(&mut self, port: u8, ppu: u8, code: u8, bytes: &[u8]) {
        if !matches!(self.sync, Sync::Ready) {
            // The rules of an earlier daemon have sent it.
            return *self.lost.entry(DropReason::PacketInFull).or_default() += 1;
        }
        let in_port = in_port_of(port);
        let Some(sender) = self.compiler.sender(ppu, code) else {
            return *self.lost.entry(DropReason::PacketInFull).or_default() += 1;
        };
        if !self.is_known(&sender) {
            return *self.lost.entry(DropReason::PacketInFull).or_default() += 1;
        }
        let entry = Arc::clone(&sender.flow);
        let is_miss = entry.priority == 0 && entry.matching.is_any();
        let reason = if is_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
        self.report(bytes, in_port, |frame| PacketInEvent {
            frame,
            table: sender.table,
            entry: sender.entry,
            reason,
            max_len: max_len(&entry),
            metadata: sender.metadata,
            tunnel_id: 0,
            question: None,
        });
    }

    /// Queues a packet for the controller, unless too many packets wait.
    fn report(&mut self, bytes: &[u8], in_port: PortNo, event: impl FnOnce(Frame) -> PacketInEvent) {
        if self.ports.get(&in_port).is_some_and(|state| state.no_packet_in) {
            return *self.lost.entry(DropReason::NoPacketIn).or_default() += 1;
        }
        let room = self.events.len() < EVENTS_MAX;
        let frame = if room { self.pool.get() } else { None };
        let Some(mut frame) = frame else {
            return *self.lost.entry(DropReason::PacketInFull).or_default() += 1;
        };
        if !frame.fill(bytes) {
            drop(self.pool.put(frame));
            return *self.lost.entry(DropReason::NoBuffer).or_default() += 1;
        }
        frame.meta.in_port = in_port.0;
        self.events.push_back(Event::PacketIn(event(frame)));
    }

    /// Returns whether the caller knows the sender by its ID: the entry exists, or was not released yet.
    fn is_known(&self, sender: &Sender) -> bool {
        let flow = &sender.flow;
        match self.entries.get(&sender.entry) {
            Some(entry) => {
                let is_same =
                    (entry.table, entry.priority, entry.cookie) == (flow.table, flow.priority, flow.cookie);
                is_same && entry.matching == flow.matching
            }
            None => self.counts.contains_key(&sender.entry),
        }
    }

    fn apply_entries(&mut self, changes: &[EntryChange]) {
        // What the caller has not checked, such as timeouts with marks, is executed as far as possible.
        let refused = self.compiler.apply_forced(changes);
        let is_refused = |at: usize| refused.iter().any(|(refused, _)| *refused == at);
        for (_, change) in changes.iter().enumerate().filter(|(at, _)| !is_refused(*at)) {
            match change {
                EntryChange::Add(entry) => {
                    self.entries.insert(entry.id, Arc::clone(entry));
                    self.counts.insert(entry.id, Count::default());
                }
                EntryChange::Remove { id, .. } => _ = self.entries.remove(id),
                EntryChange::Modify { id, instructions, reset_counts, .. } => {
                    if let Some(entry) = self.entries.get_mut(id) {
                        let new = FlowEntry { instructions: Arc::clone(instructions), ..(**entry).clone() };
                        *entry = Arc::new(new);
                    }
                    if *reset_counts {
                        self.reset_counts(*id);
                    }
                }
            }
        }
    }

    /// Lets an entry count from 0. Hits before are read first.
    fn reset_counts(&mut self, id: EntryId) {
        let places = self.places.iter().filter(|(_, place)| place.entry == Some(id));
        let places: Vec<((u8, u16), u64)> = places.map(|(place, used)| (*place, used.generation)).collect();
        if !matches!(self.sync, Sync::Ready) || places.is_empty() {
            if let Some(count) = self.counts.get_mut(&id) {
                count.packets = 0;
            }
            return;
        }
        for ((ppu, index), generation) in places {
            self.session.read(ppu, index);
            self.ask(Awaited::Hits { generation, reset: Some(id) });
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Entries(changes) => self.apply_entries(changes),
            Operation::Port(state) => _ = self.ports.insert(state.number, *state),
            Operation::RemovePort(number) => _ = self.ports.remove(number),
            Operation::PacketOut(packet) => self.packet_out(packet),
            Operation::All(parts) => parts.iter().for_each(|part| self.apply(part)),
            // The caller is refused groups, meters and stateless forwarding. Settings have no effect.
            _ => {}
        }
        let commands = self.compiler.take_commands();
        if matches!(self.sync, Sync::Ready) {
            self.send(commands);
        }
    }
}

/// Returns the port of a packet that entered the pipeline at this number: 0 stands for the controller.
fn in_port_of(number: u8) -> PortNo {
    if number == 0 { port_no::CONTROLLER } else { PortNo(number.into()) }
}

/// Returns the length that the controller asks for.
fn max_len(entry: &FlowEntry) -> u16 {
    let actions = entry.instructions.apply.iter().chain(&entry.instructions.write);
    let mut lengths = actions.filter_map(|action| match action {
        Action::Output { port: port_no::CONTROLLER, max_len } => Some(*max_len),
        _ => None,
    });
    lengths.next_back().unwrap_or(WHOLE_PACKET)
}

/// Returns the refusal of an operation by its OpenFlow error.
fn refusal((kind, code): (u16, u16), text: &str) -> PlaneRefusal {
    PlaneRefusal { kind, code, text: text.into() }
}

impl<L: DeviceLink> DataPlane for DevicePlane<L> {
    fn table_capabilities(&self) -> TableCapabilities {
        capabilities::capabilities(self.compiler.layout())
    }

    fn check(&mut self, changes: &[EntryChange], others: &[Operation]) -> Result<(), PlaneRefusal> {
        for operation in others.iter().flat_map(Operation::parts) {
            match operation {
                // OFPGMFC_OUT_OF_GROUPS, OFPMMFC_OUT_OF_METERS.
                Operation::Group(_) => return Err(refusal((6, 3), "the device has no groups")),
                Operation::Meter(_) => return Err(refusal((12, 10), "the device has no meters")),
                Operation::Stateless(Some(_)) => {
                    return Err(refusal((0xffff, 1), "the device has no stateless forwarding"));
                }
                // OFPPMFC_BAD_PORT.
                Operation::Port(state) if state.number.0 > 0xff => {
                    return Err(refusal((7, 0), "the ports of the device have the numbers 1 to 255"));
                }
                // OFPPMFC_BAD_CONFIG.
                Operation::Port(state) if state.disabled || state.no_recv || state.no_fwd => {
                    return Err(refusal((7, 2), "the device cannot disable ports or directions of them"));
                }
                _ => {}
            }
        }
        self.compiler.check(changes).map_err(|error| refusal(error.openflow(), &error.to_string()))
    }

    fn submit(&mut self, operation: Operation) -> RuleVersion {
        self.apply(&operation);
        self.version.0 += 1;
        if matches!(self.sync, Sync::Ready) {
            self.versions.push_back((self.version, self.asked));
        } else {
            // All versions become active together, when the device has been written.
            match self.versions.back_mut() {
                Some((version, u64::MAX)) => *version = self.version,
                _ => self.versions.push_back((self.version, u64::MAX)),
            }
        }
        if !self.is_held {
            self.poll_session();
        }
        self.version
    }

    fn applied(&mut self) -> RuleVersion {
        self.applied
    }

    fn parked(&self) -> usize {
        self.versions.len()
    }

    fn tick(&mut self, now: Nanos) {
        self.exchange(now);
    }

    fn counted_until(&mut self) -> Nanos {
        self.counted
    }

    /// Returns the time of the next reading, or none that helps while the device does not answer.
    fn next_count(&mut self, now: Nanos) -> Nanos {
        match self.sync {
            Sync::Ready => self.counted.saturating_add(COUNT_INTERVAL).max(now.saturating_add(COUNT_PAUSE)),
            _ => now.saturating_add(COUNT_INTERVAL),
        }
    }

    /// Returns the packets. The device does not count the bytes of entries.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        let count = self.counts.get(&id).copied().unwrap_or_default();
        EntryCounters { packets: count.packets, bytes: UNKNOWN, used_ns: count.used }
    }

    fn release(&mut self, id: EntryId) {
        self.counts.remove(&id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        let [matches, misses] = [&self.matches, &self.misses].map(|by| by.get(&table).copied().unwrap_or(0));
        TableCounters { lookups: matches + misses, matches }
    }

    fn group_counters(&mut self, _: GroupId) -> Option<GroupCounters> {
        None
    }

    fn meter_counters(&mut self, _: MeterId) -> Option<MeterCounters> {
        None
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        let known = self.ports.contains_key(&port);
        known.then(|| self.counters.of_port(port))
    }

    fn totals(&mut self) -> Totals {
        self.counters.totals(&self.lost)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn recycle(&mut self, frame: Frame) {
        // A frame of another home is freed.
        drop(self.pool.put(frame));
    }
}
