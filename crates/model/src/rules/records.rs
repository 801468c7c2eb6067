// SPDX-License-Identifier: Apache-2.0
//! Common bookkeeping of groups and meters: number, time of addition and number of users.

use flow::Nanos;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A group or a meter with its bookkeeping.
#[derive(Debug)]
pub(crate) struct Record<T> {
    pub what: Arc<T>,
    /// Time when the group or meter was added. A modify does not change this time.
    pub since: Nanos,
    /// Number of entries in tables that use the group or meter.
    pub users: usize,
}

/// All groups or all meters, by number.
pub(crate) type Records<K, T> = BTreeMap<K, Record<T>>;

/// Returns the lowest number in use within a range.
pub(crate) fn first<K: Copy + Ord, T>(records: &Records<K, T>, range: RangeInclusive<K>) -> Option<K> {
    // `BTreeMap::range` panics if the start is above the end.
    if range.start() > range.end() {
        return None;
    }
    records.range(range).next().map(|(number, _)| *number)
}
