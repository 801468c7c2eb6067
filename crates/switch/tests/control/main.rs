// SPDX-License-Identifier: Apache-2.0
//! Tests of the control socket of a daemon with in-memory ports.
#![allow(clippy::unwrap_used)]

use flow::{PortNo, TableId};
mod cache;
mod clients;
mod flows;
mod lab;
mod live;
mod metrics;
mod metrics_rules;
mod reload;
mod sockets;
mod storm;
mod top;
mod trace;

use lab::{Lab, until};
use switch::control::{ControlRequest, CountersReport, Macs, Ports, Tables};

/// Returns a 60-byte frame with an experimental EtherType from host `from` to host `to`.
fn frame(from: u8, to: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb7]);
    bytes
}

fn counters(lab: &Lab) -> CountersReport {
    lab.client().ask(&ControlRequest::Counters).unwrap()
}

#[test]
fn without_a_controller_the_switch_learns_and_shows_its_counters() {
    for workers in [1, 2] {
        let mut lab = Lab::start(workers, 3, None);
        assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2));
        until("the flood has left port 3", || lab.ports[2].pop(0).is_some());
        until("host 1 is learned", || {
            let macs: Macs = lab.client().ask(&ControlRequest::Macs).unwrap();
            macs.macs.iter().any(|m| (m.mac.as_str(), m.port, m.vid) == ("02:00:00:00:00:01", PortNo(1), 0))
        });
        assert_eq!(lab.pass(2, &frame(2, 1), 1), frame(2, 1));
        until("both packets are counted", || counters(&lab).received == 2);
        assert!(lab.ports[2].pop(0).is_none(), "a learned address is not flooded");
        let seen = counters(&lab);
        assert_eq!((seen.forwarded, seen.copies, seen.consumed, seen.held), (2, 3, 0, 0));
        assert_eq!(seen.dropped.values().sum::<u64>(), 0);

        until("the ports' counters are published", || {
            let ports: Ports = lab.client().ask(&ControlRequest::Ports).unwrap();
            let found: Vec<_> = ports
                .ports
                .iter()
                .map(|p| (p.number, p.up, p.rx_packets, p.tx_packets, p.tx_bytes))
                .collect();
            found == [(1, true, 1, 1, 60), (2, true, 1, 1, 60), (3, true, 0, 1, 60)]
        });
        let tables: Tables = lab.client().ask(&ControlRequest::Tables).unwrap();
        let found: Vec<_> =
            tables.tables.iter().map(|t| (t.table, t.entries, t.lookups, t.matches)).collect();
        assert_eq!(found, [(TableId(0), 1, 2, 2)]);
    }
}

#[test]
fn the_addresses_of_a_failed_link_are_forgotten() {
    let mut lab = Lab::start(1, 2, None);
    lab.pass(1, &frame(1, 2), 2);
    let macs = |lab: &Lab| lab.client().ask::<Macs>(&ControlRequest::Macs).unwrap().macs.len();
    until("host 1 is learned", || macs(&lab) == 1);
    lab.ports[0].set_link(false);
    until("port 1 is down", || {
        let ports: Ports = lab.client().ask(&ControlRequest::Ports).unwrap();
        !ports.ports[0].up && ports.ports[1].up
    });
    until("host 1 is forgotten", || macs(&lab) == 0);
    lab.ports[0].set_link(true);
    until("port 1 is up", || lab.client().ask::<Ports>(&ControlRequest::Ports).unwrap().ports[0].up);
}
