// SPDX-License-Identifier: Apache-2.0
//! Lookups with AVX-512 and AES instructions, for rows of up to eight words. Several keys are hashed
//! together, and one instruction compares a bucket. Only rare cases branch on the data.
#![allow(unsafe_code)]

use super::columns::Columns;
use super::lines::LINE;
use super::store::{NO_SLOT_AT, ways};
use crate::hash::Seed;
use crate::hash::simd::Aes;
use crate::simd::Level;

/// Constants of the lookups in one table.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Wide {
    mask: [u64; LINE],
    /// Indices of the stored words of a row, in the layout of a bucket.
    picked: [u64; LINE],
    /// Values of the words that are not stored, and `alike`, the mask of these words, for eight successive
    /// rows.
    common: [u64; LINE * LINE],
    alike: [u64; LINE * LINE],
    /// Byte offset of the matching value's slot in a bucket, or [`NO_SLOT_AT`]. The array's index has one bit
    /// for each word of a bucket, set if the word equals the key's.
    slot_at: [u8; 256],
    pub(super) aes: Aes,
    /// Bitmap of all words of a row. `stored` is the bitmap of the stored words.
    all: u8,
    stored: u8,
    words: usize,
    /// Whether exactly two words of a row are stored, and they are adjacent.
    is_pair: bool,
    /// Whether some of the examined words are not stored.
    has_alike: bool,
}

impl Wide {
    /// Creates the constants for `columns`. Returns `None` if the core or the level lacks the instructions,
    /// or if rows have more than eight words.
    #[must_use]
    pub fn new(level: Level, columns: &Columns) -> Option<Box<Self>> {
        let (words, stored) = (columns.words(), columns.stored());
        // A bucket must fit into one cache line.
        if level < Level::Avx512 || words > LINE || stored.len() >= LINE {
            return None;
        }
        let bits = |count: usize| ((1u16 << count) - 1) as u8;
        let alike = |word: usize| if stored.contains(&word) { 0 } else { columns.mask()[word] };
        Some(Box::new(Self {
            mask: std::array::from_fn(|at| columns.mask().get(at).copied().unwrap_or(0)),
            picked: std::array::from_fn(|at| stored[at % stored.len()] as u64),
            common: std::array::from_fn(|at| columns.common()[at % words]),
            alike: std::array::from_fn(|at| alike(at % words)),
            slot_at: std::array::from_fn(|equal| slot_at(stored.len(), equal as u8)),
            aes: Aes::new(Seed::of_process())?,
            all: bits(words),
            stored: bits(stored.len()),
            words,
            is_pair: stored.len() == 2 && stored[1] == stored[0] + 1,
            has_alike: (0..words).any(|word| alike(word) != 0),
        }))
    }
}

