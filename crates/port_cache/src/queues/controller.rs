// SPDX-License-Identifier: Apache-2.0
//! Flows about which the controller was asked. Their packets wait for its answer.
//!
//! The packet that caused the question does not wait here: it was sent to the controller. After the answer,
//! or without one in time, the waiting packets are released. The first of them is released alone, so that it
//! may cause the next question.

use super::{FlowKey, MissQueues, Ticket};
use crate::slots::{Slot, SlotState};
use crate::waiting::NONE;
use flow::Nanos;

/// Time in nanoseconds for which the packets of a flow wait after a rule for the flow was added. In this
/// time, the controller returns the packet about which it was asked.
const CONFIRMED_NS: Nanos = Nanos(10_000_000);

/// What happens to a packet that leads to a question to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskResult {
    /// The controller is to be asked. Later packets of the flow wait for its answer.
    New(Ticket),
    /// The controller was asked before, so the packet must wait.
    Asked,
    /// Later packets of the flow do not wait, because the port has no space for another flow, or because the
    /// controller has not answered the last question about the flow in time.
    Full,
}

impl<K: PartialEq + Copy + Default, P> MissQueues<K, P> {
    /// Begins a question about a flow. Without an answer within `timeout_ns`, its packets are released.
    /// `fence` is as for [`crate::PortCache::ask`].
    pub fn ask(&mut self, flow: FlowKey<'_, K>, now: Nanos, timeout_ns: Nanos, fence: u32) -> AskResult {
        self.free_over(now);
        let number = match self.find(flow) {
            Some(number) if self.slots.get(number).state.awaits_controller() => return AskResult::Asked,
            Some(number) if self.gives_up(number, now, timeout_ns) => {
                self.counters.unquenched(flow.port, 1);
                return AskResult::Full;
            }
            Some(number) if self.slots.get(number).state == SlotState::Negative => {
                self.free_slot(number);
                None
            }
            found => found,
        };
        let port = usize::from(flow.port);
        let number = match number {
            Some(number) => number,
            None if self.ports[port].flows < self.limits.entries.into() => {
                let Some(number) = self.take_slot(flow) else { return AskResult::Full };
                self.ports[port].flows += 1;
                number
            }
            None => {
                self.counters.unquenched(flow.port, 1);
                return AskResult::Full;
            }
        };
        let slot = self.slots.get_mut(number);
        // An answer to an earlier question about the flow is not an answer to this one.
        slot.generation = slot.generation.wrapping_add(1);
        self.ports[port].followers += u32::from(std::mem::take(&mut slot.has_first));
        if slot.queue.is_empty() || slot.asked_since == Nanos(0) {
            slot.asked_since = now;
        }
        (slot.turns_negative, slot.returned, slot.fence) = (false, NONE, fence);
        slot.ends = now.saturating_add(timeout_ns);
        self.slots.enter(number, SlotState::Asked);
        self.counters.asked(flow.port, 1);
        AskResult::New(self.ticket(number))
    }

    /// Returns whether the controller is not asked again about the packets that wait in a slot. If it answers
    /// each question without a rule, the packets would otherwise wait for one question each. The first
    /// question may be `timeout_ns` old, so no packet waits longer than twice this time.
    fn gives_up(&mut self, number: u32, now: Nanos, timeout_ns: Nanos) -> bool {
        let slot = self.slots.get_mut(number);
        let since = slot.asked_since;
        let is_late = since != Nanos(0) && !slot.queue.is_empty() && since.saturating_add(timeout_ns) <= now;
        slot.gave_up |= is_late;
        slot.gave_up
    }

    /// Puts a packet back into the queue of its flow, for which [`Self::ask`] has returned
    /// [`AskResult::Asked`]. The packet had been released, or was processed without waiting. It goes before
    /// the packets that have not been released since the question. `hold` is as for [`Self::offer`].
    ///
    /// # Errors
    /// Returns the packet if there is no space for it.
    pub fn give_back(
        &mut self,
        flow: FlowKey<'_, K>,
        packet: P,
        bytes: u32,
        hold: impl FnOnce(P) -> Result<P, P>,
    ) -> Result<(), P> {
        let used = self.ports[usize::from(flow.port)];
        let number = match self.find(flow) {
            Some(number) if used.followers < self.limits.queue.into() && self.fits(used, bytes) => number,
            _ => return Err(packet),
        };
        let packet = hold(packet)?;
        self.count(number, bytes);
        let slot = self.slots.get_mut(number);
        slot.returned = self.waiting.insert(&mut slot.queue, slot.returned, packet, bytes);
        self.counters.returned(flow.port, 1);
        Ok(())
    }

