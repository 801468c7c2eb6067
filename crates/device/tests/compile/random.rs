// SPDX-License-Identifier: Apache-2.0
//! Random flows, changes and frames. While the commands of a change are executed one by one, each packet is
//! forwarded as before the change or as after it.
//!
//! DEVICE_CASES is the number of cases.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use device::compile::{CompileError, DeviceCommand, PpuLayout, Transition};
use fastrand::Rng;
use flow::syntax::{ParseOptions, parse_actions};
use flow::{EntryChange, EntryId, FlowEntry};

use crate::frames::{frame, is_beyond_parser};
use crate::pair::{Left, PORTS, Pair, coarse, expected, reference};
use crate::rules::{Kind, actions, flow};

#[derive(Default)]
struct Counts {
    done: usize,
    refused: BTreeMap<&'static str, usize>,
    left: usize,
    dropped: usize,
    commands: usize,
    changed: usize,
    gaps: usize,
}

pub fn name(refusal: &CompileError) -> &'static str {
    match refusal {
        CompileError::KeyFull { .. } => "key",
        CompileError::TableFull { .. } => "full",
        CompileError::TooManyEdits { .. } => "edits",
        CompileError::PartOfByte(_) => "part of a byte",
        CompileError::SetField(_) => "set_field",
        CompileError::Action(_) => "action",
        CompileError::Outputs(_) => "outputs",
        CompileError::MetadataMask => "metadata",
        CompileError::Growth => "growth",
        CompileError::OutPort(_) | CompileError::Queue => "port",
        _ => "other",
    }
}

pub struct Case {
    pub rng: Rng,
    pub pair: Pair,
    kinds: Vec<Kind>,
    probes: Vec<(u8, Vec<u8>)>,
    counts: Counts,
}

fn wanted(entries: &BTreeMap<EntryId, Arc<FlowEntry>>, frames: &[(u8, Vec<u8>)]) -> Vec<Left> {
    let mut reference = reference(entries);
    frames.iter().map(|(port, frame)| expected(&mut reference, *port, frame)).collect()
}

impl Case {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let layouts: [&[u8]; 4] = [&[1, 1, 1], &[2, 1, 1], &[1, 2], &[3]];
        let tables = layouts[rng.usize(0..4)];
        let entries = [6, 16, 64][rng.usize(0..3)];
        Self::with_tables(rng, tables, entries)
    }

    fn with_tables(mut rng: Rng, tables: &[u8], entries: u16) -> Self {
        let mut pair = Pair::new(PpuLayout::new(4, entries, tables).unwrap());
        // Most packets then leave.
        for table in 1..tables.len() {
            pair.add(&format!("table={},priority=0,actions=goto_table:{table}", table - 1)).unwrap();
        }
        let out = rng.u8(1..=PORTS as u8);
        pair.add(&format!("table={},priority=0,actions=write_actions(output:{out})", tables.len() - 1))
            .unwrap();
        let kinds = tables.iter().map(|_| Kind::random(&mut rng)).collect();
        let made = (0..60).map(|_| (rng.u8(1..=PORTS as u8), frame(&mut rng)));
        let probes = made.filter(|(_, frame)| !is_beyond_parser(frame)).collect();
        Self { rng, pair, kinds, probes, counts: Counts::default() }
    }

    pub fn random_change(&mut self) -> Vec<EntryChange> {
        let table = self.rng.usize(0..self.kinds.len());
        let (number, tables) = (table as u8, self.kinds.len() as u8);
        let kind = self.kinds[table];
        let all: Vec<EntryId> = self.pair.entries.keys().copied().skip(self.kinds.len()).collect();
        let old =
            (!all.is_empty()).then(|| Arc::clone(&self.pair.entries[&all[self.rng.usize(0..all.len())]]));
        match (self.rng.u8(0..8), old) {
            (0 | 1, Some(old)) => vec![EntryChange::Remove { id: old.id, table: old.table }],
            (2 | 3, Some(old)) => {
                let kind = self.kinds[usize::from(old.table.0)];
                let text = actions(&mut self.rng, kind, old.table.0, tables);
                let options = ParseOptions::default();
                let instructions = Arc::new(parse_actions(&text, &old.matching, options).unwrap());
                let (id, table) = (old.id, old.table);
                vec![EntryChange::Modify { id, table, instructions, low_latency: false, reset_counts: false }]
            }
            _ => {
                let text = flow(&mut self.rng, kind, number, tables);
                let entry = Arc::new(self.pair.entry(&text));
                let same = self.pair.entries.values().find(|old| {
                    (old.table, old.priority, &old.matching) == (entry.table, entry.priority, &entry.matching)
                });
                let remove = same.map(|old| EntryChange::Remove { id: old.id, table: old.table });
                remove.into_iter().chain([EntryChange::Add(entry)]).collect()
            }
        }
    }

    fn step(&mut self) {
        let changes = self.random_change();
        self.change(&changes);
    }

    /// Applies changes. Returns the refusal, if there is one.
    fn change(&mut self, changes: &[EntryChange]) -> Option<CompileError> {
        let before = wanted(&self.pair.entries, &self.probes);
        match self.pair.apply(changes) {
            Ok((transition, commands)) => {
                self.counts.done += 1;
                let after = wanted(&self.pair.entries, &self.probes);
                if transition == Transition::Gap {
                    self.counts.gaps += 1;
                    for (ppu, command) in commands {
                        assert!(self.pair.device.execute(ppu, &command));
                    }
                    self.execute(&[], before, &after);
                    return None;
                }
                self.counts.changed += usize::from(before != after);
                self.execute(&commands, before, &after);
                None
            }
            Err(refusal) => {
                *self.counts.refused.entry(name(&refusal)).or_default() += 1;
                let commands = self.pair.compiler.take_commands();
                self.execute(&commands, before.clone(), &before);
                Some(refusal)
            }
        }
    }

    /// Executes commands one by one. A packet that was forwarded by the new rules once is never forwarded by
    /// the old ones again.
    fn execute(&mut self, commands: &[DeviceCommand], mut before: Vec<Left>, after: &[Left]) {
        self.counts.commands += commands.len();
        for (number, (ppu, command)) in commands.iter().enumerate() {
            assert!(self.pair.device.execute(*ppu, command));
            for (at, (port, frame)) in self.probes.iter().enumerate() {
                // The entries of packets for the controller are compared after the change.
                let got = self.pair.forward_coarsely(*port, frame);
                let (old, new) = (coarse(before[at].clone()), coarse(after[at].clone()));
                assert!(
                    got == old || got == new,
                    "command {number} of {commands:?}:\n{frame:?}\n{got:?}\n{old:?}\n{new:?}\n{:#?}",
                    self.pair.entries
                );
                if got == new {
                    before[at] = after[at].clone();
                }
            }
        }
        for (at, (port, frame)) in self.probes.iter().enumerate() {
            let got = self.pair.forward(*port, frame);
            assert_eq!(got, after[at], "port {port} {frame:02x?} {:#?}", self.pair.entries);
            let lost = got == Left::Nothing;
            *(if lost { &mut self.counts.dropped } else { &mut self.counts.left }) += 1;
        }
    }
}

