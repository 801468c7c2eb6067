// SPDX-License-Identifier: Apache-2.0
//! Which packets of the fast-forwarding path are next.

use crate::burst::BURST;
use crate::packet::{Packet, Path};
use arrayvec::ArrayVec;

/// The packets on the path that wait for a table, by their places in the burst. Most bursts wait for one table, all of
/// them: that list is kept; what waits for a later one is found again when its turn comes.
pub(super) struct Queue {
    table: u8,
    waiting: ArrayVec<u8, BURST>,
    others: bool,
}

impl Queue {
    /// Takes the packets in that wait for a table.
    pub fn enter(packets: &mut [Packet]) -> Self {
        let mut queue = Self { table: 0, waiting: ArrayVec::new(), others: false };
        for (at, packet) in packets.iter_mut().enumerate().take(BURST) {
            if let Some(table) = packet.state.waits_for() {
                packet.path = Path::Fast;
                queue.add(at as u8, table);
            }
        }
        queue
    }

    /// A packet waits for a table. They come in the order of the burst.
    #[inline]
    pub fn add(&mut self, packet: u8, table: u8) {
        if self.waiting.is_empty() {
            self.table = table;
        }
        if self.table == table {
            self.waiting.push(packet);
        } else {
            self.others = true;
        }
    }

    /// The lowest table that packets wait for, and those that do.
    #[inline]
    pub fn next(&mut self, packets: &[Packet]) -> Option<(u8, ArrayVec<u8, BURST>)> {
        if std::mem::take(&mut self.others) {
            self.find(packets);
        }
        let waiting = std::mem::take(&mut self.waiting);
        (!waiting.is_empty()).then_some((self.table, waiting))
    }

    #[inline(never)]
    fn find(&mut self, packets: &[Packet]) {
        let table = |packet: &Packet| packet.state.waits_for().filter(|_| packet.path == Path::Fast);
        self.waiting.clear();
        let Some(lowest) = packets.iter().filter_map(table).min() else { return };
        self.table = lowest;
        for (at, packet) in packets.iter().enumerate().take(BURST) {
            match table(packet) {
                Some(number) if number == lowest => self.waiting.push(at as u8),
                Some(_) => self.others = true,
                None => {}
            }
        }
    }
}
