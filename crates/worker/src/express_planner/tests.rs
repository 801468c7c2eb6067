// SPDX-License-Identifier: Apache-2.0
//! Tests of the planner. Crate `oracle` compares its plans with the reference, with random rules.

use super::{KEPT_NS, NARROW_AFTER_NS};
use crate::{WorkerSet, without_workers};
use dataplane::DataPlane;
use flow::group::{Bucket, Group, GroupType};
use flow::{
    Action, EntryChange, EntryId, Field, FieldMatch, FlowEntry, GroupId, Instructions, Match, Nanos, Next,
    Operation, PortNo, PortState, TableId, port_no,
};
use std::sync::Arc;

const SECOND_NS: Nanos = Nanos(1_000_000_000);

struct Rig {
    plane: WorkerSet,
    now: Nanos,
}

impl Rig {
    fn new() -> Self {
        Self { plane: without_workers(), now: Nanos(0) }
    }

    fn add(&mut self, id: u32, table: u8, fields: &[Field], instructions: Instructions) {
        // Fields of IPv6 need this EtherType.
        let ipv6 = fields.contains(&Field::Ipv6Src).then_some(FieldMatch::exact(Field::EthType, 0x86dd));
        let exact = fields.iter().map(|field| FieldMatch::exact(*field, 1));
        let matching = Match::new(exact.chain(ipv6)).unwrap();
        let entry = FlowEntry {
            id: EntryId(id),
            table: TableId(table),
            priority: 5,
            matching,
            instructions: Arc::new(instructions),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: 0,
            flags: flow::EntryFlags::default(),
            low_latency: false,
        };
        self.plane.submit(Operation::Entries(vec![EntryChange::Add(Arc::new(entry))]));
    }

    fn remove(&mut self, id: u32, table: u8) {
        let change = EntryChange::Remove { id: EntryId(id), table: TableId(table) };
        self.plane.submit(Operation::Entries(vec![change]));
    }

    fn rest(&mut self, ns: Nanos) {
        self.plane.tick(self.now);
        self.now += ns;
        self.plane.tick(self.now);
    }

    fn fields(&self) -> Vec<Field> {
        self.plane.express_plan().examined().iter().map(|(field, _)| *field).collect()
    }
}

fn goto(table: u8) -> Instructions {
    Instructions { next: Some(Next::Table(TableId(table))), ..Instructions::default() }
}

#[test]
fn only_tables_that_packets_reach_count() {
    let mut rig = Rig::new();
    rig.add(1, 3, &[Field::EthSrc], Instructions::default());
    rig.add(2, 2, &[Field::EthType], goto(3));
    assert_eq!((rig.fields(), rig.plane.express_tables().count()), (vec![], 1));
    rig.add(3, 0, &[Field::EthDst], goto(2));
    assert_eq!(rig.fields(), [Field::EthDst, Field::EthSrc, Field::EthType]);
    let before = rig.plane.express_plan().version();
    rig.add(4, 0, &[Field::EthDst], goto(3));
    assert_eq!(rig.plane.express_plan().version(), before, "nothing more is examined");
    // Entry 4 still leads to table 3, but no entry leads to table 2.
    rig.remove(3, 0);
    rig.rest(NARROW_AFTER_NS - Nanos(1));
    assert_eq!(rig.fields().len(), 3, "the plan is not narrowed yet");
    rig.rest(SECOND_NS);
    assert_eq!((rig.fields(), rig.plane.express_tables().count()), (vec![Field::EthDst, Field::EthSrc], 2));
    assert!(rig.plane.express_plan().version() > before);
}

#[test]
fn a_modify_may_change_the_next_table() {
    let mut rig = Rig::new();
    rig.add(1, 4, &[Field::EthSrc], Instructions::default());
    rig.add(2, 0, &[], Instructions::default());
    let modify = |instructions| EntryChange::Modify {
        id: EntryId(2),
        table: TableId(0),
        instructions: Arc::new(instructions),
        low_latency: false,
        reset_counts: false,
    };
    rig.plane.submit(Operation::Entries(vec![modify(goto(4))]));
    assert_eq!(rig.fields(), [Field::EthSrc]);
    rig.plane.submit(Operation::Entries(vec![modify(goto(5))]));
    rig.rest(2 * SECOND_NS);
    assert_eq!(rig.fields(), []);
}

