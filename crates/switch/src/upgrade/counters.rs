// SPDX-License-Identifier: Apache-2.0
//! The final counters of a process, which the next one adds to its own.

use crate::mirror::WrittenFile;
use crate::plane::Plane;
use dataplane::{
    DropCounts, EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals,
    TrafficCount,
};
use flow::{DropReason, EntryChange, EntryId, GroupId, MeterId, Nanos, Operation, PortNo, QueueId, TableId};
use model::Model;
use port::PortDrop;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Packets and bytes.
type Pair = (u64, u64);

/// The counters of a datapath, and its learned MACs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinalCounters {
    /// ID of the datapath.
    pub datapath: u64,
    /// Serial number, packets and bytes of each entry that was hit.
    flows: Vec<(u64, u64, u64)>,
    /// Table, lookups and matches.
    tables: Vec<(u8, u64, u64)>,
    /// Group, its counters, and those of its buckets.
    groups: Vec<(u32, Pair, Vec<Pair>)>,
    /// Meter, its counters, and those of its bands.
    meters: Vec<(u32, Pair, Vec<Pair>)>,
    ports: Vec<PortSum>,
    /// Port, queue, packets and bytes sent, and packets dropped.
    queues: Vec<(u32, u32, u64, u64, u64)>,
    totals: [u64; 8],
    dropped: Vec<(String, u64)>,
    copies_dropped: Vec<(String, u64)>,
    /// VLAN ID, address and port.
    pub macs: Vec<(u16, [u8; 6], u32)>,
    /// Files of mirrors.
    #[serde(default)]
    pub files: Vec<WrittenFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PortSum {
    port: u32,
    counts: [u64; 6],
    by_name: Vec<(String, u64)>,
}

fn pair(count: TrafficCount) -> Pair {
    (count.packets, count.bytes)
}

fn pairs(counts: &[TrafficCount]) -> Vec<Pair> {
    counts.iter().copied().map(pair).collect()
}

fn named(counts: &DropCounts) -> Vec<(String, u64)> {
    counts.by_reason().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.name().to_owned(), n)).collect()
}

fn drops(named: &[(String, u64)]) -> DropCounts {
    let count = |reason: DropReason| named.iter().find(|(name, _)| name == reason.name());
    DropCounts::from_fn(|reason| count(reason).map_or(0, |(_, count)| *count))
}

impl FinalCounters {
    /// Reads the counters of a datapath whose workers have ended.
    pub fn of(model: &mut Model<Plane>, now: Nanos) -> Self {
        let counted = model.counters_by_serial().into_iter().filter(|(_, counters)| counters.packets > 0);
        let flows = counted.map(|(serial, counters)| (serial, counters.packets, counters.bytes)).collect();
        let looked_up = model.tables().into_iter().filter(|table| table.lookups > 0);
        let tables = looked_up.map(|table| (table.table.0, table.lookups, table.matches)).collect();
        let groups = model.group_ids().into_iter().filter_map(|id| {
            let counters = model.group(now, id)?.counters;
            Some((id.0, pair(counters.total), pairs(&counters.buckets)))
        });
        let groups = groups.collect();
        let meters = model.meter_ids().into_iter().filter_map(|id| {
            let counters = model.meter(now, id)?.counters;
            Some((id.0, pair(counters.total), pairs(&counters.bands)))
        });
        let meters = meters.collect();
        let numbers: Vec<PortNo> = model.ports().map(|port| port.desc.number).collect();
        let ports =
            numbers.iter().filter_map(|port| Some(port_sum(*port, model.port_counters(*port)?))).collect();
        let mut queues = Vec::new();
        for port in &numbers {
            let of_port = model.queues(*port).into_iter();
            queues.extend(of_port.map(|q| (port.0, q.settings.id.0, q.tx_packets, q.tx_bytes, q.dropped)));
        }
        let t = model.totals();
        Self {
            datapath: model.config().datapath_id,
            flows,
            tables,
            groups,
            meters,
            ports,
            queues,
            totals: [
                t.received,
                t.forwarded,
                t.consumed,
                t.fast,
                t.express,
                t.stateless,
                t.held_back,
                t.copies,
            ],
            dropped: named(&t.dropped),
            copies_dropped: named(&t.copies_dropped),
            macs: model.learned_macs().into_iter().map(|(vid, mac, port)| (vid, mac, port.0)).collect(),
            files: Vec::new(),
        }
    }

