// SPDX-License-Identifier: Apache-2.0
//! Flow-mods, bundles, and the removal of entries.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use dataplane::PlaneRefusal;
use flow::syntax::{ParseOptions, parse_flow};
use flow::validate::ValidateError;
use flow::{
    Action, EntryChange, EntryFlags, EntryId, FlowMod, FlowModCommand, GroupId, Instructions, Match, MeterId,
    Nanos, Next, PortNo, Slice, SliceBase, TableId,
};
use flow::{Field, FieldMatch, port_no};
use model::{
    Aggregate, AsyncMessage, Changed, CookieMask, FlowCursor, FlowFilter, ModelConfig, ModelError,
    ModelLimits, RemovedReason,
};

fn flags(send_flow_removed: bool, check_overlap: bool, reset_counts: bool) -> EntryFlags {
    EntryFlags { send_flow_removed, check_overlap, reset_counts, ..EntryFlags::default() }
}

#[test]
fn an_identical_add_replaces_the_entry_and_continues_its_counts() {
    let mut m = plain();
    m.flow_mod(Nanos(0), add(5, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), add(5, mac(2), PortNo(1))).unwrap();
    let old = dump(&mut m, Nanos(0))[0].entry.id;
    m.plane_mut().held = true;
    m.plane_mut().hit(old, 3, Nanos(7));
    let changed = m.flow_mod(Nanos(10), add(5, mac(1), PortNo(9))).unwrap();
    assert_eq!(changed, Changed { added: 1, modified: 0, removed: 1 });
    // Packets that hit the old entry before the change is active must be counted, too.
    m.plane_mut().hit(old, 2, Nanos(12));
    let all = dump(&mut m, Nanos(15));
    assert_eq!(all.iter().map(|f| f.entry.matching.clone()).collect::<Vec<_>>(), [mac(2), mac(1)]);
    assert_ne!(all[1].entry.id, old);
    assert_eq!((all[1].packets, all[1].bytes, all[1].duration_ns), (5, 500, Nanos(5)));
    // The entry is replaced again before the first replacement is active. Then both become active.
    m.flow_mod(Nanos(20), add(5, mac(1), PortNo(10))).unwrap();
    m.plane_mut().hit(all[1].entry.id, 4, Nanos(21));
    assert_eq!(dump(&mut m, Nanos(21))[1].packets, 9);
    m.plane_mut().apply_all();
    assert!(poll_all(&mut m, Nanos(22)).is_empty(), "a replaced entry is not reported");
    assert_eq!((dump(&mut m, Nanos(22))[1].packets, m.pending_removals()), (9, 0));
    let resetting = FlowMod { flags: flags(false, false, true), ..add(5, mac(1), PortNo(10)) };
    m.flow_mod(Nanos(30), resetting).unwrap();
    assert_eq!(dump(&mut m, Nanos(30))[1].packets, 0);
    assert_eq!(m.plane_mut().known_ids(), 3);
}

#[test]
fn modify_keeps_all_but_the_instructions() {
    let mut m = plain();
    let first = FlowMod { cookie: 7, hard_timeout_s: 9, ..add(5, mac(1), PortNo(1)) };
    m.flow_mod(Nanos(0), first).unwrap();
    m.flow_mod(Nanos(0), add(6, dst(0xff << 40, 0xff << 40), PortNo(1))).unwrap();
    let id = dump(&mut m, Nanos(0))[0].entry.id;
    m.plane_mut().hit(id, 3, Nanos(5));
    // A cookie without a mask is not a condition, and a modify command does not store it.
    let change = FlowMod {
        cookie: 8,
        idle_timeout_s: 1,
        ..command(FlowModCommand::Modify, add(1, mac(1), PortNo(2)))
    };
    assert_eq!(m.flow_mod(Nanos(6), change).unwrap().modified, 1);
    let now = dump(&mut m, Nanos(10))[0].clone();
    assert_eq!((now.entry.id, now.entry.cookie, now.entry.priority), (id, 7, 5));
    assert_eq!((now.entry.idle_timeout_s, now.entry.hard_timeout_s), (0, 9));
    assert_eq!((now.packets, now.duration_ns), (3, Nanos(10)));
    assert_eq!(*now.entry.instructions, output(PortNo(2)));
    assert!(matches!(last_changes(&mut m)[..], [EntryChange::Modify { id: i, .. }] if i == id));

    let strict = |priority| command(FlowModCommand::ModifyStrict, add(priority, mac(1), PortNo(3)));
    assert_eq!(m.flow_mod(Nanos(11), strict(4)).unwrap(), Changed::default());
    let reset = FlowMod { flags: flags(false, false, true), ..strict(5) };
    assert_eq!(m.flow_mod(Nanos(11), reset).unwrap().modified, 1);
    m.plane_mut().hit(id, 2, Nanos(12));
    assert_eq!(dump(&mut m, Nanos(12))[0].packets, 2);
    let wide = command(FlowModCommand::Modify, add(1, Match::any(), PortNo(4)));
    assert_eq!(m.flow_mod(Nanos(13), wide).unwrap().modified, 2);
    assert_eq!(m.flow_count(), 2, "modify adds nothing");
}

