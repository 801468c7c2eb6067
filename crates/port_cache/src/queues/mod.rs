// SPDX-License-Identifier: Apache-2.0
//! Miss queues of one worker: admission of packets, answers, and the end of searches.
//!
//! States of a flow's slot:
//!
//! ```text
//! free ─ first packet ─► pending ─ answer ─► ready ─ last packet released ─► free, or negative
//!                          │                     └─ first packet released into a backlog ─► learning
//!                          │                                 learning ─ first packet has left it ─► ready
//!                          │  no answer in time: asked again, then packets are dropped ─► free
//! free ─ no record is possible ─► negative ─ time is over ─► free
//! free, ready, learning ─ the controller is asked ─► asked ─ answer or timeout ─► ready, or free
//! ```
//!
//! A slot's generation advances whenever the slot is freed. An answer for an earlier generation is ignored.
//!
//! `controller.rs` has the flows about which the controller was asked, `release.rs` takes packets out of
//! ready slots, and `rekey.rs` adapts the queues to new keys.

mod controller;
mod rekey;
mod release;

#[cfg(test)]
mod tests;

use crate::counters::{MissCounters, MissUsage};
use crate::index::Index;
use crate::limits::{MissLimits, WhenFull};
use crate::slots::{Slot, SlotState, Slots};
use crate::waiting::{NONE, WaitingPackets};
pub use controller::AskResult;
use flow::Nanos;
use rekey::Rekeyed;
use std::sync::Arc;

/// Identifies a search. An answer with a ticket whose search is over is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Number of the flow's slot.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
}

/// Key of a flow, and the port on which its packets arrive.
#[derive(Clone, Copy, Debug)]
pub struct FlowKey<'a, K> {
    /// Index of the port, less than the number of ports.
    pub port: u16,
    /// The examined bits of the packet.
    pub key: &'a K,
    /// Hash of the key.
    pub hash: u64,
}

/// What happened to an offered packet. Packets that are not queued are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferResult<P> {
    /// The packet is queued, and its flow must be searched.
    New(Ticket),
    /// The packet is queued behind earlier packets of its flow.
    Merged,
    /// The packet is queued, and its flow is released without an answer.
    Forced,
    /// No earlier packet of the flow waits, and the packet is processed without a search, because its flow
    /// cannot have a record.
    Passed(P),
    /// No earlier packet of the flow waits, and the packet is processed without a search, because its port
    /// has no space for another flow.
    Uncached(P),
    /// The packet must be dropped, because its port has no space for it.
    Full(P),
}

/// What to do because a search has got no answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due<P> {
    /// Ask the searcher again.
    Ask(Ticket),
    /// Drop this packet. The search of its flow was given up.
    Drop(P),
}

/// Use of a port's budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortUse {
    /// Slots that are pending, ready or learning.
    flows: u32,
    /// Negative slots.
    negative: u32,
    /// Waiting packets, except the first packet of each flow.
    followers: u32,
    /// Bytes of all waiting packets.
    bytes: u64,
}

impl PortUse {
    /// Publishes the use for the control thread.
    fn publish(&self, port: u16, counters: &MissCounters) {
        let Self { flows, negative, followers, bytes } = *self;
        let [pending, negative, followers] = [flows, negative, followers].map(u64::from);
        counters.publish(port, MissUsage { pending, negative, followers, bytes });
    }
}

/// Miss queues of one worker. `K` is the type of keys, and `P` the type of packets.
#[derive(Debug)]
pub struct MissQueues<K, P> {
    limits: MissLimits,
    /// Whether packets wait at most until their burst has been offered. Then followers need no budget.
    is_immediate: bool,
    slots: Slots<K>,
    index: Index,
    waiting: WaitingPackets<P>,
    ports: Box<[PortUse]>,
    counters: Arc<MissCounters>,
    /// Whether the controller may be asked about flows that are being released.
    asks: bool,
    /// Whether the searcher has space for another search.
    may_search: bool,
    /// Temporary list for [`Self::rekey`]: all waiting packets.
    order: Vec<Rekeyed>,
}

