// SPDX-License-Identifier: Apache-2.0
//! Huge pages for large tables. Lookups go to a place at random: with pages of 4 KiB, most of them miss the core's cache of
//! translations as well, once a table is larger than that reaches.
#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};

/// A huge page.
const PAGE_BYTES: usize = 2 << 20;

/// What is smaller has nothing from it.
const LEAST_BYTES: usize = 16 * PAGE_BYTES;

/// So many words of zeros, in huge pages if they are many and the system has some.
#[must_use]
pub fn zeros(count: usize) -> Box<[u64]> {
    let zeros = vec![0u64; count].into_boxed_slice();
    let (bytes, from) = (size_of_val(&*zeros), zeros.as_ptr().addr());
    let to_page = from.next_multiple_of(PAGE_BYTES) - from;
    let pages = bytes.saturating_sub(to_page) / PAGE_BYTES;
    if bytes >= LEAST_BYTES && pages > 0 {
        let first = zeros.as_ptr().cast::<u8>().wrapping_add(to_page).cast_mut().cast();
        // SAFETY: these pages are all in the slice, and the advice leaves what they hold as it is. Nothing of them was touched yet,
        // so that huge ones come at the first touch. Without it they are ordinary.
        let _ = unsafe { madvise(first, pages * PAGE_BYTES, Advice::LinuxHugepage) };
    }
    zeros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros_however_many() {
        for count in [0, 1, LEAST_BYTES / 8 - 1, LEAST_BYTES / 8 + 1, LEAST_BYTES / 4 + 77] {
            let mut zeros = zeros(count);
            assert!(zeros.len() == count && zeros.iter().all(|word| *word == 0));
            zeros.fill(7);
            assert!(zeros.iter().all(|word| *word == 7));
        }
    }
}
