// SPDX-License-Identifier: Apache-2.0
//! Tests of the arithmetic with random numbers, and of stateless forwarding with hostile headers.

use super::ports;
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId};
use flow::{DropReason, PortNo, StatelessConfig};
use proptest::prelude::*;
use reference::{StatelessOutcome, output_gate, residue, stateless};
use std::num::NonZeroU32;

fn id(arithmetic: Arithmetic, modulus: u32) -> NodeId {
    NodeId::new(arithmetic, modulus).unwrap()
}

/// Computes a residue as switch hardware does: the CRC of all bytes except the last two, XORed with the last
/// two bytes.
fn crc16(key: &[u8], polynomial: u16) -> u16 {
    let (front, back) = key.split_at(key.len() - 2);
    let mut register = 0_u16;
    for byte in front {
        register ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = register >> 15;
            register = (register << 1) ^ (carry * polynomial);
        }
    }
    register ^ u16::from_be_bytes([back[0], back[1]])
}

/// Generates a port number below `end`.
fn any_port(end: u32) -> impl Strategy<Value = PortNo> {
    (1..end).prop_map(PortNo)
}

fn any_bank() -> impl Strategy<Value = Bank> {
    let labels = prop_oneof![3 => any_port(6).prop_map(Label::Port), 1 => Just(Label::Tables)];
    let labels = prop::collection::btree_map(0u32..40, labels, 0..40);
    let backups = prop::collection::btree_map(any_port(6), any_port(6), 0..4);
    let modulus = prop_oneof![4 => 2u32..40, 1 => 2u32..];
    (any::<bool>(), modulus, labels, backups).prop_map(|(is_integer, modulus, labels, backups)| {
        let arithmetic = if is_integer { Arithmetic::Integer } else { Arithmetic::Polynomial };
        Bank { id: id(arithmetic, modulus), labels, backups }
    })
}

fn any_gates() -> impl Strategy<Value = Gates> {
    let flag =
        prop::sample::select(vec![GateFlag::None, GateFlag::Server, GateFlag::External, GateFlag::Assists]);
    let gate =
        (1u32..30, flag).prop_map(|(number, flag)| Gate { number: NonZeroU32::new(number).unwrap(), flag });
    let ports = prop::collection::btree_map(any_port(7), gate, 0..7);
    (0u32..9, 0u32..9, 0u32..4, 0u32..30, ports).prop_map(
        |(down_d, up_d, external_d, server_gate_max, ports)| Gates {
            down_d,
            up_d,
            external_d,
            server_gate_max,
            ports,
        },
    )
}

fn any_stateless() -> impl Strategy<Value = StatelessConfig> {
    let bank = || prop::option::weighted(0.8, any_bank());
    let trusted = prop::collection::btree_set(any_port(7), 0..7);
    let mtu_bytes = prop::collection::btree_map(any_port(7), 20usize..70, 0..3);
    (bank(), bank(), bank(), prop::option::weighted(0.8, any_gates()), trusted, mtu_bytes).prop_map(
        |(first, second, polka, gates, trusted, mtu_bytes)| StatelessConfig {
            banks: [first, second],
            polka,
            gates,
            trusted,
            mtu_bytes,
            ..StatelessConfig::default()
        },
    )
}

/// Generates bytes after the MAC addresses that are likely to be a complete or truncated header.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let small = || prop_oneof![2 => 0u8..6, 1 => any::<u8>()];
    let head = prop_oneof![
        (Just([0x88, 0xb5]), prop_oneof![Just(0x10u8), Just(0x18), any::<u8>()]),
        (Just([0x88, 0x42]), prop_oneof![4 => Just(0u8), 1 => any::<u8>()]),
        (Just([0xff, 0x1f]), small()),
        (Just([0x88, 0xb6]), small()),
        (any::<[u8; 2]>(), any::<u8>()),
    ];
    let zeros_or_not = prop_oneof![
        1 => prop::collection::vec(Just(0u8), 60),
        2 => prop::collection::vec(small(), 60),
        1 => prop::collection::vec(any::<u8>(), 60),
    ];
    (head, small(), small(), zeros_or_not, 0usize..90).prop_map(
        |((eth_type, first), hops, units, rest, len)| {
            let mut frame = [&[2; 12], &eth_type[..], &[first, hops, units], &rest].concat();
            frame.truncate(len);
            frame
        },
    )
}