#[test]
fn deletes_select_by_match_cookie_port_and_group() {
    let mut m = plain();
    m.flow_mod(Nanos(0), FlowMod { cookie: 0x10, ..add(1, mac(1), PortNo(1)) }).unwrap();
    m.flow_mod(Nanos(0), FlowMod { cookie: 0x21, table: Some(TableId(3)), ..add(1, mac(1), PortNo(2)) })
        .unwrap();
    m.flow_mod(Nanos(0), add(2, mac(2), PortNo(4))).unwrap();
    m.flow_mod(Nanos(0), add(1, dst(0xff << 40, 0xff << 40), PortNo(1))).unwrap();
    let delete = |m: FlowMod| command(FlowModCommand::Delete, FlowMod { table: None, ..m });
    let mut removed = |f: FlowMod| m.flow_mod(Nanos(1), f).unwrap().removed;
    assert_eq!(removed(FlowMod { cookie: 0x31, cookie_mask: 0xff, ..delete_all() }), 0);
    assert_eq!(removed(FlowMod { out_port: Some(PortNo(3)), ..delete_all() }), 0);
    assert_eq!(removed(FlowMod { cookie: 0x20, cookie_mask: 0xf0, ..delete_all() }), 1);
    assert_eq!(removed(FlowMod { out_group: Some(GroupId(4)), ..delete_all() }), 0);
    assert_eq!(removed(FlowMod { out_port: Some(PortNo(4)), ..delete_all() }), 1);
    assert_eq!(removed(command(FlowModCommand::DeleteStrict, add(2, mac(1), PortNo(0)))), 0);
    assert_eq!(removed(delete(add(0, dst(0, 0xff << 40), PortNo(0)))), 1, "the mask covers mac(1)");
    assert_eq!(removed(FlowMod { out_port: Some(PortNo(1)), ..delete_all() }), 1);
    assert_eq!(m.flow_count(), 0);
}

#[test]
fn missing_groups_and_meters_are_refused() {
    let mut m = plain();
    let group = Instructions { write: vec![Action::Group(GroupId(4))], ..Instructions::default() };
    let meter = Instructions { meter: Some(MeterId(9)), ..Instructions::default() };
    for (instructions, numbers) in [(group, (2, 9)), (meter, (12, 3))] {
        let added =
            m.flow_mod(Nanos(0), FlowMod { instructions: instructions.clone(), ..add(2, mac(2), PortNo(0)) });
        assert_eq!(added.unwrap_err().openflow(), numbers);
        m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
        let modify = command(FlowModCommand::Modify, FlowMod { instructions, ..add(1, mac(1), PortNo(0)) });
        assert_eq!(m.flow_mod(Nanos(0), modify).unwrap_err().openflow(), numbers);
    }
    assert_eq!(m.flow_count(), 1);
}