impl<K: PartialEq + Copy + Default, P> MissQueues<K, P> {
    /// Creates empty queues for a number of ports. Beyond their budgets, up to `burst` packets can wait in
    /// slots that are released.
    #[must_use]
    pub fn new(limits: MissLimits, ports: usize, burst: usize, counters: Arc<MissCounters>) -> Self {
        let packets = ports * limits.packets() + burst;
        // There is a slot for each waiting packet, because a new key plan may give all of them different
        // keys. The other slots are negative, or keep their place until all packets have new keys.
        let slots = packets + ports * usize::from(limits.entries);
        Self {
            limits,
            is_immediate: false,
            slots: Slots::new(slots),
            index: Index::new(slots),
            waiting: WaitingPackets::new(packets),
            ports: vec![PortUse::default(); ports].into_boxed_slice(),
            counters,
            asks: false,
            may_search: true,
            order: Vec::with_capacity(packets),
        }
    }

    /// Sets whether packets wait at most until their burst has been offered, because the searcher answers at
    /// once. The packets of a burst then need no budget to follow the first packet of their flow.
    #[must_use]
    pub fn with_immediate_answers(self, is_immediate: bool) -> Self {
        Self { is_immediate, ..self }
    }

    /// Sets whether the controller may be asked about flows that are being released. Their packets then wait
    /// for its answer.
    #[must_use]
    pub(crate) fn with_questions(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// Sets whether the searcher has space for another search. Without it, `when_full` decides about the
    /// packets of unknown flows.
    pub(crate) fn set_may_search(&mut self, may_search: bool) {
        self.may_search = may_search;
    }

    /// Returns the number of waiting packets.
    #[must_use]
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<MissCounters> {
        &self.counters
    }

    /// Offers a packet of `bytes` bytes whose flow has no record. If the packet is queued until an answer
    /// comes, `hold` is called first. It returns the packet in the form in which it waits, or the unchanged
    /// packet as the error if there is no memory for it.
    pub fn offer(
        &mut self,
        flow: FlowKey<'_, K>,
        packet: P,
        bytes: u32,
        now: Nanos,
        hold: impl FnOnce(P) -> Result<P, P>,
    ) -> OfferResult<P> {
        match self.find(flow) {
            Some(number) if self.is_over(number, now) => {
                self.free_slot(number);
                self.begin(flow, packet, bytes, now, hold)
            }
            Some(number) if self.slots.get(number).state != SlotState::Negative => {
                self.merge(number, packet, bytes, hold)
            }
            Some(number) if now < self.slots.get(number).ends => {
                self.counters.passed(flow.port, 1);
                OfferResult::Passed(packet)
            }
            found => {
                found.into_iter().for_each(|number| self.free_slot(number));
                self.begin(flow, packet, bytes, now, hold)
            }
        }
    }

    /// Begins the search of a flow.
    fn begin(
        &mut self,
        flow: FlowKey<'_, K>,
        packet: P,
        bytes: u32,
        now: Nanos,
        hold: impl FnOnce(P) -> Result<P, P>,
    ) -> OfferResult<P> {
        self.free_over(now);
        let used = self.ports[usize::from(flow.port)];
        let has_room = used.flows < self.limits.entries.into() && self.fits(used, bytes);
        if has_room && !self.may_search && self.limits.when_full == WhenFull::Drop {
            self.counters.dropped(flow.port, 1);
            return OfferResult::Full(packet);
        }
        let held = if has_room && self.may_search { hold(packet) } else { Err(packet) };
        let packet = match held {
            Ok(packet) => packet,
            Err(packet) => {
                self.counters.uncached(flow.port, 1);
                return OfferResult::Uncached(packet);
            }
        };
        let Some(number) = self.take_slot(flow) else {
            debug_assert!(false, "there is a slot for each waiting packet");
            self.counters.uncached(flow.port, 1);
            return OfferResult::Uncached(packet);
        };
        self.search(number, now);
        self.append(number, packet, bytes, true);
        self.counters.searched(flow.port, 1);
        OfferResult::New(self.ticket(number))
    }

    /// Appends a packet to the queue of its flow.
    fn merge(
        &mut self,
        number: u32,
        packet: P,
        bytes: u32,
        hold: impl FnOnce(P) -> Result<P, P>,
    ) -> OfferResult<P> {
        let slot = self.slots.get(number);
        let port = slot.port;
        let used = self.ports[usize::from(port)];
        let (is_ready, is_asked) = (slot.state == SlotState::Ready, slot.state.awaits_controller());
        let has_room = used.followers < self.limits.queue.into() && self.fits(used, bytes);
        let is_brief = is_ready || self.is_immediate && slot.state == SlotState::Pending;
        // A ready slot is released before the next burst, so its packets need no memory of their own, unless
        // the controller is asked about the first of them.
        let held = if has_room && (!is_ready || self.asks) { hold(packet) } else { Err(packet) };
        let (packet, is_held) = match held {
            Ok(packet) => (packet, true),
            Err(packet) if is_brief && self.waiting.has_room() => (packet, false),
            Err(packet)
                if self.limits.when_full == WhenFull::Forward && !is_asked && self.waiting.has_room() =>
            {
                self.slots.enter(number, SlotState::Ready);
                self.append(number, packet, bytes, false);
                self.counters.forced(port, 1);
                self.counters.merged(port, 1);
                return OfferResult::Forced;
            }
            Err(packet) => {
                self.counters.dropped(port, 1);
                return OfferResult::Full(packet);
            }
        };
        self.append(number, packet, bytes, is_held);
        self.counters.merged(port, 1);
        OfferResult::Merged
    }

    /// Ends a search. The packets of its flow can be released. Returns false, and changes nothing, if the
    /// search is already over.
    pub fn answer(&mut self, ticket: Ticket) -> bool {
        let is_right = self.current(ticket).is_some_and(Slot::awaits_answer);
        if is_right {
            self.end_search(ticket.slot);
        } else {
            self.counters.stale(self.port_of(ticket), 1);
        }
        is_right
    }

    /// Returns whether a search waits for its answer.
    #[must_use]
    pub fn is_pending(&self, ticket: Ticket) -> bool {
        self.current(ticket).is_some_and(|slot| slot.state == SlotState::Pending)
    }

    /// Returns the slot of a search or of a question to the controller, unless another one uses the slot.
    fn current(&self, ticket: Ticket) -> Option<&Slot<K>> {
        self.slots.checked(ticket.slot).filter(|slot| slot.generation == ticket.generation)
    }

    /// Returns the index of the port of a search, or of the last search with the same slot.
    #[must_use]
    pub fn port_of(&self, ticket: Ticket) -> u16 {
        self.slots.checked(ticket.slot).map_or(0, |slot| slot.port)
    }

    /// Ends the search of a flow, if there is one, because the flow has got a record. Returns whether
    /// packets of the flow are released. A flow about which the controller was asked gets no record.
    pub fn answer_flow(&mut self, flow: FlowKey<'_, K>) -> bool {
        let Some(number) = self.find(flow) else { return false };
        let slot = self.slots.get(number);
        match slot.state {
            SlotState::Pending => self.slots.enter(number, SlotState::Ready),
            // The packet may lead to a packet-in next, and no packet waits.
            SlotState::Learning if slot.is_drained && slot.queue.is_empty() => {}
            SlotState::Learning => self.end_learning(number),
            SlotState::Ready | SlotState::Negative | SlotState::Free => {}
            SlotState::Asked | SlotState::Confirmed => {}
        }
        self.slots.get(number).state == SlotState::Ready
    }

    /// Returns whether packets of a flow wait.
    #[must_use]
    pub fn holds(&self, flow: FlowKey<'_, K>) -> bool {
        self.find(flow).is_some_and(|number| self.slots.get(number).state != SlotState::Negative)
    }

    /// Ends all searches, so that all waiting packets can be released.
    pub fn answer_all(&mut self) {
        self.settle(|_| false);
        while let Some(number) = self.slots.pending.first() {
            self.end_search(number);
        }
        self.end_all_questions();
    }

    /// Notes that a flow cannot have a record. For a while, its packets are not queued. Packets of the flow
    /// that still wait are released first.
    pub fn set_negative(&mut self, flow: FlowKey<'_, K>, now: Nanos) {
        if self.limits.negative_ns == Nanos(0) {
            return;
        }
        let number = match self.find(flow) {
            Some(number) => number,
            None if self.ports[usize::from(flow.port)].negative < self.limits.entries.into() => {
                let Some(number) = self.take_slot(flow) else { return };
                let used = &mut self.ports[usize::from(flow.port)];
                used.negative += 1;
                used.publish(flow.port, &self.counters);
                self.slots.enter(number, SlotState::Negative);
                number
            }
            None => return,
        };
        self.slots.get_mut(number).ends = now + self.limits.negative_ns;
        match self.slots.get(number).state {
            SlotState::Negative => self.slots.enter(number, SlotState::Negative),
            SlotState::Learning => {
                self.slots.get_mut(number).turns_negative = true;
                // Until all drained packets have been looked up, none of them asks the controller.
                if !self.slots.get(number).is_drained {
                    self.end_learning(number);
                }
            }
            SlotState::Ready | SlotState::Pending => {
                self.slots.enter(number, SlotState::Ready);
                self.slots.get_mut(number).turns_negative = true;
            }
            // Other packets of the flow lead to a question to the controller.
            SlotState::Asked | SlotState::Confirmed => {}
            SlotState::Free => debug_assert!(false, "a free slot is not in the index"),
        }
    }

    /// Returns what to do because searches have got no answer in time, or `None` if nothing is to be done
    /// now. Call it until it returns `None`. A question to the controller ends only if its time was over at
    /// time `answered`, and if `is_passed` returns true for its fence.
    pub fn next_due(
        &mut self,
        now: Nanos,
        answered: Nanos,
        is_passed: impl Fn(u32) -> bool,
    ) -> Option<Due<P>> {
        while let Some(number) = self.slots.negative.first().filter(|n| self.slots.get(*n).ends <= now) {
            self.free_slot(number);
        }
        self.begin_confirmed(now);
        self.end_questions(answered.min(now), is_passed);
        let number = self.slots.pending.first().filter(|number| self.slots.get(*number).ends <= now)?;
        let slot = self.slots.get_mut(number);
        let port = slot.port;
        if slot.tries < self.limits.retries {
            slot.tries += 1;
            self.search(number, now);
            self.counters.retried(port, 1);
            return Some(Due::Ask(self.ticket(number)));
        }
        let (packet, is_last) = self.take(number)?;
        if is_last {
            self.free_slot(number);
        }
        self.counters.timed_out(port, 1);
        Some(Due::Drop(packet))
    }

    /// Returns the time from which [`Self::next_due`] will return something, or `None` if no search is in
    /// progress.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let states = [SlotState::Pending, SlotState::Asked, SlotState::Confirmed];
        let firsts = states.into_iter().filter_map(|state| self.slots.first(state));
        firsts.map(|number| self.slots.get(number).ends).min()
    }

