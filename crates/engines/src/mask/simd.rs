// SPDX-License-Identifier: Apache-2.0
//! Inner loops of trees and labels, and the operations they need from a core. Constructors check all indices,
//! so that lookups need no bounds checks.
#![allow(unsafe_code)]

use crate::NONE;
use crate::simd::Level;

/// Number of rules in a block.
pub(super) const LANES: usize = 4;

/// Maximum number of words in a dense key.
pub(super) const DENSE_MAX: usize = 8;

/// Number of words of a dense key that a block compares.
pub(super) const COMPARED: usize = 2;

/// First dense words of four rules: values, then masks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(super) struct Block {
    pub values: [u64; LANES * COMPARED],
    pub masks: [u64; LANES * COMPARED],
}

impl Block {
    /// A block that no key matches.
    pub const EMPTY: Self = Self { values: [1; LANES * COMPARED], masks: [0; LANES * COMPARED] };
}

/// A node or a leaf.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Entry {
    /// Mask of the tree word's bits that select a child, or 0 for a leaf.
    pub mask: u64,
    /// Index of the first child, or of the leaf itself.
    pub next: u32,
    /// First block of a leaf (low [`MORE_SHIFT`] bits) and number of further blocks (high bits).
    pub leaf: u32,
}

/// Position of the number of further blocks in `Entry::leaf`.
pub(super) const MORE_SHIFT: u32 = 27;

impl Entry {
    /// Returns the index of the next entry, or of the leaf itself.
    #[inline(always)]
    fn follow<K: Kernel>(&self, kernel: K, word: u64) -> u32 {
        self.next + kernel.extract(word, self.mask) as u32
    }

    /// Returns the indices of the leaf's blocks.
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
    /// Slot of each rule in a block, or [`NONE`]; block 0 has no rules.
    slots: Vec<[u32; LANES]>,
}

impl Nodes {
    /// Creates the nodes. Returns `None` if any entry leads out of bounds.
    pub fn new(entries: Vec<Entry>, blocks: Vec<Block>, slots: Vec<[u32; LANES]>) -> Option<Self> {
        let leads = |entry: &Entry| {
            let last = u64::from(entry.next) + (1u64 << entry.mask.count_ones().min(32)) - 1;
            last < entries.len() as u64 && *entry.blocks().end() < blocks.len()
        };
        let sound =
            entries.iter().all(leads) && slots.len() == blocks.len() && slots.first() == Some(&[NONE; LANES]);
        sound.then_some(Self { entries, blocks, slots })
    }

    /// Follows the words of keys from `root` to leaves, in at most `depth` steps.
    #[inline(always)]
    pub fn descend<K: Kernel>(&self, kernel: K, root: u32, depth: u32, words: &[u64], leaves: &mut [u32]) {
        let root = self.entries[root as usize];
        for (leaf, word) in leaves.iter_mut().zip(words) {
            *leaf = root.follow(kernel, *word);
            kernel.prefetch(&self.entries, *leaf as usize);
        }
        for _ in 1..depth {
            for (leaf, word) in leaves.iter_mut().zip(words) {
                // SAFETY: `new` has checked that each entry, including the root, leads to valid entries only.
                let entry = unsafe { self.entries.get_unchecked(*leaf as usize) };
                *leaf = entry.follow(kernel, *word);
                kernel.prefetch(&self.entries, *leaf as usize);
            }
        }
        for leaf in leaves {
            // SAFETY: `new` has checked that each entry leads to valid entries only.
            let entry = unsafe { self.entries.get_unchecked(*leaf as usize) };
            *leaf = entry.leaf;
            let first = *entry.blocks().start();
            kernel.prefetch(&self.blocks, first);
            kernel.prefetch_end(&self.blocks, first);
            kernel.prefetch(&self.slots, first);
        }
    }

    /// Returns the first rule of a leaf's only block that matches a key in the compared words, or [`NONE`].
    #[inline(always)]
    pub fn first<K: Kernel>(&self, kernel: K, leaf: u32, key: [u64; COMPARED]) -> u32 {
        let Some(block) = self.blocks.get(leaf as usize) else { return NONE };
        let found = kernel.suiting(block, key);
        let lane = found.trailing_zeros() as usize / 2 % LANES;
        let at = if found == 0 { 0 } else { leaf as usize };
        // SAFETY: `new` has checked that `slots` has one row per block and at least one. `at` is 0 or the
        // index of a block.
        unsafe { self.slots.get_unchecked(at)[lane] }
    }

