// SPDX-License-Identifier: Apache-2.0
//! The inner loops of trees and labels, and what they need of a core: bits gathered, rules compared, memory asked for.
//! What is looked up without asking for bounds is held against them when it is made.
#![allow(unsafe_code)]

use super::layout::DENSE_MAX;
use crate::NONE;
use crate::simd::Level;

/// Rules of a block.
pub(super) const LANES: usize = 4;

/// Words of a dense key that a block compares.
pub(super) const COMPARED: usize = 2;

/// Four rules' first dense words: values, then masks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(super) struct Block {
    pub values: [u64; LANES * COMPARED],
    pub masks: [u64; LANES * COMPARED],
}

impl Block {
    /// One that no key matches.
    pub const EMPTY: Self = Self { values: [1; LANES * COMPARED], masks: [0; LANES * COMPARED] };
}

/// A node, or a leaf.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Entry {
    /// The bits of the tree's word that choose a child; none for a leaf.
    pub mask: u64,
    /// The first child, or a leaf's own place.
    pub next: u32,
    /// A leaf's first block, and from [`MORE_SHIFT`] on how many follow.
    pub leaf: u32,
}

/// Where the number of further blocks stands in `Entry::leaf`.
pub(super) const MORE_SHIFT: u32 = 27;

impl Entry {
    /// Where to go from here: a leaf stays.
    #[inline(always)]
    fn follow<K: Kernel>(&self, kernel: K, word: u64) -> u32 {
        self.next + kernel.extract(word, self.mask) as u32
    }

    /// The leaf's blocks.
    #[inline(always)]
    pub fn blocks(&self) -> std::ops::RangeInclusive<usize> {
        let first = (self.leaf & ((1 << MORE_SHIFT) - 1)) as usize;
        first..=first + (self.leaf >> MORE_SHIFT) as usize
    }
}

/// Nodes, leaves and blocks of all trees.
#[derive(Debug)]
pub(super) struct Nodes {
    entries: Vec<Entry>,
    blocks: Vec<Block>,
    /// For each rule of a block its slot, or [`NONE`]; block 0 has none.
    slots: Vec<[u32; LANES]>,
}

impl Nodes {
    /// None if an entry leads where nothing is.
    pub fn new(entries: Vec<Entry>, blocks: Vec<Block>, slots: Vec<[u32; LANES]>) -> Option<Self> {
        let leads = |entry: &Entry| {
            let last = u64::from(entry.next) + (1u64 << entry.mask.count_ones().min(32)) - 1;
            last < entries.len() as u64 && *entry.blocks().end() < blocks.len()
        };
        let sound =
            entries.iter().all(leads) && slots.len() == blocks.len() && slots.first() == Some(&[NONE; LANES]);
        sound.then_some(Self { entries, blocks, slots })
    }

    /// Follows the words of keys from `root` to leaves, `depth` steps away at most.
    #[inline(always)]
    pub fn descend<K: Kernel>(&self, kernel: K, root: u32, depth: u32, words: &[u64], leaves: &mut [u32]) {
        let root = self.entries[root as usize];
        for (leaf, word) in leaves.iter_mut().zip(words) {
            *leaf = root.follow(kernel, *word);
            kernel.prefetch(&self.entries, *leaf as usize);
        }
        for _ in 1..depth {
            for (leaf, word) in leaves.iter_mut().zip(words) {
                // SAFETY: `new` has seen that each entry, and so the root, leads to entries only.
                let entry = unsafe { self.entries.get_unchecked(*leaf as usize) };
                *leaf = entry.follow(kernel, *word);
                kernel.prefetch(&self.entries, *leaf as usize);
            }
        }
        for leaf in leaves {
            // SAFETY: as above.
            let entry = unsafe { self.entries.get_unchecked(*leaf as usize) };
            *leaf = entry.leaf;
            let first = *entry.blocks().start();
            kernel.prefetch(&self.blocks, first);
            kernel.prefetch_end(&self.blocks, first);
            kernel.prefetch(&self.slots, first);
        }
    }

