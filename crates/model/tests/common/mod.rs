// SPDX-License-Identifier: Apache-2.0
//! A fake data plane that records and checks the operations submitted to it.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::panic)]

use dataplane::{
    DataPlane, EntryCounters, Event, GroupCounters, MeterCounters, PlaneRefusal, PortCounters, TableCounters,
    Totals,
};
use flow::operation::MAC_TABLE;
use flow::{
    Action, EntryChange, EntryId, Field, FieldMatch, FlowMod, FlowModCommand, GroupId, Instructions, Match,
    MeterId, Nanos, Operation, PortNo, RuleVersion, TableId,
};
use frame::Frame;
use model::{AsyncMessage, FlowCursor, FlowFilter, FlowStats, Model, ModelConfig, PortDesc};
use std::collections::{HashMap, VecDeque};

pub const SECOND: Nanos = Nanos(1_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Alive,
    /// The entry was removed by the operation of this version.
    Removed(RuleVersion),
}

#[derive(Debug, Default)]
pub struct FakePlane {
    /// Operations in order; the first one has version 1.
    pub operations: Vec<Operation>,
    pub applied: RuleVersion,
    /// Whether operations are applied only when `apply_all` is called.
    pub held: bool,
    pub counters: HashMap<EntryId, EntryCounters>,
    known: HashMap<EntryId, Known>,
    pub events: VecDeque<Event>,
    pub recycled: usize,
    pub counter_reads: usize,
    /// Time of the first hit that is not counted, if any.
    pub uncounted_since: Option<Nanos>,
    /// Refusal of all changes.
    pub refusal: Option<PlaneRefusal>,
    /// Refusal of changes that add an entry of this priority.
    pub refused_priority: Option<(u16, PlaneRefusal)>,
    /// Number of parked operations that the data plane reports.
    pub parked: usize,
}

impl FakePlane {
    pub fn apply_all(&mut self) {
        self.applied = RuleVersion(self.operations.len() as u64);
    }

    pub fn hit(&mut self, id: EntryId, packets: u64, now: Nanos) {
        assert!(self.known.contains_key(&id), "entry {id} must be known");
        let counters = self.counters.entry(id).or_default();
        counters.packets += packets;
        counters.bytes += 100 * packets;
        counters.used_ns = now;
    }

    pub fn knows(&self, id: EntryId) -> bool {
        self.known.contains_key(&id)
    }

    pub fn known_ids(&self) -> usize {
        self.known.len()
    }
}

impl DataPlane for FakePlane {
    fn check(&mut self, changes: &[EntryChange], _: &[Operation]) -> Result<(), PlaneRefusal> {
        if let Some((priority, refusal)) = &self.refused_priority
            && changes.iter().any(|change| matches!(change, EntryChange::Add(e) if e.priority == *priority))
        {
            return Err(refusal.clone());
        }
        self.refusal.clone().map_or(Ok(()), Err)
    }

    fn submit(&mut self, operation: Operation) -> RuleVersion {
        let version = RuleVersion(self.operations.len() as u64 + 1);
        for part in operation.parts() {
            assert!(!matches!(part, Operation::All(_)));
            let Operation::Entries(changes) = part else { continue };
            assert!(!changes.is_empty());
            for change in changes {
                match change {
                    EntryChange::Add(entry) => {
                        let before = self.known.insert(entry.id, Known::Alive);
                        assert_eq!(before, None, "entry ID {} must be free", entry.id);
                    }
                    EntryChange::Modify { id, reset_counts, .. } => {
                        assert_eq!(self.known[id], Known::Alive);
                        if let Some(c) = self.counters.get_mut(id).filter(|_| *reset_counts) {
                            (c.packets, c.bytes) = (0, 0);
                        }
                    }
                    EntryChange::Remove { id, .. } => {
                        assert_eq!(self.known.insert(*id, Known::Removed(version)), Some(Known::Alive));
                    }
                }
            }
        }
        self.operations.push(operation);
        if !self.held {
            self.apply_all();
        }
        version
    }