    /// Returns counters of a datapath without packets.
    #[cfg(test)]
    pub fn none(datapath: u64) -> Self {
        Self { datapath, ..Self::default() }
    }

    /// Makes a datapath continue these counters, and learn the MACs.
    pub fn continue_in(&self, model: &mut Model<Plane>, now: Nanos) {
        let ids: HashMap<u64, EntryId> = model.ids_by_serial().into_iter().collect();
        let count = |pair: &Pair| TrafficCount { packets: pair.0, bytes: pair.1 };
        let counts = |all: &[Pair]| all.iter().map(count).collect();
        let entries = self.flows.iter().filter_map(|&(serial, packets, bytes)| {
            Some((*ids.get(&serial)?, EntryCounters { packets, bytes, used_ns: Nanos(0) }))
        });
        let tables = self.tables.iter();
        let [received, forwarded, consumed, fast, express, stateless, held_back, copies] = self.totals;
        let inherited = InheritedCounters {
            entries: entries.collect(),
            tables: tables
                .map(|&(table, lookups, matches)| (TableId(table), TableCounters { lookups, matches }))
                .collect(),
            groups: self
                .groups
                .iter()
                .map(|(id, total, buckets)| {
                    (GroupId(*id), GroupCounters { total: count(total), buckets: counts(buckets) })
                })
                .collect(),
            meters: self
                .meters
                .iter()
                .map(|(id, total, bands)| {
                    (MeterId(*id), MeterCounters { total: count(total), bands: counts(bands) })
                })
                .collect(),
            ports: self.ports.iter().map(|sum| (PortNo(sum.port), port_counters(sum))).collect(),
            queues: self.queues.iter().map(|q| ((q.0, q.1), [q.2, q.3, q.4])).collect(),
            totals: Totals {
                received,
                forwarded,
                consumed,
                fast,
                express,
                stateless,
                held_back,
                held: 0,
                dropped: drops(&self.dropped),
                copies,
                copies_dropped: drops(&self.copies_dropped),
            },
        };
        model.plane_mut().inherit(inherited);
        // What this process has learned itself is newer.
        let known: BTreeSet<(u16, [u8; 6])> =
            model.learned_macs().into_iter().map(|one| (one.0, one.1)).collect();
        let unknown = self.macs.iter().filter(|(vid, mac, _)| !known.contains(&(*vid, *mac)));
        let new: Vec<_> = unknown.map(|&(vid, mac, port)| (vid, mac, PortNo(port))).collect();
        model.learn_macs(now, &new);
    }
}

