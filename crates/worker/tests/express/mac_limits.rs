// SPDX-License-Identifier: Apache-2.0
//! Limits of learned addresses: a full port does not keep the control thread busy, and packets from its
//! unknown sources have path records.

use super::lab::{Lab, compare};
use super::{NORMAL, between, bridge};
use dataplane::DataPlane;
use flow::bridge::{BridgeConfig, BridgePort};
use flow::{Nanos, PortNo};
use std::sync::Arc;

/// Limits the addresses that are learned at port 1.
fn limit(lab: &mut Lab, mac_limit: Option<u32>) {
    let ports = [(PortNo(1), BridgePort { mac_limit, ..BridgePort::default() })].into();
    lab.model.set_bridge(lab.now, Some(Arc::new(BridgeConfig { ports })));
    while lab.worker.apply() > 0 {}
}

/// Returns the last byte and the port of each learned address.
fn places(lab: &mut Lab) -> Vec<(u8, u32)> {
    lab.model.macs(lab.now).into_iter().map(|mac| (mac.mac[5], mac.port.0)).collect()
}

/// Learns station 1 at port 1, which is then full, and station 2 at port 2.
fn fill(lab: &mut Lab) {
    limit(lab, Some(1));
    bridge(lab, 1, &[between(1, 2)]);
    bridge(lab, 2, &[between(2, 1)]);
}

#[test]
fn a_full_port_reports_once_per_second_and_has_records() {
    let hits = compare(&NORMAL, |lab| {
        fill(lab);
        // All packets arrive within a second.
        bridge(lab, 1, &vec![between(5, 2); 20]);
        let many: Vec<_> = (10..200).map(|source| between(source, 9)).collect();
        bridge(lab, 1, &many);
        assert_eq!(lab.model.mac_counts(PortNo(1)), (1, 1));
        lab.now += Nanos(1_000_000_000);
        lab.burst(1, &many[..30]);
        let mut reports = 0;
        while let Some(event) = lab.model.plane_mut().next_event() {
            assert!(matches!(event, dataplane::Event::MacRefused(PortNo(1))), "{event:?}");
            reports += 1;
        }
        assert_eq!((reports, places(lab)), (1, vec![(1, 1), (2, 2)]));
    });
    assert!(hits >= 18, "{hits} of the 20 packets from station 5 to station 2");
}

#[test]
fn sources_are_learned_as_soon_as_the_port_is_not_full() {
    compare(&NORMAL, |lab| {
        fill(lab);
        bridge(lab, 1, &vec![between(5, 2); 4]);
        // Station 1 moves to port 2.
        bridge(lab, 2, &[between(1, 2)]);
        assert_eq!(places(lab), [(1, 2), (2, 2)]);
        bridge(lab, 1, &[between(5, 2)]);
        assert_eq!(places(lab), [(1, 2), (2, 2), (5, 1)]);
        // The port is full again. A higher limit is effective at once.
        bridge(lab, 1, &vec![between(6, 2); 4]);
        assert_eq!(places(lab), [(1, 2), (2, 2), (5, 1)]);
        limit(lab, Some(2));
        bridge(lab, 1, &[between(6, 2)]);
        assert_eq!(places(lab), [(1, 2), (2, 2), (5, 1), (6, 1)]);
        limit(lab, None);
        bridge(lab, 1, &[between(7, 2)]);
        assert_eq!(places(lab).len(), 5);
    });
}

#[test]
fn records_of_a_full_port_follow_their_destination() {
    compare(&NORMAL, |lab| {
        fill(lab);
        bridge(lab, 1, &vec![between(5, 2); 4]);
        // The destination moves to the full port, so it stays where it was.
        bridge(lab, 1, &[between(2, 9)]);
        bridge(lab, 1, &vec![between(5, 2); 4]);
        lab.model.set_link(lab.now, PortNo(2), false).unwrap();
        while lab.worker.apply() > 0 {}
        bridge(lab, 1, &vec![between(5, 2); 4]);
        let seen = lab.seen();
        assert_eq!(seen.sent[1].len(), 1 + 4 + 1 + 4, "station 2 is reached, and floods");
        assert_eq!(seen.sent[2].len(), 1 + 1 + 4, "floods after the link is lost");
    });
}