    /// The first rule of a leaf's only block that suits a key in the words compared, or [`NONE`].
    #[inline(always)]
    pub fn first<K: Kernel>(&self, kernel: K, leaf: u32, key: [u64; COMPARED]) -> u32 {
        let Some(block) = self.blocks.get(leaf as usize) else { return NONE };
        let found = kernel.suiting(block, key);
        let lane = found.trailing_zeros() as usize / 2 % LANES;
        let at = if found == 0 { 0 } else { leaf as usize };
        // SAFETY: there are as many rows of slots as blocks, of which there is one at least.
        unsafe { self.slots.get_unchecked(at)[lane] }
    }

    /// The first rule of a leaf that suits a key in the words compared and is `wanted`, or [`NONE`]. Loops as plain as this one are
    /// laid out in place: iterators would be calls to code that may not use a kernel's instructions.
    #[inline(always)]
    pub fn first_wanted<K: Kernel>(
        &self,
        kernel: K,
        leaf: u32,
        key: [u64; COMPARED],
        wanted: impl Fn(u32) -> bool,
    ) -> u32 {
        let blocks = Entry { leaf, ..Entry::default() }.blocks();
        let mut at = *blocks.start();
        while at <= *blocks.end() {
            let mut found = self.blocks.get(at).map_or(0, |block| kernel.suiting(block, key));
            while found != 0 {
                let slot = self.slots[at][found.trailing_zeros() as usize / 2 % LANES];
                if wanted(slot) {
                    return slot;
                }
                found &= found - 1;
            }
            at += 1;
        }
        NONE
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>() + self.blocks.len() * (size_of::<Block>() + 4 * LANES)
    }
}

/// 512 bits of a vector: one for each rule.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u64; 8]);

/// Bits of a line.
pub(super) const LINE_BITS: u32 = 512;

/// A table of numbers below 2^16. Of blocks that are equal only one is kept: it is mostly so, and what is looked up often
/// stays in the nearest caches.
#[derive(Debug)]
pub(super) struct Paged {
    /// For each block its place among those kept; none if all are kept in their order. Two more than are used: a core may
    /// read four bytes.
    pages: Vec<u16>,
    /// Two more than are used.
    items: Vec<u16>,
    /// Entries of a block: their logarithm.
    shift: u32,
    /// The last entry.
    last: u32,
}

impl Paged {
    /// For so many entries, in blocks of `1 << shift` of which `pages` tells the place, if it is not empty; none if there
    /// are no entries, or not all of them stand in `items`.
    pub fn new(mut pages: Vec<u16>, mut items: Vec<u16>, shift: u32, entries: usize) -> Option<Self> {
        // A core takes places for signed numbers.
        let last = i32::try_from(entries).ok()?.cast_unsigned().checked_sub(1)?;
        let end = |page: &u16| (usize::from(*page) + 1) << shift;
        let sound = if pages.is_empty() {
            entries <= items.len()
        } else {
            entries <= pages.len() << shift && pages.iter().all(|page| end(page) <= items.len())
        };
        if !pages.is_empty() {
            pages.extend([0; 2]);
        }
        items.extend([0; 2]);
        (sound && shift <= u16::BITS).then_some(Self { pages, items, shift, last })
    }

    /// What stands at `at`; beyond the end, the last.
    #[inline(always)]
    fn find(&self, at: u32) -> u32 {
        let mut at = at.min(self.last) as usize;
        // SAFETY: `new` alone makes tables: each block has a page, and each page a whole block.
        unsafe {
            if !self.pages.is_empty() {
                let page = *self.pages.get_unchecked(at >> self.shift);
                at = usize::from(page) << self.shift | at & ((1 << self.shift) - 1);
            }
            u32::from(*self.items.get_unchecked(at))
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.pages.len() + self.items.len()) * 2
    }
}

/// The vectors of all labels: which rules suit.
#[derive(Debug)]
pub(super) struct Vectors {
    lines: Vec<Line>,
    /// Lines of a vector.
    length: u32,
    /// For each source the first line of its labels' vectors.
    bases: Vec<u32>,
}

/// Sources of labels at most.
pub(super) const SOURCES_MAX: usize = DENSE_MAX * 4;