    /// Returns the port, the key and the hash of a flow that is being searched.
    pub(crate) fn flow(&self, ticket: Ticket) -> Option<(u16, K, u64)> {
        let slot = self.current(ticket).filter(|slot| slot.state == SlotState::Pending)?;
        Some((slot.port, slot.key, slot.hash))
    }

    /// Ends all searches without an answer. Questions to the controller go on.
    pub(crate) fn end_searches(&mut self) {
        while let Some(number) = self.slots.pending.first() {
            self.counters.fallen_back(self.slots.get(number).port, 1);
            self.end_search(number);
        }
    }

    /// Returns the first packet of a flow that is being searched.
    #[must_use]
    pub fn first_packet(&self, ticket: Ticket) -> Option<&P> {
        let slot = self.slots.checked(ticket.slot).filter(|_| self.is_pending(ticket))?;
        self.waiting.packet(slot.queue.first())
    }

    fn fits(&self, used: PortUse, bytes: u32) -> bool {
        used.bytes + u64::from(bytes) <= self.limits.bytes.into() && self.waiting.has_room()
    }

    fn find(&self, flow: FlowKey<'_, K>) -> Option<u32> {
        let FlowKey { port, key, hash } = flow;
        self.index.find(hash, |number| {
            let slot = self.slots.get(number);
            slot.hash == hash && slot.port == port && slot.key == *key
        })
    }

