// SPDX-License-Identifier: Apache-2.0
//! Group-mods: which of them are refused, which entries a deleted group removes, and which operations the
//! data plane gets.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::action::KeyHeader;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::Meter;
use flow::{
    Action, EntryFlags, FlowMod, FlowModCommand, GroupId, Instructions, Limits, Match, MeterId, Nanos,
    Operation, PortNo, RuleVersion,
};
use model::GroupCommand::{Add, Delete, DeleteAll, Modify};
use model::{AsyncMessage, Change, MeterCommand, ModelError, PortConfig, PortMod, RemovedReason};

fn group(id: GroupId, kind: GroupType, actions: &[Vec<Action>]) -> Group {
    let weight = u16::from(kind == GroupType::Select);
    let bucket = |actions: &Vec<Action>| Bucket { weight, actions: actions.clone(), ..Bucket::default() };
    Group { id, kind, buckets: actions.iter().map(bucket).collect() }
}

fn all(id: u32, actions: &[Vec<Action>]) -> Group {
    group(GroupId(id), GroupType::All, actions)
}

#[test]
fn groups_are_added_modified_and_deleted_with_their_entries() {
    let mut m = plain();
    let to_group = |id| Instructions { write: vec![Action::Group(id)], ..Instructions::default() };
    let entry = |id| FlowMod { instructions: to_group(id), ..add(1, mac(1), PortNo(0)) };
    assert_eq!(m.flow_mod(Nanos(0), entry(GroupId(7))).unwrap_err(), ModelError::NoSuchGroup(GroupId(7)));
    m.group_mod(Nanos(0), Add, all(7, &[vec![Action::output(PortNo(1))], vec![Action::output(PortNo(2))]]))
        .unwrap();
    m.flow_mod(Nanos(0), entry(GroupId(7))).unwrap();
    m.flow_mod(Nanos(0), add(1, mac(2), PortNo(1))).unwrap();
    assert_eq!(m.group(Nanos(5), GroupId(7)).unwrap().references, 1);
    m.group_mod(Nanos(0), Modify, all(7, &[])).unwrap();
    assert_eq!(m.group(Nanos(5), GroupId(7)).unwrap().group.buckets.len(), 0);
    m.group_mod(Nanos(9), Delete, all(7, &[])).unwrap();
    assert_eq!((m.group_ids(), m.flow_count()), (vec![], 1), "the entries of the group are deleted with it");
    m.group_mod(Nanos(9), Delete, all(7, &[])).unwrap();
    let reported = m.plane_mut().operations.iter().filter(|op| matches!(op, Operation::Group(_))).count();
    assert_eq!(reported, 2);
    let Some(Operation::All(last)) = m.plane_mut().operations.last() else {
        panic!("expected one operation")
    };
    assert!(
        matches!(&last[..], [Operation::RemoveGroup(GroupId(7)), Operation::Entries(gone)] if gone.len() == 1)
    );
}

#[test]
fn entries_deleted_with_their_group_are_reported() {
    let mut m = plain();
    m.group_mod(Nanos(0), Add, all(7, &[])).unwrap();
    let flags = EntryFlags { send_flow_removed: true, ..EntryFlags::default() };
    let instructions = Instructions { write: vec![Action::Group(GroupId(7))], ..Instructions::default() };
    m.flow_mod(Nanos(0), FlowMod { flags, instructions, ..add(1, mac(1), PortNo(0)) }).unwrap();
    m.group_mod(Nanos(2), Delete, all(7, &[])).unwrap();
    let reported = poll_all(&mut m, Nanos(3));
    assert!(
        matches!(&reported[..], [AsyncMessage::FlowRemoved(f)] if f.reason == RemovedReason::GroupDelete),
        "{reported:?}"
    );
}