#[test]
fn full_tables_of_distinct_priorities_forward_as_the_reference_during_each_change() {
    for seed in 0..8 {
        let mut case = Case::with_tables(Rng::with_seed(seed), &[1], 64);
        let mut priorities: Vec<u16> = (1..200).collect();
        match seed % 4 {
            0 => {}
            1 => priorities.reverse(),
            2 => priorities = (1..100).flat_map(|priority| [priority, 300 - priority]).collect(),
            _ => case.rng.shuffle(&mut priorities),
        }
        let kind = if seed < 4 { Kind::Route } else { Kind::Filter };
        let is_full = priorities.into_iter().any(|priority| {
            let text = flow(&mut case.rng, kind, 0, 1);
            let entry = FlowEntry { priority, ..case.pair.entry(&text) };
            let refusal = case.change(&[EntryChange::Add(Arc::new(entry))]);
            matches!(refusal, Some(CompileError::TableFull { .. }))
        });
        assert!(is_full, "{:?}", case.counts.refused);
        for _ in 0..20 {
            case.step();
        }
    }
}

#[test]
fn random_programs_forward_as_the_reference_during_each_change() {
    let cases = env::var("DEVICE_CASES").map_or(60, |cases| cases.parse().unwrap());
    let mut total = Counts::default();
    for seed in 0..cases {
        let mut case = Case::new(seed);
        for _ in 0..40 {
            case.step();
        }
        let counts = case.counts;
        total.done += counts.done;
        total.left += counts.left;
        total.dropped += counts.dropped;
        total.commands += counts.commands;
        total.changed += counts.changed;
        total.gaps += counts.gaps;
        for (name, count) in counts.refused {
            *total.refused.entry(name).or_default() += count;
        }
    }
    let refused: usize = total.refused.values().sum();
    let all = total.done + refused;
    let text = format!(
        "{} of {all} changes done ({} seen by packets), refused {:?}; {} packets left, {} dropped; {} commands, {} gaps",
        total.done, total.changed, total.refused, total.left, total.dropped, total.commands, total.gaps
    );
    assert!(total.done * 2 > all, "{text}");
    assert!(total.changed * 3 > total.done, "{text}");
    assert!(total.left > total.dropped, "{text}");
    assert!(total.refused.len() >= 5, "{text}");
}