    /// Returns the first rule of a leaf that matches a key in the compared words and is `wanted`, or
    /// [`NONE`].
    ///
    /// The `while` loops are inlined. Iterators would become calls to code compiled without the kernel's
    /// instructions.
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

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>() + self.blocks.len() * (size_of::<Block>() + 4 * LANES)
    }
}

/// 512 bits of a vector, one for each rule.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u64; 8]);

/// Number of bits in a line.
pub(super) const LINE_BITS: u32 = 512;

/// Selects bits of a word: shifts the word right, then applies the mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub shift: u32,
    pub mask: u32,
}

/// A table of numbers below 2^16, in which equal pages are stored once. The pages that are often read then
/// stay in the L1 cache.
#[derive(Debug)]
pub(super) struct Paged {
    /// Index of each page among the stored pages, or empty if all pages are stored in order. Two unused
    /// elements follow for 4-byte reads.
    pages: Vec<u16>,
    /// Entries of the stored pages. Two unused elements follow.
    items: Vec<u16>,
    /// Binary logarithm of the number of entries in a page.
    shift: u32,
    /// Index of the last entry.
    last: u32,
}

impl Paged {
    /// Creates a table of `entries` entries. `pages` has the index of each page of `1 << shift` entries, and
    /// is empty for a table without pages. Returns `None` if there are no entries, or if one of them is out
    /// of bounds in `items`.
    pub fn new(mut pages: Vec<u16>, mut items: Vec<u16>, shift: u32, entries: usize) -> Option<Self> {
        // Gathers take indices as signed numbers.
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

    /// Returns the entry at `at`, or the last entry if `at` is beyond the end.
    #[inline(always)]
    fn find(&self, at: u32) -> u32 {
        let mut at = at.min(self.last) as usize;
        // SAFETY: only `new` creates a `Paged`. It has checked that `pages` covers all entries up to `last`,
        // and that each page is complete in `items`. `at` is limited to `last`.
        unsafe {
            if !self.pages.is_empty() {
                let page = *self.pages.get_unchecked(at >> self.shift);
                at = usize::from(page) << self.shift | at & ((1 << self.shift) - 1);
            }
            u32::from(*self.items.get_unchecked(at))
        }
    }

    /// Looks up the part of each word that `cut` selects.
    #[inline(always)]
    fn find_parts<const G: usize>(&self, words: &[u64; G], cut: Cut, found: &mut [u32; G]) {
        for (word, found) in words.iter().zip(found) {
            *found = self.find(word.wrapping_shr(cut.shift) as u32 & cut.mask);
        }
    }

    /// Replaces each number by the entry at index `number * scale + fellow`, where `fellow` is the element of
    /// `fellows` at the same position.
    #[inline(always)]
    fn find_joined<const G: usize>(&self, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
        for (number, fellow) in numbers.iter_mut().zip(fellows) {
            *number = self.find(number.wrapping_mul(scale).wrapping_add(*fellow));
        }
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        (self.pages.len() + self.items.len()) * 2
    }
}

/// Vectors of all labels. A label's vector has a bit for each rule that the label matches.
#[derive(Debug)]
pub(super) struct Vectors {
    lines: Vec<Line>,
    /// Number of lines in a vector.
    length: u32,
    /// Index of the first line of each source's vectors.
    bases: Vec<u32>,
}

/// Maximum number of sources of labels.
pub(super) const SOURCES_MAX: usize = DENSE_MAX * 4;

/// Labels of a group, source by source.
pub(super) type Found<const G: usize> = [[u32; G]; SOURCES_MAX];

/// Vectors are prefetched only if there are more lines than this, because fewer lines stay in a core's
/// private cache.
const NEAR_LINES: usize = 1 << 12;

impl Vectors {
    /// Creates the vectors. Returns `None` if there are no lines or too many lines or sources.
    pub fn new(lines: Vec<Line>, length: u32, bases: Vec<u32>) -> Option<Self> {
        let sound = bases.len() <= SOURCES_MAX && 0 < length && length as usize <= lines.len();
        (sound && u32::try_from(lines.len()).is_ok()).then_some(Self { lines, length, bases })
    }

    /// Replaces a source's labels by the indices of the first lines of their vectors.
    #[inline(always)]
    pub fn starts<const G: usize>(&self, source: usize, labels: &mut [u32; G]) {
        let base = self.bases.get(source).copied().unwrap_or_default();
        labels.iter_mut().for_each(|label| *label = base + *label * self.length);
    }

