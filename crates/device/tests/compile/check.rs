// SPDX-License-Identifier: Apache-2.0
//! A check has the verdict of the change; and changes that are refused, executed in part, or done with a gap.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use device::compile::{CompileError, Compiler, PpuLayout, Transition};
use device::emulator::Fate;
use flow::syntax::{ParseOptions, parse_actions};
use flow::{EntryChange, EntryId};
use wire::PacketBuilder;

use crate::device;
use crate::pair::{Left, Pair};
use crate::random::{Case, name};

fn id(change: &EntryChange) -> EntryId {
    match change {
        EntryChange::Add(entry) => entry.id,
        EntryChange::Modify { id, .. } | EntryChange::Remove { id, .. } => *id,
    }
}

/// Makes changes that concern different entries.
fn random_changes(case: &mut Case) -> Vec<EntryChange> {
    let mut changes = case.random_change();
    for _ in 0..[0, 0, 0, 1, 3][case.rng.usize(0..5)] {
        let more = case.random_change();
        if !more.iter().any(|new| changes.iter().any(|old| id(old) == id(new))) {
            changes.extend(more);
        }
    }
    changes
}

fn assert_equal(left: &Compiler, right: &Compiler) {
    for ppu in 0..left.layout().ppus() as u8 {
        assert_eq!(left.slices(ppu), right.slices(ppu));
        assert!(left.rows(ppu).eq(right.rows(ppu)), "PPU {ppu}");
        for index in 0..left.layout().entries() {
            assert_eq!(left.owner(ppu, index), right.owner(ppu, index));
        }
    }
}

#[test]
fn a_check_has_the_verdict_of_the_change() {
    let cases = env::var("DEVICE_CASES").map_or(80, |cases| cases.parse().unwrap());
    let (mut done, mut gaps, mut refused) = (0, 0, BTreeMap::<&str, usize>::new());
    for seed in 0..cases {
        let mut case = Case::new(seed);
        for _ in 0..100 {
            let changes = random_changes(&mut case);
            let mut twin = case.pair.compiler.clone();
            let wanted = twin.apply(&changes);
            let before = case.pair.compiler.clone();
            let verdict = case.pair.compiler.check(&changes);
            assert_eq!(verdict, wanted.map(|_| ()), "{changes:#?} {:#?}", case.pair.entries);
            assert_equal(&case.pair.compiler, &before);
            match case.rng.u8(0..8) {
                // Another check replaces the first one.
                0 => _ = random_changes(&mut case).pop().map(|last| case.pair.compiler.check(&[last])),
                // Another change makes it useless.
                1 => {
                    let other = case.random_change();
                    let apart = other.iter().all(|new| changes.iter().all(|old| id(old) != id(new)));
                    if apart && case.pair.apply(&other).is_ok() {
                        twin = case.pair.compiler.clone();
                        _ = twin.apply(&changes);
                        twin.take_commands();
                        _ = case.pair.apply(&changes);
                        case.pair.compiler.take_commands();
                        assert_equal(&case.pair.compiler, &twin);
                    }
                    continue;
                }
                _ => {}
            }
            match case.pair.apply(&changes) {
                Ok((transition, commands)) => {
                    assert_eq!(wanted, Ok(transition));
                    assert_eq!(commands, twin.take_commands());
                    done += 1;
                    gaps += usize::from(transition == Transition::Gap);
                }
                Err(refusal) => {
                    assert_eq!(wanted, Err(refusal));
                    assert_eq!(case.pair.compiler.take_commands(), twin.take_commands());
                    *refused.entry(name(&refusal)).or_default() += 1;
                }
            }
            assert_equal(&case.pair.compiler, &twin);
        }
    }
    let text = format!("{done} done, {gaps} gaps, refused {refused:?}");
    let of = |name| refused.get(name).copied().unwrap_or(0);
    assert!(done > 30 * cases as usize && gaps > 0, "{text}");
    assert!(of("full") > 0 && of("key") > 0 && of("outputs") > 0, "{text}");
}

/// Frame to an address of its own, and its flow.
fn numbered(number: u16) -> (Vec<u8>, String) {
    let [high, low] = number.to_be_bytes();
    let frame = PacketBuilder::ethernet([2, 0, 0, 0, high, low], [4; 6]).ethertype(0x88b9).payload(&[0; 46]);
    (frame.build(), format!("dl_dst=02:00:00:00:{high:02x}:{low:02x}"))
}

