// SPDX-License-Identifier: Apache-2.0
//! A worker's additions to a base since it was compiled. All room is there from the start: adding moves at most the
//! order of a small scan head, or fills one place of a hash directory. Slots count additions, dead ones included.

use crate::hash::Seed;
use crate::{BitSet, NONE};
use flow::EntryId;

/// Rules that match everything which a hashed head can take.
pub const CATCH_ALLS: usize = 8;

/// How the head finds its rules.
#[derive(Debug)]
enum Order {
    /// Slots by priority, first added first: walked.
    Walked(Vec<u32>),
    /// Hashed by the value under the base's mask; slots that match everything beside it.
    Hashed { mask: Box<[u64]>, directory: Box<[u32]>, seed: Seed, catch_alls: Vec<u32> },
}

/// Additions, with room for a fixed number of them.
#[derive(Debug)]
pub struct Head {
    words: usize,
    capacity: usize,
    order: Order,
    values: Vec<u64>,
    masks: Vec<u64>,
    ids: Vec<EntryId>,
    priorities: Vec<u16>,
    dead: BitSet,
}

impl Default for Head {
    fn default() -> Self {
        Self::walked(0, 0)
    }
}

impl Head {
    /// A head that takes any rules and walks them.
    #[must_use]
    pub fn walked(words: usize, capacity: usize) -> Self {
        Self::with_order(words, capacity, Order::Walked(Vec::with_capacity(capacity)))
    }

    /// A head that takes rules of one mask, and a few that match everything.
    #[must_use]
    pub fn hashed(mask: &[u64], capacity: usize) -> Self {
        let directory = vec![0; (2 * capacity).next_power_of_two().max(2)].into_boxed_slice();
        let catch_alls = Vec::with_capacity(CATCH_ALLS);
        let order = Order::Hashed { mask: mask.into(), directory, seed: Seed::of_process(), catch_alls };
        Self::with_order(mask.len(), capacity, order)
    }

    fn with_order(words: usize, capacity: usize, order: Order) -> Self {
        Self {
            words,
            capacity,
            order,
            values: Vec::with_capacity(capacity * words),
            masks: Vec::with_capacity(capacity * words),
            ids: Vec::with_capacity(capacity),
            priorities: Vec::with_capacity(capacity),
            dead: BitSet::new(capacity),
        }
    }

    /// Adds a rule as the last among its priority. The control side never sends more than the head has room for; one
    /// too many is not taken.
    pub fn add(&mut self, id: EntryId, priority: u16, value: &[u64], mask: &[u64]) {
        if self.ids.len() == self.capacity {
            debug_assert!(false, "the control side counts the head's additions");
            return;
        }
        let slot = self.ids.len() as u32;
        self.ids.push(id);
        self.priorities.push(priority);
        self.values.extend_from_slice(value);
        self.masks.extend_from_slice(mask);
        match &mut self.order {
            Order::Walked(order) => {
                let at = order.partition_point(|&other| self.priorities[other as usize] >= priority);
                order.insert(at, slot);
            }
            Order::Hashed { catch_alls, .. } if mask.iter().all(|word| *word == 0) => {
                let at = catch_alls.partition_point(|&other| self.priorities[other as usize] >= priority);
                catch_alls.insert(at, slot);
            }
            Order::Hashed { mask, directory, seed, .. } => {
                let mut at = seed.hash(value, mask) as usize & (directory.len() - 1);
                while directory[at] != 0 {
                    at = (at + 1) & (directory.len() - 1);
                }
                directory[at] = slot + 1;
            }
        }
    }

    /// Marks an addition dead.
    pub fn kill(&mut self, slot: u32) {
        self.dead.insert(slot);
    }

    /// The best living addition that matches the key, or [`NONE`].
    #[must_use]
    pub fn find(&self, key: &[u64]) -> u32 {
        match &self.order {
            Order::Walked(order) => order
                .iter()
                .copied()
                .find(|&slot| !self.dead.contains(slot) && self.matches(key, slot))
                .unwrap_or(NONE),
            Order::Hashed { mask, directory, seed, catch_alls } => {
                let mut best =
                    catch_alls.iter().copied().find(|&slot| !self.dead.contains(slot)).unwrap_or(NONE);
                let mut at = seed.hash(key, mask) as usize & (directory.len() - 1);
                while directory[at] != 0 {
                    let slot = directory[at] - 1;
                    if !self.dead.contains(slot) && self.matches(key, slot) && self.beats(slot, best) {
                        best = slot;
                    }
                    at = (at + 1) & (directory.len() - 1);
                }
                best
            }
        }
    }

    #[inline]
    fn matches(&self, key: &[u64], slot: u32) -> bool {
        let range = slot as usize * self.words..(slot as usize + 1) * self.words;
        let (values, masks) = (&self.values[range.clone()], &self.masks[range]);
        key.iter().zip(values).zip(masks).all(|((key, value), mask)| key & mask == *value)
    }

    fn beats(&self, slot: u32, other: u32) -> bool {
        other == NONE || (self.priority(slot), other) > (self.priority(other), slot)
    }

    /// The entry of a slot.
    #[must_use]
    pub fn id(&self, slot: u32) -> EntryId {
        self.ids[slot as usize]
    }

    /// The priority of a slot.
    #[must_use]
    pub fn priority(&self, slot: u32) -> u16 {
        self.priorities[slot as usize]
    }

    /// True without a living addition.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ids.len() == self.dead.len()
    }

    /// Additions there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walked_head_keeps_the_order_of_adding_among_equals() {
        let mut head = Head::walked(1, 4);
        head.add(10, 5, &[0], &[0]);
        head.add(11, 7, &[2], &[2]);
        head.add(12, 7, &[3], &[3]);
        head.add(13, 5, &[1], &[1]);
        assert_eq!([head.find(&[0]), head.find(&[3]), head.find(&[1])], [0, 1, 0]);
        head.kill(1);
        assert_eq!([head.find(&[3]), head.find(&[2])], [2, 0]);
        head.kill(0);
        assert_eq!([head.find(&[1]), head.find(&[0])], [3, NONE]);
        assert!(!head.is_empty());
        head.kill(2);
        head.kill(3);
        assert!(head.is_empty());
    }

    #[test]
    fn a_hashed_head_finds_the_best_of_equal_values() {
        let mut head = Head::hashed(&[0xff], 5);
        head.add(1, 5, &[9], &[0xff]);
        head.add(2, 8, &[9], &[0xff]);
        head.add(3, 8, &[9], &[0xff]);
        head.add(4, 0, &[0], &[0]);
        assert_eq!([head.find(&[0x109]), head.find(&[8])], [1, 3]);
        head.kill(1);
        assert_eq!(head.find(&[9]), 2);
        head.kill(2);
        assert_eq!(head.find(&[9]), 0);
        head.kill(0);
        assert_eq!(head.find(&[9]), 3);
        head.add(5, 0, &[7], &[0xff]);
        assert_eq!(head.find(&[7]), 3, "of equal priority the first added wins, whatever it matches");
    }
}
