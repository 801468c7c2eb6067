// SPDX-License-Identifier: Apache-2.0
//! Engine `lpm`: rules that are prefixes of one field of up to 128 bits, beside other fields under one mask (a routing
//! table with its EtherType, or several, told apart by a VLAN).
//!
//! Prefixes cut a field's values into intervals, at most two for each prefix, and all values of an interval have the
//! same longest prefix. A lookup finds the interval (a small array by the value's first bits, then binary search), and
//! from its longest prefix a chain leads through all rules that match: equal prefixes, then shorter ones. Priorities
//! may contradict lengths: then the best rule of each chain is kept beside it. Memory is linear in the rules whatever
//! the prefixes are, a lookup takes at most log2(2 x rules) steps, and one more for each dead rule that it meets.
//! Compare DXR (Zec, Rizzo, Mikuc, CCR 2012), which searches the same intervals.

mod build;

use crate::exact::Exact;
use crate::{BitSet, KeyPlan, NONE, Part};
use flow::Field;

/// Where the prefixes' field stands in the key: the word, the position of its last bit there, and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Word of the key.
    pub word: usize,
    /// Position of the last of these bits, from the least significant.
    pub shift: u32,
    /// How many, 1 to 64.
    pub bits: u32,
}

impl Piece {
    /// The pieces of a field in a plan's keys, its first bits first.
    #[must_use]
    pub fn of_field(plan: &KeyPlan, field: Field) -> Vec<Self> {
        let mut parts: Vec<_> = plan.parts().iter().filter(|part| part.field == field).collect();
        parts.sort_unstable_by_key(|part| part.from_bit);
        let piece =
            |part: &Part| Self { word: part.word.into(), shift: part.shift.into(), bits: part.bits.into() };
        parts.into_iter().map(piece).collect()
    }

    /// The piece's bits of a row, right-aligned.
    #[must_use]
    #[inline]
    pub fn of(self, row: &[u64]) -> u64 {
        row[self.word] >> self.shift & u64::MAX >> (64 - self.bits)
    }

    #[inline]
    fn left_aligned(self, row: &[u64]) -> u64 {
        row[self.word] << (64 - self.bits - self.shift) & u64::MAX << (64 - self.bits)
    }

    /// The piece's bits in its word.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits) << self.shift
    }
}

/// First values of intervals, ascending within each group: as many of their first bits as the longest prefix needs.
#[derive(Debug)]
enum Starts {
    Bits32(Vec<u32>),
    Bits64(Vec<u64>),
    Bits128(Vec<u128>),
}

/// Rules whose other fields are equal.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Its place in `roots`.
    root: u32,
    /// First bits of a value that pick a place there.
    bits: u32,
    /// The rule of length 0, or none.
    whole: u32,
}

/// Rules that are prefixes of one field.
#[derive(Debug)]
pub struct Lpm {
    words: usize,
    field: Box<[Piece]>,
    /// Headers that word 0 must show for a prefix longer than 0: without them the field is absent, not zero.
    present: u64,
    /// From the other fields' value to a group.
    others: Exact,
    groups: Vec<Group>,
    /// For each group and first bits the interval of the smallest such value; one more place at each group's end.
    roots: Vec<u32>,
    starts: Starts,
    /// For each interval the first rule of its longest prefix.
    longest: Vec<u32>,
    /// For each rule the first one of the next shorter prefix that contains its own.
    up: Vec<u32>,
    /// For each rule the next one of the same prefix; empty if there are no two of one.
    equal: Vec<u32>,
    /// For each first rule of a prefix the best of its chain; empty if that is always the rule itself.
    best: Vec<u32>,
    /// Rules that match everything, best first.
    catch_alls: Vec<u32>,
    none_dead: BitSet,
}

impl Lpm {
    /// Looks up `slots.len()` keys, one row of words each; a slot is the best matching rule that is not dead.
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        match &self.starts {
            Starts::Bits32(starts) => self.lookup_in(starts, keys, dead, slots),
            Starts::Bits64(starts) => self.lookup_in(starts, keys, dead, slots),
            Starts::Bits128(starts) => self.lookup_in(starts, keys, dead, slots),
        }
    }

    fn lookup_in<B: Bound>(&self, starts: &[B], keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        let catch_all = self.catch_alls.iter().copied().find(|&slot| !dead.contains(slot)).unwrap_or(NONE);
        self.others.lookup(keys, &self.none_dead, slots);
        for (key, slot) in keys.chunks_exact(self.words).zip(slots) {
            let found = match self.groups.get(*slot as usize) {
                None => NONE,
                Some(group) if key[0] & self.present != self.present => group.whole,
                Some(group) => self.longest(starts, *group, self.value(key)),
            };
            *slot = self.living(found, dead).min(catch_all);
        }
    }

    /// The field's first bits.
    #[inline]
    fn value<B: Bound>(&self, key: &[u64]) -> B {
        match *self.field {
            [only] => B::first(only.left_aligned(key), 0),
            // The first of two pieces fills a word.
            [high, low] => B::first(high.left_aligned(key), low.left_aligned(key)),
            _ => B::first(0, 0),
        }
    }

    #[inline]
    fn longest<B: Bound>(&self, starts: &[B], group: Group, value: B) -> u32 {
        let place = group.root as usize + value.first_bits(group.bits);
        let (low, high) = (self.roots[place] as usize, self.roots[place + 1] as usize);
        self.longest[low + starts[low + 1..=high].partition_point(|start| *start <= value)]
    }

    /// The best living rule of a chain.
    #[inline]
    fn living(&self, first: u32, dead: &BitSet) -> u32 {
        if first == NONE {
            return NONE;
        }
        let best = self.best.get(first as usize).copied().unwrap_or(first);
        if dead.is_empty() || !dead.contains(best) {
            return best;
        }
        let mut found = NONE;
        let mut prefix = first;
        while prefix != NONE {
            // Of equal prefixes the first that lives is the best.
            let mut slot = prefix;
            while slot < found && dead.contains(slot) {
                slot = self.equal.get(slot as usize).copied().unwrap_or(NONE);
            }
            if slot < found {
                found = slot;
                if self.best.is_empty() {
                    break;
                }
            }
            prefix = self.up[prefix as usize];
        }
        found
    }

    /// Rules that match everything.
    #[must_use]
    pub fn catch_alls(&self) -> usize {
        self.catch_alls.len()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let starts = match &self.starts {
            Starts::Bits32(starts) => starts.len() * 4,
            Starts::Bits64(starts) => starts.len() * 8,
            Starts::Bits128(starts) => starts.len() * 16,
        };
        let words =
            self.roots.len() + self.longest.len() + self.up.len() + self.equal.len() + self.best.len();
        starts + words * 4 + self.groups.len() * size_of::<Group>() + self.others.bytes()
    }
}

/// The first bits of a field's value: no more than the longest prefix has need to be compared.
trait Bound: Copy + Ord {
    /// Of the value's first and second 64 bits.
    fn first(high: u64, low: u64) -> Self;
    /// Its first `bits` bits, 1 to 32.
    fn first_bits(self, bits: u32) -> usize;
}

macro_rules! bound {
    ($type:ty) => {
        impl Bound for $type {
            #[inline]
            fn first(high: u64, low: u64) -> Self {
                ((u128::from(high) << 64 | u128::from(low)) >> (128 - <$type>::BITS)) as $type
            }

            #[inline]
            fn first_bits(self, bits: u32) -> usize {
                (self >> (<$type>::BITS - bits)) as usize
            }
        }
    };
}

bound!(u32);
bound!(u64);
bound!(u128);
