// SPDX-License-Identifier: Apache-2.0
//! Tests of tables, instructions, action sets, operations and counters.

use super::frames::{ethernet, udp};
use super::{PRIORITY, add, entry, four_ports, on, run, with_instructions};
use crate::Reference;
use flow::operation::MAC_TABLE;
use flow::{
    Action, DropReason, EntryChange, EntryId, Field, FieldMatch, FlowEntry, GroupId, Instructions, Match,
    Next, Operation, Outcome, PortNo, PortState, QueueId, TableId,
};
use std::sync::Arc;

fn to(port: u32) -> Instructions {
    Instructions::apply(vec![Action::output(PortNo(port))])
}

fn goto(table: TableId) -> Instructions {
    Instructions { next: Some(Next::Table(table)), ..Instructions::default() }
}

fn written(actions: Vec<Action>) -> Instructions {
    Instructions { write: actions, ..Instructions::default() }
}

fn ports(reference: &mut Reference, frame: &[u8]) -> Vec<u32> {
    reference.process(PortNo(1), frame).sent.iter().map(|sent| sent.port.0).collect()
}

fn change(reference: &mut Reference, change: EntryChange) -> Result<(), String> {
    reference.apply(&Operation::Entries(vec![change]))
}

#[test]
fn highest_priority_then_first_added() {
    let mut reference = four_ports();
    add(&mut reference, entry(1, TableId(0), on(Field::UdpSrc, 1000), to(2)));
    add(&mut reference, entry(2, TableId(0), on(Field::UdpDst, 2000), to(3)));
    add(&mut reference, FlowEntry { priority: PRIORITY - 1, ..entry(3, TableId(0), Match::any(), to(4)) });
    assert_eq!(ports(&mut reference, &udp()), [2]);
    // A modified entry keeps its position.
    let modify = EntryChange::Modify {
        id: EntryId(1),
        table: TableId(0),
        instructions: Arc::new(to(4)),
        low_latency: true,
        reset_counts: false,
    };
    change(&mut reference, modify).unwrap();
    let done = reference.process(PortNo(1), &udp());
    assert_eq!(
        (done.sent[0].port, done.low_latency, done.hits),
        (PortNo(4), true, vec![(TableId(0), Some(EntryId(1)))])
    );
    change(&mut reference, EntryChange::Remove { id: EntryId(1), table: TableId(0) }).unwrap();
    assert_eq!(ports(&mut reference, &udp()), [3]);
    add(&mut reference, FlowEntry { priority: PRIORITY + 1, ..entry(4, TableId(0), Match::any(), to(2)) });
    assert_eq!(ports(&mut reference, &udp()), [2]);
    let ids: Vec<EntryId> = reference.entries(TableId(0)).iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [4, 2, 3].map(EntryId));
    assert_eq!(
        (reference.entry_counters(EntryId(1)), reference.entry_counters(EntryId(4))),
        (Some((2, 84)), Some((1, 42)))
    );
    assert_eq!((reference.table_counters(TableId(0)), reference.entry_counters(EntryId(9))), ((4, 4), None));
    // After the ID of an entry is reused, the counters start at 0.
    add(&mut reference, entry(1, TableId(0), Match::any(), to(2)));
    assert_eq!(reference.entry_counters(EntryId(1)), Some((0, 0)));
}

#[test]
fn masked_conditions_and_absent_fields() {
    let mut reference = four_ports();
    let prefix = FieldMatch { field: Field::Ipv4Dst, value: 0x0a00_0000, mask: 0xffff_ff00 };
    add(&mut reference, entry(1, TableId(0), Match::unchecked_prerequisites([prefix]).unwrap(), to(2)));
    // A condition of value 0 under a mask does not match a packet without the field.
    let absent = FieldMatch { field: Field::Ipv6Dst, value: 0, mask: 1 };
    let absent = Match::unchecked_prerequisites([absent]).unwrap();
    add(&mut reference, FlowEntry { priority: 99, ..entry(2, TableId(0), absent, to(3)) });
    assert_eq!(ports(&mut reference, &udp()), [2]);
}

#[test]
fn a_miss_ends_without_the_action_set() {
    let first = Instructions { write: vec![Action::output(PortNo(2))], ..goto(TableId(3)) };
    let mut reference = with_instructions(first);
    let done = reference.process(PortNo(1), &udp());
    assert_eq!(
        (done.outcome, done.hits),
        (Outcome::Dropped(DropReason::TableMiss), vec![(TableId(0), Some(EntryId(7))), (TableId(3), None)])
    );
    assert_eq!(
        (reference.table_counters(TableId(0)), reference.table_counters(TableId(3))),
        ((1, 1), (1, 0))
    );
    assert_eq!(reference.drops()[&DropReason::TableMiss], 1);
    let sent_before = Instructions { apply: vec![Action::output(PortNo(2))], ..goto(TableId(3)) };
    let done = run(sent_before, &udp());
    assert_eq!((done.outcome, done.copy_drops), (Outcome::Forwarded, vec![DropReason::TableMiss]));
}