#[test]
fn references_are_counted_through_all_changes_of_entries() {
    let mut m = plain();
    for id in [1, 2] {
        m.group_mod(Nanos(0), Add, all(id, &[])).unwrap();
    }
    let to = |id| Instructions::apply(vec![Action::Group(id), Action::Group(id)]);
    let entry = |n: u64, id| FlowMod { instructions: to(id), ..add(1, mac(n.into()), PortNo(0)) };
    let references = |m: &mut Fake| [1, 2].map(|id| m.group(Nanos(0), GroupId(id)).unwrap().references);
    for n in 0..4 {
        m.flow_mod(Nanos(0), entry(n, GroupId(1))).unwrap();
    }
    assert_eq!(references(&mut m), [4, 0]);
    m.flow_mod(Nanos(0), entry(0, GroupId(2))).unwrap();
    m.flow_mod(Nanos(0), command(FlowModCommand::ModifyStrict, entry(1, GroupId(2)))).unwrap();
    assert_eq!(references(&mut m), [2, 2], "replaced and modified");
    m.flow_mod(Nanos(0), command(FlowModCommand::DeleteStrict, entry(2, GroupId(0)))).unwrap();
    m.flow_mod(Nanos(0), FlowMod { hard_timeout_s: 1, ..entry(5, GroupId(1)) }).unwrap();
    assert_eq!(references(&mut m), [2, 2]);
    poll_all(&mut m, 2 * SECOND);
    assert_eq!(references(&mut m), [1, 2], "timed out");
    // A failed bundle leaves the counts unchanged.
    let failing = [
        Change::from(entry(8, GroupId(1))),
        Change::from(command(FlowModCommand::ModifyStrict, entry(1, GroupId(1)))),
        Change::Group(Delete, all(2, &[])),
        Change::Group(Add, all(2, &[vec![Action::Group(GroupId(1))]])),
        Change::from(command(
            FlowModCommand::Delete,
            FlowMod { matching: Match::any(), ..entry(0, GroupId(0)) },
        )),
        Change::Group(Modify, all(9, &[])),
    ];
    assert_eq!(m.bundle(Nanos(0), failing).unwrap_err(), (5, ModelError::UnknownGroup(GroupId(9))));
    assert_eq!((references(&mut m), m.flow_count()), ([1, 2], 3));
    m.group_mod(Nanos(0), Modify, all(2, &[vec![Action::Group(GroupId(1))]])).unwrap();
    assert_eq!(references(&mut m), [2, 2], "a group counts as a reference");
    m.flow_mod(Nanos(0), delete_all()).unwrap();
    assert_eq!(references(&mut m), [1, 0]);
}

#[test]
fn a_bundle_of_groups_meters_ports_and_flows_is_one_operation_or_none() {
    let mut m = plain();
    m.add_port(Nanos(0), port(PortNo(4)), true).unwrap();
    poll_all(&mut m, Nanos(0));
    let before = m.barrier();
    let meter = Meter { id: MeterId(5), packets: true, stats: true, burst: false, bands: Vec::new() };
    let down = PortConfig { down: true, ..PortConfig::default() };
    let port_mod = PortMod { number: PortNo(4), config: down, mask: down, ..PortMod::default() };
    let entry = FlowMod {
        instructions: Instructions {
            meter: Some(MeterId(5)),
            apply: vec![Action::Group(GroupId(2))],
            ..Instructions::default()
        },
        ..add(1, mac(1), PortNo(0))
    };
    let good = vec![
        Change::Group(Add, all(1, &[vec![Action::output(PortNo(4))]])),
        Change::Group(Add, all(2, &[vec![Action::Group(GroupId(1))]])),
        Change::Meter(MeterCommand::Add, meter),
        Change::Port(port_mod),
        Change::Flow(entry),
    ];
    let mut bad = good.clone();
    bad.push(Change::Port(PortMod { mac: [1; 6], ..port_mod }));
    assert_eq!(m.bundle(Nanos(0), bad).unwrap_err(), (5, ModelError::PortMac(PortNo(4))));
    assert_eq!((m.barrier(), m.group_ids(), m.meter_ids(), m.flow_count()), (before, vec![], vec![], 0));
    assert!(
        m.port(PortNo(4)).unwrap().is_up() && poll_all(&mut m, Nanos(0)).is_empty(),
        "the failed bundle changed nothing"
    );

    m.bundle(Nanos(0), good).unwrap();
    assert_eq!(
        (m.barrier(), m.group_ids(), m.meter_ids()),
        (RuleVersion(before.0 + 1), vec![GroupId(1), GroupId(2)], vec![MeterId(5)])
    );
    assert!(!m.port(PortNo(4)).unwrap().is_up());
    assert!(
        matches!(&poll_all(&mut m, Nanos(0))[..], [AsyncMessage::PortStatus { port, .. }] if port.config.down)
    );
    let Some(Operation::All(parts)) = m.plane_mut().operations.last() else {
        panic!("expected one operation")
    };
    assert_eq!(parts.len(), 5);
}