#[test]
fn overlap_is_refused_if_requested() {
    let mut m = plain();
    let checked = |f: FlowMod| FlowMod { flags: flags(false, true, false), ..f };
    m.flow_mod(Nanos(0), checked(add(5, mac(1), PortNo(1)))).unwrap();
    m.flow_mod(Nanos(0), checked(add(5, mac(2), PortNo(1)))).unwrap();
    m.flow_mod(Nanos(0), checked(add(4, Match::any(), PortNo(1)))).unwrap();
    let error = m.flow_mod(Nanos(0), checked(add(5, dst(1, 0xff), PortNo(1)))).unwrap_err();
    assert_eq!(error, ModelError::Overlap { table: TableId(0), priority: 5 });
    assert_eq!(error.openflow(), (5, 3));
    assert!(m.flow_mod(Nanos(0), checked(add(5, mac(2), PortNo(1)))).is_err(), "an identical entry overlaps");
    m.flow_mod(Nanos(0), checked(add(5, dst(3, 0xff), PortNo(1)))).unwrap();
    m.flow_mod(Nanos(0), checked(FlowMod { table: Some(TableId(1)), ..add(5, dst(1, 0xff), PortNo(1)) }))
        .unwrap();
    assert_eq!(m.flow_count(), 5);
}

#[test]
fn a_removal_is_reported_and_its_id_reused_only_once_it_is_active() {
    let mut m = plain();
    m.plane_mut().held = true;
    let reported = FlowMod { cookie: 5, flags: flags(true, false, false), ..add(1, mac(1), PortNo(1)) };
    m.flow_mod(Nanos(0), reported).unwrap();
    m.flow_mod(2 * SECOND, delete_all()).unwrap();
    let barrier = m.barrier();
    assert!(poll_all(&mut m, 3 * SECOND).is_empty());
    assert!(!m.is_applied(barrier));
    m.flow_mod(3 * SECOND, add(1, mac(2), PortNo(1))).unwrap();
    m.plane_mut().hit(EntryId(0), 6, 3 * SECOND);
    assert_eq!(dump(&mut m, Nanos(0))[0].entry.id, EntryId(1));
    m.plane_mut().apply_all();
    let async_messages = poll_all(&mut m, 4 * SECOND);
    let [AsyncMessage::FlowRemoved(gone)] = &async_messages[..] else { panic!("{async_messages:?}") };
    assert_eq!((gone.entry.cookie, gone.reason, gone.packets), (5, RemovedReason::Delete, 6));
    assert_eq!(gone.duration_ns, 2 * SECOND);
    assert!(poll_all(&mut m, 9 * SECOND).is_empty() && m.is_applied(barrier));
    m.flow_mod(9 * SECOND, add(1, mac(3), PortNo(1))).unwrap();
    assert_eq!(dump(&mut m, Nanos(0))[1].entry.id, EntryId(0));
}

#[test]
fn a_bundle_is_one_operation_or_nothing() {
    let mut m = plain();
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), add(1, mac(2), PortNo(1))).unwrap();
    m.plane_mut().hit(EntryId(1), 4, Nanos(1));
    let before = dump(&mut m, Nanos(5));
    let reset = FlowMod { flags: flags(false, false, true), ..add(1, mac(2), PortNo(8)) };
    let good = vec![
        add(1, mac(3), PortNo(1)),
        command(FlowModCommand::Modify, add(0, Match::any(), PortNo(7))),
        command(FlowModCommand::ModifyStrict, reset),
        add(1, mac(1), PortNo(2)),
        command(FlowModCommand::DeleteStrict, add(1, mac(3), PortNo(0))),
        delete_all(),
        add(9, mac(4), PortNo(4)),
        add(9, mac(4), PortNo(5)),
    ];
    let mut bad = good.clone();
    bad.push(FlowMod { table: Some(TableId(255)), ..add(1, mac(5), PortNo(1)) });
    let operations = m.plane_mut().operations.len();
    assert_eq!(m.bundle(Nanos(5), bad).unwrap_err(), (8, ModelError::Invalid(ValidateError::Table)));
    assert_eq!(m.plane_mut().operations.len(), operations);
    assert_eq!(dump(&mut m, Nanos(5)), before);
    for field in [mac(1), mac(2)] {
        let strict = command(FlowModCommand::ModifyStrict, add(1, field, PortNo(1)));
        assert_eq!(m.flow_mod(Nanos(5), strict).unwrap().modified, 1, "the entry is still found");
    }
    m.bundle(Nanos(6), good).unwrap();
    assert_eq!(m.plane_mut().operations.len(), operations + 3);
    let after = dump(&mut m, Nanos(6));
    assert_eq!(after.len(), 1);
    assert_eq!((&after[0].entry.matching, after[0].packets), (&mac(4), 0));
    poll_all(&mut m, Nanos(7));
    assert_eq!((m.pending_removals(), m.plane_mut().known_ids()), (0, 1));
}

