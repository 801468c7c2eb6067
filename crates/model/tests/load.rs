// SPDX-License-Identifier: Apache-2.0
//! A model with a million entries. The tests print durations, and compare them with bounds that only an
//! algorithm of a worse complexity class exceeds.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::*;
use flow::group::{Group, GroupType};
use flow::meter::Meter;
use flow::{
    Action, EntryFlags, Field, FieldMatch, FlowMod, FlowModCommand, GroupId, Instructions, Match, MeterId,
    Nanos, PortNo, RuleVersion,
};
use model::{Change, GroupCommand, MeterCommand, ModelConfig, ModelError, ModelLimits};
use std::time::{Duration, Instant};

const COUNT: u128 = 1_000_000;

fn exact(n: u128) -> FlowMod {
    let matching = Match::new([
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::exact(Field::IpProto, 6),
        FieldMatch::exact(Field::Ipv4Src, n),
        FieldMatch::exact(Field::Ipv4Dst, 0x0a00_0001),
        FieldMatch::exact(Field::TcpDst, 80),
    ]);
    add(100, matching.unwrap(), PortNo(1))
}

fn timed<T>(what: &str, most: Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed();
    println!("{what}: {took:?}");
    assert!(took < most, "{what} took {took:?}");
    result
}

#[test]
fn a_million_entries() {
    let limits = ModelLimits { entries: COUNT as usize, ..ModelLimits::default() };
    let mut m = with(ModelConfig { limits, ..ModelConfig::default() });
    let mods: Vec<_> = (0..COUNT).map(exact).collect();
    let second = Duration::from_secs(1);
    let changed = timed("load 1,000,000 by one bundle", 9 * second, || m.bundle(Nanos(0), mods).unwrap());
    assert_eq!(changed.added, COUNT as usize);
    assert_eq!(m.barrier(), RuleVersion(1));
    // The recorded operation occupies memory of the fake data plane, not of the model.
    m.plane_mut().operations[0] = flow::Operation::RemovePort(PortNo(0));

    timed("10,000 strict modifies and deletes", second, || {
        for n in 0..5_000 {
            let strict = |c| command(c, exact(n * 199));
            assert_eq!(m.flow_mod(Nanos(0), strict(FlowModCommand::ModifyStrict)).unwrap().modified, 1);
            assert_eq!(m.flow_mod(Nanos(0), strict(FlowModCommand::DeleteStrict)).unwrap().removed, 1);
        }
    });
    timed("5,000 adds with overlap check", second, || {
        for n in 0..5_000 {
            let flags = EntryFlags { check_overlap: true, ..EntryFlags::default() };
            m.flow_mod(Nanos(0), FlowMod { flags, ..exact(n * 199) }).unwrap();
        }
    });
    timed("5,000 non-strict deletes of whole matches", second, || {
        for n in 0..5_000 {
            assert_eq!(
                m.flow_mod(Nanos(0), command(FlowModCommand::Delete, exact(n * 199))).unwrap().removed,
                1
            );
        }
    });
    timed("1,000 adds with overlap check, of two shapes and another priority", second, || {
        for n in 0..1_000 {
            let flags = EntryFlags { check_overlap: true, ..EntryFlags::default() };
            let matching = if n % 2 == 0 { mac(n) } else { dst(n, 0xffff) };
            m.flow_mod(Nanos(0), FlowMod { flags, ..add(7, matching, PortNo(1)) }).unwrap();
        }
    });
    timed("1,000 non-strict deletes of the wider shape", second, || {
        let delete = |n| command(FlowModCommand::Delete, add(0, dst(n, 0xffff), PortNo(1)));
        let removed = (0..1_000).map(|n| m.flow_mod(Nanos(0), delete(n)).unwrap().removed).sum::<usize>();
        assert_eq!(removed, 1_000);
    });
    timed("walk", 9 * second, || assert_eq!(dump(&mut m, Nanos(0)).len(), COUNT as usize - 5_000));
    poll_all(&mut m, Nanos(0));
    let full = std::iter::once(exact(0)).chain((COUNT..COUNT + 6_000).map(exact));
    let (at, error) = timed("bundle that fails", second, || m.bundle(Nanos(0), full).unwrap_err());
    assert!(matches!((at, error), (5_000, ModelError::TableFull { .. })));

    let removed = timed("delete all", 3 * second, || m.flow_mod(Nanos(0), delete_all()).unwrap().removed);
    assert_eq!(removed, COUNT as usize - 5_000);
    m.plane_mut().operations.clear();
    m.plane_mut().apply_all();
    m.plane_mut().applied = m.barrier();
    let mut longest = Duration::ZERO;
    let mut polls = 0;
    timed("forget all", 9 * second, || {
        loop {
            let start = Instant::now();
            let more = m.poll(Nanos(0));
            longest = longest.max(start.elapsed());
            polls += 1;
            if !more {
                break;
            }
        }
    });
    println!("{polls} polls, the longest {longest:?}");
    assert_eq!((m.pending_removals(), m.plane_mut().known_ids()), (0, 0));
}

#[test]
fn all_groups_and_meters_are_deleted_in_one_scan_of_the_entries() {
    const NUMBERS: u32 = 2_000;
    const ENTRIES: u32 = 200_000;
    let mut m = plain();
    let group = |id| Group { id, kind: GroupType::All, buckets: Vec::new() };
    let meter = |id| Meter { id, packets: true, stats: true, burst: false, bands: Vec::new() };
    let groups = (1..=NUMBERS).map(|id| Change::Group(GroupCommand::Add, group(GroupId(id))));
    let meters = (1..=NUMBERS).map(|id| Change::Meter(MeterCommand::Add, meter(MeterId(id))));
    m.bundle(Nanos(0), groups.chain(meters)).unwrap();
    let entry = |n: u32| {
        let id = n / 2 % NUMBERS + 1;
        let instructions = if n.is_multiple_of(2) {
            Instructions::apply(vec![Action::Group(GroupId(id)), Action::Group(GroupId(id % NUMBERS + 1))])
        } else {
            Instructions { meter: Some(MeterId(id)), ..output(PortNo(1)) }
        };
        FlowMod { instructions, ..add(1, mac(n.into()), PortNo(1)) }
    };
    m.bundle(Nanos(0), (0..ENTRIES).map(entry)).unwrap();
    m.flow_mod(Nanos(0), add(2, mac(1), PortNo(1))).unwrap();
    let second = Duration::from_secs(1);
    timed("delete 2,000 groups", 3 * second, || {
        m.group_mod(Nanos(0), GroupCommand::DeleteAll, group(GroupId(0))).unwrap()
    });
    assert_eq!((m.group_ids().len(), m.flow_count() as u32), (0, ENTRIES / 2 + 1));
    timed("delete 2,000 meters", 3 * second, || {
        m.meter_mod(Nanos(0), MeterCommand::DeleteAll, meter(MeterId(0))).unwrap()
    });
    assert_eq!((m.meter_ids().len(), m.flow_count()), (0, 1));
}
