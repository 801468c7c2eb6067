// SPDX-License-Identifier: Apache-2.0
//! Compiled flow tables in the RTL, against the reference: byte for byte and in order, also while the tables
//! change.
//!
//! SIM_CASES is the number of random programs, SIM_SEED the first seed. SIM_CASE_FRAMES_MIN is the least
//! number of frames that all programs together must compare (default: 0).
#![cfg(feature = "datapath")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Arc;

use device::compile::{PpuLayout, Transition};
use device::{OutputKind, PpuCommand};
use device_sim::{ENTRIES, PPUS, RtlDatapath, SentFrame};
use fastrand::Rng;
use flow::{EntryChange, EntryId, FlowEntry};

#[path = "../../../device/tests/compile/frames.rs"]
mod frames;
// This test does not use the software device to forward.
#[allow(dead_code)]
#[path = "../../../device/tests/compile/pair.rs"]
mod pair;
#[path = "../../../device/tests/compile/programs.rs"]
mod programs;
#[path = "../../../device/tests/compile/rules.rs"]
mod rules;

use frames::{frame, is_beyond_parser};
use pair::{Left, PORTS, Pair, expected, reference};
use programs::{PROGRAMS, captured, icn_frame};
use rules::{Kind, flow};

/// Cycles without a beat after which no frame is in the data plane.
const DRAIN_CYCLES: u32 = 300;
/// Changes of the tables in each case.
const CHANGES: usize = 30;
/// Frames in each case, which are sent after each change.
const FRAMES: usize = 60;

type Frames = Vec<(u8, Vec<u8>)>;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// What the reference sends for each frame.
fn wanted(entries: &BTreeMap<EntryId, Arc<FlowEntry>>, frames: &Frames) -> Vec<Left> {
    let mut reference = reference(entries);
    frames.iter().map(|(port, frame)| expected(&mut reference, *port, frame)).collect()
}

/// A compiler, and the RTL that executes its commands.
struct Case {
    rng: Rng,
    pair: Pair,
    rtl: RtlDatapath,
    kinds: Vec<Kind>,
    frames: Frames,
    done: usize,
    refused: usize,
    left: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let layouts: [&[u8]; 4] = [&[1, 1, 1], &[2, 1, 1], &[1, 2], &[3]];
        let tables = layouts[rng.usize(0..4)];
        let entries = [6, 16, ENTRIES][rng.usize(0..3)];
        let mut pair = Pair::new(PpuLayout::new(PPUS as u8, entries, tables).unwrap());
        // Most packets then leave.
        for table in 1..tables.len() {
            pair.add(&format!("table={},priority=0,actions=goto_table:{table}", table - 1)).unwrap();
        }
        let out = rng.u8(1..=PORTS as u8);
        pair.add(&format!("table={},priority=0,actions=write_actions(output:{out})", tables.len() - 1))
            .unwrap();
        let kinds = tables.iter().map(|_| Kind::random(&mut rng)).collect();
        let made = (0..FRAMES).map(|_| (rng.u8(1..=PORTS as u8), frame(&mut rng)));
        let frames = made.filter(|(_, frame)| !is_beyond_parser(frame)).collect();
        Self::with_program(rng, pair, kinds, frames)
    }

    /// Gives a compiled program to the RTL.
    fn with_program(rng: Rng, pair: Pair, kinds: Vec<Kind>, frames: Frames) -> Self {
        let rtl = RtlDatapath::new().unwrap();
        let mut case = Self { rng, pair, rtl, kinds, frames, done: 0, refused: 0, left: 0 };
        case.copy_state();
        case
    }

    /// Gives the RTL the slices and the entries of the software device.
    fn copy_state(&mut self) {
        let mut sent = Vec::new();
        for ppu in 0..PPUS as u8 {
            let slices = self.pair.device.slices(ppu).unwrap();
            self.rtl.execute(ppu, &PpuCommand::Select { slices }, &mut sent).unwrap();
            for index in 0..ENTRIES {
                if let Some(state) = self.pair.device.entry(ppu, index).filter(|state| state.valid) {
                    let write = PpuCommand::Write { index, key: state.key, action: state.action };
                    self.rtl.execute(ppu, &write, &mut sent).unwrap();
                }
            }
        }
    }

    /// Returns what left.
    fn outcome(&self, sent: SentFrame) -> Left {
        let frame = sent.frame;
        if sent.kind == OutputKind::Port as u8 {
            Left::Port(sent.port.into(), frame)
        } else {
            let sender = self.pair.compiler.sender(sent.ppu, sent.port);
            let (table, entry) = sender.map_or((flow::TableId(0), EntryId::NONE), |s| (s.table, s.entry));
            Left::Controller(table, entry, frame)
        }
    }

    /// Adds a flow, modifies one or removes one; its commands are executed while frames arrive.
    fn change(&mut self) {
        let table = self.rng.usize(0..self.kinds.len());
        let ids: Vec<EntryId> = self.pair.entries.keys().copied().skip(self.kinds.len()).collect();
        let changes = if !ids.is_empty() && self.rng.u8(0..4) == 0 {
            let old = &self.pair.entries[&ids[self.rng.usize(0..ids.len())]];
            vec![EntryChange::Remove { id: old.id, table: old.table }]
        } else {
            let text = flow(&mut self.rng, self.kinds[table], table as u8, self.kinds.len() as u8);
            let entry = Arc::new(self.pair.entry(&text));
            let same = self.pair.entries.values().find(|old| {
                (old.table, old.priority, &old.matching) == (entry.table, entry.priority, &entry.matching)
            });
            let remove = same.map(|old| EntryChange::Remove { id: old.id, table: old.table });
            remove.into_iter().chain([EntryChange::Add(entry)]).collect()
        };
        let before = wanted(&self.pair.entries, &self.frames);
        let (transition, commands) = match self.pair.apply(&changes) {
            Ok(applied) => {
                self.done += 1;
                applied
            }
            Err(_) => {
                self.refused += 1;
                (Transition::Gap, self.pair.compiler.take_commands())
            }
        };
        let after = wanted(&self.pair.entries, &self.frames);
        let mut sent = Vec::new();
        for (ppu, command) in &commands {
            assert!(self.pair.device.execute(*ppu, command));
        }
        if transition == Transition::Gap {
            for (ppu, command) in &commands {
                self.rtl.execute(*ppu, command, &mut sent).unwrap();
            }
            assert!(sent.is_empty());
        } else {
            self.execute_under_traffic(&commands, &before, &after);
        }
        self.compare(&after);
    }

    /// While the commands are executed, each frame leaves as before the change or as after it.
    fn execute_under_traffic(&mut self, commands: &[(u8, PpuCommand)], before: &[Left], after: &[Left]) {
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        let mut frames = self.frames.iter().enumerate().cycle();
        for (ppu, command) in commands {
            self.rtl.start(*ppu, command);
            while self.rtl.executed().is_none() {
                let Some((at, (port, frame))) = frames.next() else { return };
                self.rtl.receive(*port, frame, &mut sent);
                arrived.push([&before[at], &after[at]]);
            }
            assert_eq!(self.rtl.executed(), Some(Ok(())));
        }
        self.rtl.settle(DRAIN_CYCLES, &mut sent);
        // The entries of packets for the controller are compared after the change.
        let sent: Vec<Left> = sent.into_iter().map(|sent| pair::coarse(self.outcome(sent))).collect();
        let mut places = BTreeSet::from([0]);
        for (number, options) in arrived.iter().enumerate() {
            let mut next = BTreeSet::new();
            for place in places {
                for option in options {
                    let option = pair::coarse((*option).clone());
                    if option == Left::Nothing {
                        next.insert(place);
                    } else if sent.get(place) == Some(&option) {
                        next.insert(place + 1);
                    }
                }
            }
            assert!(!next.is_empty(), "frame {number} left neither as before nor as after: {commands:?}");
            places = next;
        }
        assert!(places.contains(&sent.len()), "more frames left than arrived");
    }

    /// Sends all frames, and compares what leaves with the reference.
    fn compare(&mut self, wanted: &[Left]) {
        let mut sent = Vec::new();
        for (port, frame) in &self.frames {
            self.rtl.receive(*port, frame, &mut sent);
        }
        self.rtl.settle(DRAIN_CYCLES, &mut sent);
        let got: Vec<Left> = sent.into_iter().map(|sent| self.outcome(sent)).collect();
        let wanted: Vec<&Left> = wanted.iter().filter(|left| **left != Left::Nothing).collect();
        self.left += got.len();
        assert_eq!(got.iter().collect::<Vec<_>>(), wanted, "{:#?}", self.pair.entries);
    }

    /// Nothing leaves after the frames that were compared.
    fn finish(&mut self) {
        let mut sent = Vec::new();
        self.rtl.drain(DRAIN_CYCLES, &mut sent);
        assert_eq!(sent, [], "more frames left than arrived");
    }
}

