// SPDX-License-Identifier: Apache-2.0
//! Lanes with the express path: a path record determines the lane of a packet.

use crate::lab::{Lab, RULES, USUAL, low, udp};
use dataplane::DataPlane;
use flow::{DropReason, TableId};
use pipeline::LaneLimits;

fn lab(express_records: usize) -> Lab {
    with_rules(express_records, RULES)
}

fn with_rules(express_records: usize, rules: &[&str]) -> Lab {
    with_limits(USUAL, express_records, rules)
}

fn with_limits(lanes: LaneLimits, express_records: usize, rules: &[&str]) -> Lab {
    let frames = worker::WorkerSetConfig {
        small_frames: 1_024,
        large_frames: 0,
        ..worker::WorkerSetConfig::default()
    };
    Lab::with(&worker::WorkerSetConfig { lanes, express_records, ..frames }, rules)
}

/// Returns the marks of the packets that port 3 has sent, in order.
fn marks(lab: &mut Lab) -> Vec<u8> {
    lab.pop(3).iter().filter_map(|bytes| bytes.last().copied()).collect()
}

#[test]
fn a_low_latency_packet_leaves_before_known_normal_ones_and_all_keep_their_order() {
    let mut seen = Vec::new();
    for express_records in [0, 1_024] {
        let mut lab = lab(express_records);
        let normal = |mark| udp([10, 1, 0, 1], 5, 64, mark);
        for _ in 0..4 {
            lab.push(1, &low(64, 0));
            lab.push(1, &normal(0));
            lab.turn();
        }
        marks(&mut lab);
        let before = lab.model.plane_mut().totals();
        // The burst is full, so the worker processes no backlog after it.
        (1..=31).for_each(|mark| lab.push(1, &normal(mark)));
        lab.push(1, &low(64, 100));
        lab.turn_alone();
        assert_eq!(marks(&mut lab), [100], "the normal packets wait");
        (32..=62).for_each(|mark| lab.push(1, &normal(mark)));
        lab.push(1, &low(64, 101));
        (0..64).for_each(|_| {
            lab.turn();
        });
        let found = marks(&mut lab);
        assert_eq!(found.iter().position(|mark| *mark == 101), Some(0));
        assert!(found[1..].iter().copied().eq(1..=62), "{express_records}: {found:?}");
        let plane = lab.model.plane_mut();
        let (totals, table) = (plane.totals(), plane.table_counters(TableId(0)));
        assert_eq!(totals.express - before.express, if express_records == 0 { 0 } else { 64 });
        seen.push((table.lookups, table.matches, totals.forwarded, found));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn known_normal_packets_without_space_are_dropped_under_their_reason() {
    // The backlog or the pool is full first.
    for lanes in [LaneLimits { normal: 100, ..USUAL }, USUAL] {
        let mut seen = Vec::new();
        for express_records in [0, 1_024] {
            let mut lab = with_limits(lanes, express_records, RULES);
            for _ in 0..4 {
                lab.push(1, &udp([10, 1, 0, 1], 5, 64, 0));
                lab.turn();
            }
            for _ in 0..200 {
                (0..32).for_each(|_| lab.push(1, &udp([10, 1, 0, 1], 5, 64, 0)));
                lab.turn_alone();
            }
            (0..1_000).for_each(|_| {
                lab.turn();
            });
            let totals = lab.model.plane_mut().totals();
            assert_eq!(totals.received, totals.forwarded + totals.dropped.of(DropReason::BacklogNormal));
            seen.push((totals.received, totals.forwarded, lab.pop(3).len()));
        }
        assert_eq!(seen[0], seen[1]);
    }
}

#[test]
fn known_normal_fragments_without_space_are_dropped_as_fragments() {
    let mut lab = with_limits(LaneLimits { normal: 100, ..USUAL }, 1_024, RULES);
    lab.model.set_settings(flow::Settings { drop_fragments: true, ..lab.model.settings() });
    let whole = udp([10, 1, 0, 1], 5, 64, 0);
    let mut fragment = whole.clone();
    // The flag "more fragments" of the IPv4 header.
    fragment[20] |= 0x20;
    for _ in 0..4 {
        lab.push(1, &whole);
        lab.turn();
    }
    while lab.dropped(DropReason::BacklogNormal) == 0 {
        (0..32).for_each(|_| lab.push(1, &whole));
        lab.turn_alone();
    }
    for _ in 0..50 {
        (0..31).for_each(|_| lab.push(1, &whole));
        lab.push(1, &fragment);
        lab.turn_alone();
    }
    (0..1_000).for_each(|_| {
        lab.turn();
    });
    assert_eq!(lab.dropped(DropReason::Fragment), 50);
}

/// Packets are dropped before or after their admission, depending on where the path is found.
#[test]
fn a_full_backlog_drops_only_packets_that_would_wait() {
    let rules = [
        "low_latency,table=0,actions=dec_ttl,goto_table:1",
        "low_latency,table=1,priority=2,ip,nw_dst=10.9.0.0/16,actions=output:3",
        "table=1,priority=1,actions=output:3",
    ];
    let mut seen = Vec::new();
    for express_records in [0, 1_024] {
        let mut lab = with_limits(LaneLimits { normal: 100, ..USUAL }, express_records, &rules);
        let routed = |ttl, mark| udp([10, 1, 0, 1], 5, ttl, mark);
        let fast = |mark| udp([10, 9, 0, 1], 5, 64, mark);
        for _ in 0..4 {
            lab.push(1, &fast(0));
            lab.push(1, &routed(64, 0));
            lab.turn();
        }
        marks(&mut lab);
        while lab.dropped(DropReason::BacklogNormal) == 0 {
            (0..32).for_each(|_| lab.push(1, &routed(64, 1)));
            lab.turn_alone();
        }
        marks(&mut lab);
        let before = lab.dropped(DropReason::BacklogNormal);
        (2..30).for_each(|mark| lab.push(1, &routed(64, mark)));
        lab.push(1, &routed(1, 30));
        [31, 32, 33].iter().for_each(|mark| lab.push(1, &fast(*mark)));
        lab.turn_alone();
        let dropped = (lab.dropped(DropReason::TtlExpired), lab.dropped(DropReason::BacklogNormal) - before);
        assert_eq!(dropped.0, 1, "{express_records}");
        let left = marks(&mut lab);
        assert_eq!(&left[..3], [31, 32, 33], "{express_records}");
        (0..200).for_each(|_| {
            lab.turn();
        });
        seen.push((dropped, left, marks(&mut lab)));
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].0.1 > 0);
}

/// If the first packet waited, its packet-in could be overtaken by the packet-in for a later packet of its
/// flow.
#[test]
fn a_packet_whose_ttl_expires_at_a_low_latency_entry_never_waits() {
    let routers = [
        "low_latency,table=0,actions=dec_ttl,goto_table:1",
        "low_latency,table=1,actions=dec_ttl,goto_table:2",
    ];
    for (express_records, last) in [(0, "3"), (1_024, "3"), (1_024, "3,output:4")] {
        for (rules, ttls) in [(1, [0, 1]), (2, [1, 2])] {
            let mut lab = with_rules(express_records, &[]);
            routers[..rules].iter().for_each(|rule| lab.rule(rule));
            lab.rule(&format!("table={rules},actions=output:{last}"));
            let routed = |ttl| udp([10, 1, 0, 1], 5, ttl, 0);
            for _ in 0..4 {
                lab.turn();
                lab.push(1, &routed(64));
                lab.turn();
            }
            marks(&mut lab);
            let before = lab.model.plane_mut().totals().express;
            (0..30).for_each(|_| lab.push(1, &routed(64)));
            ttls.iter().for_each(|ttl| lab.push(1, &routed(*ttl)));
            lab.turn_alone();
            let dropped = lab.dropped(DropReason::TtlExpired);
            assert_eq!((marks(&mut lab).len(), dropped), (0, 2), "{express_records} {last} {rules}");
            (0..16).for_each(|_| {
                lab.turn();
            });
            assert_eq!(marks(&mut lab).len(), 30);
            let hits = lab.model.plane_mut().totals().express - before;
            assert_eq!(hits, if express_records == 0 { 0 } else { 30 });
        }
    }
}

/// Counting would delay packets that arrive shortly after the last one.
#[test]
fn hits_are_counted_after_32_iterations_without_packets() {
    let mut lab = lab(1_024);
    for _ in 0..4 {
        lab.push(1, &low(64, 0));
        lab.turn();
    }
    (0..64).for_each(|_| {
        lab.turn();
    });
    let lookups = |lab: &mut Lab| lab.model.plane_mut().table_counters(TableId(0)).lookups;
    let before = lookups(&mut lab);
    lab.push(1, &low(64, 0));
    lab.turn_alone();
    for number in 1..=32 {
        assert!(lab.turn_alone().counting, "iteration {number}");
    }
    assert_eq!(lookups(&mut lab), before);
    assert!(!lab.turn_alone().counting);
    assert_eq!(lookups(&mut lab), before + 1);
}

/// A normal packet waits if more than eight packets arrive together, or if earlier packets wait.
#[test]
fn known_normal_packets_of_a_short_burst_leave_at_once_if_the_backlog_is_empty() {
    let normal = |mark| udp([10, 1, 0, 1], 5, 64, mark);
    let mut lab = lab(1_024);
    for _ in 0..4 {
        lab.push(1, &low(64, 0));
        lab.push(1, &normal(0));
        lab.turn();
    }
    marks(&mut lab);
    let worked = |lab: &mut Lab, packets: std::ops::RangeInclusive<u8>| {
        packets.for_each(|mark| lab.push(1, &normal(mark)));
        lab.push(1, &low(64, 100));
        (lab.turn_alone().worked, marks(lab))
    };
    assert_eq!(worked(&mut lab, 1..=7), (0, vec![100, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(worked(&mut lab, 1..=8), (8, vec![100, 1, 2, 3, 4, 5, 6, 7, 8]));
    // The burst is full, so the worker processes no backlog after it.
    assert_eq!(worked(&mut lab, 1..=31), (0, vec![100]));
    assert_eq!(worked(&mut lab, 32..=33), (8, vec![100, 1, 2, 3, 4, 5, 6, 7, 8]));
}

/// Packets of a router that uses no parser belong to one flow although the parser finds no IP header in some
/// of them. Their path edits the TTL, which must wrap and not expire.
#[test]
fn packets_whose_ttl_is_edited_keep_their_order() {
    let last = "modify_field:-1->slice(base,64,8),calculate_checksum(80,16,0,160),move_base(-14),\
                set_field:0x020000000009->slice(base,0,48),output:3";
    for marks_of_rules in ["", "low_latency,"] {
        let rules = [
            format!("{marks_of_rules}table=0,actions=move_base(14),goto_table:1"),
            format!("{marks_of_rules}table=1,slice(base,128,32)=0x0a010001,actions={last}"),
        ];
        let rules = rules.each_ref().map(String::as_str);
        let mut seen = Vec::new();
        for express_records in [0, 1_024] {
            let mut lab = with_rules(express_records, &rules);
            let whole = |ttl, mark| udp([10, 1, 0, 1], 5, ttl, mark);
            // The total length is shorter than the header.
            let other = |ttl, mark| {
                let mut bytes = whole(ttl, mark);
                bytes[17] = 19;
                bytes
            };
            for _ in 0..4 {
                lab.push(1, &whole(64, 0));
                lab.turn();
            }
            lab.pop(3);
            let before = lab.model.plane_mut().totals().express;
            for (number, ttl) in [64, 1, 64, 0, 64, 255, 0, 1].into_iter().enumerate() {
                let mark = number as u8 + 1;
                let bytes = if number % 3 == 2 { other(ttl, mark) } else { whole(ttl, mark) };
                lab.push(1, &bytes);
            }
            (0..8).for_each(|_| {
                lab.turn();
            });
            let hits = lab.model.plane_mut().totals().express - before;
            assert_eq!(hits, if express_records == 0 { 0 } else { 8 });
            seen.push(lab.pop(3));
        }
        let marks: Vec<u8> = seen[1].iter().filter_map(|bytes| bytes.last().copied()).collect();
        assert_eq!(marks, [1, 2, 3, 4, 5, 6, 7, 8], "{marks_of_rules}");
        let ttls: Vec<u8> = seen[1].iter().map(|bytes| bytes[22]).collect();
        assert_eq!(ttls, [63, 0, 63, 255, 63, 254, 255, 0], "{marks_of_rules}");
        assert_eq!(seen[0], seen[1], "{marks_of_rules}");
    }
}