#[test]
fn requests_beyond_a_limit_are_refused_with_the_codes_of_openflow() {
    let limits = ModelLimits { entries: 2, ..ModelLimits::default() };
    let mut m = with(ModelConfig { limits, ..ModelConfig::default() });
    let goto = Instructions { next: Some(Next::Table(TableId(0))), ..Instructions::default() };
    let mut refused = |f: FlowMod| m.flow_mod(Nanos(0), f).unwrap_err().openflow();
    assert_eq!(refused(FlowMod { table: None, ..add(1, mac(1), PortNo(1)) }), (5, 2));
    assert_eq!(refused(FlowMod { instructions: goto, ..add(1, mac(1), PortNo(1)) }), (3, 2));
    assert_eq!(refused(add(1, mac(1), port_no::ANY)), (2, 4));
    assert_eq!(refused(add(1, Match::at_index(2), PortNo(1))), (4, 7));
    m.plane_mut().held = true;
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), add(1, mac(2), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), add(1, mac(2), PortNo(2))).unwrap();
    assert_eq!(m.flow_mod(Nanos(0), add(1, mac(3), PortNo(1))).unwrap_err().openflow(), (5, 1));
    m.flow_mod(Nanos(0), delete_all()).unwrap();
    // Three removed entries wait for their release. One more entry can be added. Further additions fail until
    // the three entries are released.
    m.flow_mod(Nanos(0), add(1, mac(4), PortNo(1))).unwrap();
    let error = m.flow_mod(Nanos(0), add(1, mac(5), PortNo(1))).unwrap_err();
    assert_eq!(error, ModelError::TableFull { in_use: 4, limit: 4 });
    m.plane_mut().apply_all();
    poll_all(&mut m, Nanos(1));
    m.flow_mod(Nanos(0), add(1, mac(5), PortNo(1))).unwrap();
}

#[test]
fn the_slices_of_a_table_are_limited_and_an_index_has_one_entry() {
    let mut m = plain();
    let slice = |offset| {
        let field = Field::Slice(Slice::new(SliceBase::Packet, offset, 8).unwrap());
        Match::new([FieldMatch::exact(field, 1)]).unwrap()
    };
    for n in 0..flow::Limits::SLICES_PER_TABLE as u32 {
        m.flow_mod(Nanos(0), add(1, slice(n), PortNo(1))).unwrap();
    }
    assert!(matches!(
        m.flow_mod(Nanos(0), add(1, slice(99), PortNo(1))),
        Err(ModelError::TooManySlices { .. })
    ));
    m.flow_mod(Nanos(0), add(2, slice(3), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), command(FlowModCommand::Delete, add(0, slice(3), PortNo(1)))).unwrap();
    m.flow_mod(Nanos(0), add(1, slice(99), PortNo(1))).unwrap();

    let linear = |priority, index| FlowMod {
        table: Some(TableId(1)),
        ..add(priority, Match::at_index(index), PortNo(1))
    };
    m.flow_mod(Nanos(0), linear(1, 4)).unwrap();
    m.flow_mod(Nanos(0), linear(2, 5)).unwrap();
    assert!(matches!(m.flow_mod(Nanos(0), linear(2, 4)), Err(ModelError::IndexTaken { priority: 1, .. })));
    assert_eq!(m.flow_mod(Nanos(0), linear(1, 4)).unwrap().removed, 1);
    assert_eq!(m.flow_mod(Nanos(0), command(FlowModCommand::Delete, linear(0, 5))).unwrap().removed, 1);
}

