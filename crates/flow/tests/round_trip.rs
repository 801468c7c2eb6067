// SPDX-License-Identifier: Apache-2.0
//! Random flow-mods must survive printing and parsing, and no text may make the parser panic.

mod random;

use flow::syntax::{ParseOptions, format_entry, format_flow, parse_flow, parse_flows};
use flow::{Action, EntryId, Field, FlowEntry, FlowModCommand, Instructions, Nanos, TableId};
use random::{Random, flow_mod};
use std::collections::HashSet;
use std::sync::Arc;

const FLOWS: u64 = 50_000;

#[test]
fn random_flow_mods_are_printed_and_parsed_back() {
    let mut fields = HashSet::new();
    let mut actions = HashSet::new();
    for seed in 0..FLOWS {
        let flow = flow_mod(&mut Random::new(seed));
        let printed = format_flow(&flow);
        let parsed = parse_flow(&printed, FlowModCommand::Add, ParseOptions::default())
            .unwrap_or_else(|e| panic!("seed {seed}: {printed}\n  {e}"));
        assert_eq!(parsed, flow, "seed {seed}: {printed}");
        fields.extend(flow.matching.fields().map(|c| match c.field {
            Field::Slice(_) => "slice",
            named => named.name(),
        }));
        let lists = flow.instructions.apply.iter().chain(&flow.instructions.write);
        actions.extend(lists.map(std::mem::discriminant::<Action>));
    }
    // The generator must cover every field and every kind of action.
    assert_eq!(fields.len(), Field::NAMED.len() + 1, "{fields:?}");
    assert_eq!(actions.len(), 23);
}

#[test]
fn a_dumped_entry_can_be_loaded() {
    for seed in 0..2_000 {
        let random = &mut Random::new(seed);
        let flow = flow_mod(random);
        if flow.command != FlowModCommand::Add {
            continue;
        }
        let entry = FlowEntry {
            id: EntryId(3),
            table: flow.table.unwrap(),
            priority: flow.priority,
            matching: flow.matching.clone(),
            instructions: Arc::new(flow.instructions.clone()),
            idle_timeout_s: flow.idle_timeout_s,
            hard_timeout_s: flow.hard_timeout_s,
            cookie: flow.cookie,
            flags: flow.flags,
            low_latency: flow.low_latency == Some(true),
        };
        let mut wanted = flow;
        wanted.low_latency = wanted.low_latency.filter(|&l| l);
        let learned = entry.low_latency && seed % 3 == 0;
        let stats = flow::syntax::EntryStats {
            duration_ns: Nanos(random.below(u64::MAX)),
            packets: random.below(1 << 40),
            bytes: 5,
            idle_age_s: Some(3).filter(|_| seed % 2 == 0),
            learned,
        };
        for stats in [None, Some(&stats)] {
            let line = format_entry(&entry, stats);
            let parsed = parse_flow(&line, FlowModCommand::Add, ParseOptions::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {line}\n  {e}"));
            // The parser ignores `low_latency=learned`.
            wanted.low_latency = Some(true).filter(|_| entry.low_latency && !(learned && stats.is_some()));
            assert_eq!(parsed, wanted, "{line}");
        }
    }
}

#[test]
fn entries_print_as_dump_flows_prints_them() {
    let mut entry = FlowEntry {
        id: EntryId(0),
        table: TableId(0),
        priority: 0x8000,
        matching: flow::Match::any(),
        instructions: Arc::new(Instructions::apply(vec![Action::output(flow::port_no::NORMAL)])),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: flow::EntryFlags::default(),
        low_latency: false,
    };
    let stats = flow::syntax::EntryStats {
        duration_ns: Nanos(1_234_567_890),
        packets: 7,
        bytes: 448,
        idle_age_s: Some(2),
        learned: false,
    };
    assert_eq!(
        format_entry(&entry, Some(&stats)),
        " cookie=0x0, duration=1.234s, table=0, n_packets=7, n_bytes=448, idle_age=2, actions=NORMAL"
    );
    entry.priority = 100;
    entry.cookie = 0xab;
    entry.idle_timeout_s = 60;
    entry.flags.send_flow_removed = true;
    entry.low_latency = true;
    entry.matching =
        flow::syntax::parse_match("ip,nw_dst=10.0.0.0/24,in_port=1", ParseOptions::default()).unwrap();
    assert_eq!(
        format_entry(&entry, None),
        " cookie=0xab, table=0, idle_timeout=60, send_flow_rem low_latency \
         priority=100,ip,in_port=1,nw_dst=10.0.0.0/24 actions=NORMAL"
    );
    let learned = flow::syntax::EntryStats { learned: true, ..stats };
    assert!(format_entry(&entry, Some(&learned)).contains(" low_latency=learned priority=100"));
}

/// Fragments that have a meaning for the parser.
const PIECES: &[&str] = &[
    "ip",
    "tcp",
    "nw_src",
    "dl_vlan",
    "vlan_tci",
    "slice",
    "(packet,",
    "0,",
    "8)",
    "=",
    ":",
    ",",
    " ",
    "/",
    "->",
    "(",
    ")",
    "actions",
    "actions=",
    "set_field",
    "output",
    "controller",
    "push_key(key=0x",
    "width=64",
    "push_polka(key=0x",
    "ttl=",
    "hops=",
    "push_tf",
    "write_actions(",
    "goto_table",
    "0x",
    "0",
    "1",
    "65535",
    "4294967296",
    "*",
    "any",
    "::1",
    "10.0.0.1",
    "é",
    "\u{1F980}",
    "\0",
    "\t",
    "\"",
    "#",
    "\n",
    "-1",
    "delete",
    "flow",
    "cookie",
    "index",
    "ffffffffffffffffffffffffffffffffffffffff",
];

#[test]
fn no_text_makes_the_parser_panic() {
    let commands = [
        FlowModCommand::Add,
        FlowModCommand::Modify,
        FlowModCommand::ModifyStrict,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ];
    for seed in 0..100_000 {
        let random = &mut Random::new(seed);
        let mut text = String::new();
        if seed % 2 == 0 {
            for _ in 0..random.below(20) {
                text.push_str(random.of(PIECES));
            }
        } else {
            // Changes, removes or repeats some bytes of a valid flow.
            let mut bytes = format_flow(&flow_mod(random)).into_bytes();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64 + 1) as usize;
                match random.below(3) {
                    0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
                    1 if at < bytes.len() => drop(bytes.remove(at)),
                    _ => bytes.insert(at, *random.of(b"(),=:/->0x ")),
                }
            }
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        if let Ok(flow) = parse_flow(&text, *random.of(&commands), ParseOptions::default()) {
            let printed = format_flow(&flow);
            let again = parse_flow(&printed, FlowModCommand::Add, ParseOptions::default());
            assert_eq!(again.as_ref(), Ok(&flow), "{text:?} printed as {printed}");
        }
        for result in parse_flows(&text, ParseOptions::default()) {
            let _ = result.map_err(|e| e.to_string());
        }
    }
}
