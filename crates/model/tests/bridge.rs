// SPDX-License-Identifier: Apache-2.0
//! Settings of ports for NORMAL, and the addresses that NORMAL learns under them.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use dataplane::{Event, MacSeen};
use flow::bridge::{BridgeConfig, BridgePort, PortVlans};
use flow::{Nanos, Operation, PortNo};
use model::ModelConfig;
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
