// SPDX-License-Identifier: Apache-2.0
//! Engine `reference`, which uses the reference interpreter as the data plane.

use crate::replay::engine::Forwarder;
use crate::replay::input::Burst;
use crate::replay::queue::Numbered;
use dataplane::{
    DataPlane, DropCounts, EntryCounters, Event, GroupCounters, MacSeen, MeterCounters, PacketInEvent,
    PortCounters, TableCounters, Totals, TrafficCount,
};
use flow::{EntryId, GroupId, MeterId, Nanos, Operation, Outcome, PortNo, RuleVersion, TableId};
use frame::{Frame, Meta};
use model::Model;
use reference::{Processed, Reference};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The reference interpreter, with the additional state that the model needs.
#[derive(Debug, Default)]
pub struct PlainPlane {
    reference: Reference,
    version: RuleVersion,
    events: VecDeque<Event>,
    used_ns: HashMap<EntryId, Nanos>,
    ports: BTreeMap<PortNo, PortCounters>,
    totals: Totals,
    sent: BTreeMap<PortNo, Vec<Numbered>>,
}

impl PlainPlane {
    /// Creates an empty data plane.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn forward(&mut self, in_port: PortNo, number: u64, bytes: &[u8], now: Nanos) {
        let counters = self.ports.entry(in_port).or_default();
        counters.rx_packets += 1;
        counters.rx_bytes += bytes.len() as u64;
        let processed = self.reference.process(in_port, bytes);
        self.count(&processed, now);
        for copy in processed.packet_ins {
            let mut frame = Frame::from_bytes(&copy.bytes);
            frame.meta = Meta { in_port: in_port.0, sequence: number, ..Meta::default() };
            self.events.push_back(Event::PacketIn(PacketInEvent {
                frame,
                table: copy.table,
                entry: copy.entry,
                reason: copy.reason,
                max_len: copy.max_len,
                metadata: copy.metadata,
                tunnel_id: copy.tunnel_id,
                question: None,
            }));
        }
        for seen in processed.learn {
            let mut mac = [0; 6];
            mac.copy_from_slice(&seen.mac.to_be_bytes()[2..]);
            self.events.push_back(Event::Learn(MacSeen { vid: seen.vid, mac, port: seen.port }));
        }
        for copy in processed.sent {
            let counters = self.ports.entry(copy.port).or_default();
            counters.tx_packets += 1;
            counters.tx_bytes += copy.bytes.len() as u64;
            self.sent.entry(copy.port).or_default().push((number, copy.bytes));
        }
    }

    fn count(&mut self, processed: &Processed, now: Nanos) {
        let hit = processed.hits.iter().filter_map(|(_, entry)| *entry);
        for id in hit.chain(processed.refreshed.iter().copied()) {
            self.used_ns.insert(id, now);
        }
        self.totals.received += 1;
        self.totals.copies += processed.sent.len() as u64;
        match processed.outcome {
            Outcome::Forwarded => self.totals.forwarded += 1,
            Outcome::Consumed => self.totals.consumed += 1,
            // The interpreter counts drops itself.
            Outcome::Dropped(_) => {}
        }
    }
}

impl DataPlane for PlainPlane {
    fn submit(&mut self, operation: Operation) -> RuleVersion {
        let applied = self.reference.apply(&operation);
        debug_assert!(applied.is_ok(), "the model submitted an invalid operation: {applied:?}");
        self.version.0 += 1;
        self.version
    }

    fn applied(&mut self) -> RuleVersion {
        self.version
    }

    fn counted_until(&mut self) -> Nanos {
        Nanos::MAX
    }

    fn parked(&self) -> usize {
        0
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        let (packets, bytes) = self.reference.entry_counters(id).unwrap_or_default();
        EntryCounters { packets, bytes, used_ns: self.used_ns.get(&id).copied().unwrap_or_default() }
    }

    fn release(&mut self, id: EntryId) {
        self.used_ns.remove(&id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        let (lookups, matches) = self.reference.table_counters(table);
        TableCounters { lookups, matches }
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        let counters = self.reference.group_counters(id)?;
        let count = |(packets, bytes)| TrafficCount { packets, bytes };
        let buckets = counters.buckets.iter().copied().map(count).collect();
        Some(GroupCounters { total: count(counters.total), buckets })
    }

    /// Returns `None`, because the reference has no clock for meters.
    fn meter_counters(&mut self, _: MeterId) -> Option<MeterCounters> {
        None
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        self.reference.ports().contains_key(&port).then(|| self.ports.get(&port).cloned().unwrap_or_default())
    }

    fn totals(&mut self) -> Totals {
        let by_reason = |counted: &BTreeMap<flow::DropReason, u64>| {
            DropCounts::from_fn(|reason| counted.get(&reason).copied().unwrap_or_default())
        };
        Totals {
            dropped: by_reason(self.reference.drops()),
            copies_dropped: by_reason(self.reference.copy_drops()),
            ..self.totals.clone()
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn recycle(&mut self, frame: Frame) {
        drop(frame);
    }
}

/// Forwards packet by packet with the interpreter.
pub(super) struct Plain;

impl Forwarder for Plain {
    type Plane = PlainPlane;

    fn settle(&mut self, _model: &mut Model<PlainPlane>, _now: Nanos) {}

    fn forward(&mut self, model: &mut Model<PlainPlane>, now: Nanos, burst: &Burst) {
        for (number, packet) in (burst.first..).zip(&burst.packets) {
            model.plane_mut().forward(burst.in_port, number, &packet.bytes, now);
        }
    }

    fn take_sent(&mut self, model: &mut Model<PlainPlane>, mut each: impl FnMut(PortNo, Vec<Numbered>)) {
        for (port, sent) in std::mem::take(&mut model.plane_mut().sent) {
            each(port, sent);
        }
    }
}