#[test]
fn normal_examines_addresses_also_in_groups() {
    let by_normal = [Field::EthDst, Field::EthSrc, Field::VlanVid];
    let mut rig = Rig::new();
    rig.add(1, 0, &[], Instructions::apply(vec![Action::output(port_no::NORMAL)]));
    assert_eq!(rig.fields(), by_normal);
    let mut rig = Rig::new();
    let group = |port| {
        let bucket =
            Bucket { weight: 0, watch_port: None, watch_group: None, actions: vec![Action::output(port)] };
        Operation::Group(Arc::new(Group { id: GroupId(1), kind: GroupType::All, buckets: vec![bucket] }))
    };
    rig.plane.submit(group(PortNo(1)));
    rig.add(1, 0, &[], Instructions::apply(vec![Action::Group(GroupId(1))]));
    assert_eq!(rig.fields(), []);
    rig.plane.submit(group(port_no::NORMAL));
    assert_eq!(rig.fields(), by_normal);
    rig.plane.submit(Operation::RemoveGroup(GroupId(1)));
    rig.rest(2 * SECOND_NS);
    assert_eq!(rig.fields(), []);
}

#[test]
fn high_port_numbers_need_longer_keys() {
    let mut rig = Rig::new();
    let bytes = |rig: &Rig| rig.plane.express_plan().length_bytes();
    rig.plane.submit(Operation::Port(PortState::up(PortNo(0xffff))));
    assert_eq!(bytes(&rig), 2);
    rig.plane.submit(Operation::Port(PortState::up(PortNo(0x1_0000))));
    assert_eq!(bytes(&rig), 4);
    rig.plane.submit(Operation::RemovePort(PortNo(0x1_0000)));
    assert_eq!(bytes(&rig), 2);
}

#[test]
fn rules_that_come_and_go_change_the_plan_once() {
    let mut rig = Rig::new();
    rig.add(1, 0, &[Field::EthDst], Instructions::default());
    let kinds = [Field::EthSrc, Field::EthType, Field::VlanVid];
    let come_and_go = |rig: &mut Rig, rounds: u64| {
        for _ in 0..rounds {
            for kind in kinds {
                rig.add(2, 0, &[kind], Instructions::default());
                rig.remove(2, 0);
                rig.now += Nanos(20_000_000);
                rig.plane.tick(rig.now);
            }
        }
    };
    come_and_go(&mut rig, 1);
    let first = rig.plane.express_plan().version();
    assert_eq!(rig.fields(), [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid]);
    come_and_go(&mut rig, 500);
    assert_eq!(rig.plane.express_plan().version(), first);
    rig.rest(NARROW_AFTER_NS);
    assert_eq!(rig.fields(), [Field::EthDst]);
}

#[test]
fn a_plan_loses_bits_that_no_rule_examines_any_more_although_rules_change() {
    let mut rig = Rig::new();
    rig.add(1, 0, &[Field::EthDst], Instructions::default());
    rig.add(2, 0, &[Field::EthSrc], Instructions::default());
    rig.remove(2, 0);
    let begin = rig.now;
    let mut kept_for = None;
    while rig.now < begin + 3 * KEPT_NS {
        rig.add(3, 0, &[Field::EthType], Instructions::default());
        rig.remove(3, 0);
        rig.now += Nanos(100_000_000);
        rig.plane.tick(rig.now);
        if !rig.fields().contains(&Field::EthSrc) {
            kept_for.get_or_insert(rig.now - begin);
        }
    }
    assert_eq!(rig.fields(), [Field::EthDst, Field::EthType]);
    assert!(kept_for.is_some_and(|time| time >= KEPT_NS && time <= 2 * KEPT_NS), "{kept_for:?}");
}

#[test]
fn a_plan_keeps_no_bits_for_which_its_records_would_be_longer() {
    let mut rig = Rig::new();
    rig.add(1, 0, &[Field::EthDst, Field::EthSrc], Instructions::default());
    rig.add(2, 0, &[Field::Ipv6Src, Field::Ipv6Dst], Instructions::default());
    let is_long = |rig: &Rig| rig.plane.express_plan().fit() == keys::KeyFit::TwoLines;
    assert!(is_long(&rig));
    rig.remove(2, 0);
    assert!(is_long(&rig), "a removal makes no plan");
    rig.add(3, 0, &[Field::VlanVid], Instructions::default());
    assert_eq!((is_long(&rig), rig.fields().len()), (false, 3));
}
