// SPDX-License-Identifier: Apache-2.0
//! Verification of outdated records against the changes of the rules since their versions.

use super::cache::{Express, Store};
use super::changes::RecentChanges;
use super::paths::Paths;
use super::records::{OUTDATED, Records};
use crate::context::BurstContext;
use engines::NONE;
use keys::ExpressKey;

impl Express {
    /// Verifies the outdated records that the packets of a burst found. The place of a record that may be
    /// wrong becomes [`NONE`]. Returns the number of packets whose record may be wrong.
    #[cold]
    #[inline(never)]
    pub(super) fn verify_outdated<E>(&mut self, context: &BurstContext<'_, E>, count: usize) -> usize {
        let Self { store, paths, changes, burst, .. } = self;
        let (keys, places) = (&burst.keys, &mut burst.places[..count]);
        let (verified, upheld) = match store {
            Store::OneLine(records) => verify(records, paths, changes, context, keys, places),
            Store::TwoLines(records) => verify(records, paths, changes, context, keys, places),
        };
        self.counters.verified(verified);
        self.counters.upheld(upheld);
        (verified - upheld) as usize
    }
}

/// Verifies the outdated records of some keys. Returns the number of records verified, and how many of them
/// are still right.
fn verify<E, const WORDS: usize>(
    records: &mut Records<WORDS>,
    paths: &Paths,
    changes: &RecentChanges,
    context: &BurstContext<'_, E>,
    keys: &[ExpressKey],
    places: &mut [u32],
) -> (u64, u64) {
    for place in places.iter().filter(|place| **place != NONE && **place & OUTDATED != 0) {
        paths.prefetch_entries(*place & !OUTDATED);
    }
    let (mut verified, mut upheld) = (0, 0);
    for (found, key) in places.iter_mut().zip(keys) {
        if *found == NONE || *found & OUTDATED == 0 {
            continue;
        }
        let place = *found & !OUTDATED;
        let of_version = records.version_at(place);
        let is_right = paths
            .path(place, records.path(place))
            .is_some_and(|path| changes.uphold(context, key, path, of_version));
        if is_right {
            records.uphold(place, changes.version());
        }
        *found = if is_right { place } else { NONE };
        verified += 1;
        upheld += u64::from(is_right);
    }
    (verified, upheld)
}
