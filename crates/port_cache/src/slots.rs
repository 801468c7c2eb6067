// SPDX-License-Identifier: Apache-2.0
//! Slots: one for each flow with waiting packets, and for each flow that is known to have no record.

use crate::waiting::{NONE, Queue};
use flow::Nanos;

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// The slot belongs to no flow.
    Free,
    /// The flow is being searched.
    Pending,
    /// The controller was asked about the flow. The slot may have no waiting packets.
    Asked,
    /// As [`Self::Asked`], but a rule for the flow was added, so the answer must come soon.
    Confirmed,
    /// The packets of the flow are being released.
    Ready,
    /// The first packet of the flow was released, but waits in the backlog before it makes a record. Its
    /// followers wait for the record. There may be none. Or the last packet was released about which the
    /// controller is not asked again, but it was not looked up yet.
    Learning,
    /// The flow cannot have a record. It has no waiting packets.
    Negative,
}

impl SlotState {
    /// Returns whether packets wait for an answer of the controller.
    pub fn awaits_controller(self) -> bool {
        matches!(self, Self::Asked | Self::Confirmed)
    }
}

/// A slot. Slots in the same state, other than `Free`, form a list.
#[derive(Debug)]
pub(crate) struct Slot<K> {
    pub key: K,
    pub hash: u64,
    pub port: u16,
    pub state: SlotState,
    /// Number of searches and questions to the controller that the slot was used for before, modulo 2^32.
    pub generation: u32,
    /// Number of times that the search was repeated.
    pub tries: u8,
    /// Whether the first packet of the queue is the first packet of its flow.
    pub has_first: bool,
    /// Whether the controller is not asked about the packets of the queue again, because it has not answered
    /// in time, or because earlier packets of the queue have led to questions for too long.
    pub gave_up: bool,
    /// In state `Learning`: whether all packets about which the controller is not asked again were released.
    pub is_drained: bool,
    /// Time of the first question since which packets have been waiting in the queue.
    pub asked_since: Nanos,
    /// Whether the slot becomes negative when its queue is empty.
    pub turns_negative: bool,
    /// Time at which the search or the negative slot ends.
    pub ends: Nanos,
    /// In state `Confirmed`: whether the short time for the answer has not begun yet.
    pub awaits_begin: bool,
    /// Position in the backlog. In state `Learning`, it is the end of the backlog before the first packet was
    /// released. In states `Asked` and `Confirmed`, it is the end of the backlog at the time of the question:
    /// packets of the flow before it may return to the queue.
    pub fence: u32,
    /// In state `Learning`: whether the first packet has been processed and makes a record later.
    pub awaits_record: bool,
    pub queue: Queue,
    /// Place of the last packet that has returned to the queue since the controller was asked, or [`NONE`].
    pub returned: u32,
    before: u32,
    after: u32,
}

impl<K> Slot<K> {
    /// Returns whether packets of the flow wait for an answer.
    pub fn awaits_answer(&self) -> bool {
        self.state == SlotState::Pending || self.state.awaits_controller()
    }

    /// Forgets how long packets have waited for the controller, because none of them is left.
    pub fn forget_wait(&mut self) {
        (self.gave_up, self.is_drained, self.asked_since) = (false, false, Nanos(0));
    }
}

/// List of slots, in the order in which they were appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotList {
    first: u32,
    last: u32,
}

impl SlotList {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Returns the first slot of the list.
    pub fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Returns the last slot of the list.
    pub fn last(self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }
}

/// All slots of a worker.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    all: Box<[Slot<K>]>,
    free: Vec<u32>,
    pub pending: SlotList,
    pub asked: SlotList,
    pub confirmed: SlotList,
    pub ready: SlotList,
    pub learning: SlotList,
    pub negative: SlotList,
}

