// SPDX-License-Identifier: Apache-2.0
//! The blocking mode: a port with a pending search receives nothing.

use crate::lab::{LIMITS, Lab, packet, slow};
use flow::{DropReason, Nanos};
use pipeline::LaneLimits;
use port_cache::{MissFigures, MissLimits, MissMode, PortCacheConfig};

#[test]
fn a_blocked_port_receives_nothing_until_the_answer_and_other_ports_go_on() {
    let mut lab = Lab::warm(PortCacheConfig { mode: MissMode::Blocking, ..slow() });
    let before = lab.totals();
    // Packet 1 has no record. Packets 2 to 4 have arrived behind it.
    lab.push(1, &packet(1, 2, 0));
    lab.push(1, &packet(1, 3, 1));
    [2, 3].into_iter().for_each(|number| lab.push(1, &packet(1, 2, number)));
    lab.push(1, &packet(1, 3, 4));
    for number in 10..60 {
        lab.push(3, &packet(1, 2, number));
        lab.turn();
    }
    let sent: Vec<u32> = [0].into_iter().chain(10..60).collect();
    assert_eq!((lab.sent(2), lab.sent(3)), (sent, vec![]));
    let totals = lab.totals();
    assert_eq!((totals.received - before.received, totals.held), (52, 1), "packets 2 to 4 are not received");
    lab.answer();
    assert_eq!((lab.sent(2), lab.sent(3), lab.totals().held), (vec![2, 3], vec![1, 4], 0));
    let MissFigures { searched, merged, .. } = lab.figures();
    assert_eq!((searched, merged), (3, 0), "two searches by the warm-up, and one");
}

#[test]
fn a_blocked_port_goes_on_when_the_search_is_given_up() {
    let limits = MissLimits { timeout_ns: Nanos(1_000_000), retries: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { mode: MissMode::Blocking, limits, ..slow() }, LaneLimits::NONE);
    (0..2).for_each(|number| lab.push(1, &packet(number as u16, 3, number)));
    lab.turn();
    assert_eq!((lab.figures().searched, lab.totals().held), (1, 1));
    (0..6).for_each(|_| {
        lab.now += Nanos(500_000);
        lab.turn();
    });
    // Both packets have the same key, so the second packet starts a search of its own.
    let MissFigures { searched, retried, timed_out, .. } = lab.figures();
    assert_eq!((searched, timed_out, lab.totals().held), (2, 1, 1), "{retried} repetitions");
    lab.answer();
    assert_eq!(lab.totals().dropped.of(DropReason::MissTimeout), lab.figures().timed_out);
}

#[test]
fn with_an_immediate_searcher_a_blocked_port_loses_and_reorders_nothing() {
    let config = PortCacheConfig { mode: MissMode::Blocking, ..PortCacheConfig::default() };
    let mut lab = Lab::new(config, LaneLimits::NONE);
    (0..64).for_each(|number| lab.push(1, &packet(number as u16 % 4, 3, number)));
    (0..64).for_each(|_| lab.turn());
    assert_eq!((lab.sent(3), lab.totals().held), ((0..64).collect(), 0));
}
