// SPDX-License-Identifier: Apache-2.0
//! Low-latency packets that are held back until earlier ones of their flow have left.

use super::Window;
use crate::burst::BURST;
use crate::slab::Burst;
use std::collections::VecDeque;

/// Packets held back. Those that wait for the same leave in order; packets of one flow never wait for less than those ahead
/// of them, and no flow waits for what another has to wait for.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Slots, each with the fence that must be passed.
    waiting: VecDeque<(u16, u32)>,
    /// The first fence that will be passed.
    first: Option<u32>,
}

impl Hold {
    pub fn new(packets: usize) -> Self {
        Self { waiting: VecDeque::with_capacity(packets), first: None }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Packets that may be worked off before some that are held back must go on.
    pub fn distance(&self, window: Window) -> usize {
        self.first.map_or(usize::MAX, |fence| window.distance(fence) as usize)
    }

    /// Holds a packet back.
    pub fn push(&mut self, slot: u16, fence: u32, window: Window) {
        debug_assert!(
            self.waiting.len() < self.waiting.capacity(),
            "a burst is received only when all may be held"
        );
        self.waiting.push_back((slot, fence));
        if self.first.is_none_or(|first| window.distance(fence) < window.distance(first)) {
            self.first = Some(fence);
        }
    }

    /// Whether some may go on.
    #[inline]
    pub fn may_release(&self, window: Window) -> bool {
        self.first.is_some_and(|fence| !window.waits(fence))
    }

    /// Takes a burst of those that may go on, in order.
    #[inline]
    pub fn release(&mut self, window: Window) -> Burst {
        if self.may_release(window) { self.take(window) } else { Burst::new() }
    }

    /// Takes out a burst of them whatever they wait for.
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
        // One that may go on and found no room in the burst is the first of all.
        let fences = self.waiting.iter().map(|(_, fence)| *fence);
        self.first =
            fences.min_by_key(|fence| if window.waits(*fence) { window.distance(*fence) } else { 0 });
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_in_order_when_the_fence_is_passed_and_not_before() {
        let window = |head| Window { head, len: 15 - head };
        let mut hold = Hold::new(8);
        let waiting = [(1, 12), (2, 11), (3, 14), (4, 12), (5, 11)];
        waiting.into_iter().for_each(|(slot, fence)| hold.push(slot, fence, window(10)));
        assert_eq!((hold.distance(window(10)), hold.release(window(10)).len()), (1, 0));
        assert_eq!(hold.release(window(11)).as_slice(), [2, 5]);
        assert_eq!((hold.distance(window(11)), hold.release(window(11)).len()), (1, 0));
        assert_eq!(hold.release(window(12)).as_slice(), [1, 4]);
        assert_eq!((hold.distance(window(12)), hold.len()), (2, 1));
        assert_eq!(hold.release(window(15)).as_slice(), [3], "nothing waits any more");
        assert_eq!(hold.distance(window(15)), usize::MAX);
    }

    #[test]
    fn more_than_a_burst_goes_on_burst_by_burst() {
        let mut hold = Hold::new(100);
        (0..80).for_each(|slot| hold.push(slot, 5, Window { head: 4, len: 9 }));
        let passed = Window { head: 5, len: 8 };
        let sizes: Vec<usize> = (0..4).map(|_| hold.release(passed).len()).collect();
        assert_eq!(sizes, [32, 32, 16, 0]);
    }
}
