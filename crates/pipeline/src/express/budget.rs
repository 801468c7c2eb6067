// SPDX-License-Identifier: Apache-2.0
//! Limit of the number of records per port, if the port cache has one. The port cache knows which records
//! belong to a port, and chooses the records to remove.

use backlog::Window;
use flow::{Nanos, PortNo};
use frame::Frame;
use keys::ExpressKey;
use port_cache::PortCache;

/// Port cache for frames.
pub type FrameCache = PortCache<ExpressKey, Frame>;

/// Records that may be removed.
pub(super) trait RemovableRecords {
    /// Returns whether a key has a record, of any version.
    fn has(&self, hash: u64, key: &ExpressKey) -> bool;

    /// Removes the record at a place. Packets that have found the record before may still use its path, until
    /// another record is made at the place.
    fn remove(&mut self, place: u32);

    /// Returns the time of the last hit of the record at a place, or `None` if packets still wait for its
    /// fence: later packets of their flow would overtake them.
    fn idle_since(&self, place: u32, window: Window) -> Option<Nanos>;
}

/// Limit of the number of records of a port.
pub(crate) struct RecordBudget<'a> {
    /// The port cache, if it limits the number of records.
    cache: Option<&'a mut FrameCache>,
    /// Port on which the packets of the next record arrive.
    pub in_port: PortNo,
    /// Number of records that were removed and are not counted yet.
    pub removed: u64,
}

impl<'a> RecordBudget<'a> {
    #[inline]
    pub fn new(cache: Option<&'a mut FrameCache>, in_port: PortNo) -> Self {
        Self { cache: cache.filter(|cache| cache.limits_records()), in_port, removed: 0 }
    }

    /// Removes records of the port until it may have `more` further records, or until all other records must
    /// stay.
    pub(super) fn evict(&mut self, more: u32, window: Window, records: &mut impl RemovableRecords) {
        let Some(cache) = self.cache.as_deref_mut() else { return };
        while let Some(place) =
            cache.take_victim(self.in_port, more, |place| records.idle_since(place, window))
        {
            records.remove(place);
            self.removed += 1;
        }
    }

    /// Makes room for the record of a key. Returns false if the port must not have another record.
    pub(super) fn make_room(
        &mut self,
        key: &ExpressKey,
        hash: u64,
        window: Window,
        records: &mut impl RemovableRecords,
    ) -> bool {
        let Some(cache) = self.cache.as_deref() else { return true };
        if records.has(hash, key) {
            return true;
        }
        // While followers of the flow wait, the flow itself still counts as a pending flow.
        let more = u32::from(!cache.holds(self.in_port, key, hash));
        self.evict(more, window, records);
        self.cache.as_deref().is_none_or(|cache| cache.has_room(self.in_port, more))
    }

    /// Notes that a new record has been made at a place. Returns whether the number of records is limited.
    pub(super) fn add(&mut self, place: u32) -> bool {
        let Some(cache) = self.cache.as_deref_mut() else { return false };
        cache.add_record(self.in_port, place);
        true
    }
}
