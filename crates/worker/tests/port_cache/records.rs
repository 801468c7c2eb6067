// SPDX-License-Identifier: Apache-2.0
//! The number of path records per port is limited, and pending flows are never victims.

use crate::lab::{LIMITS, Lab, packet, slow};
use pipeline::LaneLimits;
use port_cache::{MissFigures, MissLimits, PortCacheConfig, Victim};

/// Returns a switch whose ports have at most four records, and whose keys hold the UDP port.
fn small(victim: Victim, searcher: PortCacheConfig) -> Lab {
    let limits = MissLimits { entries: 4, records: 4, victim, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..searcher }, LaneLimits::NONE);
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
    lab.turn();
    lab
}

impl Lab {
    /// Sends a packet of a flow from a port to host 2. Returns whether the flow was searched.
    fn asks(&mut self, port: usize, flow: u16) -> bool {
        let before = self.figures().searched;
        self.push(port, &packet(flow, 2, flow.into()));
        self.turn();
        assert_eq!(self.sent(2), [flow.into()]);
        let MissFigures { searched, .. } = self.figures();
        searched > before
    }

    fn records(&mut self) -> u64 {
        self.model.plane_mut().express_figures().records
    }
}

#[test]
fn a_port_keeps_its_number_of_records() {
    for victim in [Victim::Clock, Victim::LeastRecentlyUsed] {
        let mut lab = small(victim, PortCacheConfig::default());
        assert!((100..104).all(|flow| lab.asks(3, flow)));
        for flow in 1..=10 {
            assert!(lab.asks(1, flow));
            assert_eq!(lab.records(), 4 + u64::from(flow).min(4));
        }
        assert_eq!(lab.figures().evicted, 6);
        assert!((7..=10).all(|flow| !lab.asks(1, flow)), "the newest flows have records");
        assert!((1..=6).all(|flow| lab.asks(1, flow)), "the other flows are searched again");
        assert!((100..104).all(|flow| !lab.asks(3, flow)), "other ports keep their records");
    }
}

#[test]
fn flows_that_are_in_use_keep_their_records() {
    for victim in [Victim::Clock, Victim::LeastRecentlyUsed] {
        let mut lab = small(victim, PortCacheConfig::default());
        (1..=4).for_each(|flow| assert!(lab.asks(1, flow)));
        for flow in 5..50 {
            assert!(!lab.asks(1, 1), "flow 1 is in use");
            assert!(lab.asks(1, flow));
        }
        assert_eq!((lab.records(), lab.figures().evicted), (4, 45));
    }
}

#[test]
fn records_that_end_with_their_key_plan_are_not_counted() {
    let mut lab = small(Victim::Clock, PortCacheConfig::default());
    (1..=4).for_each(|flow| assert!(lab.asks(1, flow)));
    lab.flow("priority=60000,udp,tp_src=1,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.turn();
    (1..=4).for_each(|flow| {
        lab.asks(1, flow);
    });
    assert!((1..=4).all(|flow| !lab.asks(1, flow)));
    assert_eq!((lab.records(), lab.figures().evicted), (4, 0));
}

#[test]
fn pending_flows_are_never_victims() {
    let mut lab = small(Victim::Clock, slow());
    (1..=4).for_each(|flow| lab.push(1, &packet(flow, 2, flow.into())));
    lab.turn();
    assert_eq!((lab.totals().held, lab.records()), (4, 0));
    // Further flows use the tables. They get no record, because all entries are pending.
    for flow in [5, 5, 6] {
        lab.push(1, &packet(flow, 2, flow.into()));
        lab.turn();
    }
    let MissFigures { searched, uncached, evicted, .. } = lab.figures();
    assert_eq!((lab.sent(2), searched, uncached, evicted, lab.records()), (vec![5, 5, 6], 4, 3, 0, 0));
    (0..5).for_each(|_| lab.answer());
    assert_eq!((lab.sent(2), lab.records(), lab.totals().held), ((1..=4).collect(), 4, 0));
    // A new flow takes the entry of a record while it is pending.
    lab.push(1, &packet(9, 2, 9));
    lab.turn();
    assert_eq!((lab.records(), lab.figures().evicted, lab.totals().held), (3, 1, 1));
}
