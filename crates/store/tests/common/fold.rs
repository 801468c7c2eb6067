// SPDX-License-Identifier: Apache-2.0
//! The state after each transaction, from the changes that the model reports.

use flow::{EntryId, FlowEntry, Nanos, RuleVersion};
use model::{Journal, KeptChange, KeptEntry, PortConfig, StatePart, StateRequest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::StoreJournal;

/// Changes of each transaction; the first one has number 1.
pub type Recording = Arc<Mutex<Vec<Vec<KeptChange>>>>;

/// The values of a state by kind and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded(BTreeMap<(u8, u64, u64), KeptChange>);

impl Folded {
    /// Returns the state after the transactions up to number `last`.
    pub fn after(recording: &Recording, last: u64) -> Self {
        let mut folded = Self::default();
        let recording = recording.lock().unwrap();
        recording[..last as usize].iter().for_each(|changes| folded.apply(changes));
        folded
    }

    pub fn apply(&mut self, changes: &[KeptChange]) {
        for change in changes {
            self.apply_one(change.clone());
        }
    }

    fn apply_one(&mut self, change: KeptChange) {
        let mac_key = |vid: u16, mac: [u8; 6]| {
            let [a, b, c, d, e, f] = mac;
            (2, vid.into(), u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
        };
        let (key, value) = match change {
            KeptChange::Entry(KeptEntry { entry, serial, created_ns, mark }) => {
                let entry = FlowEntry { id: EntryId(0), ..FlowEntry::clone(&entry) };
                let kept = KeptEntry { entry: entry.into(), serial, created_ns, mark };
                ((1, serial, 0), Some(KeptChange::Entry(kept)))
            }
            KeptChange::EntryGone(serial) => ((1, serial, 0), None),
            KeptChange::Mac { vid, mac, .. } => (mac_key(vid, mac), Some(change)),
            KeptChange::MacGone { vid, mac } => (mac_key(vid, mac), None),
            KeptChange::Group(ref group) => ((3, group.id.0.into(), 0), Some(change)),
            KeptChange::GroupGone(id) => ((3, id.0.into(), 0), None),
            KeptChange::Meter(ref meter) => ((4, meter.id.0.into(), 0), Some(change)),
            KeptChange::MeterGone(id) => ((4, id.0.into(), 0), None),
            KeptChange::Port(port, config) => {
                ((5, port.0.into(), 0), (config != PortConfig::default()).then_some(change))
            }
            KeptChange::Stateless(_) => ((6, 0, 0), Some(change)),
            KeptChange::Tables(_) => ((7, 0, 0), Some(change)),
            KeptChange::DropFragments(_) => ((8, 0, 0), Some(change)),
            KeptChange::Standalone(_) => ((9, 0, 0), Some(change)),
        };
        match value {
            Some(value) => drop(self.0.insert(key, value)),
            None => drop(self.0.remove(&key)),
        }
    }

    /// Removes the MACs of ports that are down. They are forgotten in the transaction after the one that sets
    /// the port down, and a restart between the two forgets them as well.
    pub fn without_lost_macs(mut self) -> Self {
        let is_down = |port: u64, all: &BTreeMap<_, KeptChange>| matches!(all.get(&(5, port, 0)), Some(KeptChange::Port(_, config)) if config.down);
        let all = self.0.clone();
        self.0.retain(|_, change| match change {
            KeptChange::Mac { port, .. } => !is_down(port.0.into(), &all),
            _ => true,
        });
        self
    }

    /// Sets all times of addition to 0. The clocks of two processes are not related exactly.
    pub fn forget_times(&mut self) {
        for change in self.0.values_mut() {
            if let KeptChange::Entry(kept) = change {
                kept.created_ns = Nanos(0);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A journal that records the transactions before it passes them on.
#[derive(Debug)]
pub struct Recorder {
    inner: StoreJournal,
    recording: Recording,
}

impl Recorder {
    /// Transactions after number `last` are not part of the state, so they are removed from the recording.
    pub fn new(inner: StoreJournal, last: u64, recording: &Recording) -> Self {
        recording.lock().unwrap().truncate(last as usize);
        assert_eq!(recording.lock().unwrap().len() as u64, last);
        Self { inner, recording: Arc::clone(recording) }
    }
}

impl Journal for Recorder {
    fn record(&mut self, now: Nanos, version: RuleVersion, changes: Vec<KeptChange>) {
        self.recording.lock().unwrap().push(changes.clone());
        self.inner.record(now, version, changes);
    }

    fn is_kept(&mut self, version: RuleVersion) -> bool {
        self.inner.is_kept(version)
    }

    fn state_request(&mut self) -> Option<StateRequest> {
        self.inner.state_request()
    }

    fn state(&mut self, now: Nanos, part: StatePart) {
        self.inner.state(now, part);
    }
}