    /// For each of the `len` keys, ANDs the bit vectors at the key's `starts`, and calls `found` with the
    /// first set bit that is `wanted`.
    ///
    /// `living` returns the mask of the wanted bits of a line.
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

    /// Finds the first common and wanted bit of each key. [`Vectors::lookup`] has prefetched the vectors.
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
        // The compiler unrolls the loop for the usual numbers of sources.
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
        // SAFETY: the start is limited to `last`, after which `lines` has a whole vector of `length` lines.
        let vector = |start: u32| unsafe { self.lines.as_ptr().add((start as usize).min(last)) };
        #[allow(clippy::needless_range_loop, reason = "`at` indexes the starts of every source")]
        'keys: for at in 0..len {
            let known: [*const Line; N] = std::array::from_fn(|nth| vector(starts[nth][at]));
            for line in 0..self.length {
                let of = |nth: usize| {
                    let first = match known.get(nth) {
                        Some(first) => *first,
                        None => vector(starts[nth][at]),
                    };
                    // SAFETY: `first` is the start of a whole vector, and `line` is below its length.
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

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

/// Operations of a core. A kernel with special instructions exists only inside [`Width::run`], which checks
/// for them.
pub(super) trait Kernel: Copy {
    /// Returns the bits of `word` selected by a mask, packed at the lower end.
    fn extract(self, word: u64, mask: u64) -> u64;

    /// Returns the rules of a block that a key matches in the compared words, as bits 0, 2, 4 and 6.
    fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32;

    /// Looks up each word of a group in a table. The index is the part of the word that `cut` selects.
    #[inline(always)]
    fn label<const G: usize>(self, table: &Paged, words: &[u64; G], cut: Cut, labels: &mut [u32; G]) {
        table.find_parts(words, cut, labels);
    }

    /// Replaces each number of a group by a table entry; see [`Paged::find_joined`].
    #[inline(always)]
    fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
        table.find_joined(scale, numbers, fellows);
    }

    /// Type of the intersection of lines.
    type Meet: Copy;

    /// Loads a line.
    fn line(self, line: &Line) -> Self::Meet;

    /// Returns the intersection with another line.
    fn meet(self, others: Self::Meet, line: &Line) -> Self::Meet;

    /// Returns the first bit that is set, or [`LINE_BITS`].
    fn first_bit(self, of: Self::Meet) -> u32;

    /// Prefetches the cache line of an address, which may be out of bounds.
    #[inline(always)]
    fn prefetch_line(self, _: *const u8) {}

    /// Prefetches the first cache line of element `at`, which may be out of bounds.
    #[inline(always)]
    fn prefetch<T>(self, of: &[T], at: usize) {
        self.prefetch_line(of.as_ptr().wrapping_add(at).cast());
    }

    /// Prefetches the last cache line of element `at`, which may be out of bounds.
    #[inline(always)]
    fn prefetch_end<T>(self, of: &[T], at: usize) {
        self.prefetch_line(of.as_ptr().wrapping_add(at).cast::<u8>().wrapping_add(size_of::<T>() - 1));
    }
}

/// Work that runs with a kernel.
pub(super) trait Work {
    /// Does the work. Must be inlined, so that it is compiled with the kernel's instructions.
    fn run<K: Kernel>(self, kernel: K);
}

/// Kernel without special instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel for Portable {
    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // Copies each run of consecutive mask bits in one step, because most masks have few runs.
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
}

/// Level of instructions for choosing a kernel. The core supports this level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width(Level);

impl Width {
    /// Returns the given level, or the core's highest level if it is lower.
    pub fn new(level: Level) -> Self {
        Self(level.min(Level::found()))
    }

