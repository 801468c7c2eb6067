// SPDX-License-Identifier: Apache-2.0
//! Settings of ports for NORMAL, and the addresses that NORMAL learns under them.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use dataplane::{Event, MacSeen, StormEvent};
use flow::bridge::{BridgeConfig, BridgePort, FloodKind, PortVlans, StormLimit, StormLimits};
use flow::{Nanos, Operation, PortNo};
use model::{AsyncMessage, Change, KeptChange, KeptState, ModelConfig, PortConfig, PortMod, StormNotice};
use std::sync::Arc;

fn bridge() -> Fake {
    let mut m = with(ModelConfig::default());
    for number in 1..=3 {
        m.add_port(Nanos(0), port(PortNo(number)), true).unwrap();
    }
    poll_all(&mut m, Nanos(0));
    m
}

fn learn(m: &mut Fake, vid: u16, last: u8, port: u32) {
    let seen = MacSeen { vid, mac: [2, 0, 0, 0, 0, last], port: PortNo(port) };
    m.plane_mut().events.push_back(Event::Learn(seen));
    poll_all(m, Nanos(0));
}

fn places(m: &mut Fake) -> Vec<(u16, u8, u32)> {
    m.macs(Nanos(0)).into_iter().map(|mac| (mac.vid, mac.mac[5], mac.port.0)).collect()
}

fn access<const PORTS: usize>(ports: [(u32, u16); PORTS]) -> Option<Arc<BridgeConfig>> {
    let ports = ports.map(|(port, vid)| {
        (PortNo(port), BridgePort { vlans: PortVlans::Access(vid), ..BridgePort::default() })
    });
    Some(Arc::new(BridgeConfig { ports: ports.into() }))
}

#[test]
fn ports_whose_vlans_change_lose_their_addresses_in_the_same_operation() {
    let mut m = bridge();
    (1..=3).for_each(|port| learn(&mut m, 0, port, port.into()));
    m.set_bridge(Nanos(0), access([(1, 10)]));
    let operation = m.plane_mut().operations.last().cloned().unwrap();
    let parts = operation.parts();
    assert!(matches!(parts, [Operation::Bridge(Some(_)), Operation::Entries(removed)] if removed.len() == 1));
    assert_eq!(places(&mut m), [(0, 2, 2), (0, 3, 3)]);
    learn(&mut m, 10, 1, 1);
    m.set_bridge(Nanos(0), access([(1, 10), (2, 20)]));
    assert_eq!(places(&mut m), [(0, 3, 3), (10, 1, 1)], "port 1 has the same VLAN as before");
    m.set_bridge(Nanos(0), None);
    assert_eq!(places(&mut m), [(0, 3, 3)]);
}

#[test]
fn the_same_settings_submit_no_operation() {
    let mut m = bridge();
    m.set_bridge(Nanos(0), Some(Arc::default()));
    m.set_bridge(Nanos(0), None);
    let before = m.barrier();
    m.set_bridge(Nanos(0), access([(1, 10)]));
    m.set_bridge(Nanos(0), access([(1, 10)]));
    assert_eq!(m.barrier().0, before.0 + 1);
}

#[test]
fn reports_of_a_previous_vlan_are_ignored() {
    let mut m = bridge();
    m.set_bridge(Nanos(0), access([(1, 10)]));
    learn(&mut m, 0, 1, 1);
    learn(&mut m, 20, 1, 1);
    assert_eq!(places(&mut m), []);
    learn(&mut m, 10, 1, 1);
    assert_eq!(places(&mut m), [(10, 1, 1)]);
}

/// Settings of one port.
fn one(port: u32, settings: BridgePort) -> Option<Arc<BridgeConfig>> {
    Some(Arc::new(BridgeConfig { ports: [(PortNo(port), settings)].into() }))
}

fn storm(m: &mut Fake, now: Nanos) -> Vec<(bool, bool)> {
    let event = StormEvent { port: PortNo(1), kind: FloodKind::Broadcast };
    m.plane_mut().events.push_back(Event::Storm(event));
    statuses(m, now)
}

/// Polls, and returns for each port status whether the port is up, and whether it is blocked.
fn statuses(m: &mut Fake, now: Nanos) -> Vec<(bool, bool)> {
    let messages = poll_all(m, now).into_iter();
    let status = |message| match message {
        AsyncMessage::PortStatus { port, .. } => Some((port.is_up(), port.is_blocked)),
        _ => None,
    };
    messages.filter_map(status).collect()
}

#[test]
fn a_storm_closes_a_port_for_a_while() {
    let mut m = bridge();
    learn(&mut m, 0, 1, 1);
    let limits = |shut| StormLimits {
        broadcast: Some(StormLimit { rate: 1, burst: 1 }),
        shut,
        ..StormLimits::default()
    };
    let settings = |shut| one(1, BridgePort { storm: limits(shut), ..BridgePort::default() });
    m.set_bridge(Nanos(0), settings(None));
    assert_eq!(storm(&mut m, SECOND), [], "the limit only drops packets");
    m.set_bridge(SECOND, settings(Some(5 * SECOND)));
    assert_eq!(places(&mut m), [(0, 1, 1)]);
    assert_eq!(storm(&mut m, SECOND), [(false, true)]);
    assert_eq!(storm(&mut m, 2 * SECOND), [], "the port is closed already");
    assert_eq!(places(&mut m), [], "a closed port loses its addresses");
    assert_eq!(m.next_deadline(), Some(6 * SECOND));
    assert_eq!(statuses(&mut m, 6 * SECOND - Nanos(1)), []);
    assert_eq!(statuses(&mut m, 6 * SECOND), [(true, false)]);
    let notices: Vec<_> = std::iter::from_fn(|| m.next_storm_notice()).collect();
    let closed = Some((FloodKind::Broadcast, 5 * SECOND));
    let port = PortNo(1);
    assert_eq!(notices, [StormNotice { port, closed }, StormNotice { port, closed: None }]);
    // Without the limits, a closed port opens at once.
    assert_eq!(storm(&mut m, 7 * SECOND), [(false, true)]);
    m.set_bridge(7 * SECOND, None);
    assert_eq!(statuses(&mut m, 7 * SECOND), [(true, false)]);
    assert_eq!(storm(&mut m, 8 * SECOND), [], "a late report does not close the port");
}

