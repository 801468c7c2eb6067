// SPDX-License-Identifier: Apache-2.0
//! Counts of an entry as a controller sees them, including the counts of the entries that it replaced.

use dataplane::{DataPlane, EntryCounters, TrafficCount};
use flow::{EntryFlags, EntryId};
use hashbrown::HashMap;

/// Counts of a replaced entry, which are added to the counters of the entry that replaced it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    count: TrafficCount,
    /// The replaced entry. It is kept as long as the data plane may still count packets for it.
    from: Option<EntryId>,
}

/// The carried counts of all entries.
#[derive(Debug, Default)]
pub(crate) struct CarriedCounts {
    by_heir: HashMap<EntryId, Carried>,
}

impl CarriedCounts {
    /// Returns the carried counts of an entry.
    pub fn get(&self, heir: EntryId) -> Option<Carried> {
        self.by_heir.get(&heir).copied()
    }

    /// Sets the carried counts of `heir`, or removes them if `carried` is `None`.
    pub fn set(&mut self, heir: EntryId, carried: Option<Carried>) {
        match carried {
            Some(carried) => self.by_heir.insert(heir, carried),
            None => self.by_heir.remove(&heir),
        };
    }

    /// Makes an entry continue the counts of the entry that it replaces.
    pub fn inherit(&mut self, heir: EntryId, from: EntryId) {
        self.by_heir.insert(heir, Carried { from: Some(from), ..Carried::default() });
    }

    /// Removes the carried counts of an entry, which then counts from 0.
    pub fn forget(&mut self, heir: EntryId) {
        self.by_heir.remove(&heir);
    }

    /// Adds the final counts of a replaced entry to the carried counts of the entry that replaced it.
    pub fn hand_on(&mut self, from: EntryId, heir: EntryId, last: TrafficCount) {
        let Some(carried) = self.by_heir.get_mut(&heir).filter(|c| c.from == Some(from)) else { return };
        carried.count.packets = carried.count.packets.wrapping_add(last.packets);
        carried.count.bytes = carried.count.bytes.saturating_add(last.bytes);
        carried.from = None;
        if carried.count == TrafficCount::default() {
            self.by_heir.remove(&heir);
        }
    }

    /// Returns an entry's counters, including the counts of the entries that it replaced.
    pub fn counters_of<D: DataPlane>(&self, plane: &mut D, id: EntryId) -> EntryCounters {
        let mut sum = plane.entry_counters(id);
        let mut at = id;
        while let Some(carried) = self.by_heir.get(&at) {
            sum.packets = sum.packets.wrapping_add(carried.count.packets);
            sum.bytes = sum.bytes.saturating_add(carried.count.bytes);
            let Some(from) = carried.from else { break };
            let earlier = plane.entry_counters(from);
            sum.packets = sum.packets.wrapping_add(earlier.packets);
            sum.bytes = sum.bytes.saturating_add(earlier.bytes);
            at = from;
        }
        sum
    }
}

/// Returns an entry's counts as reported to controllers. A count that the entry's flags switch off is all
/// ones (OpenFlow 1.3, section 5.8).
pub(crate) fn reported(counters: EntryCounters, flags: EntryFlags) -> TrafficCount {
    TrafficCount {
        packets: if flags.no_packet_counts { u64::MAX } else { counters.packets },
        bytes: if flags.no_byte_counts { u64::MAX } else { counters.bytes },
    }
}