    /// Runs `work` with the best kernel of the level.
    #[inline]
    pub fn run(self, work: impl Work) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Width`, and it has limited the level to the core's instructions.
            Level::Avx512 => unsafe { wide::run_avx512(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Width`, and it has limited the level to the core's instructions.
            Level::Avx2 => unsafe { wide::run_avx2(work) },
            _ => work.run(Portable),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Block, COMPARED, Cut, Kernel, LANES, LINE_BITS, Line, Paged, Portable, Work};
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub struct Avx2(());
    /// Kernel with AVX-512. It contains an [`Avx2`].
    #[derive(Clone, Copy)]
    pub struct Avx512(Avx2);

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub unsafe fn run_avx2(work: impl Work) {
        work.run(Avx2(()));
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512dq")]
    pub unsafe fn run_avx512(work: impl Work) {
        work.run(Avx512(Avx2(())));
    }

    // Gathers of eight entries are not faster than loads, so portable code reads the tables.
    impl Kernel for Avx2 {
        #[inline(always)]
        fn extract(self, word: u64, mask: u64) -> u64 {
            // SAFETY: an `Avx2` exists only in `run_avx2`, whose caller has checked for BMI2.
            unsafe { _pext_u64(word, mask) }
        }

        #[inline(always)]
        fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32 {
            // SAFETY: an `Avx2` exists only in `run_avx2`, whose caller has checked for AVX2. `at` is 0 or 4,
            // so each load reads four of a block's eight values or masks. Blocks are aligned to 128 bytes.
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
        fn prefetch_line(self, place: *const u8) {
            // SAFETY: a prefetch reads nothing visible to the program, so any address is allowed.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
        }
    }

    /// Looks up sixteen entries; see [`Paged::find`].
    ///
    /// # Safety
    /// The core must support AVX-512.
    #[inline(always)]
    unsafe fn sixteen(table: &Paged, at: __m512i) -> __m512i {
        // SAFETY: the caller guarantees AVX-512. `at` is limited to `last`, as in [`Paged::find`], and each
        // gather reads four bytes where `find` reads two. `Paged::new` puts two unused elements after both
        // arrays.
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
            self.0.extract(word, mask)
        }

        #[inline(always)]
        fn suiting(self, block: &Block, key: [u64; COMPARED]) -> u32 {
            // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512. A block
            // has 64 bytes of values and 64 bytes of masks, and is aligned to 128 bytes.
            unsafe {
                let key = _mm512_broadcast_i64x2(_mm_set_epi64x(key[1].cast_signed(), key[0].cast_signed()));
                let value = _mm512_load_si512(block.values.as_ptr().cast());
                let mask = _mm512_load_si512(block.masks.as_ptr().cast());
                let words = u32::from(_mm512_cmpeq_epi64_mask(_mm512_and_si512(key, mask), value));
                words & words >> 1 & 0x55
            }
        }

        #[inline(always)]
        fn label<const G: usize>(self, table: &Paged, words: &[u64; G], cut: Cut, labels: &mut [u32; G]) {
            if G < 16 {
                // Eight loads take no longer than a gather, and the first result is available sooner.
                return table.find_parts(words, cut, labels);
            }
            let (words, _) = words.as_chunks::<16>();
            let (labels, _) = labels.as_chunks_mut::<16>();
            for (words, labels) in words.iter().zip(labels) {
                // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512.
                // `words` is an array of 128 bytes (two loads), and `labels` is an array of 64 bytes.
                unsafe {
                    let half = |at: usize| {
                        let words = _mm512_loadu_si512(words.as_ptr().add(at).cast());
                        let shift = _mm_cvtsi32_si128(cut.shift.cast_signed());
                        _mm512_cvtepi64_epi32(_mm512_srl_epi64(words, shift))
                    };
                    let at = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(0)), half(8));
                    let at = _mm512_and_si512(at, _mm512_set1_epi32(cut.mask.cast_signed()));
                    _mm512_storeu_si512(labels.as_mut_ptr().cast(), sixteen(table, at));
                }
            }
        }

        #[inline(always)]
        fn join<const G: usize>(self, table: &Paged, scale: u32, numbers: &mut [u32; G], fellows: &[u32; G]) {
            if G < 16 {
                return table.find_joined(scale, numbers, fellows);
            }
            let (numbers, _) = numbers.as_chunks_mut::<16>();
            let (fellows, _) = fellows.as_chunks::<16>();
            for (numbers, fellows) in numbers.iter_mut().zip(fellows) {
                // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512.
                // `numbers` and `fellows` are arrays of 64 bytes.
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
            // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512. A line
            // is 64 aligned bytes.
            unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
        }

        #[inline(always)]
        fn meet(self, others: __m512i, line: &Line) -> __m512i {
            // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512. A line
            // is 64 aligned bytes.
            unsafe { _mm512_and_si512(others, _mm512_load_si512(line.0.as_ptr().cast())) }
        }

        #[inline(always)]
        fn first_bit(self, of: __m512i) -> u32 {
            // SAFETY: an `Avx512` exists only in `run_avx512`, whose caller has checked for AVX-512. No
            // memory is accessed.
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
        fn prefetch_line(self, place: *const u8) {
            self.0.prefetch_line(place);
        }
    }
}

#[cfg(test)]
mod tests;
