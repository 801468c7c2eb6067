// SPDX-License-Identifier: Apache-2.0
//! Waiting packets: a fixed number of places, linked into one queue per slot.

/// Number that stands for no place.
pub(crate) const NONE: u32 = u32::MAX;

/// A waiting packet.
#[derive(Debug)]
struct Waiting<P> {
    packet: Option<P>,
    bytes: u32,
    /// Whether the packet may wait longer than a burst.
    is_held: bool,
    /// Number of packets that were held before this one.
    arrival: u64,
    next: u32,
}

/// Queue of the packets of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };

    pub fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Returns the place of the first packet, or [`NONE`].
    pub fn first(self) -> u32 {
        self.first
    }
}

/// All waiting packets of a worker.
#[derive(Debug)]
pub(crate) struct WaitingPackets<P> {
    all: Box<[Waiting<P>]>,
    free: Vec<u32>,
    arrivals: u64,
}

impl<P> WaitingPackets<P> {
    /// Creates places for `packets` packets.
    pub fn new(packets: usize) -> Self {
        let empty = || Waiting { packet: None, bytes: 0, is_held: false, arrival: 0, next: NONE };
        Self {
            all: (0..packets).map(|_| empty()).collect(),
            free: (0..packets as u32).rev().collect(),
            arrivals: 0,
        }
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Returns whether another packet can wait.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Appends a packet to a queue. `is_held` is whether it may wait longer than a burst. The caller has
    /// checked that there is room.
    pub fn append(&mut self, queue: &mut Queue, packet: P, bytes: u32, is_held: bool) {
        if let Some(place) = self.put(packet, bytes, is_held) {
            self.link(queue, place);
        }
    }

    /// Inserts a packet into a queue after the packet at place `before`, or at the front if `before` is
    /// [`NONE`]. Returns the place of the packet. The caller has checked that there is room.
    pub fn insert(&mut self, queue: &mut Queue, before: u32, packet: P, bytes: u32) -> u32 {
        let Some(place) = self.put(packet, bytes, true) else { return before };
        let next = match self.all.get_mut(before as usize) {
            Some(before) => std::mem::replace(&mut before.next, place),
            None => std::mem::replace(&mut queue.first, place),
        };
        self.all[place as usize].next = next;
        // The order of arrival follows the order in the queue.
        match self.all.get(next as usize).map(|next| next.arrival) {
            Some(arrival) => self.all[place as usize].arrival = arrival.saturating_sub(1),
            None => queue.last = place,
        }
        place
    }

    fn put(&mut self, packet: P, bytes: u32, is_held: bool) -> Option<u32> {
        let Some(place) = self.free.pop() else {
            debug_assert!(false, "no packet can wait");
            return None;
        };
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.all[place as usize] = Waiting { packet: Some(packet), bytes, is_held, arrival, next: NONE };
        Some(place)
    }

    /// Appends the packet in a place, which belongs to no queue, to a queue.
    pub fn link(&mut self, queue: &mut Queue, place: u32) {
        self.all[place as usize].next = NONE;
        match self.all.get_mut(queue.last as usize) {
            Some(last) => last.next = place,
            None => queue.first = place,
        }
        queue.last = place;
    }

    /// Takes the first packet of a queue, and its length in bytes.
    pub fn take(&mut self, queue: &mut Queue) -> Option<(P, u32)> {
        let place = queue.first;
        let waiting = self.all.get_mut(place as usize)?;
        let packet = waiting.packet.take()?;
        queue.first = waiting.next;
        if queue.first == NONE {
            queue.last = NONE;
        }
        self.free.push(place);
        Some((packet, waiting.bytes))
    }

    /// Removes the packets of a queue that may not wait longer than a burst. Calls `take` with each of them
    /// and its length in bytes.
    pub fn retain_held(&mut self, queue: &mut Queue, mut take: impl FnMut(P, u32)) {
        let mut place = std::mem::replace(queue, Queue::EMPTY).first;
        while let Some(waiting) = self.all.get_mut(place as usize) {
            let next = waiting.next;
            if waiting.is_held {
                self.link(queue, place);
            } else if let Some(packet) = waiting.packet.take() {
                take(packet, waiting.bytes);
                self.free.push(place);
            }
            place = next;
        }
    }

    /// Returns the places of a queue in order.
    pub fn places(&self, queue: Queue) -> impl Iterator<Item = u32> + '_ {
        let next = |place: &u32| self.all.get(*place as usize).map(|waiting| waiting.next);
        std::iter::successors(Some(queue.first), next).take_while(|place| *place != NONE)
    }

    /// Returns whether all packets of a queue may wait longer than a burst.
    pub fn are_held(&self, queue: Queue) -> bool {
        self.places(queue).all(|place| self.all[place as usize].is_held)
    }

    /// Returns the packet in a place.
    pub fn packet(&self, place: u32) -> Option<&P> {
        self.all.get(place as usize)?.packet.as_ref()
    }

    /// Returns the length in bytes of the packet in a place.
    pub fn bytes(&self, place: u32) -> u32 {
        self.all[place as usize].bytes
    }

    /// Returns the number of packets that were held before the packet in a place.
    pub fn arrival(&self, place: u32) -> u64 {
        self.all[place as usize].arrival
    }
}