#[test]
fn linear_tables_are_reached_by_index_only() {
    let direct = |index| Instructions {
        next: Some(Next::Direct { table: TableId(5), index }),
        ..Instructions::default()
    };
    for (instructions, outcome) in [
        (direct(8), Outcome::Forwarded),
        (direct(9), Outcome::Dropped(DropReason::TableMiss)),
        (goto(TableId(5)), Outcome::Dropped(DropReason::TableMiss)),
    ] {
        let mut reference = with_instructions(instructions);
        add(&mut reference, entry(1, TableId(5), Match::at_index(8), to(2)));
        assert_eq!(reference.process(PortNo(1), &udp()).outcome, outcome);
        assert_eq!(reference.table_counters(TableId(5)).0, 1);
    }
}

#[test]
fn instructions_in_order() {
    // Apply is executed before clear and write. Metadata is written before the next lookup.
    let mut reference = with_instructions(Instructions {
        apply: vec![Action::PushVlan(0x8100)],
        write: vec![Action::output(PortNo(2))],
        metadata: Some((0xabcd, 0xff)),
        ..goto(TableId(1))
    });
    let both = [FieldMatch::exact(Field::Metadata, 0xcd), FieldMatch::exact(Field::VlanVid, 0x1000)];
    let cleared =
        Instructions { clear: true, write: vec![Action::output(PortNo(3))], ..Instructions::default() };
    add(&mut reference, entry(8, TableId(1), Match::unchecked_prerequisites(both).unwrap(), cleared));
    assert_eq!(ports(&mut reference, &udp()), [3]);
    // Each entry counts the frame's length at the moment of its lookup.
    assert_eq!(
        (reference.entry_counters(EntryId(7)), reference.entry_counters(EntryId(8))),
        (Some((1, 42)), Some((1, 46)))
    );
}

#[test]
fn the_action_set_has_its_own_order() {
    let set = |field, value| Action::set(field, value);
    let actions = vec![
        Action::output(PortNo(4)),
        Action::SetQueue(QueueId(6)),
        set(Field::VlanVid, 0x1001),
        Action::output(PortNo(2)),
        Action::SetNwTtl(50),
        Action::DecNwTtl,
        Action::PushVlan(0x8100),
        set(Field::VlanVid, 0x1002),
    ];
    let done = run(written(actions), &udp());
    assert_eq!(done.sent.len(), 1);
    let sent = &done.sent[0];
    assert_eq!(
        (sent.port, sent.queue, &sent.bytes[12..18]),
        (PortNo(2), QueueId(6), &[0x81, 0, 0, 2, 8, 0][..])
    );
    assert_eq!(sent.bytes[26], 50);
    // Pops precede pushes, so an untagged packet is dropped.
    let done =
        run(written(vec![Action::PushVlan(0x8100), Action::PopVlan, Action::output(PortNo(2))]), &udp());
    assert_eq!(done.outcome, Outcome::Dropped(DropReason::MissingVlan));
    // An action set sets fields in a fixed order. After its EtherType is set, the packet has no UDP port.
    let fields = vec![set(Field::UdpSrc, 1), set(Field::EthType, 0x9999), Action::output(PortNo(2))];
    assert_eq!(run(written(fields), &udp()).outcome, Outcome::Dropped(DropReason::MissingHeader));
    // A group suppresses the output. The group in this test does not exist.
    let done = run(written(vec![Action::output(PortNo(2)), Action::Group(GroupId(1))]), &udp());
    assert_eq!(done.outcome, Outcome::Dropped(DropReason::NoSuchGroup));
    // MPLS is pushed first, and is therefore after the tag.
    let pushes = vec![Action::PushVlan(0x8100), Action::PushMpls(0x8847), Action::output(PortNo(2))];
    assert_eq!(run(written(pushes), &udp()).sent[0].bytes[12..18], [0x81, 0, 0, 0, 0x88, 0x47]);
}

#[test]
fn the_action_set_holds_at_most_16_fields() {
    let field = |byte: u32| {
        let slice = flow::Slice::new(flow::SliceBase::Packet, 8 * byte, 8).unwrap();
        Action::set(Field::Slice(slice), 0xee)
    };
    let mut actions: Vec<Action> = (0..16).map(field).collect();
    actions.extend([field(3), Action::output(PortNo(2))]);
    assert_eq!(run(written(actions.clone()), &udp()).sent[0].bytes[..16], [0xee; 16]);
    actions.push(field(16));
    let done = run(Instructions { apply: vec![Action::output(PortNo(3))], ..written(actions) }, &udp());
    assert_eq!((done.sent.len(), done.copy_drops), (1, vec![DropReason::ActionSetFull]));
}

