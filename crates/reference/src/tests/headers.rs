// SPDX-License-Identifier: Apache-2.0
//! Tests of push, pop and TTL actions.

use super::frames::{self, DST, SRC, ethernet, ipv4, ipv6, udp, wrong_checksums};
use super::{after, run};
use flow::{Action, DropReason, Field, GroupId, Instructions, PortNo};
use proptest::prelude::*;

/// Returns a frame with these bytes after the MAC addresses.
fn frame(rest: &[u8]) -> Vec<u8> {
    [&DST[..], &SRC, rest].concat()
}

/// Pads to the minimum length of an Ethernet frame, as a pop does.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

#[test]
fn push_vlan_copies_the_outermost_tag() {
    let plain = frame(&[8, 6, 1, 2]);
    let once = after(&[Action::PushVlan(0x8100)], &plain).unwrap();
    assert_eq!(once, frame(&[0x81, 0, 0, 0, 8, 6, 1, 2]));
    let tagged = frame(&[0x81, 0, 0xf0, 5, 8, 6, 1, 2]);
    let twice = after(&[Action::PushVlan(0x88a8)], &tagged).unwrap();
    assert_eq!(twice, frame(&[0x88, 0xa8, 0xf0, 5, 0x81, 0, 0xf0, 5, 8, 6, 1, 2]));
    let set = [Action::PushVlan(0x8100), Action::set(Field::VlanVid, 0x1007), Action::set(Field::VlanPcp, 3)];
    assert_eq!(after(&set, &plain).unwrap(), frame(&[0x81, 0, 0x60, 7, 8, 6, 1, 2]));
    // A truncated tag does not count as a tag. The new tag is complete, and the old bytes follow it.
    let cut = frame(&[0x81, 0, 0, 9]);
    assert_eq!(after(&[Action::PushVlan(0x8100)], &cut).unwrap(), frame(&[0x81, 0, 0, 0, 0x81, 0, 0, 9]));
    // LLC frames can be tagged.
    let llc = frame(&[0, 3, 0x42, 0x42, 3]);
    assert_eq!(
        after(&[Action::PushVlan(0x8100)], &llc).unwrap(),
        frame(&[0x81, 0, 0, 0, 0, 3, 0x42, 0x42, 3])
    );
}

#[test]
fn pop_vlan_needs_a_tag() {
    let tagged = frame(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 6]);
    let pop = Action::PopVlan;
    assert_eq!(after(std::slice::from_ref(&pop), &tagged).unwrap(), padded(frame(&[0x81, 0, 0, 2, 8, 6])));
    assert_eq!(after(&[pop.clone(), pop.clone()], &tagged).unwrap(), padded(frame(&[8, 6])));
    assert_eq!(after(&[pop.clone(), pop.clone(), pop.clone()], &tagged), Err(DropReason::MissingVlan));
    assert_eq!(after(&[pop], &frame(&[0x81, 0, 0])), Err(DropReason::MissingVlan));
}

#[test]
fn push_mpls_copies_from_the_shim_or_ip() {
    let push = |frame: &[u8]| after(&[Action::PushMpls(0x8847)], frame).unwrap();
    let on_ip = push(&ipv4().ttl(33).udp(1, 2).build());
    assert_eq!(on_ip[12..19], [0x88, 0x47, 0, 0, 1, 33, 0x45]);
    assert_eq!(push(&ipv6().ttl(34).build())[12..19], [0x88, 0x47, 0, 0, 1, 34, 0x60]);
    assert_eq!(push(&frame(&[8, 6, 9])), frame(&[0x88, 0x47, 0, 0, 1, 0, 9]));
    let shim = frame(&[0x88, 0x48, 0xab, 0xcd, 0xef, 7]);
    assert_eq!(push(&shim), frame(&[0x88, 0x47, 0xab, 0xcd, 0xee, 7, 0xab, 0xcd, 0xef, 7]));
    // The shim is pushed after the VLAN tags.
    let tagged = frame(&[0x81, 0, 0, 1, 8, 6, 9]);
    assert_eq!(push(&tagged), frame(&[0x81, 0, 0, 1, 0x88, 0x47, 0, 0, 1, 0, 9]));
    let llc = frame(&[0, 3, 0x42, 0x42, 3]);
    assert_eq!(after(&[Action::PushMpls(0x8847)], &llc), Err(DropReason::MissingHeader));
}

