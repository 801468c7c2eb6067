// SPDX-License-Identifier: Apache-2.0
//! Release of the packets of ready slots, in bursts of one port.
//!
//! The first packets of several flows are released together, without their followers. Once they have been
//! processed, their flows have records, and the followers find them.

use super::MissQueues;
use crate::slots::SlotState;

impl<K: PartialEq + Copy + Default, P> MissQueues<K, P> {
    /// Returns whether packets can be released.
    #[must_use]
    #[inline]
    pub fn releases(&self) -> bool {
        self.slots.ready.first().is_some()
    }

    /// Returns whether the next packets to release are the first ones of their flows.
    #[must_use]
    pub fn releases_firsts(&self) -> bool {
        self.slots.ready.first().is_some_and(|number| self.slots.get(number).has_first)
    }

    /// Releases up to `most` packets of one port, and calls `take` with each of them. The packets are either
    /// first packets of different flows, or followers of flows whose first packets were released before.
    /// Returns the number of packets.
    pub fn release(&mut self, most: usize, mut take: impl FnMut(P)) -> usize {
        let Some(first) = self.slots.ready.first() else { return 0 };
        let (port, firsts) = (self.slots.get(first).port, self.slots.get(first).has_first);
        let mut count = 0;
        while count < most
            && let Some(number) = self.slots.ready.first()
            && (self.slots.get(number).port, self.slots.get(number).has_first) == (port, firsts)
        {
            let Some((packet, is_last)) = self.take(number) else {
                debug_assert!(false, "a ready slot has packets");
                break;
            };
            take(packet);
            self.counters.released(port, 1);
            count += 1;
            if is_last {
                self.free_slot(number);
            } else if firsts {
                self.slots.enter(number, SlotState::Ready);
            }
        }
        count
    }

    /// Takes any waiting packet, because the worker ends. Returns `None` if no packet waits.
    pub fn take_any(&mut self) -> Option<P> {
        let number = self.slots.ready.first().or(self.slots.pending.first())?;
        let (packet, is_last) = self.take(number)?;
        if is_last {
            self.slots.get_mut(number).turns_negative = false;
            self.free_slot(number);
        }
        Some(packet)
    }
}
