// SPDX-License-Identifier: Apache-2.0
//! Learned MACs: entries of the internal table [`MAC_TABLE`], in which NORMAL looks up destinations.

use crate::changes::transaction::{Counts, NewEntry, Transaction};
use crate::expiry::{Expiry, NextTimer, TimerKind};
use crate::port::Port;
use crate::rules::Rules;
use crate::rules::store::Store;
use dataplane::{DataPlane, MacSeen};
use flow::operation::MAC_TABLE;
use flow::{Action, EntryFlags, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, Nanos, PortNo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Mask of the 12 bits of a VLAN ID.
const VID_MASK: u16 = 0xfff;
/// Multicast bit in the first byte of a MAC address. A valid source address does not have this bit.
const GROUP_BIT: u8 = 1;
/// Number of MACs whose last use is checked when a MAC must be evicted.
const EVICTION_TRIES: usize = 8;

/// A learned MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac {
    /// VLAN ID, or 0 for untagged frames.
    pub vid: u16,
    /// MAC address.
    pub mac: [u8; 6],
    /// Port on which the address was learned.
    pub port: PortNo,
    /// Time since the address was last seen as a source, in nanoseconds.
    pub age_ns: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    id: EntryId,
    port: PortNo,
}

/// Learned MACs by VLAN ID and address.
#[derive(Debug, Default)]
pub(crate) struct Macs {
    places: BTreeMap<(u16, [u8; 6]), Place>,
    ports: BTreeMap<PortNo, PortMacs>,
}

/// Counts of the addresses of a port.
#[derive(Clone, Copy, Debug, Default)]
struct PortMacs {
    /// Addresses that are learned at the port.
    learned: u32,
    /// Reports of packets whose source was not learned because of the port's limit. See
    /// [`dataplane::Event::MacRefused`].
    refused: u64,
}

impl Macs {
    /// Removes the address of an entry that is being removed.
    pub fn forget(&mut self, entry: &FlowEntry) {
        if let Some(place) = self.places.remove(&address(entry)) {
            self.count_gone(place.port);
        }
    }

    /// Returns the number of addresses that are learned at a port, and the number of reports of packets whose
    /// source was not learned because of the port's limit.
    pub fn counts_of(&self, port: PortNo) -> (u32, u64) {
        self.ports.get(&port).map_or((0, 0), |macs| (macs.learned, macs.refused))
    }

    /// Forgets the counts of a port that is removed.
    pub fn forget_counts(&mut self, port: PortNo) {
        self.ports.remove(&port);
    }

    fn count_gone(&mut self, port: PortNo) {
        if let Some(macs) = self.ports.get_mut(&port) {
            macs.learned = macs.learned.saturating_sub(1);
        }
    }

    /// Returns the port on which a MAC was learned, and its entry.
    pub fn get(&self, vid: u16, mac: [u8; 6]) -> Option<(EntryId, PortNo)> {
        self.places.get(&(vid, mac)).map(|place| (place.id, place.port))
    }

    /// Returns the number of learned MACs.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the learned MACs, ordered by VLAN ID and address.
    pub fn list<D: DataPlane>(&self, now: Nanos, store: &Store, plane: &mut D) -> Vec<Mac> {
        let mut macs = Vec::with_capacity(self.places.len());
        for (&(vid, mac), place) in &self.places {
            let used = plane.entry_counters(place.id).used_ns;
            let learned = store.slot(place.id).map_or(Nanos::ZERO, |s| s.created_ns);
            macs.push(Mac { vid, mac, port: place.port, age_ns: now.saturating_sub(used.max(learned)) });
        }
        macs
    }