#[test]
fn the_advertised_limits_of_groups_and_buckets_apply() {
    let mut m = plain();
    let most = Limits::GROUPS_PER_TYPE as u32;
    for id in 0..most {
        m.group_mod(Nanos(0), Add, all(id, &[vec![]])).unwrap();
    }
    assert_eq!(m.group_mod(Nanos(0), Add, all(most, &[])).unwrap_err().openflow(), (6, 3));
    m.group_mod(Nanos(0), Add, group(GroupId(most), GroupType::FastFailover, &[])).unwrap();
    let error = m.group_mod(Nanos(0), Modify, all(most, &[])).unwrap_err();
    assert_eq!(error.openflow(), (6, 3), "groups of other types can still be added");
    let full = vec![vec![]; Limits::GROUP_BUCKETS];
    let room = (Limits::BUCKETS - most as usize) / Limits::GROUP_BUCKETS;
    for id in 0..room as u32 {
        m.group_mod(Nanos(0), Modify, all(id, &full[1..])).unwrap();
    }
    let left = Limits::BUCKETS - most as usize - room * (Limits::GROUP_BUCKETS - 2);
    m.group_mod(Nanos(0), Modify, all(100, &full[..left + 1])).unwrap();
    assert_eq!(m.group_mod(Nanos(0), Modify, all(101, &full[..2])).unwrap_err().openflow(), (6, 4));
    assert_eq!(m.group(Nanos(0), GroupId(101)).unwrap().group.buckets.len(), 1, "nothing has changed");
    m.group_mod(Nanos(0), DeleteAll, all(0, &[])).unwrap();
    assert!(m.group_ids().is_empty());
}

#[test]
fn chains_do_not_multiply_packets_without_bound() {
    let mut m = plain();
    m.group_mod(Nanos(0), Add, all(1, &vec![vec![Action::output(PortNo(1))]; 60])).unwrap();
    m.group_mod(Nanos(0), Add, all(2, &vec![vec![Action::Group(GroupId(1))]; 60])).unwrap();
    let error = m.group_mod(Nanos(0), Add, all(3, &vec![vec![Action::Group(GroupId(2))]; 2])).unwrap_err();
    assert_eq!((error.openflow(), m.group_ids()), ((6, 4), vec![GroupId(1), GroupId(2)]));
    let error =
        m.group_mod(Nanos(0), Modify, all(1, &vec![vec![Action::output(PortNo(1))]; 70])).unwrap_err();
    assert_eq!(
        error,
        ModelError::TooManyPasses { group: GroupId(2) },
        "the error names the group that leads to the group in the request"
    );
    let select = group(GroupId(3), GroupType::Select, &vec![vec![Action::Group(GroupId(2))]; 9]);
    m.group_mod(Nanos(0), Add, select).unwrap();
}

#[test]
fn each_group_is_examined_once_however_many_chains_there_are() {
    let mut m = plain();
    let wide = |to: std::ops::Range<u32>| to.map(|id| vec![Action::Group(GroupId(id))]).collect::<Vec<_>>();
    for level in 0..8 {
        for id in 0..60 {
            let next = if level == 0 { 0..0 } else { 60 * (level - 1)..60 * level };
            let select = group(GroupId(60 * level + id), GroupType::Select, &wide(next));
            m.group_mod(Nanos(0), Add, select).unwrap();
        }
    }
    // 60^7 chains of eight groups lead to this group.
    m.group_mod(Nanos(0), Modify, group(GroupId(0), GroupType::Select, &[vec![Action::output(PortNo(1))]]))
        .unwrap();
    let error = m
        .group_mod(
            Nanos(0),
            Modify,
            group(GroupId(0), GroupType::Select, &[vec![Action::Group(GroupId(479))]]),
        )
        .unwrap_err();
    assert_eq!(error, ModelError::GroupLoop(GroupId(0)));
}