    fn ticket(&self, number: u32) -> Ticket {
        Ticket { slot: number, generation: self.slots.get(number).generation }
    }

    /// Takes a free slot for a flow.
    fn take_slot(&mut self, flow: FlowKey<'_, K>) -> Option<u32> {
        let number = self.slots.take(flow.port, *flow.key, flow.hash)?;
        self.index.insert(flow.hash, number);
        Some(number)
    }

    /// Makes a slot pending, or repeats its search.
    fn search(&mut self, number: u32, now: Nanos) {
        if self.slots.get(number).state == SlotState::Free {
            self.ports[usize::from(self.slots.get(number).port)].flows += 1;
            self.slots.get_mut(number).has_first = true;
        }
        self.slots.get_mut(number).ends = now + self.limits.timeout_ns;
        self.slots.enter(number, SlotState::Pending);
    }

    /// Appends a packet to the queue of a slot. `is_held` is whether it may wait longer than a burst.
    fn append(&mut self, number: u32, packet: P, bytes: u32, is_held: bool) {
        self.count(number, bytes);
        self.waiting.append(&mut self.slots.get_mut(number).queue, packet, bytes, is_held);
    }

    /// Counts a packet that joins the queue of a slot in the budgets of the port.
    fn count(&mut self, number: u32, bytes: u32) {
        let slot = self.slots.get(number);
        let used = &mut self.ports[usize::from(slot.port)];
        used.followers += u32::from(!(slot.queue.is_empty() && slot.has_first));
        used.bytes += u64::from(bytes);
        used.publish(slot.port, &self.counters);
    }