/// The labels of a group, source by source.
pub(super) type Found<const G: usize> = [[u32; G]; SOURCES_MAX];

/// Lines that stay in a core's own cache: asking for them early would only take time.
const NEAR_LINES: usize = 1 << 12;

impl Vectors {
    /// None if there is no vector, or too many are wanted for a key.
    pub fn new(lines: Vec<Line>, length: u32, bases: Vec<u32>) -> Option<Self> {
        let sound = bases.len() <= SOURCES_MAX && 0 < length && length as usize <= lines.len();
        (sound && u32::try_from(lines.len()).is_ok()).then_some(Self { lines, length, bases })
    }

    /// Turns a source's labels into the first lines of their vectors.
    #[inline(always)]
    pub fn starts<const G: usize>(&self, source: usize, labels: &mut [u32; G]) {
        let base = self.bases.get(source).copied().unwrap_or_default();
        labels.iter_mut().for_each(|label| *label = base + *label * self.length);
    }

    /// For each of `len` keys the first bit that all vectors from its `starts` have and that is `wanted`: to `found`. `living`
    /// has all bits of a line that are.
    #[inline(always)]
    pub fn lookup<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        starts: &Found<G>,
        len: usize,
        wanted: impl Fn(u32) -> bool + Copy,
        living: impl FnMut(u32) -> Line,
        found: impl FnMut(usize, u32),
    ) {
        let len = len.min(G);
        if self.lines.len() > NEAR_LINES {
            for starts in &starts[..self.bases.len()] {
                starts[..len].iter().for_each(|start| kernel.prefetch(&self.lines, *start as usize));
            }
        }
        self.first(kernel, starts, len, wanted, living, found);
    }

    /// The same, behind what is asked for early.
    #[inline(always)]
    fn first<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        starts: &Found<G>,
        len: usize,
        wanted: impl Fn(u32) -> bool + Copy,
        living: impl FnMut(u32) -> Line,
        found: impl FnMut(usize, u32),
    ) {
        // The usual counts: the compiler lays these out one after the other.
        match self.bases.len() {
            5 => self.first_of::<K, G, 5>(kernel, starts, len, wanted, living, found),
            6 => self.first_of::<K, G, 6>(kernel, starts, len, wanted, living, found),
            7 => self.first_of::<K, G, 7>(kernel, starts, len, wanted, living, found),
            8 => self.first_of::<K, G, 8>(kernel, starts, len, wanted, living, found),
            9 => self.first_of::<K, G, 9>(kernel, starts, len, wanted, living, found),
            10 => self.first_of::<K, G, 10>(kernel, starts, len, wanted, living, found),
            _ => self.first_of::<K, G, 0>(kernel, starts, len, wanted, living, found),
        }
    }

    #[inline(always)]
    fn first_of<K: Kernel, const G: usize, const N: usize>(
        &self,
        kernel: K,
        starts: &Found<G>,
        len: usize,
        wanted: impl Fn(u32) -> bool + Copy,
        mut living: impl FnMut(u32) -> Line,
        mut found: impl FnMut(usize, u32),
    ) {
        let count = if N == 0 { self.bases.len().min(SOURCES_MAX) } else { N };
        let last = self.lines.len() - self.length as usize;
        // SAFETY: behind each line up to `last` there are as many as a vector has.
        let vector = |start: u32| unsafe { self.lines.as_ptr().add((start as usize).min(last)) };
        #[allow(clippy::needless_range_loop, reason = "of each chunk's starts, the one at `at`")]
        'keys: for at in 0..len {
            let known: [*const Line; N] = std::array::from_fn(|nth| vector(starts[nth][at]));
            for line in 0..self.length {
                let of = |nth: usize| {
                    let first = match known.get(nth) {
                        Some(first) => *first,
                        None => vector(starts[nth][at]),
                    };
                    // SAFETY: as above, and vectors are not longer.
                    unsafe { &*first.add(line as usize) }
                };
                let mut bits = kernel.line(of(0));
                for nth in 1..count {
                    bits = kernel.meet(bits, of(nth));
                }
                let mut bit = kernel.first_bit(bits);
                if bit < LINE_BITS && !wanted(line * LINE_BITS + bit) {
                    bit = kernel.first_bit(kernel.meet(bits, &living(line)));
                }
                if bit < LINE_BITS {
                    found(at, line * LINE_BITS + bit);
                    continue 'keys;
                }
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

/// A core's way to do it. One that needs special instructions only exists inside of [`Width::run`], which has asked for them.
pub(super) trait Kernel: Copy {
    /// The bits of `word` under a mask, put together at the lower end.
    fn extract(self, word: u64, mask: u64) -> u64;

    /// The rules of a block that a key matches in the words compared: bits 0, 2, 4 and 6.
    fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32;

    /// For each of a group's words what stands in a table at its bits from `shift` on that `mask` leaves.
    fn label<const G: usize>(self, table: &Paged, words: &[u64; G], cut: (u32, u32), labels: &mut [u32; G]);

    /// Turns each of a group's numbers, times `scale` and with its fellow added, into what stands there in a table.
    fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]);

    /// What lines have in common.
    type Meet: Copy;

    /// A line.
    fn line(self, line: &Line) -> Self::Meet;

    /// What a line has in common with others.
    fn meet(self, others: Self::Meet, line: &Line) -> Self::Meet;

    /// The first bit that is set, or [`LINE_BITS`].
    fn first_bit(self, of: Self::Meet) -> u32;

    /// Asks for the cache line of `at`, which need not be there.
    fn prefetch<T>(self, of: &[T], at: usize);

    /// Asks for the cache line in which `at` ends, which need not be there.
    fn prefetch_end<T>(self, of: &[T], at: usize);
}

