// SPDX-License-Identifier: Apache-2.0
//! Control side: tables whose equal pages are stored once, if that saves half of the memory.

use super::simd::Paged;
use std::collections::HashMap;

/// Builds a table of the entries. It has pages of `1 << shift` entries if there are more than `direct`
/// entries and pages save half of the memory. Returns `None` if there are no entries or too many pages.
pub(super) fn paged(entries: &[u16], shift: u32, direct: usize) -> Option<Paged> {
    let whole = || Paged::new(Vec::new(), entries.to_vec(), shift, entries.len());
    if entries.len() <= direct {
        return whole();
    }
    let mut known: HashMap<&[u16], u16> = HashMap::new();
    let (mut pages, mut items) = (Vec::new(), Vec::new());
    for block in entries.chunks(1 << shift) {
        // The last page may be short.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size in bytes of a table of `blocks` pages of 16 entries, of which `kinds` are different.
    fn bytes(blocks: u16, kinds: u16, direct: usize) -> usize {
        let entries: Vec<u16> = (0..blocks).flat_map(|block| [block % kinds; 16]).collect();
        paged(&entries, 4, direct).unwrap().bytes()
    }

    /// Two unused numbers of 16 bits follow the entries and the pages, for 4-byte reads.
    #[test]
    fn equal_pages_are_stored_once_if_that_saves_half() {
        assert_eq!(bytes(16, 1, 255), 2 * (16 + 2 + 16 + 2));
        assert_eq!(bytes(16, 7, 0), 2 * (16 + 2 + 7 * 16 + 2), "exactly half");
        assert_eq!(bytes(16, 8, 0), 2 * (16 * 16 + 2), "less than half is saved");
        assert_eq!(bytes(16, 1, 256), 2 * (16 * 16 + 2), "a table of up to 256 entries has no pages");
    }

    #[test]
    fn a_short_last_page_takes_as_much_memory_as_others() {
        let entries: Vec<u16> = [3; 160].into_iter().chain([4; 3]).collect();
        let table = paged(&entries, 4, 0).unwrap();
        assert_eq!(table.bytes(), 2 * (11 + 2 + 2 * 16 + 2));
        assert!(paged(&[], 4, 0).is_none());
    }
}
