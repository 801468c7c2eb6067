// SPDX-License-Identifier: Apache-2.0
//! Push and pop of stateless headers.

use super::after;
use super::frames::{self, ethernet, udp};
use flow::action::{KeyHeader, PolkaHeader, TfHeader};
use flow::{Action, DropReason};
use proptest::prelude::*;
use wire::tf::Form;

fn push_key(key: &[u8], hops: u8, epoch: u8) -> Action {
    Action::PushKey(KeyHeader { key: key.into(), hops, epoch })
}

/// Pads to the minimum length of an Ethernet frame, as a pop does.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// Returns the UDP test packet, preceded by the headers that `built` contains.
fn under(built: wire::PacketBuilder) -> Vec<u8> {
    let packet = udp();
    let mut bytes = built.ipv4([0; 4], [0; 4]).build();
    bytes.truncate(bytes.len() - 20);
    [&bytes[..], &packet[14..]].concat()
}

#[test]
fn pushed_headers_equal_those_of_the_builder() {
    let key: Vec<u8> = (1..=32).collect();
    for (units, epoch) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
        let key = &key[..8 * units];
        let pushed = after(&[push_key(key, 9, epoch)], &udp()).unwrap();
        assert_eq!(pushed, under(ethernet().keyflow(epoch, 9, key)));
    }
    let header = PolkaHeader { key: 0x8003_8004_0005 << 64 | 7, ttl: 9 };
    let pushed = after(&[Action::PushPolka(header)], &udp()).unwrap();
    assert_eq!(pushed, under(ethernet().polka(9, header.key)));
    let header = TfHeader { qid: 5, up: 0x1bcd_ef01, down: 0x1abc };
    let pushed = after(&[Action::PushTf(header)], &udp()).unwrap();
    assert_eq!(pushed, under(ethernet().tf(Form::Paper, 5, header.up, header.down)));
    let pushed = after(&[Action::PushTfWide(header)], &udp()).unwrap();
    assert_eq!(pushed, under(ethernet().tf(Form::Wide, 5, header.up, header.down)));
}

#[test]
fn pops_need_their_complete_header_directly_after_the_macs() {
    let [key, tf] = [Action::PopKey, Action::PopTf].map(|action| [action]);
    let polka = under(ethernet().polka(64, 5));
    assert_eq!(after(&key, &polka).unwrap(), padded(udp()));
    let keyflow = under(ethernet().keyflow(0, 9, &[1; 8]));
    for frame in [&udp()[..], &keyflow[..29], &polka[..33], &under(ethernet().tf(Form::Paper, 0, 1, 2))] {
        assert_eq!(after(&key, frame), Err(DropReason::MissingHeader));
    }
    for frame in [&udp()[..], &keyflow, &ethernet().tf(Form::Wide, 0, 1, 2).build()[..21]] {
        assert_eq!(after(&tf, frame), Err(DropReason::MissingHeader));
    }
    let behind_tag = [push_key(&[1; 8], 1, 0), Action::PushVlan(0x8100), Action::PopKey];
    assert_eq!(after(&behind_tag, &udp()), Err(DropReason::MissingHeader));
}

#[test]
fn the_headroom_limits_pushed_tags() {
    let three = vec![push_key(&[1; 32], 1, 0); 3];
    assert_eq!(after(&three, &udp()).unwrap().len(), udp().len() + 120);
    let one_more = [three, vec![Action::PushTf(TfHeader { qid: 0, up: 0, down: 0 })]].concat();
    assert_eq!(after(&one_more, &udp()).unwrap().len(), udp().len() + 128);
    assert_eq!(
        after(&[one_more, vec![Action::PushVlan(0x8100)]].concat(), &udp()),
        Err(DropReason::NoHeadroom)
    );
}

proptest! {
    /// Pushed headers must be popped from any frame, including LLC and truncated frames.
    #[test]
    fn pushed_headers_can_be_popped(frame in frames::broken(), units in 1usize..5, byte: u8, epoch in 0u8..2) {
        prop_assume!(frame.len() >= 14);
        let key = push_key(&vec![byte; 8 * units], byte, epoch);
        let header = TfHeader { qid: byte & 7, up: u32::from(byte), down: u16::from(byte) };
        for (push, pop) in [
            (key, Action::PopKey),
            (Action::PushPolka(PolkaHeader { key: u128::from(byte) << 60, ttl: byte }), Action::PopKey),
            (Action::PushTf(header), Action::PopTf),
            (Action::PushTfWide(header), Action::PopTf),
        ] {
            prop_assert_eq!(after(&[push, pop], &frame).unwrap(), padded(frame.clone()));
        }
    }
}
