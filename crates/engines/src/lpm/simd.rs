// SPDX-License-Identifier: Apache-2.0
//! Vector versions of the lookup. AVX2 runs the portable code, vectorized by the compiler. The AVX-512 code
//! processes 8 rows, 16 values in a trie, or one node of a tree at a time, without data-dependent branches.
#![allow(unsafe_code)]

use super::Prefixes;
use crate::simd::Level;

/// Instructions to use. Only [`Kernel::new`] creates a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    level: Level,
}

impl Kernel {
    /// Returns the kernel for a level, or for a lower level if the core lacks instructions.
    pub fn new(level: Level) -> Self {
        Self { level: level.min(Level::found()).min(most()) }
    }

    /// Looks up at most [`super::BURST`] keys; see [`Prefixes::each`].
    #[inline]
    pub fn look_up(self, prefixes: &Prefixes, rows: &[u64], numbers: &mut [u32]) {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Kernel`, and it has limited the level to the core's instructions.
            Level::Avx512 => unsafe { wide::look_up(prefixes, rows, numbers) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Kernel`, and it has limited the level to the core's instructions.
            Level::Avx2 => unsafe { half::look_up(prefixes, rows, numbers) },
            _ => prefixes.each(rows, numbers, super::forest::count),
        }
    }
}

/// Returns the highest usable level. The AVX-512 code also needs VPOPCNTDQ.
#[cfg(target_arch = "x86_64")]
fn most() -> Level {
    if is_x86_feature_detected!("avx512vpopcntdq") { Level::Avx512 } else { Level::Avx2 }
}