fn is_tag(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x88, 0xb5 | 0x42 | 0xb6] | [0xff, 0x1f]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn integer_residues(high: u128, low: u128, modulus in 2u32..) {
        let of = |key: &[u8]| u128::from(residue(key, id(Arithmetic::Integer, modulus)));
        let m = u128::from(modulus);
        prop_assert_eq!(of(&low.to_be_bytes()), low % m);
        let power = (u128::MAX % m + 1) % m;
        let both = [high.to_be_bytes(), low.to_be_bytes()].concat();
        prop_assert_eq!(of(&both), ((high % m) * power + low % m) % m);
    }

    #[test]
    fn polynomial_residues(key in prop::collection::vec(any::<u8>(), 2..33), polynomial: u16, modulus in 2u32.., at in 0usize..200) {
        let of = |key: &[u8], modulus| residue(key, id(Arithmetic::Polynomial, modulus));
        prop_assert_eq!(of(&key, 1 << 16 | u32::from(polynomial)), u32::from(crc16(&key, polynomial)));
        // The degree of the residue is below that of the modulus. Adding a multiple of the modulus does not
        // change the residue.
        let rest = of(&key, modulus);
        prop_assert!(rest == 0 || rest.ilog2() < modulus.ilog2());
        let mut other = key.clone();
        let at = at % (8 * key.len());
        for bit in (0..32).filter(|bit| modulus >> bit & 1 == 1) {
            if let Some(byte) = other.iter_mut().nth_back((at + bit) / 8) {
                *byte ^= 1 << ((at + bit) % 8);
            }
        }
        if at + (modulus.ilog2() as usize) < 8 * key.len() {
            prop_assert_eq!(of(&other, modulus), rest);
        }
    }

    #[test]
    fn output_gates(gate: u32, d in prop_oneof![0u32..40, any::<u32>()]) {
        let found = output_gate(gate, d);
        if d == 0 {
            prop_assert_eq!(found, 0);
        } else {
            prop_assert_eq!(found % u64::from(d), 0);
            prop_assert!((u64::from(gate)..u64::from(gate) + u64::from(d)).contains(&found));
        }
    }

    /// No input may cause a panic. Tags from untrusted ports must not be forwarded, and sent frames must have
    /// only documented changes.
    #[test]
    fn hostile_packets_are_handled_as_documented(config in any_stateless(), frame in any_frame(), in_port in any_port(7), up in prop::collection::btree_set(any_port(7), 0..7)) {
        match stateless(&config, &ports(up.iter().map(|port| port.0)), in_port, &frame) {
            StatelessOutcome::Tables => prop_assert!(!is_tag(&frame) || config.trusted.contains(&in_port)),
            StatelessOutcome::Dropped(reason) => {
                prop_assert!(is_tag(&frame));
                prop_assert_eq!(reason == DropReason::UntrustedTag, !config.trusted.contains(&in_port));
            }
            StatelessOutcome::Sent(sent) => {
                prop_assert!(is_tag(&frame) && config.trusted.contains(&in_port) && up.contains(&sent.port));
                prop_assert!(config.mtu_bytes.get(&sent.port).is_none_or(|mtu| sent.bytes.len() - 14 <= *mtu));
                check_bytes(&config, &frame, sent.port, &sent.bytes, sent.queue.0)?;
            }
        }
    }
}

fn check_bytes(
    config: &StatelessConfig,
    frame: &[u8],
    port: PortNo,
    bytes: &[u8],
    queue: u32,
) -> Result<(), TestCaseError> {
    if frame[12..14] == [0x88, 0xb5] || frame[12..14] == [0x88, 0x42] {
        let mut expected = frame.to_vec();
        expected[15] -= 1;
        prop_assert_eq!((bytes, queue), (&expected[..], 0));
    } else {
        let flag = config.gates.as_ref().unwrap().ports[&port].flag;
        let mut expected = frame.to_vec();
        if matches!(flag, GateFlag::Server | GateFlag::External) {
            expected.drain(12..20);
            expected.resize(expected.len().max(60), 0);
        }
        prop_assert_eq!((bytes, queue), (&expected[..], u32::from(frame[14] >> 5)));
    }
    Ok(())
}