/// Returns the byte offset, in a bucket, of the slot of the value whose words all equal the key's.
fn slot_at(words: usize, equal: u8) -> u8 {
    let ways = ways(words);
    let all = (1u8 << words) - 1;
    let way = (0..ways).find(|way| equal >> (way * words) & all == all);
    way.map_or(NO_SLOT_AT, |way| (ways * words * 8 + way * 4) as u8)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::lines::LINE;
    use super::super::pilots::{MIX, MIX_SHIFT, Pilots, SPREAD};
    use super::super::store::{GROUP, Store};
    use super::Wide;
    use crate::NONE;
    use crate::prefetch::prefetch;
    use std::arch::x86_64::{
        __m128i, __m512i, _MM_HINT_T0, _mm_loadu_si64, _mm_loadu_si128, _mm_prefetch, _mm_set_epi64x,
        _mm256_mask_storeu_epi32, _mm256_set1_epi32, _mm512_and_si512, _mm512_broadcast_i64x2,
        _mm512_castsi128_si512, _mm512_cmpeq_epi64_mask, _mm512_i64gather_epi64, _mm512_inserti64x2,
        _mm512_load_si512, _mm512_loadu_si512, _mm512_mask_loadu_epi64, _mm512_maskz_loadu_epi64,
        _mm512_maskz_mov_epi64, _mm512_mul_epu32, _mm512_or_si512, _mm512_permutex2var_epi64,
        _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setr_epi64, _mm512_setzero_si512,
        _mm512_slli_epi64, _mm512_srli_epi64, _mm512_store_si512, _mm512_storeu_si512,
        _mm512_ternarylogic_epi64, _mm512_test_epi64_mask, _mm512_xor_si512, _pext_u64,
    };
    use std::mem::MaybeUninit;

    /// Truth table of `a | (b & c)` for the ternary logic instruction.
    const OR_BOTH: i32 = 0xf8;

    /// Binary logarithm of the size of a cache line in bytes.
    const LINE_SHIFT: u32 = 6;

    /// Number of keys in one iteration of the loop.
    const STEP: usize = 8;

    /// Data of a group's keys that the first pass computes for the second: stored words, and byte offsets of
    /// buckets.
    #[repr(C, align(64))]
    struct Kept<const WORDS: usize> {
        keys: [[u64; WORDS]; GROUP],
        hashes: [u64; STEP],
        buckets: [u64; GROUP],
    }

    impl Wide {
        /// Looks up a group of at most [`GROUP`] keys.
        pub fn lookup(&self, of: &Store, keys: &[u64], slots: &mut [u32]) {
            let count = slots.len().min(GROUP).min(keys.len() / self.words.max(1));
            let (keys, slots) = (&keys[..count * self.words], &mut slots[..count]);
            if count == 0 {
                return;
            }
            // SAFETY: only `new` creates a `Wide`, and it has checked that the core has these instructions.
            // `self` was created for the columns of this store, and `keys` was cut to `count` rows above.
            unsafe {
                match of.words {
                    _ if count < STEP => self.lookup_few(of, keys, slots),
                    1 => self.lookup_short::<1, false>(of, keys, slots),
                    2 if self.is_pair => self.lookup_short::<2, true>(of, keys, slots),
                    2 => self.lookup_short::<2, false>(of, keys, slots),
                    words if words == self.words && words > 3 => self.lookup_long::<true>(of, keys, slots),
                    _ => self.lookup_long::<false>(of, keys, slots),
                }
                if self.has_alike {
                    self.strike_foreign(keys, slots);
                }
            }
            if of.has_spilled() {
                self.find_spilled(of, keys, slots);
            }
        }

        #[inline]
        fn is_foreign(&self, row: &[u64]) -> bool {
            let words = row.iter().zip(&self.common).zip(&self.alike);
            words.fold(0, |differing, ((row, common), alike)| differing | (row ^ common) & alike) != 0
        }

        #[cold]
        fn find_spilled(&self, of: &Store, keys: &[u64], slots: &mut [u32]) {
            for (row, slot) in keys.chunks_exact(self.words).zip(slots).filter(|(_, slot)| **slot == NONE) {
                if !self.is_foreign(row) {
                    let mut packed = [0; LINE];
                    for (packed, &word) in packed.iter_mut().zip(&self.picked[..of.words]) {
                        *packed = row[word as usize] & self.mask[word as usize];
                    }
                    let packed = &packed[..of.words];
                    *slot = of.find_spilled(packed, self.aes.hash(packed));
                }
            }
        }

        /// Sets the slots of foreign rows to [`NONE`]. In a foreign row, a word differs from the value that
        /// all rules require.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
        fn strike_foreign(&self, keys: &[u64], slots: &mut [u32]) {
            match self.words {
                2 => self.strike_rows::<2>(keys, slots),
                3 => self.strike_rows::<3>(keys, slots),
                4 => self.strike_rows::<4>(keys, slots),
                5 => self.strike_rows::<5>(keys, slots),
                6 => self.strike_rows::<6>(keys, slots),
                7 => self.strike_rows::<7>(keys, slots),
                _ => self.strike_rows::<8>(keys, slots),
            }
        }

        /// Sets the slots of foreign rows of `WORDS` words to [`NONE`]. Eight rows fill `WORDS` cache lines.
        /// A first pass finds out whether there are foreign rows, which are rare.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
        fn strike_rows<const WORDS: usize>(&self, keys: &[u64], slots: &mut [u32]) {
            let zero = _mm512_setzero_si512();
            let (mut common, mut alike, mut differing) = ([zero; WORDS], [zero; WORDS], [zero; WORDS]);
            for at in 0..WORDS {
                // SAFETY: both arrays have eight aligned lines, and `at` is below `WORDS`, at most 8. Their
                // content repeats every eight rows.
                unsafe {
                    common[at] = _mm512_load_si512(self.common.as_ptr().add(at * LINE).cast());
                    alike[at] = _mm512_load_si512(self.alike.as_ptr().add(at * LINE).cast());
                }
            }
            let line = |words: &[u64], at: usize| match words.get(at * LINE..) {
                // SAFETY: the match arm checks that `line` has at least 64 bytes.
                Some(line) if line.len() >= LINE => unsafe { _mm512_loadu_si512(line.as_ptr().cast()) },
                Some(line) => {
                    let all = ((1u16 << line.len()) - 1) as u8;
                    // SAFETY: the load is masked to the words of `line`. The other elements are copied from
                    // `common`, so they do not differ.
                    unsafe { _mm512_mask_loadu_epi64(common[at], all, line.as_ptr().cast()) }
                }
                None => common[at],
            };
            for eight in keys.chunks(WORDS * LINE) {
                for at in 0..WORDS {
                    let bits = _mm512_xor_si512(line(eight, at), common[at]);
                    differing[at] = _mm512_ternarylogic_epi64::<OR_BOTH>(differing[at], bits, alike[at]);
                }
            }
            let any = differing.into_iter().fold(zero, |any, differing| _mm512_or_si512(any, differing));
            if _mm512_test_epi64_mask(any, any) == 0 {
                return;
            }
            // The CPU cannot predict which rows are foreign, so masks replace branches.
            let none = _mm256_set1_epi32(NONE.cast_signed());
            let firsts = (0..8).fold(0, |firsts, row| firsts | 1u64 << (row * WORDS));
            for (eight, slots) in keys.chunks(WORDS * LINE).zip(slots.chunks_mut(LINE)) {
                let mut words = 0u64;
                for at in 0..WORDS {
                    let bits = _mm512_xor_si512(line(eight, at), common[at]);
                    words |= u64::from(_mm512_test_epi64_mask(bits, alike[at])) << (at * LINE);
                }
                // The bit of each row's first word becomes the OR of the bits of the row.
                let rows = (0..WORDS).fold(0, |rows, word| rows | words >> word);
                let rows = _pext_u64(rows, firsts) as u8 & (u8::MAX >> (LINE - slots.len()));
                // SAFETY: the store is masked to the elements of `slots`, at most eight.
                unsafe { _mm256_mask_storeu_epi32(slots.as_mut_ptr().cast(), rows, none) };
            }
        }

        /// Looks up keys with `W` stored words, one or two. With `PAIR`, two stored words are adjacent in the
        /// row.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,aes,vaes,bmi1,bmi2,popcnt")]
        fn lookup_short<const W: usize, const PAIR: bool>(
            &self,
            of: &Store,
            keys: &[u64],
            slots: &mut [u32],
        ) {
            const { assert!(W == 1 || W == 2) };
            let mut kept = MaybeUninit::<Kept<2>>::uninit();
            let kept = kept.as_mut_ptr();
            let rounds = self.aes.rounds();
            let wide = |at: usize| self.mask[self.picked[at] as usize].cast_signed();
            let mask = _mm512_broadcast_i64x2(_mm_set_epi64x(if W == 2 { wide(1) } else { 0 }, wide(0)));
            let evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            for from in steps(slots.len()) {
                // SAFETY: `steps` yields offsets of eight rows within `slots.len()` rows. `keys` has as many
                // rows, and `kept` has space for [`GROUP`].
                unsafe {
                    let rows = keys.as_ptr().add(from * self.words);
                    let row = |at: usize| self.packed::<W, PAIR>(rows.add(at * self.words));
                    let four = |at: usize| {
                        let four = _mm512_castsi128_si512(row(at));
                        let four = _mm512_inserti64x2::<1>(four, row(at + 1));
                        let four = _mm512_inserti64x2::<2>(four, row(at + 2));
                        let four = _mm512_and_si512(_mm512_inserti64x2::<3>(four, row(at + 3)), mask);
                        _mm512_storeu_si512(
                            (&raw mut (*kept).keys).cast::<u128>().add(from + at).cast(),
                            four,
                        );
                        rounds.each(four)
                    };
                    let hashes = _mm512_permutex2var_epi64(four(0), evens, four(4));
                    ask(of, hashes, (&raw mut (*kept).buckets).cast::<u64>().add(from));
                }
            }
            for (at, slot) in slots.iter_mut().enumerate() {
                // SAFETY: the loop above has stored key and bucket of every row below `slots.len()`.
                *slot = unsafe {
                    let key = (&raw const (*kept).keys).cast::<__m128i>().add(at);
                    let key = if W == 2 {
                        _mm512_broadcast_i64x2(_mm_loadu_si128(key))
                    } else {
                        _mm512_set1_epi64(*key.cast())
                    };
                    self.slot_in(of, *(&raw const (*kept).buckets).cast::<u64>().add(at), key)
                };
            }
        }

        /// Returns the stored words of a row, one or two.
        ///
        /// # Safety
        /// `row` must point to a row of `self.words` words.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn packed<const W: usize, const PAIR: bool>(&self, row: *const u64) -> __m128i {
            // SAFETY: `new` takes `picked` from the indices of the row's words, and the caller guarantees
            // that `row` points to a row.
            unsafe {
                let first = row.add(self.picked[0] as usize);
                if PAIR {
                    _mm_loadu_si128(first.cast())
                } else if W == 2 {
                    let second = row.add(self.picked[1] as usize);
                    _mm_set_epi64x((*second).cast_signed(), (*first).cast_signed())
                } else {
                    _mm_loadu_si64(first.cast())
                }
            }
        }

        /// Looks up keys with three to seven stored words. With `WHOLE`, these are all words of the row.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,aes,vaes,bmi1,bmi2,popcnt")]
        fn lookup_long<const WHOLE: bool>(&self, of: &Store, keys: &[u64], slots: &mut [u32]) {
            let mut kept = MaybeUninit::<Kept<LINE>>::uninit();
            let kept = kept.as_mut_ptr();
            let rounds = self.aes.rounds();
            let (mask, picked) = self.columns();
            for from in steps(slots.len()) {
                // SAFETY: `steps` yields offsets of eight rows within `slots.len()` rows. `keys` has as many
                // rows, and `kept` has space for [`GROUP`]. The loads are masked to the words of a row.
                unsafe {
                    let rows = keys.as_ptr().add(from * self.words);
                    for at in 0..STEP {
                        let row = _mm512_maskz_loadu_epi64(self.all, rows.add(at * self.words).cast());
                        let row = _mm512_and_si512(row, mask);
                        let packed = if WHOLE { row } else { _mm512_permutexvar_epi64(picked, row) };
                        _mm512_store_si512((&raw mut (*kept).keys).cast::<__m512i>().add(from + at), packed);
                        let key = if WHOLE { row } else { _mm512_maskz_mov_epi64(self.stored, packed) };
                        (&raw mut (*kept).hashes).cast::<u64>().add(at).write(rounds.one(key));
                    }
                    let hashes = _mm512_load_si512((&raw const (*kept).hashes).cast());
                    ask(of, hashes, (&raw mut (*kept).buckets).cast::<u64>().add(from));
                }
            }
            for (at, slot) in slots.iter_mut().enumerate() {
                // SAFETY: the loop above has stored key and bucket of every row below `slots.len()`.
                *slot = unsafe {
                    let key = _mm512_load_si512((&raw const (*kept).keys).cast::<__m512i>().add(at));
                    self.slot_in(of, *(&raw const (*kept).buckets).cast::<u64>().add(at), key)
                };
            }
        }

        /// Looks up fewer keys than [`STEP`].
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,aes,vaes,bmi1,bmi2,popcnt")]
        fn lookup_few(&self, of: &Store, keys: &[u64], slots: &mut [u32]) {
            let mut kept = [(_mm512_setzero_si512(), 0u64); STEP];
            let rounds = self.aes.rounds();
            let (mask, picked) = self.columns();
            for (row, (key, byte)) in keys.chunks_exact(self.words).zip(&mut kept) {
                // SAFETY: the load is masked to `self.words` words, the length of the row.
                let row = unsafe { _mm512_maskz_loadu_epi64(self.all, row.as_ptr().cast()) };
                *key = _mm512_permutexvar_epi64(picked, _mm512_and_si512(row, mask));
                let packed = _mm512_maskz_mov_epi64(self.stored, *key);
                let hash = if of.words > 2 { rounds.one(packed) } else { rounds.one_block(packed) };
                // SAFETY: `Pilots::group` returns a number below the number of groups, and each group has a
                // pilot.
                let pilot = unsafe { *of.pilots.pilots().as_ptr().add(of.pilots.group(hash)) };
                *byte = (of.pilots.bucket_by(hash, pilot) as u64) << LINE_SHIFT;
                prefetch(of.buckets(), *byte as usize / 8);
            }
            for ((key, byte), slot) in kept.into_iter().zip(slots) {
                // SAFETY: `bucket_by` returns a number below the number of buckets, each of which is one
                // cache line.
                *slot = unsafe { self.slot_in(of, byte, key) };
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn columns(&self) -> (__m512i, __m512i) {
            // SAFETY: both fields are arrays of 64 bytes, and aligned by the type's layout.
            unsafe {
                (_mm512_load_si512(self.mask.as_ptr().cast()), _mm512_load_si512(self.picked.as_ptr().cast()))
            }
        }

        /// Returns the slot of a key in the bucket at byte offset `byte`, or [`NONE`].
        ///
        /// # Safety
        /// `byte` must be the offset of a bucket of the store.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn slot_in(&self, of: &Store, byte: u64, key: __m512i) -> u32 {
            debug_assert!(byte as usize / 8 + LINE <= of.buckets().len());
            // SAFETY: the caller guarantees a bucket, which is one aligned cache line. `slot_at` is at most
            // [`NO_SLOT_AT`] (60), so the 4-byte read is within the line.
            unsafe {
                let bucket = of.buckets().as_ptr().cast::<u8>().add(byte as usize);
                let equal = _mm512_cmpeq_epi64_mask(_mm512_load_si512(bucket.cast()), key);
                *bucket.add(usize::from(self.slot_at[usize::from(equal)])).cast()
            }
        }
    }

    /// Returns the first key of each step in a group of at least eight keys. The last step may overlap the
    /// one before it.
    #[inline(always)]
    fn steps(count: usize) -> impl Iterator<Item = usize> {
        debug_assert!((STEP..=GROUP).contains(&count));
        (0..count.div_ceil(STEP)).map(move |step| (step * STEP).min(count - STEP))
    }

    /// Computes the buckets of eight hashes like [`Pilots::bucket`]. Stores their byte offsets at `at`, and
    /// prefetches the buckets.
    ///
    /// # Safety
    /// `at` must be valid for writes of eight numbers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn ask(of: &Store, hashes: __m512i, at: *mut u64) {
        let pilots: &Pilots = &of.pilots;
        let wide = |number: u32| _mm512_set1_epi64(i64::from(number));
        let groups = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hashes, wide(pilots.groups())));
        // SAFETY: groups are below the number of groups. `Pilots::new` puts [`PADDING`] bytes after the last
        // pilot, so the 8-byte reads are within the array.
        let pilot = unsafe { _mm512_i64gather_epi64::<1>(groups, pilots.pilots().as_ptr().cast()) };
        let spread = _mm512_mul_epu32(_mm512_and_si512(pilot, wide(0xff)), wide(SPREAD));
        let mixed = _mm512_mul_epu32(_mm512_xor_si512(_mm512_srli_epi64::<32>(hashes), spread), wide(MIX));
        let mixed = _mm512_srli_epi64::<MIX_SHIFT>(mixed);
        let bucket = _mm512_srli_epi64::<32>(_mm512_mul_epu32(mixed, wide(pilots.buckets())));
        // SAFETY: the caller guarantees space for eight numbers, and a prefetch is harmless at any address.
        // The volatile read keeps the compiler from extracting the elements from the vector, which is slower.
        unsafe {
            _mm512_storeu_si512(at.cast(), _mm512_slli_epi64::<LINE_SHIFT>(bucket));
            for byte in at.cast::<[u64; STEP]>().read_volatile() {
                _mm_prefetch::<_MM_HINT_T0>(of.buckets().as_ptr().cast::<i8>().wrapping_add(byte as usize));
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Wide {
    /// Does nothing, because no `Wide` exists on this architecture.
    pub fn lookup(&self, _: &super::store::Store, _: &[u64], _: &mut [u32]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the columns of rules that examine all of `words` words. The words in `differing` distinguish
    /// the rules.
    fn columns(words: usize, differing: &[usize]) -> Columns {
        let mut values = vec![0; 2 * words];
        differing.iter().for_each(|word| values[words + word] = 1);
        Columns::new(&vec![u64::MAX; words], &values)
    }

    #[test]
    fn two_words_are_loaded_at_once_if_they_are_adjacent() {
        for words in 2..=LINE {
            for (first, second) in
                (0..words).flat_map(|first| (first + 1..words).map(move |second| (first, second)))
            {
                let Some(wide) = Wide::new(Level::found(), &columns(words, &[first, second])) else { return };
                assert_eq!(wide.is_pair, second == first + 1, "words {first} and {second} of {words}");
            }
            for stored in [&[0][..], &[0, 1, 2]] {
                let Some(wide) = Wide::new(Level::found(), &columns(words.max(3), stored)) else { return };
                assert!(!wide.is_pair, "{stored:?} of {words}");
            }
        }
    }

    #[test]
    fn words_equal_in_all_rules_are_compared_only_if_there_are_any() {
        let examined = |mask: &[u64]| Wide::new(Level::found(), &Columns::new(mask, &[0, 0, 0, 1, 0, 0]));
        let Some(wide) = examined(&[u64::MAX, 0, 0]) else { return };
        assert!(!wide.has_alike, "the other words are not examined");
        for mask in [[u64::MAX, 1, 0], [u64::MAX, 0, 1 << 63]] {
            assert!(examined(&mask).is_some_and(|wide| wide.has_alike), "{mask:x?}");
        }
    }

    #[test]
    fn rows_longer_than_a_line_and_lower_levels_use_portable_code() {
        let all: Vec<usize> = (0..LINE).collect();
        for level in [Level::Portable, Level::Avx2] {
            assert!(Wide::new(level, &columns(2, &[0])).is_none());
        }
        assert!(Wide::new(Level::found(), &columns(LINE + 1, &[0])).is_none());
        assert!(
            Wide::new(Level::found(), &columns(LINE, &all)).is_none(),
            "the line has no space for a slot"
        );
        if Wide::new(Level::found(), &columns(2, &[0])).is_some() {
            assert!(Wide::new(Level::found(), &columns(LINE, &all[1..])).is_some());
        }
    }

    #[test]
    fn the_slot_belongs_to_the_value_whose_words_are_all_equal() {
        for words in 1..LINE {
            let ways = ways(words);
            for equal in 0..=u8::MAX {
                let is_whole = |way: &usize| (0..words).all(|word| equal >> (way * words + word) & 1 != 0);
                // The slots follow the values, four bytes each.
                let right = (0..ways).find(is_whole).map_or(60, |way| (ways * words * 8 + way * 4) as u8);
                assert_eq!(slot_at(words, equal), right, "{words} words, {equal:08b}");
            }
        }
    }
}