#[test]
fn invalid_groups_are_refused_with_the_codes_of_openflow() {
    let mut m = plain();
    m.group_mod(Nanos(0), Add, all(1, &[vec![Action::output(PortNo(1))]])).unwrap();
    let mut refused = |command, group: Group| m.group_mod(Nanos(0), command, group).unwrap_err().openflow();
    assert_eq!(refused(Add, all(1, &[])), (6, 0), "exists");
    assert_eq!(refused(Modify, all(2, &[])), (6, 8), "unknown");
    assert_eq!(refused(Add, group(GroupId(2), GroupType::Indirect, &[])), (6, 1));
    let mut weightless = group(GroupId(2), GroupType::Select, &[vec![Action::output(PortNo(1))]]);
    weightless.buckets[0].weight = 0;
    assert_eq!(refused(Add, weightless), (6, 1));
    for kind in [GroupType::All, GroupType::Indirect, GroupType::FastFailover] {
        for command in [Add, Modify] {
            let mut weighted =
                group(GroupId(if command == Add { 2 } else { 1 }), kind, &[vec![Action::output(PortNo(1))]]);
            weighted.buckets[0].weight = 1;
            assert_eq!(refused(command, weighted), (6, 1), "{kind:?} with a weight");
        }
    }
    assert_eq!(refused(Add, all(0xffff_ff01, &[])), (6, 1));
    assert_eq!(
        refused(Add, all(2, &[vec![Action::Group(GroupId(9))]])),
        (2, 9),
        "the group sends to a missing group"
    );
    let short = KeyHeader { key: vec![1; 7].into(), hops: 1, epoch: 0 };
    assert_eq!(refused(Add, all(2, &[vec![Action::PushKey(short)]])), (2, 5), "a key of 7 bytes");
    assert_eq!(refused(Add, all(2, &[vec![Action::Group(GroupId(2))]])), (6, 7), "the group sends to itself");
    let many = vec![vec![]; Limits::GROUP_BUCKETS + 1];
    assert_eq!(refused(Add, all(2, &many)), (6, 4));
}

#[test]
fn chains_are_limited_and_chained_groups_cannot_be_deleted() {
    let mut m = plain();
    m.group_mod(Nanos(0), Add, all(1, &[])).unwrap();
    for id in 2..=Limits::GROUP_CHAIN as u32 {
        m.group_mod(Nanos(0), Add, all(id, &[vec![Action::Group(GroupId(id - 1))]])).unwrap();
    }
    let last = Limits::GROUP_CHAIN as u32;
    let error = m.group_mod(Nanos(0), Add, all(last + 1, &[vec![Action::Group(GroupId(last))]])).unwrap_err();
    assert_eq!(error, ModelError::GroupChain(GroupId(last + 1)));
    // A chain also becomes too long if it grows at its other end. The chain that leads to group 1 already has
    // the maximum length.
    m.group_mod(Nanos(0), Add, all(100, &[])).unwrap();
    let error = m.group_mod(Nanos(0), Modify, all(1, &[vec![Action::Group(GroupId(100))]])).unwrap_err();
    assert_eq!(error, ModelError::GroupChain(GroupId(1)));
    let error = m.group_mod(Nanos(0), Modify, all(1, &[vec![Action::Group(GroupId(last))]])).unwrap_err();
    assert_eq!(error, ModelError::GroupLoop(GroupId(1)));
    let error = m.group_mod(Nanos(0), Delete, all(1, &[])).unwrap_err();
    assert_eq!(error.openflow(), (6, 9));
    m.group_mod(Nanos(0), DeleteAll, all(0, &[])).unwrap();
    assert!(m.group_ids().is_empty());
}