#[test]
fn pop_mpls_undoes_push_mpls() {
    let pop = Action::PopMpls(0x0800);
    assert_eq!(after(&[Action::PushMpls(0x8848), pop.clone()], &udp()).unwrap(), padded(udp()));
    assert_eq!(after(std::slice::from_ref(&pop), &udp()), Err(DropReason::MissingMpls));
    assert_eq!(
        after(std::slice::from_ref(&pop), &frame(&[0x88, 0x47, 0, 0, 1])),
        Err(DropReason::MissingMpls)
    );
    // The headers after the shim are parsed again.
    let shimmed = ethernet().mpls(5, 0, 9).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).build();
    let popped = after(&[pop, Action::set(Field::UdpDst, 53)], &shimmed).unwrap();
    assert_eq!((popped[12..14].to_vec(), popped[36..38].to_vec()), (vec![8, 0], vec![0, 53]));
    assert!(wrong_checksums(&popped).is_empty());
}

#[test]
fn the_headroom_limits_the_growth_of_frames() {
    let pushes = |count| vec![Action::PushVlan(0x8100); count];
    assert_eq!(after(&pushes(32), &udp()).unwrap().len(), udp().len() + 128);
    assert_eq!(after(&pushes(33), &udp()), Err(DropReason::NoHeadroom));
    let shims = vec![Action::PushMpls(0x8847); 33];
    assert_eq!(after(&shims, &udp()), Err(DropReason::NoHeadroom));
    // A pop frees headroom for another push.
    let mut back = pushes(32);
    back.extend([Action::PopVlan, Action::PushVlan(0x8100)]);
    assert_eq!(after(&back, &udp()).unwrap().len(), udp().len() + 128);
}

#[test]
fn network_ttl() {
    for packet in [ipv4().ttl(2).udp(1, 2).build(), ipv6().ttl(2).udp(1, 2).build()] {
        let at = if packet[12] == 8 { 22 } else { 21 };
        let once = after(&[Action::DecNwTtl], &packet).unwrap();
        assert_eq!(once[at], 1);
        assert!(wrong_checksums(&once).is_empty());
        assert_eq!(after(&[Action::DecNwTtl, Action::DecNwTtl], &packet), Err(DropReason::TtlExpired));
        assert_eq!(after(&[Action::SetNwTtl(0), Action::DecNwTtl], &packet), Err(DropReason::TtlExpired));
        let set = after(&[Action::SetNwTtl(200)], &packet).unwrap();
        assert_eq!(set[at], 200);
        assert!(wrong_checksums(&set).is_empty());
    }
    let arp = ethernet().arp(1, SRC, [1; 4], DST, [2; 4]).build();
    assert_eq!(after(&[Action::DecNwTtl], &arp), Err(DropReason::MissingHeader));
    assert_eq!(after(&[Action::SetNwTtl(1)], &arp), Err(DropReason::MissingHeader));
    // An IP header after MPLS is not accessible.
    assert_eq!(after(&[Action::PushMpls(0x8847), Action::DecNwTtl], &udp()), Err(DropReason::MissingHeader));
}

#[test]
fn mpls_ttl() {
    let shim = frame(&[0x88, 0x47, 0, 0, 1, 2]);
    assert_eq!(after(&[Action::DecMplsTtl], &shim).unwrap()[17], 1);
    assert_eq!(after(&[Action::DecMplsTtl, Action::DecMplsTtl], &shim), Err(DropReason::TtlExpired));
    assert_eq!(after(&[Action::SetMplsTtl(99)], &shim).unwrap()[17], 99);
    assert_eq!(after(&[Action::SetMplsTtl(99)], &udp()), Err(DropReason::MissingMpls));
    assert_eq!(after(&[Action::DecMplsTtl], &udp()), Err(DropReason::MissingMpls));
}

