// SPDX-License-Identifier: Apache-2.0
//! Control side: tables of which blocks that are equal are kept once, if that saves half of the memory.

use super::simd::Paged;
use std::collections::HashMap;

/// A table of these entries, in blocks of `1 << shift` if there are more than `direct`; none if there are no entries, or
/// too many.
pub(super) fn paged(entries: &[u16], shift: u32, direct: usize) -> Option<Paged> {
    let whole = || Paged::new(Vec::new(), entries.to_vec(), shift, entries.len());
    if entries.len() <= direct {
        return whole();
    }
    let mut known: HashMap<&[u16], u16> = HashMap::new();
    let (mut pages, mut items) = (Vec::new(), Vec::new());
    for block in entries.chunks(1 << shift) {
        // The last may be short.
        let next = items.len().div_ceil(1 << shift);
        let page = match known.get(block) {
            Some(page) => *page,
            None => {
                items.extend_from_slice(block);
                known.insert(block, u16::try_from(next).ok()?);
                next as u16
            }
        };
        pages.push(page);
    }
    if 2 * (pages.len() + items.len()) > entries.len() {
        return whole();
    }
    items.resize(items.len().next_multiple_of(1 << shift), 0);
    Paged::new(pages, items, shift, entries.len())
}