/// Work to be done with a kernel.
pub(super) trait Work {
    /// Does it; must be inlined.
    fn run<K: Kernel>(self, kernel: K);
}

/// What every core can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel for Portable {
    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // Run by run: masks are mostly made of a few.
        let (mut left, mut made, mut shift) = (mask, 0, 0);
        while left != 0 {
            let from = left.trailing_zeros();
            let length = (!(left >> from)).trailing_zeros();
            let run = u64::MAX >> (64 - length);
            made |= (word >> from & run) << shift;
            shift += length;
            left &= !(run << from);
        }
        made
    }

    #[inline(always)]
    fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32 {
        let mut found = 0;
        for lane in 0..LANES {
            let differs = |word: usize| {
                let at = lane * COMPARED + word;
                key[word] & block.masks[at] ^ block.values[at]
            };
            found |= u32::from(differs(0) | differs(1) == 0) << (2 * lane);
        }
        found
    }

    #[inline(always)]
    fn label<const G: usize>(
        self,
        table: &Paged,
        words: &[u64; G],
        (shift, mask): (u32, u32),
        labels: &mut [u32; G],
    ) {
        for (word, label) in words.iter().zip(labels) {
            *label = table.find(word.wrapping_shr(shift) as u32 & mask);
        }
    }

    #[inline(always)]
    fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
        for (number, fellow) in numbers.iter_mut().zip(fellows) {
            *number = table.find(number.wrapping_mul(scale).wrapping_add(*fellow));
        }
    }

    type Meet = Line;

    #[inline(always)]
    fn line(self, line: &Line) -> Line {
        *line
    }

    #[inline(always)]
    fn meet(self, others: Line, line: &Line) -> Line {
        Line(std::array::from_fn(|at| others.0[at] & line.0[at]))
    }

    #[inline(always)]
    fn first_bit(self, of: Line) -> u32 {
        let word = of.0.iter().position(|word| *word != 0);
        word.map_or(LINE_BITS, |word| 64 * word as u32 + of.0[word].trailing_zeros())
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &[T], _: usize) {}

    #[inline(always)]
    fn prefetch_end<T>(self, _: &[T], _: usize) {}
}

/// The level that kernels are chosen by: one that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width(Level);

impl Width {
    /// This level, or what was found if that is less.
    pub fn new(level: Level) -> Self {
        Self(level.min(Level::found()))
    }

