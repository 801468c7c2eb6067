// SPDX-License-Identifier: Apache-2.0
//! Storm limits drop the same packets with and without path records.

use super::lab::{Lab, compare};
use super::{NORMAL, between, bridge};
use flow::bridge::{BridgeConfig, BridgePort, StormLimit, StormLimits};
use flow::{DropReason, Nanos, PortNo};
use model::AsyncMessage;
use std::sync::Arc;

/// Limits port 1 to two packets at once of each kind, and one more per millisecond.
fn limit(lab: &mut Lab, shut: Option<Nanos>) {
    let limit = Some(StormLimit { rate: 1_000, burst: 2 });
    let storm = StormLimits { broadcast: limit, multicast: limit, unknown_unicast: limit, shut };
    let ports = [(PortNo(1), BridgePort { storm, ..BridgePort::default() })].into();
    lab.model.set_bridge(lab.now, Some(Arc::new(BridgeConfig { ports })));
    while lab.worker.apply() > 0 {}
}

/// Returns a packet of station 1 to a group address, or to an unknown address.
fn flooded(first_byte: u8) -> Vec<u8> {
    let mut packet = between(1, 9);
    packet[..6].fill(first_byte);
    packet
}

#[test]
fn packets_above_a_limit_are_dropped_by_their_kind() {
    compare(&NORMAL, |lab| {
        limit(lab, None);
        bridge(lab, 2, &[between(2, 9)]);
        for _ in 0..5 {
            bridge(lab, 1, &[flooded(0xff), flooded(0x01), flooded(0x02), between(1, 2)]);
            bridge(lab, 2, &[between(2, 1), flooded(0xff)]);
        }
        let mut seen = lab.seen();
        let dropped =
            [DropReason::StormBroadcast, DropReason::StormMulticast, DropReason::StormUnknownUnicast]
                .map(|reason| seen.dropped.of(reason));
        assert_eq!(dropped, [3; 3]);
        let to_3 = seen.sent.swap_remove(2);
        let count = |first: u8| to_3.iter().filter(|frame| frame[..6] == [first; 6]).count();
        assert_eq!([0xff, 0x01, 0x02].map(count), [2 + 5, 2, 2], "port 2 has no limits");
    });
}

#[test]
fn known_addresses_take_no_tokens() {
    let hits = compare(&NORMAL, |lab| {
        limit(lab, None);
        bridge(lab, 1, &[between(1, 2)]);
        bridge(lab, 2, &[between(2, 1)]);
        bridge(lab, 1, &vec![between(1, 2); 20]);
        bridge(lab, 1, &[flooded(2)]);
        assert_eq!(lab.seen().dropped.sum(), 0);
    });
    assert!(hits >= 15, "{hits}");
}

#[test]
fn a_storm_closes_its_port_and_the_port_opens_again() {
    compare(&NORMAL, |lab| {
        limit(lab, Some(Nanos(1_000_000_000)));
        bridge(lab, 1, &vec![flooded(0xff); 4]);
        let statuses = |lab: &mut Lab| -> Vec<bool> {
            std::iter::from_fn(|| lab.model.next_async_message())
                .filter_map(|message| match message {
                    AsyncMessage::PortStatus { port, .. } => Some(port.is_blocked),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(statuses(lab).last(), Some(&true));
        lab.now += Nanos(1_000_000_000);
        while lab.model.poll(lab.now) {}
        while lab.worker.apply() > 0 {}
        assert_eq!(statuses(lab), [false]);
        bridge(lab, 1, &[flooded(0xff)]);
        let mut seen = lab.seen();
        let count = |reason| seen.dropped.of(reason);
        let dropped = [DropReason::StormBroadcast, DropReason::PortNotReceiving].map(count);
        assert_eq!(dropped, [1, 1]);
        assert_eq!(seen.sent.swap_remove(2).len(), 3);
    });
}