#[test]
fn a_port_learns_no_more_addresses_than_its_limit() {
    let mut m = bridge();
    let limit = |limit| one(1, BridgePort { mac_limit: Some(limit), ..BridgePort::default() });
    m.set_bridge(Nanos(0), limit(2));
    (1..=4).for_each(|last| learn(&mut m, 0, last, 1));
    learn(&mut m, 0, 9, 2);
    assert_eq!(places(&mut m), [(0, 1, 1), (0, 2, 1), (0, 9, 2)]);
    assert_eq!((m.mac_counts(PortNo(1)), m.mac_counts(PortNo(2))), ((2, 0), (1, 0)));
    // An address does not move to a full port. If one leaves the port, another takes its place.
    learn(&mut m, 0, 9, 1);
    assert_eq!(m.mac_counts(PortNo(1)), (2, 0));
    learn(&mut m, 0, 1, 3);
    learn(&mut m, 0, 9, 1);
    assert_eq!(places(&mut m), [(0, 1, 3), (0, 2, 1), (0, 9, 1)]);
    assert_eq!((m.mac_counts(PortNo(1)), m.mac_counts(PortNo(2))), ((2, 0), (0, 0)));
    // The workers report refused addresses. A late report of a removed port is ignored.
    [1, 1, 7].into_iter().for_each(|port| m.plane_mut().events.push_back(Event::MacRefused(PortNo(port))));
    poll_all(&mut m, Nanos(0));
    assert_eq!((m.mac_counts(PortNo(1)), m.mac_counts(PortNo(7))), ((2, 2), (0, 0)));
    // A higher limit keeps the addresses, and a lower one does not.
    m.set_bridge(Nanos(0), limit(3));
    assert_eq!(m.mac_counts(PortNo(1)).0, 2);
    m.set_bridge(Nanos(0), limit(1));
    assert_eq!((places(&mut m), m.mac_counts(PortNo(1)).0), (vec![(0, 1, 3)], 0));
    learn(&mut m, 0, 5, 1);
    m.set_link(Nanos(0), PortNo(1), false).unwrap();
    assert_eq!(m.mac_counts(PortNo(1)).0, 0);
}

#[test]
fn a_port_mod_opens_a_closed_port() {
    let mut m = bridge();
    let storm = StormLimits { broadcast: Some(StormLimit { rate: 1, burst: 1 }), ..StormLimits::default() };
    let storm = StormLimits { shut: Some(5 * SECOND), ..storm };
    m.set_bridge(Nanos(0), one(1, BridgePort { storm, ..BridgePort::default() }));
    let change = |m: &mut Fake, now, config, mask| {
        let port_mod = PortMod { number: PortNo(1), config, mask, ..PortMod::default() };
        m.change(now, Change::Port(port_mod)).unwrap();
        statuses(m, now)
    };
    let (none, down) = (PortConfig::default(), PortConfig { down: true, ..PortConfig::default() });
    assert_eq!(self::storm(&mut m, SECOND), [(false, true)]);
    // Neither another setting nor PORT_DOWN opens it.
    let no_recv = PortConfig { no_recv: true, ..PortConfig::default() };
    assert_eq!(change(&mut m, SECOND, no_recv, no_recv), [(false, true)]);
    assert_eq!(change(&mut m, SECOND, down, down), [(false, true)]);
    assert_eq!(change(&mut m, SECOND, none, down), [(true, false)]);
    let notices: Vec<_> = std::iter::from_fn(|| m.next_storm_notice()).collect();
    let [_, StormNotice { port: PortNo(1), closed: None }] = notices[..] else { panic!("{notices:?}") };
    assert_eq!((statuses(&mut m, 6 * SECOND), m.next_storm_notice()), (vec![], None), "it is open already");
}

#[test]
fn a_start_with_a_lower_limit_forgets_all_addresses_of_the_port() {
    let mut m = bridge();
    let port = |mac_limit| BridgePort { mac_limit: Some(mac_limit), ..BridgePort::default() };
    let ports = [(PortNo(1), port(2)), (PortNo(2), port(2))].into();
    m.set_bridge(Nanos(0), Some(Arc::new(BridgeConfig { ports })));
    let mac = |last: u8, port| (0, [2, 0, 0, 0, 0, last], PortNo(port));
    let macs = vec![mac(1, 1), mac(2, 1), mac(3, 1), mac(4, 2), mac(5, 2), mac(6, 3)];
    let report = m.restore(Nanos(0), KeptState { macs, ..KeptState::default() });
    assert_eq!((report.macs, places(&mut m)), (3, vec![(0, 4, 2), (0, 5, 2), (0, 6, 3)]));
    assert_eq!([1, 2, 3].map(|port| m.mac_counts(PortNo(port)).1), [0; 3]);
    // The store forgets them, so that the next start does not exceed the limit again.
    let gone = |last| KeptChange::MacGone { vid: 0, mac: [2, 0, 0, 0, 0, last] };
    assert_eq!(report.gone, [1, 2, 3].map(gone));
}
