// SPDX-License-Identifier: Apache-2.0
//! Huge pages for large tables. Lookups access memory at random, and mostly miss the TLB with pages of 4 KiB.
#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};

/// Size of a huge page in bytes.
const PAGE_BYTES: usize = 2 << 20;

/// Minimum size in bytes that benefits from huge pages.
const LEAST_BYTES: usize = 16 * PAGE_BYTES;

/// Returns `count` zero words. A large array is backed by huge pages if the system provides them.
#[must_use]
pub fn zeros(count: usize) -> Box<[u64]> {
    let zeros = vec![0u64; count].into_boxed_slice();
    advise(&raw const *zeros);
    zeros
}

/// Returns `count` copies of a value. A large array is backed by huge pages if the system provides them.
#[must_use]
pub fn repeated<T: Copy>(value: T, count: usize) -> Box<[T]> {
    let mut all = Vec::with_capacity(count);
    advise(std::ptr::slice_from_raw_parts(all.as_ptr(), count));
    all.resize(count, value);
    all.into_boxed_slice()
}

/// Advises the system to back a large array by huge pages. Its pages must not have been used yet.
fn advise<T>(array: *const [T]) {
    let (bytes, from) = (array.len() * size_of::<T>(), array.addr());
    let to_page = from.next_multiple_of(PAGE_BYTES) - from;
    let pages = bytes.saturating_sub(to_page) / PAGE_BYTES;
    if bytes >= LEAST_BYTES && pages > 0 {
        let first = array.cast::<u8>().wrapping_add(to_page).cast_mut().cast();
        // SAFETY: `to_page` and `pages` are computed from the allocation of the array, so the range lies
        // within it, and the advice does not change its content. On failure the pages keep their usual size.
        let _ = unsafe { madvise(first, pages * PAGE_BYTES, Advice::LinuxHugepage) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_size_are_zero() {
        for count in [0, 1, LEAST_BYTES / 8 - 1, LEAST_BYTES / 8 + 1, LEAST_BYTES / 4 + 77] {
            let mut zeros = zeros(count);
            assert!(zeros.len() == count && zeros.iter().all(|word| *word == 0));
            zeros.fill(7);
            assert!(zeros.iter().all(|word| *word == 7));
            let ones = repeated(1u64, count);
            assert!(ones.len() == count && ones.iter().all(|word| *word == 1));
        }
    }
}