#[test]
fn packets_without_output() {
    let nothing = Outcome::Dropped(DropReason::NoOutput);
    assert_eq!(run(Instructions::default(), &udp()).outcome, nothing);
    assert_eq!(run(written(vec![Action::DecNwTtl]), &udp()).outcome, nothing);
    // The drop reason is that of the last failed output, in apply-actions or in the action set.
    assert_eq!(run(to(99), &udp()).outcome, Outcome::Dropped(DropReason::NoSuchPort));
    let twice = run(Instructions::apply(vec![Action::output(PortNo(99)), Action::output(PortNo(1))]), &udp());
    assert_eq!(
        (twice.outcome, twice.copy_drops),
        (Outcome::Dropped(DropReason::IngressPort), vec![DropReason::NoSuchPort])
    );
    let failed = run(written(vec![Action::output(PortNo(99))]), &udp());
    assert_eq!(failed.outcome, Outcome::Dropped(DropReason::NoSuchPort));
    assert_eq!(run(to(2), &udp()).copy_drops, []);
}

#[test]
fn packets_are_low_latency_until_a_normal_entry_or_a_miss() {
    let low = |id, table, instructions| FlowEntry {
        low_latency: true,
        ..entry(id, table, Match::any(), instructions)
    };
    let mut reference = four_ports();
    add(&mut reference, low(1, TableId(0), goto(TableId(1))));
    assert!(!reference.process(PortNo(1), &udp()).low_latency);
    add(&mut reference, low(2, TableId(1), to(2)));
    assert!(reference.process(PortNo(1), &udp()).low_latency);
    add(&mut reference, FlowEntry { priority: 99, ..entry(3, TableId(1), Match::any(), to(2)) });
    assert!(!reference.process(PortNo(1), &udp()).low_latency);
}

#[test]
fn ports_that_cannot_receive_drop_frames() {
    let mut reference = with_instructions(to(2));
    reference.apply(&Operation::Port(PortState { up: false, ..PortState::up(PortNo(3)) })).unwrap();
    reference.apply(&Operation::Port(PortState { no_recv: true, ..PortState::up(PortNo(4)) })).unwrap();
    let not_receiving = Outcome::Dropped(DropReason::PortNotReceiving);
    for (in_port, frame, outcome) in [
        (1, &udp()[..13], Outcome::Dropped(DropReason::Runt)),
        (1, &[], Outcome::Dropped(DropReason::Runt)),
        (1, &udp()[..14], Outcome::Forwarded),
        (3, &udp()[..], not_receiving),
        (4, &udp()[..], not_receiving),
        (9, &udp()[..], not_receiving),
    ] {
        assert_eq!(reference.process(PortNo(in_port), frame).outcome, outcome);
    }
    reference.apply(&Operation::RemovePort(PortNo(1))).unwrap();
    assert_eq!(reference.process(PortNo(1), &udp()).outcome, not_receiving);
    assert_eq!(
        (reference.drops()[&DropReason::PortNotReceiving], reference.table_counters(TableId(0))),
        (4, (1, 1))
    );
}

#[test]
fn violated_preconditions_are_reported() {
    let mut reference = with_instructions(to(2));
    let refused =
        |reference: &mut Reference, entry| change(reference, EntryChange::Add(Arc::new(entry))).unwrap_err();
    let reported = refused(&mut reference, entry(7, TableId(1), Match::any(), to(2)));
    assert_eq!(reported, "entry 7 exists already; remove it before reusing its ID");
    assert!(
        refused(&mut reference, entry(8, TableId(0), Match::any(), to(2)))
            .contains("has the priority and match")
    );
    assert!(
        refused(&mut reference, entry(8, TableId(3), Match::any(), goto(TableId(3))))
            .contains("it must go to a higher one")
    );
    assert!(
        refused(&mut reference, entry(8, TableId(3), Match::any(), goto(TableId(255))))
            .contains("it must go to a higher one")
    );
    assert!(refused(&mut reference, entry(8, MAC_TABLE, Match::any(), to(2))).contains("must match dl_dst"));
    assert!(change(&mut reference, EntryChange::Remove { id: EntryId(9), table: TableId(0) }).is_err());
    assert!(change(&mut reference, EntryChange::Remove { id: EntryId(7), table: TableId(1) }).is_err());
    let modify = |table, instructions| EntryChange::Modify {
        id: EntryId(7),
        table,
        instructions: Arc::new(instructions),
        low_latency: false,
        reset_counts: false,
    };
    assert!(change(&mut reference, modify(TableId(1), to(3))).is_err());
    assert!(change(&mut reference, modify(TableId(0), goto(TableId(0)))).is_err());
    assert!(reference.apply(&Operation::RemovePort(PortNo(9))).is_err());
    assert!(reference.apply(&Operation::Port(PortState::up(PortNo(0)))).is_err());
    assert_eq!(ports(&mut reference, &ethernet().ethertype(0x1234).build()), [2]);
}
