// SPDX-License-Identifier: Apache-2.0
//! Tests lookups, and which records stay in a full LUT.

use super::*;

const SECOND: Nanos = Nanos(1_000_000_000);

fn lut(entries: usize) -> Lut {
    Lut::new(&[u64::MAX, 0xff], entries, Arc::default())
}

fn place(lut: &mut Lut, key: [u64; 2], now: Nanos) -> u32 {
    let keys = [key[0] & lut.mask()[0], key[1] & lut.mask()[1]];
    let mut places = [0];
    lut.probe(&keys, now, &mut places, |_, _| ());
    places[0]
}

/// Looks up a value, and learns it if it is missing, as the walk and the tables do.
fn pass(lut: &mut Lut, key: [u64; 2], now: Nanos, low_latency: bool) -> bool {
    let hit = place(lut, key, now) != NONE;
    if !hit {
        lut.learn(&mut key.clone(), EntryId(7), 1, low_latency);
    }
    hit
}

#[test]
fn whole_values_under_the_mask() {
    let mut lut = lut(64);
    lut.learn(&mut [5, 0xaa12], EntryId(3), 9, true);
    let at = place(&mut lut, [5, 0xff12], Nanos(0));
    assert_eq!(
        lut.record(at).map(|r| (r.id, r.priority)),
        Some((EntryId(3), 9)),
        "bits not examined do not count"
    );
    assert_eq!(place(&mut lut, [5, 0x13], Nanos(0)), NONE);
    assert_eq!(place(&mut lut, [6, 0x12], Nanos(0)), NONE);
    lut.free(at as usize);
    assert_eq!(place(&mut lut, [5, 0x12], Nanos(0)), NONE);
}

#[test]
fn what_is_in_use_is_not_evicted_and_the_idle_only_for_a_value_seen_twice() {
    let mut lut = lut(256);
    for flow in 0..180 {
        pass(&mut lut, [flow, 0], Nanos(0), true);
    }
    // Both sets of a flow may be full by chance, so some flows have no record.
    let flows: Vec<u64> = (0..180).filter(|flow| place(&mut lut, [*flow, 0], Nanos(0)) != NONE).collect();
    assert!(flows.len() > 170, "{}", flows.len());
    // Values that occur once arrive for 20 seconds, while all flows continue.
    let mut hits = 0;
    for tick in 0..2_000u64 {
        let now = tick * SECOND / 100;
        for storm in 0..50 {
            pass(&mut lut, [1_000_000 + tick * 50 + storm, 1], now, true);
        }
        hits += flows.iter().filter(|flow| pass(&mut lut, [**flow, 0], now, true)).count();
    }
    assert_eq!(hits, flows.len() * 2_000);
    // Flows that have ended make space for new ones.
    let later = 50 * SECOND;
    for _ in 0..2 {
        for flow in 5_000..5_200 {
            pass(&mut lut, [flow, 2], later, true);
        }
    }
    let known = (5_000..5_200).filter(|flow| place(&mut lut, [*flow, 2], later) != NONE).count();
    assert!(known > 130, "{known}");
}

#[test]
fn a_record_that_is_displaced_with_its_fence_bars_inheritance() {
    for fence in [0, 5] {
        let mut lut = lut(8);
        for flow in 0..16 {
            lut.learn_behind(&mut [flow, 0], EntryId(7), 1, true, fence);
        }
        // Later, when these records are idle, another value requests a place twice.
        place(&mut lut, [99, 0], 50 * SECOND);
        let evicted = lut.counters.read().evicted;
        (0..2).for_each(|_| lut.learn(&mut [99, 0], EntryId(7), 1, true));
        assert_eq!(lut.counters.read().evicted, evicted + 1);
        assert_eq!(lut.barred, fence != 0);
    }
}

#[test]
fn normal_records_are_bounded_and_give_way() {
    let mut lut = lut(256);
    for flow in 0..10_000 {
        pass(&mut lut, [flow, 0], Nanos(0), false);
    }
    assert!((100..=128).contains(&lut.counters.read().records));
    for flow in 0..230 {
        pass(&mut lut, [flow, 1], Nanos(0), true);
    }
    let known = (0..230).filter(|flow| place(&mut lut, [*flow, 1], Nanos(0)) != NONE).count();
    assert!(known >= 205, "{known}");
    for flow in 20_000..30_000 {
        pass(&mut lut, [flow, 0], 5 * SECOND, false);
    }
    let still = (0..230).filter(|flow| place(&mut lut, [*flow, 1], 5 * SECOND) != NONE).count();
    assert_eq!(still, known, "a normal value displaces no low-latency record, not even an idle one");
}
