// SPDX-License-Identifier: Apache-2.0
//! Hold queue of low-latency packets that wait until earlier packets of their flow have left.

use crate::slab::{BURST, Burst, PacketSlot};
use backlog::Window;
use std::collections::VecDeque;

/// Packets in the hold queue.
///
/// Packets with the same fence leave in order of arrival. The fence of a packet is never before the fence of
/// an earlier packet of the same flow.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Slots of the packets, each with the fence that must pass before the packet continues.
    waiting: VecDeque<(PacketSlot, u32)>,
    /// Earliest fence of all held packets.
    first: Option<u32>,
}

impl Hold {
    pub fn new(packets: usize) -> Self {
        Self { waiting: VecDeque::with_capacity(packets), first: None }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many packets of the backlog may be processed before a held packet must continue.
    pub fn distance(&self, window: Window) -> usize {
        self.first.map_or(usize::MAX, |fence| window.distance(fence) as usize)
    }

    /// Appends a packet to the hold queue.
    pub fn push(&mut self, slot: PacketSlot, fence: u32, window: Window) {
        debug_assert!(
            self.waiting.len() < self.waiting.capacity(),
            "a burst is received only when all may be held"
        );
        self.waiting.push_back((slot, fence));
        if self.first.is_none_or(|first| window.distance(fence) < window.distance(first)) {
            self.first = Some(fence);
        }
    }

    /// Returns whether a held packet may continue.
    #[inline]
    pub fn may_release(&self, window: Window) -> bool {
        self.first.is_some_and(|fence| !window.waits(fence))
    }

    /// Takes up to a burst of packets that may continue, in order.
    #[inline]
    pub fn release(&mut self, window: Window) -> Burst {
        if self.may_release(window) { self.take(window) } else { Burst::new() }
    }

    /// Takes up to a burst of packets without regard to their fences.
    pub fn take_any(&mut self) -> Burst {
        let count = self.waiting.len().min(BURST);
        self.first = None;
        self.waiting.drain(..count).map(|(slot, _)| slot).collect()
    }

    #[inline(never)]
    fn take(&mut self, window: Window) -> Burst {
        let mut released = Burst::new();
        self.waiting.retain(|(slot, fence)| {
            let goes_on = !window.waits(*fence) && released.len() < BURST;
            if goes_on {
                released.push(*slot);
            }
            !goes_on
        });
        // A packet that may continue but did not fit into the burst has distance 0.
        let fences = self.waiting.iter().map(|(_, fence)| *fence);
        self.first =
            fences.min_by_key(|fence| if window.waits(*fence) { window.distance(*fence) } else { 0 });
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots<const N: usize>(numbers: [u16; N]) -> [PacketSlot; N] {
        numbers.map(PacketSlot)
    }

    #[test]
    fn released_in_order_when_the_fence_is_passed_and_not_before() {
        let window = |head| Window::new(head, 15 - head);
        let mut hold = Hold::new(8);
        let waiting = [(1, 12), (2, 11), (3, 14), (4, 12), (5, 11)];
        waiting.into_iter().for_each(|(slot, fence)| hold.push(PacketSlot(slot), fence, window(10)));
        assert_eq!((hold.distance(window(10)), hold.release(window(10)).len()), (1, 0));
        assert_eq!(hold.release(window(11)).as_slice(), slots([2, 5]));
        assert_eq!((hold.distance(window(11)), hold.release(window(11)).len()), (1, 0));
        assert_eq!(hold.release(window(12)).as_slice(), slots([1, 4]));
        assert_eq!((hold.distance(window(12)), hold.len()), (2, 1));
        assert_eq!(hold.release(window(15)).as_slice(), slots([3]), "nothing waits any more");
        assert_eq!(hold.distance(window(15)), usize::MAX);
    }

    #[test]
    fn more_than_a_burst_goes_on_burst_by_burst() {
        let mut hold = Hold::new(100);
        (0..80).for_each(|slot| hold.push(PacketSlot(slot), 5, Window::new(4, 9)));
        let passed = Window::new(5, 8);
        let sizes: Vec<usize> = (0..4).map(|_| hold.release(passed).len()).collect();
        assert_eq!(sizes, [32, 32, 16, 0]);
    }
}
