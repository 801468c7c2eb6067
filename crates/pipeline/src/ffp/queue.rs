// SPDX-License-Identifier: Apache-2.0
//! Order in which the packets of a burst visit tables on the fast-forwarding path.

use crate::packet::{Packet, Path};
use crate::slab::{Burst, PacketSlot};
use flow::TableId;

/// Slots of the packets on the path that wait for the lowest table.
///
/// In most bursts all packets wait for the same table, so a list is kept for one table only. Packets that
/// wait for a later table are found by a search when the walk reaches that table.
pub(super) struct Queue {
    table: TableId,
    waiting: Burst,
    others: bool,
}

impl Queue {
    /// Creates the queue from the packets of a burst that wait for a table.
    pub fn enter(packets: &mut [Packet], burst: &[PacketSlot]) -> Self {
        let mut queue = Self { table: TableId(0), waiting: Burst::new(), others: false };
        for slot in burst {
            let packet = &mut packets[slot.index()];
            if let Some(table) = packet.state.waits_for() {
                packet.path = Path::Fast;
                queue.add(*slot, table);
            }
        }
        queue
    }

    /// Notes that a packet waits for a table. Called in the order of the burst.
    #[inline]
    pub fn add(&mut self, packet: PacketSlot, table: TableId) {
        if self.waiting.is_empty() {
            self.table = table;
        }
        if self.table == table {
            self.waiting.push(packet);
        } else {
            self.others = true;
        }
    }

    /// Takes the lowest table that packets wait for, with the slots of these packets.
    #[inline]
    pub fn next(&mut self, packets: &[Packet], burst: &[PacketSlot]) -> Option<(TableId, Burst)> {
        if std::mem::take(&mut self.others) {
            self.find(packets, burst);
        }
        let waiting = std::mem::take(&mut self.waiting);
        (!waiting.is_empty()).then_some((self.table, waiting))
    }

    #[inline(never)]
    fn find(&mut self, packets: &[Packet], burst: &[PacketSlot]) {
        let table = |slot: &PacketSlot| {
            let packet = &packets[slot.index()];
            packet.state.waits_for().filter(|_| packet.path == Path::Fast)
        };
        self.waiting.clear();
        let Some(lowest) = burst.iter().filter_map(table).min() else { return };
        self.table = lowest;
        for slot in burst {
            match table(slot) {
                Some(number) if number == lowest => self.waiting.push(*slot),
                Some(_) => self.others = true,
                None => {}
            }
        }
    }
}
