// SPDX-License-Identifier: Apache-2.0
//! What a process hands over to the next one after its last packet: counters by the serial numbers of
//! entries, and learned MAC addresses.

use crate::kept::RestoreReport;
use crate::macs;
use crate::model::Model;
use dataplane::{DataPlane, EntryCounters};
use flow::operation::MAC_TABLE;
use flow::{EntryId, Nanos, PortNo};

impl<D: DataPlane> Model<D> {
    /// Returns the counters of all entries in the controller's tables, by serial number.
    pub fn counters_by_serial(&mut self) -> Vec<(u64, EntryCounters)> {
        let entries = self.ids_by_serial();
        let plane = self.plane.get_mut();
        let counters = |(serial, id)| (serial, self.rules.carried.counters_of(plane, id));
        entries.into_iter().map(counters).collect()
    }

    /// Returns the IDs of all entries in the controller's tables, by serial number.
    #[must_use]
    pub fn ids_by_serial(&self) -> Vec<(u64, EntryId)> {
        let slots = self.rules.store.slots().iter().filter_map(|slot| Some((slot, slot.listed()?)));
        let of_controllers = slots.filter(|(_, entry)| entry.table != MAC_TABLE);
        of_controllers.map(|(slot, entry)| (slot.serial, entry.id)).collect()
    }

    /// Returns the learned MAC addresses: VLAN ID, address and port.
    #[must_use]
    pub fn learned_macs(&self) -> Vec<(u16, [u8; 6], PortNo)> {
        let entries = self.rules.store.slots().iter().filter_map(|slot| slot.listed());
        let learned = entries.filter(|entry| entry.table == MAC_TABLE).filter_map(|entry| {
            let (vid, mac) = macs::address(entry);
            Some((vid, mac, macs::port(entry)?))
        });
        learned.collect()
    }

    /// Learns MAC addresses that another process has learned.
    pub fn learn_macs(&mut self, now: Nanos, macs: &[(u16, [u8; 6], PortNo)]) {
        self.restore_macs(now, macs, &mut RestoreReport::default());
    }
}