#[test]
fn low_latency_comes_from_the_flow_mod_or_the_cookie() {
    let mut m = with(ModelConfig {
        low_latency_cookie: Some(CookieMask { value: 0x4c00, mask: 0xff00 }),
        ..ModelConfig::default()
    });
    for (cookie, asked, want) in
        [(0x4c01, None, true), (0x4d01, None, false), (0x4c01, Some(false), false), (0, Some(true), true)]
    {
        m.flow_mod(Nanos(0), FlowMod { cookie, low_latency: asked, ..add(1, mac(1), PortNo(1)) }).unwrap();
        assert_eq!(dump(&mut m, Nanos(0))[0].entry.low_latency, want);
    }
}

#[test]
fn clearing_leaves_the_standalone_default() {
    let mut m = with(ModelConfig { standalone: true, ..ModelConfig::default() });
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    let operations = m.plane_mut().operations.len();
    assert_eq!(m.clear(Nanos(5)), Changed { added: 1, modified: 0, removed: 2 });
    assert_eq!(m.plane_mut().operations.len(), operations + 1);
    let all = dump(&mut m, Nanos(5));
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].entry.priority, all[0].entry.table), (0, TableId(0)));
    assert_eq!(*all[0].entry.instructions, output(port_no::NORMAL));
}

#[test]
fn a_walk_during_changes_visits_each_remaining_entry_once() {
    let mut m = plain();
    for n in 0..20 {
        m.flow_mod(Nanos(0), FlowMod { table: Some(TableId((n % 3) as u8)), ..add(1, mac(n), PortNo(1)) })
            .unwrap();
    }
    let mut cursor = FlowCursor::default();
    let mut seen = Vec::new();
    let mut step = 0;
    while !cursor.is_done() {
        let part = m.flows(Nanos(0), &FlowFilter::default(), &mut cursor, 2);
        assert!(part.len() <= 2);
        seen.extend(part.into_iter().map(|f| f.entry.matching.fields().next().unwrap().value));
        let gone = 19 - step % 20;
        if gone % 4 == 0 {
            m.flow_mod(
                Nanos(0),
                command(FlowModCommand::Delete, FlowMod { table: None, ..add(0, mac(gone), PortNo(0)) }),
            )
            .unwrap();
        } else if gone % 4 == 1 {
            // The replacement has another ID but counts as the same entry.
            m.flow_mod(
                Nanos(0),
                FlowMod { table: Some(TableId((gone % 3) as u8)), ..add(1, mac(gone), PortNo(2)) },
            )
            .unwrap();
        }
        poll_all(&mut m, Nanos(0));
        step += 1;
    }
    for n in (0..20).filter(|n| n % 4 > 1) {
        assert_eq!(seen.iter().filter(|&&s| s == n).count(), 1, "{n} in {seen:?}");
    }
    for n in (0..20).filter(|n| n % 4 == 1) {
        assert!(seen.contains(&n), "{n} in {seen:?}");
    }
    let mut sum = Aggregate::default();
    let mut cursor = FlowCursor::default();
    let filter = FlowFilter { table: Some(TableId(2)), ..FlowFilter::default() };
    while !cursor.is_done() {
        m.aggregate(&filter, &mut cursor, 1, &mut sum);
    }
    assert_eq!(sum.flows, m.table(TableId(2)).active);
    assert!(sum.flows > 0 && sum.flows < m.flow_count());
}

#[test]
fn statistics_of_one_entry_do_not_examine_the_others() {
    let mut m = plain();
    for n in 0..2_000 {
        m.flow_mod(Nanos(0), FlowMod { table: Some(TableId((n % 2) as u8)), ..add(1, mac(n), PortNo(1)) })
            .unwrap();
    }
    let mut cursor = FlowCursor::default();
    let filter = FlowFilter { matching: mac(1_000), ..FlowFilter::default() };
    let found = m.flows(Nanos(0), &filter, &mut cursor, 8);
    assert!(cursor.is_done());
    assert_eq!(found.iter().map(|f| &f.entry.matching).collect::<Vec<_>>(), [&mac(1_000)]);
    let (mut sum, mut cursor) = (Aggregate::default(), FlowCursor::default());
    m.aggregate(&filter, &mut cursor, 8, &mut sum);
    assert!(cursor.is_done() && sum.flows == 1);
}