    /// Takes the first packet of a slot's queue. Also returns whether the queue is empty afterwards.
    fn take(&mut self, number: u32) -> Option<(P, bool)> {
        let slot = self.slots.get_mut(number);
        if slot.returned == slot.queue.first() {
            slot.returned = NONE;
        }
        let (packet, bytes) = self.waiting.take(&mut slot.queue)?;
        let used = &mut self.ports[usize::from(slot.port)];
        used.followers -= u32::from(!std::mem::take(&mut slot.has_first));
        used.bytes -= u64::from(bytes);
        used.publish(slot.port, &self.counters);
        Some((packet, slot.queue.is_empty()))
    }

    /// Frees a slot without waiting packets, or makes it negative if that was noted.
    fn free_slot(&mut self, number: u32) {
        let slot = self.slots.get_mut(number);
        let (hash, state) = (slot.hash, slot.state);
        let turns_negative = std::mem::take(&mut slot.turns_negative);
        let used = &mut self.ports[usize::from(slot.port)];
        match state {
            SlotState::Negative => used.negative -= 1,
            SlotState::Pending | SlotState::Ready | SlotState::Learning => used.flows -= 1,
            SlotState::Asked | SlotState::Confirmed => used.flows -= 1,
            SlotState::Free => {}
        }
        let stays = turns_negative && used.negative < self.limits.entries.into();
        used.negative += u32::from(stays);
        used.publish(slot.port, &self.counters);
        if stays {
            // The controller may be asked about the flow again.
            self.slots.get_mut(number).forget_wait();
            return self.slots.enter(number, SlotState::Negative);
        }
        let Self { slots, index, .. } = self;
        index.remove(hash, number, |other| slots.get(other).hash);
        slots.release(number);
    }

    /// Returns the usage of the budgets of a port: pending flows, followers and bytes.
    #[must_use]
    pub fn usage(&self, port: u16) -> (u32, u32, u64) {
        self.ports.get(usize::from(port)).map_or((0, 0, 0), |used| (used.flows, used.followers, used.bytes))
    }
}