fn port_sum(port: PortNo, counters: PortCounters) -> PortSum {
    let c = counters;
    PortSum {
        port: port.0,
        counts: [c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes, c.rx_dropped, c.tx_dropped],
        by_name: c.by_name.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

fn port_counters(sum: &PortSum) -> PortCounters {
    let [rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped] = sum.counts;
    let known = || PortDrop::ALL.iter().map(|(_, name)| *name).chain([DropReason::QueueFull.name()]);
    let by_name = sum.by_name.iter().filter_map(|(name, n)| Some((known().find(|one| one == name)?, *n)));
    let by_name = by_name.collect();
    PortCounters { rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped, by_name }
}

/// Counters of an earlier process. They end when their object is replaced, removed or reset.
#[derive(Debug, Default)]
pub(crate) struct InheritedCounters {
    entries: HashMap<EntryId, EntryCounters>,
    tables: BTreeMap<TableId, TableCounters>,
    groups: BTreeMap<GroupId, GroupCounters>,
    meters: BTreeMap<MeterId, MeterCounters>,
    ports: BTreeMap<PortNo, PortCounters>,
    /// By port and queue: packets and bytes sent, and packets dropped.
    queues: BTreeMap<(u32, u32), [u64; 3]>,
    totals: Totals,
}

fn add(count: &mut TrafficCount, other: TrafficCount) {
    count.packets = count.packets.wrapping_add(other.packets);
    count.bytes = count.bytes.saturating_add(other.bytes);
}

fn add_all(counts: &mut [TrafficCount], others: &[TrafficCount]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| add(count, *other));
}

impl InheritedCounters {
    /// Forgets the counters that start at 0 with an operation.
    pub fn note(&mut self, operation: &Operation) {
        for part in operation.parts() {
            match part {
                Operation::Entries(changes) if !self.entries.is_empty() => {
                    for change in changes {
                        if let EntryChange::Modify { id, reset_counts: true, .. } = change {
                            self.entries.remove(id);
                        }
                    }
                }
                Operation::Group(group) => drop(self.groups.remove(&group.id)),
                Operation::RemoveGroup(id) => drop(self.groups.remove(id)),
                Operation::Meter(meter) => drop(self.meters.remove(&meter.id)),
                Operation::RemoveMeter(id) => drop(self.meters.remove(id)),
                Operation::RemovePort(port) => {
                    self.ports.remove(port);
                    self.queues.retain(|(number, _), _| *number != port.0);
                }
                _ => {}
            }
        }
    }

    pub fn forget_entry(&mut self, id: EntryId) {
        self.entries.remove(&id);
    }

    pub fn with_entry(&self, id: EntryId, mut counters: EntryCounters) -> EntryCounters {
        if let Some(before) = self.entries.get(&id) {
            counters.packets = counters.packets.wrapping_add(before.packets);
            counters.bytes = counters.bytes.saturating_add(before.bytes);
        }
        counters
    }

    pub fn with_table(&self, table: TableId, mut counters: TableCounters) -> TableCounters {
        if let Some(before) = self.tables.get(&table) {
            counters.lookups += before.lookups;
            counters.matches += before.matches;
        }
        counters
    }

    pub fn with_group(&self, id: GroupId, mut counters: GroupCounters) -> GroupCounters {
        if let Some(before) = self.groups.get(&id) {
            add(&mut counters.total, before.total);
            add_all(&mut counters.buckets, &before.buckets);
        }
        counters
    }

    pub fn with_meter(&self, id: MeterId, mut counters: MeterCounters) -> MeterCounters {
        if let Some(before) = self.meters.get(&id) {
            add(&mut counters.total, before.total);
            add_all(&mut counters.bands, &before.bands);
        }
        counters
    }

    pub fn with_port(&self, port: PortNo, mut counters: PortCounters) -> PortCounters {
        let Some(before) = self.ports.get(&port) else { return counters };
        counters.rx_packets += before.rx_packets;
        counters.rx_bytes += before.rx_bytes;
        counters.tx_packets += before.tx_packets;
        counters.tx_bytes += before.tx_bytes;
        counters.rx_dropped += before.rx_dropped;
        counters.tx_dropped += before.tx_dropped;
        for (name, count) in &before.by_name {
            match counters.by_name.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => counters.by_name.push((name, *count)),
            }
        }
        counters
    }

    pub fn with_queues(&self, port: PortNo, mut queues: Vec<PortQueue>) -> Vec<PortQueue> {
        for queue in &mut queues {
            let QueueId(number) = queue.settings.id;
            if let Some([packets, bytes, dropped]) = self.queues.get(&(port.0, number)) {
                queue.tx_packets += packets;
                queue.tx_bytes += bytes;
                queue.dropped += dropped;
            }
        }
        queues
    }

    pub fn with_totals(&self, mut totals: Totals) -> Totals {
        let before = &self.totals;
        totals.received += before.received;
        totals.forwarded += before.forwarded;
        totals.consumed += before.consumed;
        totals.fast += before.fast;
        totals.express += before.express;
        totals.stateless += before.stateless;
        totals.held_back += before.held_back;
        totals.copies += before.copies;
        totals.dropped += before.dropped;
        totals.copies_dropped += before.copies_dropped;
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::DataPlane;
    use model::{ModelConfig, PortDesc};

    /// A datapath with two ports and a default flow.
    fn model() -> Model<Plane> {
        let config = ModelConfig { datapath_id: 9, standalone: true, ..ModelConfig::default() };
        let mut model = Model::new(config, Plane::of_workers(worker::without_workers()), Nanos(0));
        for number in 1..=2 {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        model
    }

    const COUNT: TrafficCount = TrafficCount { packets: 3, bytes: 180 };

    #[test]
    fn final_counters_arrive_in_the_next_process_with_the_learned_macs() {
        let mut old = model();
        let learned = [(0, [2, 0, 0, 0, 0, 1], PortNo(1)), (7, [2, 0, 0, 0, 0, 2], PortNo(2))];
        old.learn_macs(Nanos(1), &learned);
        let (serial, id) = old.ids_by_serial()[0];
        let counters = EntryCounters { packets: 5, bytes: 300, used_ns: Nanos(0) };
        old.plane_mut().inherit(InheritedCounters {
            entries: [(id, counters)].into(),
            tables: [(TableId(0), TableCounters { lookups: 8, matches: 5 })].into(),
            totals: Totals { received: 8, forwarded: 8, ..Totals::default() },
            ..InheritedCounters::default()
        });
        let text = serde_json::to_string(&FinalCounters::of(&mut old, Nanos(2))).unwrap();
        let mut new = model();
        new.learn_macs(Nanos(1), &[(0, [2, 0, 0, 0, 0, 1], PortNo(2))]);
        let counters: FinalCounters = serde_json::from_str(&text).unwrap();
        assert_eq!(counters.datapath, 9);
        counters.continue_in(&mut new, Nanos(2));
        let mut macs = new.learned_macs();
        macs.sort();
        assert_eq!(macs, [(0, [2, 0, 0, 0, 0, 1], PortNo(2)), learned[1]], "the newer port counts");
        let flows = new.counters_by_serial();
        assert_eq!(flows.iter().find(|flow| flow.0 == serial).map(|flow| flow.1.packets), Some(5));
        assert_eq!((new.table(TableId(0)).lookups, new.totals().received), (8, 8));
    }

    #[test]
    fn inherited_counters_end_with_their_objects() {
        let group = GroupCounters { total: COUNT, buckets: vec![COUNT] };
        let meter = MeterCounters { total: COUNT, bands: Vec::new() };
        let mut inherited = InheritedCounters {
            groups: [(GroupId(1), group.clone())].into(),
            meters: [(MeterId(1), meter.clone())].into(),
            ports: [(PortNo(1), PortCounters { rx_packets: 4, ..PortCounters::default() })].into(),
            ..InheritedCounters::default()
        };
        let twice = inherited.with_group(GroupId(1), group.clone());
        assert_eq!((twice.total.packets, twice.buckets[0].bytes), (6, 360));
        assert_eq!(inherited.with_port(PortNo(1), PortCounters::default()).rx_packets, 4);
        let removed = [Operation::RemoveGroup(GroupId(1)), Operation::RemoveMeter(MeterId(1))];
        inherited.note(&Operation::All(removed.into()));
        inherited.note(&Operation::RemovePort(PortNo(1)));
        assert_eq!(inherited.with_group(GroupId(1), group.clone()), group);
        assert_eq!(inherited.with_meter(MeterId(1), meter.clone()), meter);
        assert_eq!(inherited.with_port(PortNo(1), PortCounters::default()).rx_packets, 0);
    }

    #[test]
    fn the_plane_adds_what_it_inherits() {
        let mut plane = Plane::of_workers(worker::without_workers());
        plane.inherit(InheritedCounters {
            totals: Totals { received: 2, copies: 1, ..Totals::default() },
            ..InheritedCounters::default()
        });
        assert_eq!((plane.totals().received, plane.totals().copies), (2, 1));
    }
}
