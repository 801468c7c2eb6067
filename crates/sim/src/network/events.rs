// SPDX-License-Identifier: Apache-2.0
//! Queue of future events, ordered by time, then by rank, then by insertion.

use flow::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct Entry<E> {
    at: Nanos,
    rank: u8,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reversed order: the earliest event is the greatest, because `BinaryHeap` is a max-heap.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.rank, other.order).cmp(&(self.at, self.rank, self.order))
    }
}

/// Priority queue of events.
#[derive(Debug)]
pub(super) struct Events<E> {
    heap: BinaryHeap<Entry<E>>,
    said: u64,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), said: 0 }
    }
}

impl<E> Events<E> {
    /// Adds an event. Of several events at the same time, the one with the lowest rank comes first.
    pub fn push(&mut self, at: Nanos, rank: u8, event: E) {
        self.said += 1;
        self.heap.push(Entry { at, rank, order: self.said, event });
    }

    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_rank_then_insertion() {
        let mut events = Events::default();
        for (at, rank, event) in
            [(5, 1, 'c'), (9, 0, 'f'), (5, 1, 'd'), (1, 2, 'a'), (5, 0, 'b'), (5, 1, 'e')]
        {
            events.push(Nanos(at), rank, event);
        }
        let order: String = std::iter::from_fn(|| events.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcdef");
    }
}
