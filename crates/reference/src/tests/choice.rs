// SPDX-License-Identifier: Apache-2.0
//! Bucket selection, compared with fixed vectors and with `flow::group`.

use super::{four_ports, with_instructions};
use crate::Reference;
use crate::choice::{hash_of, is_live, mixed, share_of};
use crate::packet::ReferencePacket;
use flow::group::{Bucket, FlowHash, Group, GroupType, pick};
use flow::{Action, EntryId, GroupId, Instructions, Operation, PortNo, PortState, TableId};
use proptest::prelude::*;
use std::sync::Arc;

fn bucket(weight: u16, watch_port: Option<u32>, watch_group: Option<GroupId>, port: u32) -> Bucket {
    let watch_port = watch_port.map(PortNo);
    Bucket { weight, watch_port, watch_group, actions: vec![Action::output(PortNo(port))] }
}

fn set(reference: &mut Reference, id: GroupId, kind: GroupType, buckets: Vec<Bucket>) {
    reference.apply(&Operation::Group(Arc::new(Group { id, kind, buckets }))).unwrap();
}

fn down(reference: &mut Reference, port: u32) {
    reference.apply(&Operation::Port(PortState { up: false, ..PortState::up(PortNo(port)) })).unwrap();
}

/// Returns a UDP packet from 10.0.0.1:1000 to 10.0.0.2:2000, in VLAN 5 if `tagged`.
fn frame(tagged: bool) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if tagged {
        frame.extend([0x81, 0, 0xe0, 5]);
    }
    frame.extend([0x08, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 8, 0, 0]);
    frame
}

/// The expected values were computed by a separate program that was written from the documented semantics.
#[test]
fn hashes_have_fixed_values() {
    assert_eq!([mixed(b""), mixed(b"a"), mixed(b"shunt")], [0x8570_e254, 0x82b1_9d9c, 0x054a_69b3]);
    assert_eq!(hash_of(&ReferencePacket::arriving(PortNo(1), &frame(false))), 0xa68f_a85f);
    assert_eq!(hash_of(&ReferencePacket::arriving(PortNo(1), &frame(true))), 0x67ff_ac21);
}

#[test]
fn shares_follow_the_order_of_the_weights() {
    assert_eq!(share_of(0, &[0, 3, 1]), Some(1));
    assert_eq!(share_of(0xbfff_ffff, &[0, 3, 1]), Some(1));
    assert_eq!(share_of(0xc000_0000, &[0, 3, 1]), Some(2));
    assert_eq!(share_of(u32::MAX, &[0, 3, 1, 0]), Some(2));
    assert_eq!((share_of(7, &[0, 0]), share_of(7, &[])), (None, None));
}

#[test]
fn a_bucket_is_live_if_it_watches_nothing_or_something_live() {
    let mut reference = four_ports();
    set(&mut reference, GroupId(1), GroupType::FastFailover, vec![bucket(0, Some(2), None, 2)]);
    set(&mut reference, GroupId(2), GroupType::FastFailover, vec![bucket(0, None, Some(GroupId(1)), 2)]);
    let live = |reference: &Reference, port, group: Option<u32>| {
        is_live(reference, &bucket(0, port, group.map(GroupId), 2))
    };
    let asked = [(None, None), (Some(2), None), (Some(3), None), (Some(9), None), (None, Some(2))];
    let both = [(Some(3), Some(2)), (Some(2), Some(9)), (None, Some(9))];
    let all = |reference: &Reference| {
        asked.into_iter().chain(both).map(|(port, group)| live(reference, port, group)).collect::<Vec<_>>()
    };
    assert_eq!(all(&reference), [true, true, true, false, true, true, true, false]);
    down(&mut reference, 2);
    assert_eq!(all(&reference), [true, false, true, false, false, true, false, false]);
    down(&mut reference, 3);
    assert_eq!(all(&reference), [true, false, false, false, false, false, false, false]);
}

#[test]
fn a_select_group_skips_buckets_that_are_not_live() {
    let mut reference = with_instructions(Instructions::apply(Vec::new()));
    let buckets = vec![bucket(1, Some(2), None, 2), bucket(1, None, None, 3), bucket(2, Some(4), None, 4)];
    set(&mut reference, GroupId(1), GroupType::Select, buckets);
    let modify = flow::EntryChange::Modify {
        id: EntryId(7),
        table: TableId(0),
        instructions: Arc::new(Instructions::apply(vec![Action::Group(GroupId(1))])),
        low_latency: false,
        reset_counts: false,
    };
    reference.apply(&Operation::Entries(vec![modify])).unwrap();
    // The hash 0xa68fa85f is 0.65 of 2^32. It selects the third of three buckets with weights 1, 1 and 2. Of
    // two buckets with weights 1 and 1, or 1 and 2, it selects the second.
    assert_eq!(reference.process(PortNo(1), &frame(false)).sent[0].port, PortNo(4));
    down(&mut reference, 4);
    assert_eq!(reference.process(PortNo(1), &frame(false)).sent[0].port, PortNo(3));
    down(&mut reference, 2);
    assert_eq!(reference.process(PortNo(1), &frame(false)).groups, [(GroupId(1), vec![1])]);
}

proptest! {
    #[test]
    fn reference_and_flow_select_the_same_bucket(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        hash in any::<u32>(),
        weights in prop::collection::vec(prop_oneof![Just(0), 1..4u16, any::<u16>()], 0..6),
    ) {
        let mut other = FlowHash::default();
        other.add(&bytes);
        prop_assert_eq!(mixed(&bytes), other.finish());
        let wide: Vec<u128> = weights.iter().map(|weight| u128::from(*weight)).collect();
        prop_assert_eq!(share_of(hash, &wide), pick(hash, weights.iter().copied()));
    }
}