    fn applied(&mut self) -> RuleVersion {
        self.applied
    }

    fn counted_until(&mut self) -> Nanos {
        self.uncounted_since.unwrap_or(Nanos::MAX)
    }

    fn parked(&self) -> usize {
        self.parked
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        assert!(
            self.known.contains_key(&id),
            "counters of entry {id} can be read only between its addition and its release"
        );
        self.counter_reads += 1;
        self.counters.get(&id).copied().unwrap_or_default()
    }

    fn release(&mut self, id: EntryId) {
        match self.known.remove(&id) {
            Some(Known::Removed(version)) => {
                assert!(version <= self.applied, "entry {id} is released before its removal is active")
            }
            other => panic!("entry {id} is released in the state {other:?}"),
        }
        self.counters.remove(&id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        TableCounters { lookups: u64::from(table.0), matches: 0 }
    }

    fn group_counters(&mut self, _: GroupId) -> Option<GroupCounters> {
        None
    }

    fn meter_counters(&mut self, _: MeterId) -> Option<MeterCounters> {
        None
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        Some(PortCounters { rx_packets: u64::from(port.0), ..PortCounters::default() })
    }

    fn totals(&mut self) -> Totals {
        Totals::default()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn recycle(&mut self, _: Frame) {
        self.recycled += 1;
    }
}

pub type Fake = Model<FakePlane>;

pub fn plain() -> Fake {
    with(ModelConfig::default())
}

pub fn with(config: ModelConfig) -> Fake {
    Model::new(config, FakePlane::default(), Nanos(0))
}

/// Returns a match on `dl_dst` under a mask.
pub fn dst(value: u128, mask: u128) -> Match {
    Match::new([FieldMatch { field: Field::EthDst, value, mask }]).unwrap()
}

/// Returns an exact match on `dl_dst`.
pub fn mac(value: u128) -> Match {
    dst(value, Field::EthDst.full_mask())
}

pub fn output(port: PortNo) -> Instructions {
    Instructions::apply(vec![Action::output(port)])
}

pub fn add(priority: u16, matching: Match, port: PortNo) -> FlowMod {
    FlowMod { priority, matching, instructions: output(port), ..FlowMod::default() }
}

pub fn command(command: FlowModCommand, m: FlowMod) -> FlowMod {
    FlowMod { command, ..m }
}

pub fn delete_all() -> FlowMod {
    FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() }
}

/// Returns the statistics of all entries, read in parts of 3 entries.
pub fn dump(model: &mut Fake, now: Nanos) -> Vec<FlowStats> {
    let mut all = Vec::new();
    let mut cursor = FlowCursor::default();
    while !cursor.is_done() {
        all.extend(model.flows(now, &FlowFilter::default(), &mut cursor, 3));
    }
    all
}

pub fn poll_all(model: &mut Fake, now: Nanos) -> Vec<AsyncMessage> {
    let mut async_messages = Vec::new();
    loop {
        let more = model.poll(now);
        async_messages.extend(std::iter::from_fn(|| model.next_async_message()));
        if !more {
            return async_messages;
        }
    }
}

pub fn port(number: PortNo) -> PortDesc {
    PortDesc { number, name: format!("p{number}"), ..PortDesc::default() }
}

/// Returns the entry changes of the last operation.
pub fn last_changes(model: &mut Fake) -> Vec<EntryChange> {
    match model.plane_mut().operations.last() {
        Some(Operation::Entries(changes)) => changes.clone(),
        other => panic!("expected entry changes, not {other:?}"),
    }
}

pub fn is_mac(change: &EntryChange) -> bool {
    match change {
        EntryChange::Add(entry) => entry.table == MAC_TABLE,
        EntryChange::Modify { table, .. } | EntryChange::Remove { table, .. } => *table == MAC_TABLE,
    }
}

/// A deterministic pseudo-random number generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