    /// Removes the packets of a slot that cannot wait longer than a burst, and calls `take` with each of
    /// them. They count as dropped.
    pub(crate) fn trim(&mut self, number: u32, mut take: impl FnMut(P)) {
        let Self { slots, waiting, ports, counters, .. } = self;
        let slot = slots.get_mut(number);
        debug_assert!(slot.state.awaits_controller(), "all packets of the slot are followers");
        let (port, used) = (slot.port, &mut ports[usize::from(slot.port)]);
        waiting.retain_held(&mut slot.queue, |packet, bytes| {
            used.followers -= 1;
            used.bytes -= u64::from(bytes);
            counters.dropped_later(port);
            take(packet);
        });
        used.publish(port, counters);
    }

    /// Returns whether the controller was asked about any flow.
    #[must_use]
    #[inline]
    pub fn is_asking(&self) -> bool {
        self.slots.asked.first().or(self.slots.confirmed.first()).is_some()
    }

    /// Notes that rules have changed. `concerns` returns whether packets with a key may take another path
    /// because of the changes. Their flows wait only a short time longer for an answer. This time begins at
    /// the next call of [`Self::next_due`], because a worker that has slept does not know the time yet.
    pub fn note_rules(&mut self, mut concerns: impl FnMut(&K) -> bool) {
        let mut next = self.slots.asked.first();
        while let Some(number) = next {
            next = self.slots.after(number);
            if concerns(&self.slots.get(number).key) {
                self.enter_confirmed(number);
            }
        }
    }

    pub(super) fn enter_confirmed(&mut self, number: u32) {
        self.slots.get_mut(number).awaits_begin = true;
        self.slots.enter(number, SlotState::Confirmed);
    }

    /// Begins the short time for the answers about flows for which a rule was added since the last call.
    pub(super) fn begin_confirmed(&mut self, now: Nanos) {
        let mut next = self.slots.confirmed.last();
        while let Some(number) = next.filter(|number| self.slots.get(*number).awaits_begin) {
            let slot = self.slots.get_mut(number);
            (slot.awaits_begin, slot.ends) = (false, slot.ends.min(now.saturating_add(CONFIRMED_NS)));
            next = self.slots.before(number);
        }
    }

    /// Ends the question about a flow, if there is one.
    pub fn answer_question(&mut self, flow: FlowKey<'_, K>) {
        if let Some(number) = self.find(flow).filter(|n| self.slots.get(*n).state.awaits_controller()) {
            self.end_search(number);
        }
    }

    /// Ends a question that could not be sent. Waiting packets of the flow are released.
    pub fn withdraw(&mut self, ticket: Ticket) {
        let slot = self.slots.checked(ticket.slot);
        if slot.is_some_and(|slot| slot.awaits_answer() && slot.generation == ticket.generation) {
            self.end_search(ticket.slot);
        }
    }

    /// Ends a search or a question, so that the packets of the flow can be released.
    pub(super) fn end_search(&mut self, number: u32) {
        let slot = self.slots.get_mut(number);
        if slot.state.awaits_controller() {
            if slot.queue.is_empty() {
                return self.free_slot(number);
            }
            slot.has_first = true;
            self.ports[usize::from(slot.port)].followers -= 1;
        }
        self.slots.enter(number, SlotState::Ready);
    }

    /// Ends the questions whose time was over at time `by`, and after which no packet returns any longer.
    /// Without an answer, the packets that have waited may lead to packet-ins again, but to no further
    /// question. Otherwise each of them would wait for as long as the first one.
    pub(super) fn end_questions(&mut self, by: Nanos, is_passed: impl Fn(u32) -> bool) {
        let is_over = |slot: &Slot<K>| slot.ends <= by && is_passed(slot.fence);
        for state in [SlotState::Asked, SlotState::Confirmed] {
            while let Some(number) = self.slots.first(state).filter(|n| is_over(self.slots.get(*n))) {
                let port = self.slots.get(number).port;
                if state == SlotState::Asked {
                    self.slots.get_mut(number).gave_up = true;
                    self.counters.unanswered(port, 1);
                }
                self.end_search(number);
            }
        }
    }

    /// Ends all questions, because no controller will answer them.
    pub(crate) fn end_all_questions(&mut self) {
        while let Some(number) = self.slots.asked.first().or(self.slots.confirmed.first()) {
            self.end_search(number);
        }
    }

    /// Frees the slots of questions whose time is over if no packet waits for the answer.
    pub(super) fn free_over(&mut self, now: Nanos) {
        for state in [SlotState::Asked, SlotState::Confirmed] {
            while let Some(number) = self.slots.first(state).filter(|number| self.is_over(*number, now)) {
                let port = self.slots.get(number).port;
                self.free_slot(number);
                if state == SlotState::Asked {
                    self.counters.unanswered(port, 1);
                }
            }
        }
    }

    /// Returns whether no packet waits for the answer to a question whose time is over.
    pub(super) fn is_over(&self, number: u32, now: Nanos) -> bool {
        let slot = self.slots.get(number);
        slot.state.awaits_controller() && slot.queue.is_empty() && slot.ends <= now
    }
}

#[cfg(test)]
mod tests;
