// SPDX-License-Identifier: Apache-2.0
//! Handles packets whose LUT record may be outdated: verifies the record, or searches the previous LUT.

use super::batch::{CacheHit, TableBatch};
use super::lut::{Lut, Record};
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, State};
use crate::probe::{Probe, ProbeStep};
use dataplane::FoundBy;
use engines::NONE;
use flow::{EntryId, Next};
use tables::Table;

/// Resolves packets whose record may be outdated.
#[inline(never)]
pub(super) fn resolve<'a, E: Egress, P: Probe>(
    context: &BurstContext<'a, E>,
    lut: &mut Lut,
    batch: &TableBatch<'_, u32>,
    packets: &mut [Packet],
    cache_hits: &mut [CacheHit<'a>],
    probe: &mut P,
) {
    let mut moved = false;
    let in_flux = lut.is_in_flux(context.now);
    if in_flux && context.window.is_empty() {
        lut.barred = false;
    }
    for (at, cache_hit) in cache_hits.iter_mut().enumerate() {
        let (slot, place) = (batch.slots[at], batch.results[at]);
        // A packet that gets its entry by an index has no value to look up, so it has no record.
        if matches!(packets[slot.index()].state, State::Waits(Next::Direct { .. })) {
            continue;
        }
        if !in_flux {
            // An earlier packet of the burst may have corrected this packet's record.
            let Some(record) = lut.record(place) else { continue };
            if record.generation == lut.generation() {
                *cache_hit = CacheHit::of(record, context.cells);
                continue;
            }
        }
        let found = doubt(context, lut, batch, at, packets, &mut moved, probe);
        *cache_hit = found.map_or_else(CacheHit::default, |(by, record)| CacheHit {
            by,
            ..CacheHit::of(&record, context.cells)
        });
    }
}

/// Resolves the value of the packet at index `at` of a batch in the cases that the LUT alone cannot resolve:
/// a change is in progress, the previous LUT is still in use, or the record must be verified.
#[inline(never)]
fn doubt<E: Egress, P: Probe>(
    context: &BurstContext<'_, E>,
    lut: &mut Lut,
    batch: &TableBatch<'_, u32>,
    at: usize,
    packets: &mut [Packet],
    moved: &mut bool,
    probe: &mut P,
) -> Option<(FoundBy, Record)> {
    let TableBatch { number, table, .. } = *batch;
    let (slot, place) = (batch.slots[at], batch.results[at]);
    let key = &batch.keys[at * lut.words()..][..lut.words()];
    if place == NONE {
        // An earlier packet of this value in the burst may have inherited a record. This packet must use the
        // same record, even if `barred` was set meanwhile, because later packets will find the record, too.
        if *moved && let Some(record) = lut.record(lut.find(key, lut.hash(key))) {
            return Some((FoundBy::Inherited, *record));
        }
        if lut.barred {
            return None;
        }
        let inherited = lut.ask_previous(packets, slot, key, context.now);
        *moved |= inherited.is_some();
        return inherited.map(|record| (FoundBy::Inherited, record));
    }
    // A newly learned record may have replaced the one found at `place`. The packet then misses and does not
    // use the previous LUT: earlier packets of its value may have missed, too, and must not be overtaken.
    if *moved && !lut.has(place, key) || lut.is_outdated(place) {
        // While these packets wait, later packets must not inherit a record either.
        lut.barred = true;
        return None;
    }
    let record = lut.record(place).copied()?;
    if record.generation == lut.generation() {
        return Some((FoundBy::Lut, record));
    }
    probe.mark(ProbeStep::Execute(number), 0);
    let record = verify(context, lut, table, place, key);
    probe.mark(ProbeStep::Verify(number), 1);
    record.map(|record| (FoundBy::Verified, record))
}

/// Verifies a record against its extra rules or against the table, and corrects it. Returns `None` if the
/// value no longer hits an entry.
#[inline(never)]
fn verify<E: Egress>(
    context: &BurstContext<'_, E>,
    lut: &mut Lut,
    table: &Table,
    place: u32,
    key: &[u64],
) -> Option<Record> {
    let search = || {
        let mut id = [EntryId::NONE];
        table.lookup(key, &mut id);
        (id[0] != EntryId::NONE).then_some(id[0])
    };
    let entry = |id| context.entry(id).map(|(cell, program)| (cell.priority(), program.low_latency));
    lut.verify(place, key, search, entry)
}