#[test]
fn filtered_statistics_contain_the_same_entries_for_parts_of_any_size() {
    let mut rng = fastrand::Rng::with_seed(7);
    let shapes = [
        "dl_type=0x800",
        "ip,nw_src=10.0.0.0/8",
        "ip,nw_src=10.1.0.0/16",
        "ip,nw_src=10.1.0.0/16,nw_proto=6",
        "tcp,nw_src=10.1.0.0/16,tp_dst=80",
        "ip,nw_dst=10.2.0.0/16",
        "",
        "in_port=1",
    ];
    let flow = |text: &str| {
        let line = format!("{text}{}actions=drop", if text.is_empty() { "" } else { "," });
        parse_flow(&line, FlowModCommand::Add, ParseOptions::default()).unwrap()
    };
    let mut m = plain();
    for n in 0..300_u64 {
        let text = shapes[rng.usize(..shapes.len())];
        let text = text.replace("10.1.", &format!("10.{}.", rng.u8(1..6)));
        let flow = FlowMod {
            table: Some(TableId(rng.u8(..3))),
            priority: rng.u16(..40),
            cookie: n % 4,
            ..flow(&text)
        };
        m.flow_mod(Nanos(0), flow).unwrap();
    }
    let all = dump(&mut m, Nanos(0));
    for text in shapes {
        for (cookie_mask, table) in [(0, None), (3, None), (0, Some(TableId(1))), (3, Some(TableId(2)))] {
            let matching = flow(text).matching;
            let filter = FlowFilter { table, matching, cookie: 1, cookie_mask, ..FlowFilter::default() };
            let expected: Vec<_> =
                all.iter().map(|f| &f.entry).filter(|entry| filter.accepts(entry)).collect();
            for work in [1, 3, 40, 100, 256, 10_000] {
                let (mut cursor, mut found) = (FlowCursor::default(), Vec::new());
                while !cursor.is_done() {
                    let part = m.flows(Nanos(0), &filter, &mut cursor, work);
                    assert!(part.len() <= work);
                    found.extend(part.into_iter().map(|f| f.entry));
                }
                assert!(found.iter().eq(expected.iter().copied()), "{filter:?} by {work}");
            }
        }
    }
}

#[test]
fn entries_of_many_priorities_are_removed_in_order_of_addition() {
    let mut m = plain();
    for n in 0..40 {
        m.flow_mod(Nanos(0), add(n * 7 % 40, mac(1), PortNo(1))).unwrap();
    }
    m.flow_mod(Nanos(0), command(FlowModCommand::Delete, add(0, mac(1), PortNo(1)))).unwrap();
    let removed = last_changes(&mut m).into_iter().map(|c| match c {
        EntryChange::Remove { id, .. } => id,
        other => panic!("{other:?}"),
    });
    assert!(removed.eq((0..40).map(EntryId)));
}

#[test]
fn what_the_data_plane_refuses_changes_nothing() {
    let mut m = plain();
    m.flow_mod(Nanos(0), add(5, mac(1), PortNo(1))).unwrap();
    let (before, operations) = (dump(&mut m, Nanos(1)), m.plane_mut().operations.len());
    let refusal = PlaneRefusal { kind: 2, code: 7, text: "one output".into() };
    m.plane_mut().refusal = Some(refusal.clone());
    let error = m.flow_mod(Nanos(1), add(5, mac(2), PortNo(1))).unwrap_err();
    assert_eq!((error.openflow(), error.to_string()), ((2, 7), "one output".into()));
    let many = [add(6, mac(3), PortNo(1)), add(5, mac(1), PortNo(2))];
    assert_eq!(m.bundle(Nanos(1), many), Err((1, ModelError::Plane(refusal))));
    let unknown = FlowMod { table: Some(TableId(255)), ..add(6, mac(3), PortNo(1)) };
    assert!(matches!(m.bundle(Nanos(1), [unknown]), Err((0, ModelError::Invalid(_)))));
    assert_eq!((dump(&mut m, Nanos(1)), m.plane_mut().operations.len()), (before, operations));
    m.plane_mut().refusal = None;
    m.flow_mod(Nanos(2), add(5, mac(2), PortNo(1))).unwrap();
    assert_eq!(m.flow_count(), 2);
}