    /// Does work with the best kernel there is.
    #[inline]
    pub fn run(self, work: impl Work) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` alone makes a width, of what was found.
            Level::Avx512 => unsafe { wide::run_avx512(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { wide::run_avx2(work) },
            _ => work.run(Portable),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Block, COMPARED, Kernel, LANES, LINE_BITS, Line, Paged, Portable, Work};
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub struct Avx2(());
    #[derive(Clone, Copy)]
    pub struct Avx512(());

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub unsafe fn run_avx2(work: impl Work) {
        work.run(Avx2(()));
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512dq")]
    pub unsafe fn run_avx512(work: impl Work) {
        work.run(Avx512(()));
    }

    #[inline(always)]
    fn prefetch<T>(of: &[T], at: usize, byte: usize) {
        let place = of.as_ptr().wrapping_add(at).cast::<i8>().wrapping_add(byte);
        // SAFETY: asking for a line reads nothing; the address is not followed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }

    impl Kernel for Avx2 {
        #[inline(always)]
        fn extract(self, word: u64, mask: u64) -> u64 {
            // SAFETY: an `Avx2` exists in `run_avx2` only.
            unsafe { _pext_u64(word, mask) }
        }

        #[inline(always)]
        fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32 {
            // SAFETY: as above; a block has eight values and eight masks, and is aligned.
            unsafe {
                let key =
                    _mm256_broadcastsi128_si256(_mm_set_epi64x(key[1].cast_signed(), key[0].cast_signed()));
                let half = |at: usize| {
                    let value = _mm256_load_si256(block.values.as_ptr().add(at).cast());
                    let mask = _mm256_load_si256(block.masks.as_ptr().add(at).cast());
                    let equal = _mm256_cmpeq_epi64(_mm256_and_si256(key, mask), value);
                    _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
                };
                let words = half(0) | half(LANES) << LANES;
                words & words >> 1 & 0x55
            }
        }

        // Gathers of eight win nothing over eight loads.
        #[inline(always)]
        fn label<const G: usize>(
            self,
            table: &Paged,
            words: &[u64; G],
            cut: (u32, u32),
            labels: &mut [u32; G],
        ) {
            Portable.label(table, words, cut, labels);
        }

        #[inline(always)]
        fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
            Portable.join(table, scale, numbers, fellows);
        }

        type Meet = Line;

        #[inline(always)]
        fn line(self, line: &Line) -> Line {
            Portable.line(line)
        }

        #[inline(always)]
        fn meet(self, others: Line, line: &Line) -> Line {
            Portable.meet(others, line)
        }

        #[inline(always)]
        fn first_bit(self, of: Line) -> u32 {
            Portable.first_bit(of)
        }

        #[inline(always)]
        fn prefetch<T>(self, of: &[T], at: usize) {
            prefetch(of, at, 0);
        }

        #[inline(always)]
        fn prefetch_end<T>(self, of: &[T], at: usize) {
            prefetch(of, at, size_of::<T>() - 1);
        }
    }

    /// [`Paged::find`] for sixteen.
    ///
    /// # Safety
    /// The core must have AVX-512.
    #[inline(always)]
    unsafe fn sixteen(table: &Paged, at: __m512i) -> __m512i {
        // SAFETY: as the caller promises. What is gathered are four bytes each, from where `find` reads two, and there are
        // four more at the ends.
        unsafe {
            let mut at = _mm512_min_epu32(at, _mm512_set1_epi32(table.last.cast_signed()));
            let half = _mm512_set1_epi32(0xffff);
            if !table.pages.is_empty() {
                let shift = _mm_cvtsi32_si128(table.shift.cast_signed());
                let page = _mm512_srl_epi32(at, shift);
                let page = _mm512_i32gather_epi32::<2>(page, table.pages.as_ptr().cast());
                let page = _mm512_sll_epi32(_mm512_and_si512(page, half), shift);
                let low = _mm512_set1_epi32((1 << table.shift) - 1);
                at = _mm512_or_si512(page, _mm512_and_si512(at, low));
            }
            _mm512_and_si512(_mm512_i32gather_epi32::<2>(at, table.items.as_ptr().cast()), half)
        }
    }

    impl Kernel for Avx512 {
        #[inline(always)]
        fn extract(self, word: u64, mask: u64) -> u64 {
            // SAFETY: an `Avx512` exists in `run_avx512` only.
            unsafe { _pext_u64(word, mask) }
        }

        #[inline(always)]
        fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32 {
            // SAFETY: as above; a block has eight values and eight masks, and is aligned.
            unsafe {
                let key = _mm512_broadcast_i64x2(_mm_set_epi64x(key[1].cast_signed(), key[0].cast_signed()));
                let value = _mm512_load_si512(block.values.as_ptr().cast());
                let mask = _mm512_load_si512(block.masks.as_ptr().cast());
                let words = u32::from(_mm512_cmpeq_epi64_mask(_mm512_and_si512(key, mask), value));
                words & words >> 1 & 0x55
            }
        }

        #[inline(always)]
        fn label<const G: usize>(
            self,
            table: &Paged,
            words: &[u64; G],
            (shift, mask): (u32, u32),
            labels: &mut [u32; G],
        ) {
            if G < 16 {
                // Eight loads take no longer than a gather, and the first is there sooner.
                return Portable.label(table, words, (shift, mask), labels);
            }
            let (words, _) = words.as_chunks::<16>();
            let (labels, _) = labels.as_chunks_mut::<16>();
            for (words, labels) in words.iter().zip(labels) {
                // SAFETY: as above; sixteen words are 128 bytes, as many labels 64.
                unsafe {
                    let half = |at: usize| {
                        let words = _mm512_loadu_si512(words.as_ptr().add(at).cast());
                        _mm512_cvtepi64_epi32(_mm512_srl_epi64(words, _mm_cvtsi32_si128(shift.cast_signed())))
                    };
                    let at = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(0)), half(8));
                    let at = _mm512_and_si512(at, _mm512_set1_epi32(mask.cast_signed()));
                    _mm512_storeu_si512(labels.as_mut_ptr().cast(), sixteen(table, at));
                }
            }
        }

        #[inline(always)]
        fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
            if G < 16 {
                return Portable.join(table, scale, numbers, fellows);
            }
            let (numbers, _) = numbers.as_chunks_mut::<16>();
            let (fellows, _) = fellows.as_chunks::<16>();
            for (numbers, fellows) in numbers.iter_mut().zip(fellows) {
                // SAFETY: as above; sixteen numbers are 64 bytes.
                unsafe {
                    let at = _mm512_loadu_si512(numbers.as_ptr().cast());
                    let at = _mm512_mullo_epi32(at, _mm512_set1_epi32(scale.cast_signed()));
                    let at = _mm512_add_epi32(at, _mm512_loadu_si512(fellows.as_ptr().cast()));
                    _mm512_storeu_si512(numbers.as_mut_ptr().cast(), sixteen(table, at));
                }
            }
        }

        type Meet = __m512i;

        #[inline(always)]
        fn line(self, line: &Line) -> __m512i {
            // SAFETY: as above; a line is 64 bytes, and aligned.
            unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
        }

        #[inline(always)]
        fn meet(self, others: __m512i, line: &Line) -> __m512i {
            // SAFETY: as above; a line is 64 bytes, and aligned.
            unsafe { _mm512_and_si512(others, _mm512_load_si512(line.0.as_ptr().cast())) }
        }

        #[inline(always)]
        fn first_bit(self, of: __m512i) -> u32 {
            // SAFETY: as above.
            unsafe {
                let words = _mm512_test_epi64_mask(of, of);
                if words == 0 {
                    return LINE_BITS;
                }
                let first = _mm512_maskz_compress_epi64(words, of);
                let first = _mm_cvtsi128_si64(_mm512_castsi512_si128(first)).cast_unsigned();
                64 * words.trailing_zeros() + first.trailing_zeros()
            }
        }

        #[inline(always)]
        fn prefetch<T>(self, of: &[T], at: usize) {
            prefetch(of, at, 0);
        }

        #[inline(always)]
        fn prefetch_end<T>(self, of: &[T], at: usize) {
            prefetch(of, at, size_of::<T>() - 1);
        }
    }
}

#[cfg(test)]
mod tests;
