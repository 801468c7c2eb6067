// SPDX-License-Identifier: Apache-2.0
//! PolKA in freeRtr's format: each key encodes a path as a sequence of node indices.

use super::{bank, ethernet, ports, under};
use flow::stateless::{Arithmetic, Label};
use flow::{DropReason, PortNo, StatelessConfig};
use reference::{StatelessOutcome, stateless};

/// Polynomials of the indices 0, 1, and so on.
const POLYNOMIALS: [u32; 9] =
    [0x10000, 0x10001, 0x10003, 0x10005, 0x10009, 0x1000f, 0x10011, 0x1001b, 0x1001d];

/// Indices of the nodes after the first, and the key (the vectors of controller/tests/plan/test_polka.py).
const GOLDEN: [(&[u32], u128); 6] = [
    (&[2, 3], 0x8003_8005),
    (&[1, 2, 3], 0x8003_8004_0005),
    (&[1, 2, 3, 4], 0xb7f9_f81e_77d4_3831),
    (&[1, 2, 3, 4, 5, 6, 7], 0x83fd_cc70_6c83_6d60_531c_4f64_5214),
    (&[8, 7, 6, 5, 4, 3, 2, 1], 0x28e9_36c2_4653_85e4_669f_a5e8_f33f_edd4),
    (&[1, 2, 3, 4, 5, 6, 7, 8], 0xf7f9_2e60_08e6_1692_b3c4_ff36_f571_7e6c),
];

/// Returns a node. Its port to index `i` is 100 + i, and packets for itself enter its tables.
fn node(index: u32) -> StatelessConfig {
    let mut bank = bank(Arithmetic::Polynomial, POLYNOMIALS[index as usize], &[None]);
    bank.labels.extend((1..9).map(|next| (next, Label::Port(PortNo(100 + next)))));
    StatelessConfig { polka: Some(bank), trusted: [PortNo(99)].into(), ..StatelessConfig::default() }
}

#[test]
fn keys_lead_from_index_to_index() {
    let ports = ports(99..=108);
    for (path, key) in GOLDEN {
        let mut frame = under(ethernet().polka(64, key));
        for (ttl, hop) in (0..64).rev().zip(path.windows(2)) {
            let StatelessOutcome::Sent(sent) = stateless(&node(hop[0]), &ports, PortNo(99), &frame) else {
                panic!("node {} of {path:?} does not send the packet", hop[0])
            };
            assert_eq!((sent.port, &sent.bytes), (PortNo(100 + hop[1]), &under(ethernet().polka(ttl, key))));
            frame = sent.bytes;
        }
        assert_eq!(
            stateless(&node(path[path.len() - 1]), &ports, PortNo(99), &frame),
            StatelessOutcome::Tables
        );
    }
}

#[test]
fn a_ttl_of_1_is_exhausted() {
    let at = |index, ttl| {
        stateless(&node(index), &ports(99..=108), PortNo(99), &under(ethernet().polka(ttl, GOLDEN[0].1)))
    };
    assert!(matches!(at(2, 2), StatelessOutcome::Sent(_)));
    assert_eq!([at(2, 1), at(2, 0)], [const { StatelessOutcome::Dropped(DropReason::HopLimit) }; 2]);
    assert_eq!(at(3, 0), StatelessOutcome::Tables);
}

#[test]
fn bitmaps_and_truncated_headers_are_malformed() {
    let damaged = StatelessOutcome::Dropped(DropReason::MalformedTag);
    let mut frame = under(ethernet().polka(64, GOLDEN[0].1));
    for len in 14..34 {
        assert_eq!(stateless(&node(2), &ports(99..=108), PortNo(99), &frame[..len]), damaged, "{len} bytes");
    }
    assert!(matches!(
        stateless(&node(2), &ports(99..=108), PortNo(99), &frame[..34]),
        StatelessOutcome::Sent(_)
    ));
    frame[14] = 1;
    assert_eq!(stateless(&node(2), &ports(99..=108), PortNo(99), &frame), damaged);
}
