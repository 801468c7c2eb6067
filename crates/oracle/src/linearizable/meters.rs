// SPDX-License-Identifier: Apache-2.0
//! Checks of meters. The reference's meters charge packets in the order in which the workers executed the
//! entries. This determines the bands that each packet exceeds, and the reference processes the packet with
//! these bands.

use crate::log::{Lookup, Moment, Record, Walker};
use dataplane::{MeterCounters, TrafficCount};
use flow::meter::Band;
use flow::{EntryChange, EntryId, MeterId, Operation, RuleVersion, TableId};
use reference::{MeterDebts, Metered, Processed};
use std::collections::BTreeMap;

/// Execution of an entry that refers to a meter.
#[derive(Clone, Copy, Debug)]
struct Charge {
    moment: Moment,
    packet: Place,
    /// Version that created the meter, to tell the meter from an earlier one with the same number.
    made: usize,
    metered: Metered,
}

/// A packet, with its worker.
type Place = (usize, Walker);

/// Effects of the meters on all packets.
#[derive(Debug, Default)]
pub(super) struct Bands {
    /// Meters that each packet reached, each with the band that the packet exceeded.
    packets: BTreeMap<Place, Vec<(Metered, Option<Band>)>>,
    /// Final state of each meter.
    meters: BTreeMap<MeterId, MeterDebts>,
    /// Number of times that a band applied to a packet.
    pub exceeded: usize,
}

/// Entries that refer to a meter, and existing meters, at one version.
#[derive(Debug, Default)]
struct Rules {
    entries: BTreeMap<EntryId, MeterId>,
    /// Version that created each meter.
    made: BTreeMap<MeterId, usize>,
}

impl Rules {
    fn apply(&mut self, version: usize, operation: &Operation) {
        for part in operation.parts() {
            match part {
                Operation::Entries(changes) => changes.iter().for_each(|change| self.change(change)),
                Operation::Meter(meter) => {
                    self.made.insert(meter.id, version);
                }
                Operation::RemoveMeter(id) => {
                    self.made.remove(id);
                }
                _ => {}
            }
        }
    }

    fn change(&mut self, change: &EntryChange) {
        let (id, meter) = match change {
            EntryChange::Add(entry) => (entry.id, entry.instructions.meter),
            EntryChange::Modify { id, instructions, .. } => (*id, instructions.meter),
            EntryChange::Remove { id, .. } => (*id, None),
        };
        match meter {
            Some(meter) => self.entries.insert(id, meter),
            None => self.entries.remove(&id),
        };
    }

    fn charge(&self, worker: usize, lookup: &Lookup) -> Option<Charge> {
        let meter = *self.entries.get(&lookup.entry)?;
        let made = *self.made.get(&meter)?;
        let metered = Metered { table: lookup.table, meter, bytes: lookup.bytes };
        Some(Charge { moment: lookup.moment, packet: (worker, lookup.walker), made, metered })
    }
}

impl Bands {
    /// Charges all packets in the order of the workers.
    pub fn of(record: &Record) -> Self {
        let is_meter = |part: &Operation| matches!(part, Operation::Meter(_));
        if !record.operations.iter().any(|operation| operation.parts().iter().any(is_meter)) {
            return Self::default();
        }
        let mut charges = charges(record);
        charges.sort_unstable_by_key(|charge| charge.moment.place);
        let mut meters: BTreeMap<(MeterId, usize), MeterDebts> = BTreeMap::new();
        for (at, operation) in record.operations.iter().enumerate() {
            for part in operation.parts() {
                if let Operation::Meter(meter) = part {
                    meters.insert((meter.id, at + 1), MeterDebts::new(meter));
                }
            }
        }
        let mut bands = Self::default();
        for Charge { moment, packet, made, metered } in charges {
            let meter = meters.get_mut(&(metered.meter, made));
            let band = meter.and_then(|meter| meter.charge(metered.bytes, moment.at));
            bands.exceeded += usize::from(band.is_some());
            bands.packets.entry(packet).or_default().push((metered, band));
        }
        // Only the last meter with each number is kept.
        bands.meters = meters.into_iter().map(|((id, _), meter)| (id, meter)).collect();
        bands
    }

    /// Returns the bands that a packet exceeded, by table.
    pub fn exceeded_by(&self, packet: Place) -> BTreeMap<TableId, Band> {
        let metered = self.packets.get(&packet).into_iter().flatten();
        metered.filter_map(|(metered, band)| Some((metered.table, (*band)?))).collect()
    }

    /// Checks that a packet was charged for its full length by exactly the meters that it reaches in the
    /// reference.
    pub fn check(&self, packet: Place, processed: &Processed) -> Result<(), String> {
        let charged = self.packets.get(&packet).into_iter().flatten().map(|(metered, _)| metered);
        if charged.clone().eq(&processed.metered) {
            return Ok(());
        }
        let charged: Vec<_> = charged.collect();
        Err(format!("meters charged {charged:?}, expected {:?}", processed.metered))
    }

    /// Compares the meters' counters. Returns the number of meters.
    pub fn check_counters(&self, meters: &[(MeterId, MeterCounters)]) -> Result<usize, String> {
        for (id, counters) in meters {
            let Some(meter) = self.meters.get(id) else {
                return Err(format!("meter {id} was never created"));
            };
            let pair = |count: &TrafficCount| (count.packets, count.bytes);
            if pair(&counters.total) != meter.total()
                || !counters.bands.iter().map(pair).eq(meter.bands().iter().copied())
            {
                return Err(format!("meter {id} counted {counters:?}, expected {meter:?}"));
            }
        }
        Ok(meters.len())
    }
}

/// Returns all charges, each made under the rules that its worker had applied.
fn charges(record: &Record) -> Vec<Charge> {
    let mut rules = Rules::default();
    let mut charges = Vec::new();
    let mut next = vec![0; record.hits.len()];
    for version in 0..=record.operations.len() {
        if version > 0 {
            rules.apply(version, &record.operations[version - 1]);
        }
        for (worker, log) in record.hits.iter().enumerate() {
            while let Some(lookup) =
                log.get(next[worker]).filter(|lookup| lookup.version == RuleVersion(version as u64))
            {
                next[worker] += 1;
                charges.extend(rules.charge(worker, lookup));
            }
        }
    }
    charges
}
