// SPDX-License-Identifier: Apache-2.0
//! Group-mods: what is refused, what goes with a group, and what the data plane is told.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::group::{Bucket, Group, GroupType};
use flow::{Action, FlowMod, Instructions, Operation};
use model::GroupCommand::{Add, Delete, DeleteAll, Modify};
use model::ModelError;

fn group(id: u32, kind: GroupType, actions: &[Vec<Action>]) -> Group {
    let weight = u16::from(kind == GroupType::Select);
    let bucket = |actions: &Vec<Action>| Bucket { weight, actions: actions.clone(), ..Bucket::default() };
    Group { id, kind, buckets: actions.iter().map(bucket).collect() }
}

fn all(id: u32, actions: &[Vec<Action>]) -> Group {
    group(id, GroupType::All, actions)
}

#[test]
fn groups_come_change_and_go_with_their_entries() {
    let mut m = plain();
    let to_group = |id| Instructions { write: vec![Action::Group(id)], ..Instructions::default() };
    let entry = |id| FlowMod { instructions: to_group(id), ..add(1, mac(1), 0) };
    assert_eq!(m.flow_mod(0, entry(7)).unwrap_err(), ModelError::NoSuchGroup(7));
    m.group_mod(0, Add, all(7, &[vec![Action::output(1)], vec![Action::output(2)]])).unwrap();
    m.flow_mod(0, entry(7)).unwrap();
    m.flow_mod(0, add(1, mac(2), 1)).unwrap();
    assert_eq!(m.group(5, 7).unwrap().references, 1);
    m.group_mod(0, Modify, all(7, &[])).unwrap();
    assert_eq!(m.group(5, 7).unwrap().group.buckets.len(), 0);
    m.group_mod(9, Delete, all(7, &[])).unwrap();
    assert_eq!((m.group_ids(), m.flow_count()), (vec![], 1), "its entries go with it");
    m.group_mod(9, Delete, all(7, &[])).unwrap();
    let told = m.plane_mut().operations.iter().filter(|op| matches!(op, Operation::Group(_))).count();
    assert_eq!(told, 2);
    assert!(matches!(m.plane_mut().operations.last(), Some(Operation::RemoveGroup(7))));
}

#[test]
fn what_openflow_refuses_is_refused_with_its_numbers() {
    let mut m = plain();
    m.group_mod(0, Add, all(1, &[vec![Action::output(1)]])).unwrap();
    let mut refused = |command, group: Group| m.group_mod(0, command, group).unwrap_err().openflow();
    assert_eq!(refused(Add, all(1, &[])), (6, 0), "exists");
    assert_eq!(refused(Modify, all(2, &[])), (6, 8), "unknown");
    assert_eq!(refused(Add, group(2, GroupType::Indirect, &[])), (6, 1));
    let mut weightless = group(2, GroupType::Select, &[vec![Action::output(1)]]);
    weightless.buckets[0].weight = 0;
    assert_eq!(refused(Add, weightless), (6, 1));
    assert_eq!(refused(Add, all(0xffff_ff01, &[])), (6, 1));
    assert_eq!(refused(Add, all(2, &[vec![Action::Group(9)]])), (2, 9), "sends to a group that is not there");
    assert_eq!(refused(Add, all(2, &[vec![Action::PopPbb]])), (2, 0));
    assert_eq!(refused(Add, all(2, &[vec![Action::Group(2)]])), (6, 7), "to itself");
    let many = vec![vec![]; flow::Limits::GROUP_BUCKETS + 1];
    assert_eq!(refused(Add, all(2, &many)), (6, 4));
}

#[test]
fn chains_end_and_are_not_cut() {
    let mut m = plain();
    m.group_mod(0, Add, all(1, &[])).unwrap();
    for id in 2..=flow::Limits::GROUP_CHAIN as u32 {
        m.group_mod(0, Add, all(id, &[vec![Action::Group(id - 1)]])).unwrap();
    }
    let last = flow::Limits::GROUP_CHAIN as u32;
    let error = m.group_mod(0, Add, all(last + 1, &[vec![Action::Group(last)]])).unwrap_err();
    assert_eq!(error, ModelError::GroupChain(last + 1));
    // From the other end: the chain that leads to group 1 is as long as can be.
    m.group_mod(0, Add, all(100, &[])).unwrap();
    let error = m.group_mod(0, Modify, all(1, &[vec![Action::Group(100)]])).unwrap_err();
    assert_eq!(error, ModelError::GroupChain(1));
    let error = m.group_mod(0, Modify, all(1, &[vec![Action::Group(last)]])).unwrap_err();
    assert_eq!(error, ModelError::GroupLoop(1));
    let error = m.group_mod(0, Delete, all(1, &[])).unwrap_err();
    assert_eq!(error.openflow(), (6, 9));
    m.group_mod(0, DeleteAll, all(0, &[])).unwrap();
    assert!(m.group_ids().is_empty());
}