#[cfg(not(target_arch = "x86_64"))]
fn most() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
mod half {
    use super::super::forest::count;
    use super::Prefixes;

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn look_up(prefixes: &Prefixes, rows: &[u64], numbers: &mut [u32]) {
        prefixes.each(rows, numbers, count);
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::super::forest::{Forest, NODE, Node, Tree, WAYS};
    use super::super::keys::{BURST, Keys};
    use super::super::trie::{ITEM_UNIT, STEP, Trie, UNIT};
    use super::super::{Prefixes, Search};
    use crate::NONE;
    use std::arch::x86_64::*;

    /// Maximum number of keys that are looked up one by one instead of together.
    const FEW: usize = 4;

    /// Result of reading sixteen rows: two flags and the field of each row.
    #[derive(Clone, Copy)]
    struct Rows {
        ours: u16,
        present: u16,
        /// First bits of the fields, left-aligned.
        high: [__m512i; 2],
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    pub fn look_up(prefixes: &Prefixes, rows: &[u64], numbers: &mut [u32]) {
        match numbers.len() {
            0..=FEW => prefixes.each(rows, numbers, |node, value| count(node, value)),
            len if len <= 16 => together::<1>(prefixes, rows, numbers),
            _ => together::<2>(prefixes, rows, numbers),
        }
    }

    /// Looks up at most `16 * V` keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    fn together<const V: usize>(prefixes: &Prefixes, rows: &[u64], numbers: &mut [u32]) {
        let len = numbers.len().min(16 * V).min(rows.len() / prefixes.keys.words);
        let mut seen = [Rows { ours: 0, present: 0, high: [_mm512_setzero_si512(); 2] }; V];
        let mut groups = [_mm512_setzero_si512(); V];
        for v in 0..V {
            seen[v] = read(&prefixes.keys, rows, 16 * v, len.saturating_sub(16 * v).min(16));
            if prefixes.others.is_some() {
                let lanes = ((1u32 << len.saturating_sub(16 * v).min(16)) - 1) as u16;
                // SAFETY: the load is masked to the elements of `numbers` from `16 * v` on, because `len` is
                // at most its length.
                groups[v] = unsafe { _mm512_maskz_loadu_epi32(lanes, numbers.as_ptr().add(16 * v).cast()) };
                let known = _mm512_cmpneq_epi32_mask(groups[v], _mm512_set1_epi32(-1));
                seen[v].ours &= known;
                seen[v].present &= known;
            }
        }
        // Bitmap of the rows that lack the field but match otherwise.
        let mut absent = 0u32;
        for (v, seen) in seen.iter().enumerate() {
            absent |= u32::from(seen.ours & !seen.present) << (16 * v);
        }
        let mut wholes = [NONE; BURST];
        while absent != 0 {
            let at = absent.trailing_zeros() as usize;
            let group = if prefixes.others.is_some() { numbers[at] } else { 0 };
            wholes[at] = prefixes.wholes[group as usize];
            absent &= absent - 1;
        }
        match &prefixes.search {
            Search::Trie(trie) => {
                descend(trie, prefixes.others.is_some(), &groups, &seen, &wholes, &mut numbers[..len])
            }
            Search::Forest(forest) => climb(prefixes, forest, rows, &seen, &wholes, &mut numbers[..len]),
        }
    }

    /// Reads up to sixteen rows; see [`Keys::read`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn read(keys: &Keys, rows: &[u64], from: usize, len: usize) -> Rows {
        let words = keys.words;
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let steps = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(words as i32));
        let each = |word: u64| _mm512_set1_epi64(word.cast_signed());
        let pairs = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let mut seen = Rows { ours: 0, present: 0, high: [_mm512_setzero_si512(); 2] };
        for block in 0..2 {
            let all = ((1u32 << len.saturating_sub(8 * block).min(8)) - 1) as u8;
            let (mut ours, mut present) = (all, all);
            let mut first = _mm512_setzero_si512();
            for column in &keys.columns {
                // SAFETY: `all` has a bit for each row of this block that is within `rows`, and `Keys::new`
                // keeps `column.word` below `words`. The full loads are used only for eight rows of two
                // words. Nothing is read if there is no row.
                let word = unsafe {
                    let from = rows.as_ptr().wrapping_add((from + 8 * block) * words);
                    if words == 2 && all == u8::MAX {
                        let low = _mm512_loadu_si512(from.cast());
                        let high = _mm512_loadu_si512(from.add(8).cast());
                        let places = _mm512_add_epi64(pairs, _mm512_set1_epi64(column.word as i64));
                        _mm512_permutex2var_epi64(low, places, high)
                    } else {
                        let from = from.wrapping_add(column.word).cast();
                        _mm512_mask_i32gather_epi64::<8>(_mm512_setzero_si512(), all, steps, from)
                    }
                };
                let (mask, needed) = (each(column.mask), each(column.present));
                ours = _mm512_mask_cmpeq_epi64_mask(ours, _mm512_and_si512(word, mask), each(column.value));
                present = _mm512_mask_cmpeq_epi64_mask(present, _mm512_and_si512(word, needed), needed);
                let left = _mm512_sll_epi64(word, _mm_cvtsi32_si128(column.left as i32));
                first = _mm512_or_si512(first, _mm512_and_si512(left, each(column.field)));
            }
            seen.ours |= u16::from(ours) << (8 * block);
            seen.present |= u16::from(present & ours) << (8 * block);
            seen.high[block] = first;
        }
        seen
    }

    /// Finds the numbers of values in tries; see [`Trie::find`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    fn descend<const V: usize>(
        trie: &Trie,
        grouped: bool,
        groups: &[__m512i; V],
        seen: &[Rows; V],
        wholes: &[u32; BURST],
        numbers: &mut [u32],
    ) {
        // Each pass prefetches the data of the next pass, so that cache misses overlap.
        let mut steps = roots(trie, grouped, groups, seen);
        let bits = first_items(trie, seen, &steps);
        let items = items_below(trie, seen, &mut steps.rest, &bits);
        for v in 0..V {
            let some = _mm512_mask_cmpneq_epi32_mask(seen[v].present, items[v], each(trie.none));
            let lanes = ((1u32 << numbers.len().saturating_sub(16 * v).min(16)) - 1) as u16;
            // SAFETY: `wholes` has 32 elements and `v` is at most 1. The store is masked to the elements of
            // `numbers` from `16 * v` on.
            unsafe {
                let wholes = _mm512_loadu_si512(wholes.as_ptr().add(16 * v).cast());
                let found = _mm512_mask_mov_epi32(wholes, some, items[v]);
                _mm512_mask_storeu_epi32(numbers.as_mut_ptr().wrapping_add(16 * v).cast(), lanes, found);
            }
        }
    }

    /// Result of a trie's root for each value.
    struct Steps<const V: usize> {
        /// Remaining bits of the value after the root's bits, left-aligned.
        rest: [__m512i; V],
        /// Number of the node.
        nodes: [__m512i; V],
        /// Position of the first item of the root's word, from which the node's offset counts.
        bases: [__m512i; V],
        /// Index of the value's place in the node.
        inner: [__m512i; V],
    }

    /// Finds the node of each value in the root's bitmap.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    fn roots<const V: usize>(
        trie: &Trie,
        grouped: bool,
        groups: &[__m512i; V],
        seen: &[Rows; V],
    ) -> Steps<V> {
        let zero = _mm512_setzero_si512();
        let mut steps = Steps { rest: [zero; V], nodes: [zero; V], bases: [zero; V], inner: [zero; V] };
        for v in 0..V {
            let lanes = seen[v].present;
            let [low, high] = seen[v].high;
            let value = narrow(_mm512_srli_epi64::<32>(low), _mm512_srli_epi64::<32>(high));
            let (at, bits) = if grouped {
                // SAFETY: `lanes` excludes rows without a group. `Exact` returns numbers below the number of
                // groups, and `Trie::new` makes a root for each group.
                unsafe {
                    let from = trie.roots.as_ptr();
                    let at = _mm512_mask_i32gather_epi32::<8>(zero, lanes, groups[v], from.cast());
                    let from = (&raw const (*from).bits).cast();
                    (at, _mm512_mask_i32gather_epi32::<8>(zero, lanes, groups[v], from))
                }
            } else {
                (each(trie.roots[0].at), each(trie.roots[0].bits))
            };
            let place = _mm512_srlv_epi32(value, _mm512_sub_epi32(each(u32::BITS), bits));
            let word = _mm512_add_epi32(at, _mm512_srli_epi32::<6>(place));
            steps.rest[v] = _mm512_sllv_epi32(value, bits);
            // SAFETY: `place` has as many bits as the root, and `Draft::add` makes a word of two 64-bit
            // halves for each 64 places.
            let ([low, high], infos) = unsafe {
                let word = _mm512_slli_epi32::<1>(word);
                let from = trie.words.as_ptr().cast::<u64>();
                (gather(lanes, word, from), gather(lanes, word, from.add(1)))
            };
            // Shifts the bit of the value's place to bit 63.
            let [low_up, high_up] = lengthen(_mm512_andnot_si512(place, each(63)));
            let (low, high) = (_mm512_sllv_epi64(low, low_up), _mm512_sllv_epi64(high, high_up));
            let own = u16::from(_mm512_movepi64_mask(low)) | u16::from(_mm512_movepi64_mask(high)) << 8;
            let rank = narrow(_mm512_popcnt_epi64(low), _mm512_popcnt_epi64(high));
            let first = narrow(infos[0], infos[1]);
            steps.bases[v] = narrow(_mm512_srli_epi64::<32>(infos[0]), _mm512_srli_epi64::<32>(infos[1]));
            let node = _mm512_add_epi32(_mm512_add_epi32(first, rank), each(NONE));
            // Unused elements read node 0, which always exists.
            steps.nodes[v] = _mm512_maskz_mov_epi32(lanes, node);
            steps.inner[v] = _mm512_mask_srli_epi32::<{ u32::BITS - STEP }>(each(63), own, steps.rest[v]);
            ask(trie.maps.as_ptr().cast(), steps.nodes[v], size_of::<u64>());
        }
        steps
    }

    /// Position and size of the item of each value, in bits.
    struct Bits<const V: usize> {
        at: [__m512i; V],
        widths: [__m512i; V],
    }

    /// Finds the position of each value's item in the front.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    fn first_items<const V: usize>(trie: &Trie, seen: &[Rows; V], steps: &Steps<V>) -> Bits<V> {
        let zero = _mm512_setzero_si512();
        let mut bits = Bits { at: [zero; V], widths: [zero; V] };
        for (v, rows) in seen.iter().enumerate() {
            let lanes = rows.present;
            // SAFETY: `rank` is at most the number of bits in the word's `starts`, and `Draft::add` makes a
            // node for each. Each node has a map and an offset, and one more offset follows for the 4-byte
            // read.
            let (maps, offset) = unsafe {
                let offsets = trie.offsets.as_ptr().cast();
                let maps = gather(lanes, steps.nodes[v], trie.maps.as_ptr());
                (maps, _mm512_mask_i32gather_epi32::<2>(zero, lanes, steps.nodes[v], offsets))
            };
            let offset = _mm512_and_si512(offset, each(0xffff));
            let first = _mm512_slli_epi32::<{ ITEM_UNIT.ilog2() }>(_mm512_add_epi32(steps.bases[v], offset));
            let (rank, width) = rank_of(trie, maps, steps.inner[v]);
            bits.at[v] = _mm512_add_epi32(first, _mm512_mullo_epi32(rank, width));
            bits.widths[v] = width;
            ask(trie.items.as_ptr(), _mm512_srli_epi32::<3>(_mm512_maskz_mov_epi32(lanes, bits.at[v])), 1);
        }
        bits
    }

    /// Returns the item of each value. While an item is the position of a node below the front, the item that
    /// the value's next bits select in that node replaces it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
    fn items_below<const V: usize>(
        trie: &Trie,
        seen: &[Rows; V],
        rest: &mut [__m512i; V],
        bits: &Bits<V>,
    ) -> [__m512i; V] {
        let zero = _mm512_setzero_si512();
        let none = each(trie.none);
        let (mut items, mut active) = ([zero; V], [0u16; V]);
        for v in 0..V {
            let lanes = seen[v].present;
            // SAFETY: `Draft::trie` stores an item for each bit of a node's map, and 8 bytes of padding
            // after the last.
            let word = unsafe {
                let byte = _mm512_srli_epi32::<3>(bits.at[v]);
                _mm512_mask_i32gather_epi32::<1>(zero, lanes, byte, trie.items.as_ptr().cast())
            };
            items[v] = item_of(word, bits.at[v], bits.widths[v]);
            active[v] = _mm512_mask_cmpgt_epu32_mask(lanes, items[v], none);
        }
        while active != [0; V] {
            for v in 0..V {
                let lanes = active[v];
                rest[v] = _mm512_slli_epi32::<STEP>(rest[v]);
                let node = _mm512_sub_epi32(_mm512_sub_epi32(items[v], none), each(1));
                let node = _mm512_slli_epi32::<{ UNIT.ilog2() }>(node);
                // SAFETY: every active item is a child offset, and `Draft::trie` puts an 8-byte map, and
                // padding, at each of them in `below`.
                let maps = unsafe {
                    let from = trie.below.as_ptr();
                    let (low, high) = (_mm512_castsi512_si256(node), _mm512_extracti64x4_epi64::<1>(node));
                    [
                        _mm512_mask_i32gather_epi64::<1>(zero, lanes as u8, low, from.cast()),
                        _mm512_mask_i32gather_epi64::<1>(zero, (lanes >> 8) as u8, high, from.cast()),
                    ]
                };
                let (rank, width) = rank_of(trie, maps, _mm512_srli_epi32::<{ u32::BITS - STEP }>(rest[v]));
                let bit = _mm512_mullo_epi32(rank, width);
                // SAFETY: `Draft::trie` stores an item for each bit of the map after it, and 8 bytes of
                // padding after the last node.
                let word = unsafe {
                    let byte = _mm512_add_epi32(node, _mm512_srli_epi32::<3>(bit));
                    let from = trie.below.as_ptr().add(size_of::<u64>()).cast();
                    _mm512_mask_i32gather_epi32::<1>(zero, lanes, byte, from)
                };
                items[v] = _mm512_mask_mov_epi32(items[v], lanes, item_of(word, bit, width));
                active[v] = _mm512_mask_cmpgt_epu32_mask(lanes, items[v], none);
            }
        }
        items
    }

    /// Prefetches sixteen elements of an array. Each element is `size` bytes long.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn ask(from: *const u8, places: __m512i, size: usize) {
        let mut each = [0u32; 16];
        // SAFETY: `each` is an array of sixteen numbers, the length of the store.
        unsafe { _mm512_storeu_si512(each.as_mut_ptr().cast(), places) };
        // Reading the places back from memory is cheaper than extracting them from a vector one by one.
        for place in *std::hint::black_box(&each) {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(place as usize * size).cast());
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn each(number: u32) -> __m512i {
        _mm512_set1_epi32(number.cast_signed())
    }

    /// Returns the words at sixteen places.
    ///
    /// # Safety
    /// Each place that has a bit in `lanes` must be the index of a readable word, counted from `from`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn gather(lanes: u16, places: __m512i, from: *const u64) -> [__m512i; 2] {
        let zero = _mm512_setzero_si512();
        let (low, high) = (_mm512_castsi512_si256(places), _mm512_extracti64x4_epi64::<1>(places));
        // SAFETY: the caller guarantees a word at each place in `lanes`; other elements are not read.
        unsafe {
            [
                _mm512_mask_i32gather_epi64::<8>(zero, lanes as u8, low, from.cast()),
                _mm512_mask_i32gather_epi64::<8>(zero, (lanes >> 8) as u8, high, from.cast()),
            ]
        }
    }

    /// Returns the ranks of places in maps, counted from 0, and the widths of their items in bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq")]
    fn rank_of(trie: &Trie, [low, high]: [__m512i; 2], places: __m512i) -> (__m512i, __m512i) {
        let one = _mm512_set1_epi64(1);
        let wide = [low, high].map(|map| u16::from(_mm512_test_epi64_mask(map, one)));
        let width = _mm512_mask_mov_epi32(each(trie.width), wide[0] | wide[1] << 8, each(trie.wide));
        let [low_up, high_up] = lengthen(_mm512_sub_epi32(each(63), places));
        let low = _mm512_sllv_epi64(_mm512_or_si512(low, one), low_up);
        let high = _mm512_sllv_epi64(_mm512_or_si512(high, one), high_up);
        let rank = narrow(_mm512_popcnt_epi64(low), _mm512_popcnt_epi64(high));
        (_mm512_sub_epi32(rank, each(1)), width)
    }

    /// Returns the items from the words that contain them.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn item_of(words: __m512i, bits: __m512i, widths: __m512i) -> __m512i {
        let items = _mm512_srlv_epi32(words, _mm512_and_si512(bits, each(7)));
        _mm512_andnot_si512(_mm512_sllv_epi32(each(NONE), widths), items)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    fn lengthen(numbers: __m512i) -> [__m512i; 2] {
        let high = _mm512_extracti64x4_epi64::<1>(numbers);
        [_mm512_cvtepu32_epi64(_mm512_castsi512_si256(numbers)), _mm512_cvtepu32_epi64(high)]
    }

    /// Returns the low halves of sixteen 64-bit words.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    fn narrow(low: __m512i, high: __m512i) -> __m512i {
        let low = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(low));
        _mm512_inserti64x4::<1>(low, _mm512_cvtepi64_epi32(high))
    }

    /// Finds the numbers of the first `found.len()` values in one tree. Eight values descend together. Each
    /// pass prefetches the data of the next pass.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn climb_one(forest: &Forest, tree: Tree, values: &[u64; BURST], found: &mut [u32]) {
        let len = found.len();
        let levels = forest.levels_of(tree);
        let mut places = [0usize; BURST];
        let numbers = forest.numbers_of(tree);
        if let Some((leaves, inner)) = levels.split_last() {
            let blocks = places.as_chunks_mut::<8>().0.iter_mut().zip(values.as_chunks::<8>().0);
            for (places, values) in blocks.take(len.div_ceil(8)) {
                let mut at = [0; 8];
                for first in inner {
                    for (at, value) in at.iter_mut().zip(values) {
                        // SAFETY: `Forest::tree` fills unused keys with `u64::MAX`, which no value exceeds. A
                        // count therefore never leads past the last node of a level.
                        let node = unsafe { forest.nodes.get_unchecked(*first as usize + *at) };
                        *at = apart(*at * WAYS as usize + count(node, *value) as usize);
                    }
                }
                for (place, at) in places.iter_mut().zip(at) {
                    *place = *leaves as usize + at;
                    _mm_prefetch::<_MM_HINT_T0>(forest.nodes.as_ptr().wrapping_add(*place).cast());
                }
            }
            for (place, value) in places[..len].iter_mut().zip(values) {
                // SAFETY: `Forest::tree` fills unused keys with `u64::MAX`, so `place` is at most the last
                // leaf of the tree.
                let count = count(unsafe { forest.nodes.get_unchecked(*place) }, *value) as usize;
                *place = (*place - *leaves as usize) * NODE + count;
                _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().wrapping_add(*place).cast());
            }
        }
        for (number, place) in found.iter_mut().zip(places) {
            *number = numbers[place];
        }
    }

    /// Forces the number into its own register. In a vector of eight numbers, each number would wait for the
    /// slowest load.
    #[inline(always)]
    fn apart(mut number: usize) -> usize {
        // SAFETY: the assembly contains no instruction.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags));
        }
        number
    }

    /// Finds the numbers of values in trees; see [`Forest::find`]. Values in the same tree descend together.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn climb<const V: usize>(
        prefixes: &Prefixes,
        forest: &Forest,
        rows: &[u64],
        seen: &[Rows; V],
        wholes: &[u32; BURST],
        numbers: &mut [u32],
    ) {
        let mut values = [0; BURST];
        let mut wanted = 0u32;
        for (v, seen) in seen.iter().enumerate() {
            for (block, high) in seen.high.iter().enumerate() {
                // SAFETY: `values` has 32 words, and `16 * v + 8 * block` is at most 24.
                unsafe { _mm512_storeu_si512(values.as_mut_ptr().add(16 * v + 8 * block).cast(), *high) };
            }
            wanted |= u32::from(seen.present) << (16 * v);
        }
        let all = u32::MAX >> (BURST - numbers.len());
        if prefixes.others.is_none() {
            climb_one(forest, forest.tree_of(0), &values, numbers);
        } else {
            for at in (0..numbers.len()).filter(|at| wanted >> at & 1 != 0) {
                let tree = forest.tree_of(numbers[at]);
                numbers[at] = forest.find(tree, values[at], |node, value| count(node, value));
            }
        }
        for at in (0..numbers.len()).filter(|_| wanted != all) {
            if wanted >> at & 1 == 0 {
                numbers[at] = wholes[at];
            }
        }
        // Few intervals need bits after the first 64.
        if numbers.iter().fold(false, |any, number| any | Forest::is_second(*number)) {
            let each_row = rows.chunks_exact(prefixes.keys.words).enumerate();
            for (number, (at, row)) in numbers.iter_mut().zip(each_row) {
                if wanted >> at & 1 != 0 {
                    *number = prefixes.second(forest, *number, row, |node, value| count(node, value));
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn count(node: &Node, value: u64) -> u32 {
        // SAFETY: a `Node` is eight words, aligned to 64 bytes by its type.
        let keys = unsafe { _mm512_load_si512(node.0.as_ptr().cast()) };
        _mm512_cmplt_epu64_mask(keys, _mm512_set1_epi64(value.cast_signed())).count_ones()
    }
}
