// SPDX-License-Identifier: Apache-2.0
//! New keys for all waiting packets, because another plan of keys is in use.
//!
//! With longer keys, packets of one flow may belong to several flows afterwards. With shorter keys, packets
//! of several flows may belong to one. In both cases the packets of each new flow are in order of arrival.

use super::{FlowKey, MissQueues, PortUse, Ticket};
use crate::slots::{Slot, SlotState};
use crate::waiting::{NONE, Queue};
use flow::Nanos;

/// A waiting packet that gets a new key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rekeyed {
    /// Place of the packet, and its position in the list before sorting.
    place: u32,
    position: u32,
    /// Slot and port of the packet's flow before.
    slot: u32,
    port: u16,
    /// Whether the packet was the first packet of its flow.
    is_first: bool,
    /// Whether the flow's packets were being released.
    is_ready: bool,
    /// Whether the controller was asked about the flow.
    is_asked: bool,
}

impl<K: PartialEq + Copy + Default, P> MissQueues<K, P> {
    /// Gives all waiting packets new keys. `key_of` returns the key and the hash of a packet. `ask` is called
    /// for each flow whose packets were followers in another flow, and which must now be searched itself.
    ///
    /// The search of a flow goes on if its first packet still is the first one of a flow. A question to the
    /// controller ends if no packet waits for its answer. The budgets of a port may be exceeded afterwards,
    /// until enough packets have been released. Negative slots end. The backlog is empty, so all first
    /// packets that were released have left.
    pub fn rekey(
        &mut self,
        now: Nanos,
        mut key_of: impl FnMut(&P) -> (K, u64),
        mut ask: impl FnMut(u16, Ticket),
    ) {
        self.settle(|_| false);
        while let Some(number) = self.slots.negative.first() {
            self.free_slot(number);
        }
        self.index.clear();
        self.ports.fill(PortUse::default());
        self.collect();
        for at in 0..self.order.len() {
            let before = self.order[at];
            let Some((key, hash)) = self.waiting.packet(before.place).map(&mut key_of) else { continue };
            let flow = FlowKey { port: before.port, key: &key, hash };
            let number = match self.find(flow) {
                Some(number) => number,
                None if before.is_first => self.adopt(flow, before.slot),
                None if before.is_asked => {
                    let Some(number) = self.take_slot(flow) else { continue };
                    self.confirm(number, before.slot);
                    number
                }
                None => {
                    let Some(number) = self.take_slot(flow) else { continue };
                    self.search(number, now);
                    if !before.is_ready {
                        ask(before.port, self.ticket(number));
                    }
                    number
                }
            };
            if before.is_ready && self.slots.get(number).state == SlotState::Pending {
                self.slots.enter(number, SlotState::Ready);
            }
            self.count(number, self.waiting.bytes(before.place));
            self.waiting.link(&mut self.slots.get_mut(number).queue, before.place);
        }
        self.order.clear();
        self.free_empty(self.slots.asked.first());
        self.free_empty(self.slots.confirmed.first());
        self.free_empty(self.slots.pending.first());
        self.free_empty(self.slots.ready.first());
    }

    /// Empties the queues of all slots, and lists their packets in order of arrival.
    fn collect(&mut self) {
        let Self { slots, waiting, order, .. } = self;
        for list in [slots.asked, slots.confirmed, slots.pending, slots.ready] {
            let mut next = list.first();
            while let Some(number) = next {
                next = slots.after(number);
                let slot = slots.get_mut(number);
                let (port, is_ready) = (slot.port, slot.state == SlotState::Ready);
                let is_asked = slot.state.awaits_controller();
                // The first waiting packet keeps the slot for which the controller was asked.
                let has_first = slot.has_first || is_asked;
                let queue = std::mem::replace(&mut slot.queue, Queue::EMPTY);
                (slot.turns_negative, slot.returned) = (false, NONE);
                for (at, place) in waiting.places(queue).enumerate() {
                    order.push(Rekeyed {
                        place,
                        position: order.len() as u32,
                        slot: number,
                        port,
                        is_first: has_first && at == 0,
                        is_ready,
                        is_asked,
                    });
                }
            }
        }
        order.sort_unstable_by_key(|moved| (waiting.arrival(moved.place), moved.position));
    }

    /// Gives a slot without packets, which stays pending or ready, the new key of its flow.
    fn adopt(&mut self, flow: FlowKey<'_, K>, number: u32) -> u32 {
        let slot = self.slots.get_mut(number);
        debug_assert!(slot.queue.is_empty(), "only the first packet of a slot adopts it");
        (slot.key, slot.hash) = (*flow.key, flow.hash);
        self.index.insert(flow.hash, number);
        self.ports[usize::from(flow.port)].flows += 1;
        number
    }

    /// Lets a new slot wait a short time for the answer to the question about `asked`. The packet about which
    /// the controller was asked is not here, so its new key is not known, and it may be the key of any packet
    /// that has waited for the answer.
    fn confirm(&mut self, number: u32, asked: u32) {
        let Slot { fence, ends, asked_since, .. } = *self.slots.get(asked);
        let slot = self.slots.get_mut(number);
        (slot.fence, slot.ends, slot.asked_since) = (fence, ends, asked_since);
        self.ports[usize::from(slot.port)].flows += 1;
        self.enter_confirmed(number);
    }

    /// Frees the slots of a list, from this slot on, whose packets have all moved to other slots.
    fn free_empty(&mut self, first: Option<u32>) {
        let mut next = first;
        while let Some(number) = next {
            next = self.slots.after(number);
            if self.slots.get(number).queue.is_empty() {
                self.slots.release(number);
            }
        }
    }
}