#[test]
fn copying_ttls_needs_two_headers() {
    let (inwards, out) = ([Action::CopyTtlIn], [Action::CopyTtlOut]);
    let shims = frame(&[0x88, 0x47, 0, 0, 0, 5, 0, 0, 1, 9]);
    assert_eq!(after(&inwards, &shims).unwrap()[17..22], [5, 0, 0, 1, 5]);
    assert_eq!(after(&out, &shims).unwrap()[17..22], [9, 0, 0, 1, 9]);
    let v4 = ethernet().mpls(1, 0, 5).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ttl(9).udp(1, 2).build();
    assert_eq!(after(&out, &v4).unwrap()[17], 9);
    let copied = after(&[inwards[0].clone(), Action::PopMpls(0x0800)], &v4).unwrap();
    assert_eq!(copied[22], 5);
    assert!(wrong_checksums(&copied).is_empty());
    let v6 = ethernet().mpls(1, 0, 5).ipv6([1; 16], [2; 16]).ttl(9).udp(1, 2).build();
    assert_eq!((after(&out, &v6).unwrap()[17], after(&inwards, &v6).unwrap()[25]), (9, 5));
    // Copying a TTL does nothing if there is only one TTL, or if the second header is truncated.
    let cut_shims = &shims[..21];
    let not_ip = frame(&[0x88, 0x47, 0, 0, 1, 5, 0x35, 0, 0, 40]);
    for one in [&udp()[..], &v4[..37], &v6[..57], cut_shims, &not_ip, &frame(&[8, 6])] {
        assert_eq!(after(&inwards, one).unwrap(), one);
        assert_eq!(after(&out, one).unwrap(), one);
    }
}

#[test]
fn push_pbb_copies_the_macs() {
    let push = [Action::PushPbb(0x88e7)];
    let customer = |service: u32, rest: &[u8]| {
        frame(&[&[0x88, 0xe7], &service.to_be_bytes()[..], &frame(rest)].concat())
    };
    assert_eq!(after(&push, &frame(&[8, 6, 9])).unwrap(), customer(0, &[8, 6, 9]));
    // The priority is copied from a tag, and the service instance from an I-tag that directly follows the MAC
    // addresses or a tag.
    let tagged = [0x81, 0, 0xb0, 5, 8, 6, 9];
    assert_eq!(after(&push, &frame(&tagged)).unwrap(), customer(0xa000_0000, &tagged));
    let bare = [0x88, 0xe7, 0xf8, 1, 2, 3, 9];
    assert_eq!(after(&push, &frame(&bare)).unwrap(), customer(0x0001_0203, &bare));
    let behind_tag = [&[0x88, 0xa8, 0xe0, 0], &bare[..]].concat();
    assert_eq!(after(&push, &frame(&behind_tag)).unwrap(), customer(0xe001_0203, &behind_tag));
    let llc = [0, 3, 0x42, 0x42, 3];
    assert_eq!(after(&push, &frame(&llc)).unwrap(), customer(0, &llc));
    // Writes the backbone's MAC address and the service instance. The customer's addresses do not change.
    let set = [Action::PushPbb(0x88e7), Action::set(Field::EthDst, 1), Action::set(Field::PbbIsid, 7)];
    let written = after(&set, &udp()).unwrap();
    assert_eq!(
        (&written[..6], &written[14..18], &written[18..]),
        (&[0, 0, 0, 0, 0, 1][..], &[0, 0, 0, 7][..], &udp()[..])
    );
    assert_eq!(after(&vec![Action::PushPbb(0x88e7); 8], &udp()), Err(DropReason::NoHeadroom));
}