fn code(pair: &mut Pair, number: u16) -> u8 {
    match pair.device.process(1, &numbered(number).0) {
        Fate::Controller { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

fn remove(pair: &mut Pair, id: EntryId) {
    let table = pair.entries[&id].table;
    let (_, commands) = pair.apply(&[EntryChange::Remove { id, table }]).unwrap();
    for (ppu, command) in commands {
        assert!(pair.device.execute(ppu, &command));
    }
}

#[test]
fn the_sender_of_a_packet_is_known_after_its_removal() {
    let mut pair = Pair::new(PpuLayout::new(1, 512, &[1]).unwrap());
    let mut removed = Vec::new();
    for number in 0..255 {
        let id = pair.add(&format!("{},actions=CONTROLLER", numbered(number).1)).unwrap();
        removed.push((code(&mut pair, number), id, Arc::clone(&pair.entries[&id])));
        remove(&mut pair, id);
    }
    // Each of them has a number of its own, which is not used again before all others were.
    for (code, id, entry) in &removed {
        let sender = pair.compiler.sender(0, *code).unwrap();
        assert_eq!((sender.entry, &sender.flow), (*id, entry));
    }
    let id = pair.add(&format!("{},actions=CONTROLLER", numbered(300).1)).unwrap();
    assert_eq!(code(&mut pair, 300), removed[0].0);
    assert_eq!(pair.compiler.sender(0, removed[0].0).unwrap().entry, id);
    assert_eq!(pair.compiler.sender(0, removed[1].0).unwrap().entry, removed[1].1);
}

#[test]
fn a_check_finds_that_all_numbers_are_in_use() {
    let mut pair = Pair::new(PpuLayout::new(1, 512, &[1]).unwrap());
    let ids: Vec<EntryId> = (0..255)
        .map(|number| pair.add(&format!("{},actions=CONTROLLER", numbered(number).1)).unwrap())
        .collect();
    let entry = Arc::new(pair.entry(&format!("{},actions=CONTROLLER", numbered(255).1)));
    let add = [EntryChange::Add(Arc::clone(&entry))];
    assert!(matches!(pair.compiler.check(&add), Err(CompileError::NumbersUsed(_))));
    assert!(matches!(pair.compiler.apply(&add), Err(CompileError::NumbersUsed(_))));
    let replace = [EntryChange::Remove { id: ids[7], table: entry.table }, EntryChange::Add(entry)];
    assert_eq!(pair.compiler.check(&replace), Ok(()));
    assert_eq!(pair.compiler.apply(&replace), Ok(Transition::Gap));
}

fn modify(pair: &Pair, id: EntryId, text: &str) -> EntryChange {
    let old = &pair.entries[&id];
    let instructions = Arc::new(parse_actions(text, &old.matching, ParseOptions::default()).unwrap());
    EntryChange::Modify { id, table: old.table, instructions, low_latency: true, reset_counts: false }
}

#[test]
fn a_change_to_equal_instructions_is_nothing_to_do() {
    let mut pair = Pair::new(PpuLayout::new(2, 3, &[2]).unwrap());
    let edits = "set_field:02:00:00:00:00:07->eth_dst,set_field:10.7.7.7->ip_src,output:2";
    let id = pair.add(&format!("ip,nw_dst=10.0.0.1,actions={edits}")).unwrap();
    pair.add("ip,nw_dst=10.0.0.2,actions=output:3").unwrap();
    let equal = [modify(&pair, id, edits)];
    assert_eq!(pair.compiler.check(&equal), Ok(()));
    assert_eq!(pair.compiler.apply(&equal), Ok(Transition::Seamless));
    assert_eq!(pair.compiler.take_commands(), []);
    let other =
        [modify(&pair, id, "set_field:02:00:00:00:00:07->eth_dst,set_field:10.7.7.8->ip_src,output:2")];
    let full = Err(CompileError::TableFull { ppu: 0, free: 0, needed: 1 });
    assert_eq!(pair.compiler.check(&other), full);
    assert_eq!(pair.compiler.apply(&other).map(|_| ()), full);
}

#[test]
fn removals_are_executed_although_another_change_is_refused() {
    let mut pair = Pair::new(PpuLayout::new(2, 4, &[2]).unwrap());
    let edits = "set_field:02:00:00:00:00:07->eth_dst,set_field:10.7.7.7->ip_src,output:2";
    let [first, second, third] =
        [1, 2, 3].map(|host| pair.add(&format!("ip,nw_dst=10.0.0.{host},actions={edits}")).unwrap());
    let other = "set_field:02:00:00:00:00:09->eth_dst,set_field:10.7.7.8->ip_src,output:3";
    let (table, entries) = (pair.entries[&first].table, &pair.entries);
    assert_eq!(entries.len(), 3);
    let changes = [
        modify(&pair, first, other),
        EntryChange::Remove { id: second, table },
        modify(&pair, third, "output:4"),
    ];
    let full = CompileError::TableFull { ppu: 0, free: 0, needed: 1 };
    assert_eq!(pair.compiler.check(&changes), Err(full));
    assert_eq!(pair.compiler.apply_forced(&changes), [(0, full)]);
    pair.execute();
    let frame =
        |host| PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10, 0, 0, 9], [10, 0, 0, host]).udp(7, 8);
    let [one, two, three] = [1, 2, 3].map(|host| pair.forward(1, &frame(host).payload(&[0; 30]).build()));
    assert!(matches!(one, Left::Port(2, _)), "{one:?}");
    assert_eq!(two, Left::Nothing);
    assert!(matches!(three, Left::Port(4, _)), "{three:?}");
    assert_eq!(pair.compiler.places(second), []);
    assert_eq!(pair.compiler.apply_forced(&[modify(&pair, first, other)]), []);
}

#[test]
fn a_bundle_is_executed_in_its_order_if_new_entries_contradict_old_ones() {
    for (old, new) in [
        ("table=0,actions=write_actions(output:1),goto_table:1", "table=1,actions=output:2"),
        (
            "table=0,vlan_tci=0x1000/0x1000,actions=write_actions(output:1),goto_table:1",
            "table=1,actions=clear_actions,goto_table:2",
        ),
        (
            "table=0,dl_type=0x88b9,vlan_tci=0,actions=delete_field(112,128),goto_table:1",
            "table=1,dl_type=0x88b9,vlan_tci=0,actions=delete_field(112,8),output:2",
        ),
    ] {
        let mut pair = device(&[1, 1, 1]);
        let id = pair.add(old).unwrap();
        let (table, entry) = (pair.entries[&id].table, Arc::new(pair.entry(new)));
        assert!(pair.compiler.check(&[EntryChange::Add(Arc::clone(&entry))]).is_err(), "{new}");
        let bundle = [EntryChange::Remove { id, table }, EntryChange::Add(entry)];
        assert_eq!(pair.compiler.check(&bundle), Ok(()), "{new}");
        assert_eq!(pair.apply(&bundle).unwrap().0, Transition::Gap, "{new}");
    }
}