impl<K: Default> Slots<K> {
    pub fn new(slots: usize) -> Self {
        let slot = || Slot {
            key: K::default(),
            hash: 0,
            port: 0,
            state: SlotState::Free,
            generation: 0,
            tries: 0,
            has_first: false,
            gave_up: false,
            is_drained: false,
            asked_since: Nanos(0),
            turns_negative: false,
            ends: Nanos(0),
            awaits_begin: false,
            fence: 0,
            awaits_record: false,
            queue: Queue::EMPTY,
            returned: NONE,
            before: NONE,
            after: NONE,
        };
        Self {
            all: (0..slots).map(|_| slot()).collect(),
            free: (0..slots as u32).rev().collect(),
            pending: SlotList::EMPTY,
            asked: SlotList::EMPTY,
            confirmed: SlotList::EMPTY,
            ready: SlotList::EMPTY,
            learning: SlotList::EMPTY,
            negative: SlotList::EMPTY,
        }
    }
}

impl<K> Slots<K> {
    pub fn get(&self, number: u32) -> &Slot<K> {
        &self.all[number as usize]
    }

    pub fn get_mut(&mut self, number: u32) -> &mut Slot<K> {
        &mut self.all[number as usize]
    }

    /// Returns the slot with this number, if there is one.
    pub fn checked(&self, number: u32) -> Option<&Slot<K>> {
        self.all.get(number as usize)
    }

    /// Returns the first slot in the list of a state other than `Free`.
    pub fn first(&self, state: SlotState) -> Option<u32> {
        match state {
            SlotState::Free => None,
            SlotState::Pending => self.pending.first(),
            SlotState::Asked => self.asked.first(),
            SlotState::Confirmed => self.confirmed.first(),
            SlotState::Ready => self.ready.first(),
            SlotState::Learning => self.learning.first(),
            SlotState::Negative => self.negative.first(),
        }
    }

    /// Takes a free slot for a flow. It is in state `Free` and in no list until [`Self::enter`] is called.
    pub fn take(&mut self, port: u16, key: K, hash: u64) -> Option<u32> {
        let number = self.free.pop()?;
        let slot = self.get_mut(number);
        debug_assert!(slot.state == SlotState::Free && slot.queue.is_empty());
        (slot.key, slot.hash, slot.port) = (key, hash, port);
        (slot.tries, slot.has_first, slot.gave_up, slot.is_drained) = (0, false, false, false);
        (slot.turns_negative, slot.returned, slot.asked_since) = (false, NONE, Nanos(0));
        Some(number)
    }

    /// Puts a slot at the end of the list of `state`.
    pub fn enter(&mut self, number: u32, state: SlotState) {
        self.leave(number);
        let Some(list) = self.list_mut(state) else { return debug_assert!(false, "free slots form no list") };
        let before = std::mem::replace(&mut list.last, number);
        if before == NONE {
            list.first = number;
        } else {
            self.get_mut(before).after = number;
        }
        let slot = self.get_mut(number);
        (slot.state, slot.before, slot.after) = (state, before, NONE);
    }

    /// Frees a slot without waiting packets. Answers for its flow become stale.
    pub fn release(&mut self, number: u32) {
        self.leave(number);
        let slot = self.get_mut(number);
        debug_assert!(slot.queue.is_empty());
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
    }

    /// Removes a slot from its list, if it is in one.
    fn leave(&mut self, number: u32) {
        let slot = self.get_mut(number);
        let state = std::mem::replace(&mut slot.state, SlotState::Free);
        let (before, after) = (slot.before, slot.after);
        let Some(list) = self.list_mut(state) else { return };
        if before == NONE {
            list.first = after;
        }
        if after == NONE {
            list.last = before;
        }
        if before != NONE {
            self.get_mut(before).after = after;
        }
        if after != NONE {
            self.get_mut(after).before = before;
        }
    }

    fn list_mut(&mut self, state: SlotState) -> Option<&mut SlotList> {
        match state {
            SlotState::Free => None,
            SlotState::Pending => Some(&mut self.pending),
            SlotState::Asked => Some(&mut self.asked),
            SlotState::Confirmed => Some(&mut self.confirmed),
            SlotState::Ready => Some(&mut self.ready),
            SlotState::Learning => Some(&mut self.learning),
            SlotState::Negative => Some(&mut self.negative),
        }
    }

    /// Returns the slot before another one in its list.
    pub fn before(&self, number: u32) -> Option<u32> {
        let before = self.get(number).before;
        (before != NONE).then_some(before)
    }

    /// Returns the slot that follows another one in its list.
    pub fn after(&self, number: u32) -> Option<u32> {
        let after = self.get(number).after;
        (after != NONE).then_some(after)
    }
}