#[test]
fn pop_pbb_leaves_the_customers_frame() {
    let pop = [Action::PopPbb];
    let both = [Action::PushPbb(0x88e7), Action::PopPbb];
    assert_eq!(after(&both, &udp()).unwrap(), padded(udp()));
    let around = |rest: &[u8]| frame(&[&[0x88, 0xe7, 0, 0, 0, 1], rest].concat());
    assert_eq!(after(&pop, &around(&frame(&[8, 6]))).unwrap(), padded(frame(&[8, 6])));
    assert_eq!(
        after(&pop, &around(&frame(&[8]))),
        Err(DropReason::MissingHeader),
        "no whole Ethernet header"
    );
    assert_eq!(after(&pop, &udp()), Err(DropReason::MissingHeader));
    let behind_tag = [Action::PushPbb(0x88e7), Action::PushVlan(0x88a8), Action::PopPbb];
    assert_eq!(after(&behind_tag, &udp()), Err(DropReason::MissingHeader));
    // The headers after the I-tag are parsed again.
    let twice = [both[0].clone(), both[0].clone(), pop[0].clone(), pop[0].clone(), Action::DecNwTtl];
    assert!(wrong_checksums(&after(&twice, &udp()).unwrap()).is_empty());
}

#[test]
fn unsupported_actions_drop() {
    assert_eq!(after(&[Action::set(Field::Metadata, 1)], &udp()), Err(DropReason::UnsupportedAction));
    // A missing group is recorded, and the packet continues.
    let done = run(Instructions::apply(vec![Action::Group(GroupId(1)), Action::output(PortNo(2))]), &udp());
    assert_eq!((done.outcome, done.copy_drops), (flow::Outcome::Forwarded, vec![DropReason::NoSuchGroup]));
}

#[test]
fn outputs_before_a_failing_action_stay() {
    let actions = vec![Action::output(PortNo(2)), Action::PopVlan, Action::output(PortNo(3))];
    let done = run(Instructions::apply(actions), &udp());
    assert_eq!((done.sent.len(), done.sent[0].port), (1, PortNo(2)));
    assert_eq!((done.outcome, done.copy_drops), (flow::Outcome::Forwarded, vec![DropReason::MissingVlan]));
}

fn any_action() -> impl Strategy<Value = Action> {
    let tpid = prop_oneof![Just(0x8100u16), Just(0x88a8)];
    let eth_type = prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x8847), Just(0x0806), any::<u16>()];
    prop_oneof![
        tpid.prop_map(Action::PushVlan),
        Just(Action::PopVlan),
        Just(Action::PushMpls(0x8847)),
        Just(Action::PushPbb(0x88e7)),
        Just(Action::PopPbb),
        eth_type.clone().prop_map(Action::PopMpls),
        Just(Action::CopyTtlIn),
        Just(Action::CopyTtlOut),
        Just(Action::DecNwTtl),
        Just(Action::DecMplsTtl),
        any::<u8>().prop_map(Action::SetNwTtl),
        any::<u8>().prop_map(Action::SetMplsTtl),
        eth_type.prop_map(|eth_type| Action::set(Field::EthType, eth_type.into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// Executes random actions on random frames. No action may panic, and the length of the frame must follow
    /// from its pushes and pops. After a pop, padding may make the frame longer.
    #[test]
    fn frame_lengths_follow_from_pushes_and_pops(frame in frames::broken(), actions in prop::collection::vec(any_action(), 0..8)) {
        prop_assume!(frame.len() >= 14);
        let length = actions.iter().fold(frame.len() as isize, |length, action| match action {
            Action::PushVlan(_) | Action::PushMpls(_) => length + 4,
            Action::PushPbb(_) => length + 18,
            Action::PopVlan | Action::PopMpls(_) => (length - 4).max(60),
            Action::PopPbb => (length - 18).max(60),
            _ => length,
        });
        if let Ok(bytes) = after(&actions, &frame) {
            prop_assert_eq!(bytes.len() as isize, length);
        }
    }

    #[test]
    fn a_pushed_tag_can_be_popped(frame in frames::broken()) {
        prop_assume!(frame.len() >= 14);
        prop_assert_eq!(after(&[Action::PushVlan(0x8100), Action::PopVlan], &frame).unwrap(), padded(frame.clone()));
        prop_assert_eq!(after(&[Action::PushPbb(0x88e7), Action::PopPbb], &frame).unwrap(), padded(frame));
    }
}