    /// Learns a source address that a worker reported.
    pub fn learn<D: DataPlane>(
        &mut self,
        seen: MacSeen,
        transaction: &mut Transaction<'_>,
        expiry: &mut Expiry,
        plane: &mut D,
    ) {
        let config = transaction.config;
        let rules = transaction.rules();
        // A worker may have reported the address before the VLANs of the port changed.
        let carries = rules.bridge.as_ref().is_none_or(|bridge| bridge.carries(seen.port, seen.vid));
        let limit = rules.bridge.as_ref().and_then(|bridge| bridge.ports.get(&seen.port)?.mac_limit);
        let usable = carries && rules.ports.get(&seen.port).is_some_and(Port::is_up);
        if !usable || seen.vid > VID_MASK || seen.mac[0] & GROUP_BIT != 0 || config.mac_limit == 0 {
            return;
        }
        let key = (seen.vid, seen.mac);
        let known = self.places.get(&key).copied();
        // The same address may be reported several times before the operation is active.
        if known.is_some_and(|p| p.port == seen.port) {
            return;
        }
        // A worker may have reported the address before it knew that the port is full.
        if limit.is_some_and(|limit| self.counts_of(seen.port).0 >= limit) {
            return;
        }
        if known.is_none() && self.places.len() >= config.mac_limit {
            self.evict_oldest(transaction, expiry, plane);
        }
        let instructions = transaction.share(Instructions::apply(vec![Action::output(seen.port)]));
        let Some(entry) = entry_of(seen, instructions) else { return };
        let replaced = known.map(|p| p.id);
        let hash = transaction.rules().store.hash(&entry);
        let id = transaction.add_entry(NewEntry {
            entry,
            explicit: None,
            replaced,
            hash,
            counts: Counts::Reset,
            origin: None,
        });
        if let Some(before) = self.places.insert(key, Place { id, port: seen.port }) {
            self.count_gone(before.port);
        }
        self.ports.entry(seen.port).or_default().learned += 1;
        expiry.arm(config, &transaction.rules().store, id, Nanos(0));
    }

    /// Counts a packet whose source was not learned because of its port's limit.
    pub fn refuse(&mut self, port: PortNo, rules: &Rules) {
        // The port may have been removed since the report.
        if rules.ports.contains_key(&port) {
            self.ports.entry(port).or_default().refused += 1;
        }
    }

    fn evict_oldest<D: DataPlane>(
        &mut self,
        transaction: &mut Transaction<'_>,
        expiry: &mut Expiry,
        plane: &mut D,
    ) {
        let config = transaction.config;
        let mut tries = 0;
        loop {
            let store = &transaction.rules().store;
            let due = match expiry.pop_due(TimerKind::Mac, Nanos::MAX, config, store, plane) {
                NextTimer::NotDue => return,
                NextTimer::Stale => continue,
                NextTimer::Due(due) => due,
            };
            let fresher = due.deadline.is_some_and(|deadline| deadline.at > due.at);
            if fresher && tries < EVICTION_TRIES {
                tries += 1;
                expiry.arm(config, store, due.id, due.used_ns);
                continue;
            }
            if let Some(entry) = store.entry(due.id) {
                self.forget(entry);
            }
            transaction.remove_entry(due.id, None);
            return;
        }
    }

    /// Removes all learned MACs of a port.
    pub fn forget_port(&mut self, port: PortNo, transaction: &mut Transaction<'_>) {
        let mut gone = Vec::new();
        self.places.retain(|_, place| {
            if place.port == port {
                gone.push(place.id);
            }
            place.port != port
        });
        if let Some(macs) = self.ports.get_mut(&port) {
            macs.learned = 0;
        }
        for id in gone {
            transaction.remove_entry(id, None);
        }
    }
}

/// Returns the VLAN ID and the address of a learned MAC.
pub(crate) fn address(entry: &FlowEntry) -> (u16, [u8; 6]) {
    let value = |field| entry.matching.get(field).map_or(0, |c| c.value);
    let mut mac = [0; 6];
    mac.copy_from_slice(&value(Field::EthDst).to_be_bytes()[10..]);
    (value(Field::VlanVid) as u16, mac)
}

/// Returns the port on which a MAC was learned.
pub(crate) fn port(entry: &FlowEntry) -> Option<PortNo> {
    match entry.instructions.apply.first()? {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    }
}

fn entry_of(seen: MacSeen, instructions: Arc<Instructions>) -> Option<FlowEntry> {
    let mut address = [0; 16];
    address[10..].copy_from_slice(&seen.mac);
    let vid = FieldMatch { field: Field::VlanVid, value: seen.vid.into(), mask: VID_MASK.into() };
    let matching = Match::new([FieldMatch::exact(Field::EthDst, u128::from_be_bytes(address)), vid]).ok()?;
    Some(FlowEntry {
        id: EntryId(0),
        table: MAC_TABLE,
        priority: 1,
        matching,
        instructions,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: EntryFlags::default(),
        low_latency: false,
    })
}
