// SPDX-License-Identifier: Apache-2.0
//! Release of the packets of ready slots, in bursts of one port.
//!
//! The first packets of several flows are released together, without their followers. Once they have been
//! processed, their flows have records, and the followers find them. If first packets may wait in a backlog,
//! the followers, and later packets of the flow, stay here until the first packet has left the backlog.

use super::{FlowKey, MissQueues};
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

    /// Returns the index of the port of the next packets to release, or `None` if none can be released.
    #[must_use]
    pub fn next_port(&self) -> Option<u16> {
        self.slots.ready.first().map(|number| self.slots.get(number).port)
    }

    /// Releases up to `most` packets of one port, and calls `take` with each of them. The packets are either
    /// first packets of different flows, or followers of flows whose first packets were released before.
    /// Returns the number of packets.
    ///
    /// `backlog` is the position of the end of a backlog that first packets may join. Then
    /// [`Self::await_record`] must be called for each of them that joins it, and [`Self::end_release`] when
    /// all have been processed. The flows of those that have joined it are ready again when
    /// [`Self::answer_flow`] or [`Self::settle`] finds that they have left it.
    pub fn release(&mut self, most: usize, backlog: Option<u32>, mut take: impl FnMut(P)) -> usize {
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
            let slot = self.slots.get_mut(number);
            slot.is_drained = is_last && slot.gave_up;
            if slot.is_drained || backlog.is_some() && firsts {
                (slot.fence, slot.awaits_record) = (backlog.unwrap_or_default(), false);
                self.slots.enter(number, SlotState::Learning);
            } else if is_last {
                self.free_slot(number);
            } else if firsts {
                self.slots.enter(number, SlotState::Ready);
            }
        }
        count
    }

    /// Notes that the first packet of a flow, which was released, has joined the backlog. If followers of the
    /// packet cannot wait longer than a burst, they are released behind it.
    pub fn await_record(&mut self, flow: FlowKey<'_, K>) {
        if let Some(number) = self.find(flow) {
            let queue = self.slots.get(number).queue;
            self.slots.get_mut(number).awaits_record = self.waiting.are_held(queue);
        }
    }

    /// Makes the flows ready whose first packets were among the last `packets` released packets and did not
    /// join the backlog.
    pub fn end_release(&mut self, packets: usize) {
        let mut next = self.slots.learning.last();
        for _ in 0..packets {
            let Some(number) = next else { return };
            next = self.slots.before(number);
            if !self.slots.get(number).awaits_record {
                self.end_learning(number);
            }
        }
    }

    /// Returns whether first packets that were released may still wait in the backlog.
    #[must_use]
    #[inline]
    pub fn is_learning(&self) -> bool {
        self.slots.learning.first().is_some()
    }

    /// Makes the slots ready whose first packets have left the backlog. `waits` returns whether a packet that
    /// joined the backlog at a position, or was released together with it, may still wait.
    pub fn settle(&mut self, waits: impl Fn(u32) -> bool) {
        while let Some(number) = self.slots.learning.first().filter(|n| !waits(self.slots.get(*n).fence)) {
            self.end_learning(number);
        }
    }

    /// Releases the followers of a first packet that has left the backlog.
    pub(super) fn end_learning(&mut self, number: u32) {
        let slot = self.slots.get_mut(number);
        if slot.queue.is_empty() {
            return self.free_slot(number);
        }
        if slot.is_drained {
            // The waiting packets arrived later, and the first of them may ask again.
            slot.forget_wait();
            slot.has_first = true;
            self.ports[usize::from(slot.port)].followers -= 1;
        }
        self.slots.enter(number, SlotState::Ready);
    }

    /// Takes any waiting packet, because the worker ends. Returns `None` if no packet waits.
    pub fn take_any(&mut self) -> Option<P> {
        self.settle(|_| false);
        self.end_all_questions();
        let number = self.slots.ready.first().or(self.slots.pending.first())?;
        let (packet, is_last) = self.take(number)?;
        if is_last {
            self.slots.get_mut(number).turns_negative = false;
            self.free_slot(number);
        }
        Some(packet)
    }
}