#[test]
fn compiled_flow_tables_forward_as_the_reference() {
    let (cases, first) = (number("SIM_CASES", 20), number("SIM_SEED", 1));
    let (mut done, mut refused, mut left, mut sent, mut cycles) = (0, 0, 0, 0, 0);
    for seed in first..first + cases {
        println!("seed {seed}");
        let mut case = Case::new(seed);
        for _ in 0..CHANGES {
            case.change();
        }
        case.finish();
        done += case.done;
        refused += case.refused;
        left += case.left;
        sent += case.rtl.counters()[0];
        cycles += case.rtl.cycles();
    }
    let text = format!("{done} changes, {refused} refused, {sent} frames, {cycles} cycles");
    println!("{text}");
    assert!(done > refused && left > cases as usize * CHANGES, "{text}");
    assert!(sent >= number("SIM_CASE_FRAMES_MIN", 0), "fewer frames than SIM_CASE_FRAMES_MIN: {text}");
}

/// The programs of the use cases, with captured and random frames.
#[test]
fn use_cases_forward_as_the_reference() {
    let (mut frames, beyond) = captured();
    println!("{} captured frames, {beyond} that the device cannot parse", frames.len());
    let mut rng = Rng::with_seed(7);
    frames.extend((0..300).map(|_| (rng.u8(1..=PORTS as u8), frame(&mut rng))));
    frames.extend((0..100).map(|_| (rng.u8(1..=PORTS as u8), icn_frame(&mut rng))));
    frames.retain(|(_, frame)| !is_beyond_parser(frame));
    for (tables, text) in PROGRAMS {
        let mut pair = Pair::new(PpuLayout::new(PPUS as u8, ENTRIES, tables).unwrap());
        pair.add_all(text);
        let mut case = Case::with_program(Rng::with_seed(1), pair, Vec::new(), frames.clone());
        let wanted = wanted(&case.pair.entries, &case.frames);
        case.compare(&wanted);
        assert!(case.left > 20, "{} frames left", case.left);
    }
}
