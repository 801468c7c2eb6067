// SPDX-License-Identifier: Apache-2.0
//! Port ranges as prefixes, because OpenFlow has no ranges.

/// Returns the prefixes that make up an inclusive range, as values and masks.
pub fn range_prefixes(low: u16, high: u16) -> Vec<(u16, u16)> {
    let mut prefixes = Vec::new();
    let (mut from, end) = (u32::from(low), u32::from(high) + 1);
    while from < end {
        let mut size = if from == 0 { 1 << 16 } else { 1 << from.trailing_zeros() };
        while from + size > end {
            size /= 2;
        }
        prefixes.push((from as u16, !(size - 1) as u16));
        from += size;
    }
    prefixes
}
