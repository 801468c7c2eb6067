// SPDX-License-Identifier: Apache-2.0
//! Random programs and frames: the RTL forwards as the software model, byte for byte and in order, also while
//! entries change.
//!
//! SIM_PROGRAMS is the number of programs, SIM_FRAMES the number of frames for each, SIM_SEED the first seed.
//! SIM_FRAMES_MIN is the least number of frames that all programs together must compare (default: 0).
#![cfg(feature = "datapath")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::env;

use device::emulator::{Emulator, Fate};
use device::{OutputKind, PpuCommand};
use device_sim::{ENTRIES, PPUS, RtlDatapath, SentFrame};
use fastrand::Rng;

mod frames;
mod program;

/// Number of forms of random actions.
const FORMS: u8 = 8;
/// Cycles without a beat after which no frame is in the data plane.
const DRAIN_CYCLES: u32 = 300;
/// Changes of entries per program, during traffic.
const CHANGES: usize = 20;
/// Frames that are in the data plane when a change begins, or arrive until it is complete.
const FRAMES_OF_CHANGE: usize = 60;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// What leaves for a fate, or `None` for a drop.
fn leaves(fate: Fate, in_port: u8) -> Option<SentFrame> {
    let (kind, port, ppu, frame) = match fate {
        Fate::Port { port, frame } => (OutputKind::Port, port, 0, frame),
        Fate::Controller { code, ppu, frame } => (OutputKind::Controller, code, ppu, frame),
        Fate::Dropped(_) => return None,
    };
    Some(SentFrame { kind: kind as u8, port, in_port, ppu, frame })
}

/// Clears the PPU of frames that left by a port, which the model does not state.
fn without_ppu(sent: &mut [SentFrame]) {
    for sent in sent.iter_mut().filter(|sent| sent.kind == OutputKind::Port as u8) {
        sent.ppu = 0;
    }
}

/// Results of a frame before a change, without the changed entry, and after the change.
type Results = [Option<SentFrame>; 3];

/// Whether these frames can have left in this order, if the change happened between two frames. Otherwise,
/// returns the number of the first frame that has none of its results.
fn can_be(results: &[Results], sent: &[SentFrame]) -> Result<(), usize> {
    // Number of frames that have left, and phase of the change.
    let mut states = BTreeSet::from([(0, 0)]);
    for (at, results) in results.iter().enumerate() {
        let mut next = BTreeSet::new();
        for &(place, phase) in &states {
            for (phase, result) in results.iter().enumerate().skip(phase) {
                match result {
                    None => _ = next.insert((place, phase)),
                    Some(frame) if sent.get(place) == Some(frame) => _ = next.insert((place + 1, phase)),
                    Some(_) => {}
                }
            }
        }
        if next.is_empty() {
            return Err(at);
        }
        states = next;
    }
    if states.iter().any(|(place, _)| *place == sent.len()) { Ok(()) } else { Err(results.len()) }
}

struct Pair {
    datapath: RtlDatapath,
    model: Emulator,
    port: u8,
    chance: Rng,
}

impl Pair {
    fn both(&mut self, ppu: u8, command: &PpuCommand) {
        assert!(self.model.execute(ppu, command));
        let mut sent = Vec::new();
        self.datapath.execute(ppu, command, &mut sent).unwrap();
        assert!(sent.is_empty());
    }

    /// Feeds the frames, with gaps and back-pressure in some programs.
    fn feed(&mut self, frames: &[Vec<u8>], sent: &mut Vec<SentFrame>, slow: bool) {
        for frame in frames {
            self.datapath.receive(self.port, frame, sent);
            while slow && self.chance.bool() {
                self.datapath.set_ready_pattern(self.chance.u64(..) | self.chance.u64(..));
                self.datapath.clock(sent);
            }
        }
        self.datapath.set_ready(true);
    }

    /// Frames while no entry changes.
    fn check_program(&mut self, frames: &[Vec<u8>], slow: bool) {
        let (model, port) = (&mut self.model, self.port);
        let expected: Vec<SentFrame> =
            frames.iter().filter_map(|frame| leaves(model.process(port, frame), port)).collect();
        let mut sent = Vec::new();
        self.feed(frames, &mut sent, slow);
        self.datapath.settle(DRAIN_CYCLES, &mut sent);
        without_ppu(&mut sent);
        for (at, (sent, expected)) in sent.iter().zip(&expected).enumerate() {
            assert_eq!(sent, expected, "frame {at} that left");
        }
        assert_eq!(sent.len(), expected.len());
        assert_eq!(self.datapath.counters().as_slice(), self.model.counters());
    }

    /// Frames while one entry changes: each has the result of before, without the entry, or of after, in this
    /// order.
    fn check_change(&mut self, ppu: u8, command: &PpuCommand, frames: &[Vec<u8>]) {
        let mut before = self.model.clone();
        let mut without = self.model.clone();
        if let PpuCommand::Write { index, .. } = *command {
            assert!(without.execute(ppu, &PpuCommand::Remove { index }));
        }
        assert!(self.model.execute(ppu, command));
        let port = self.port;
        let model_before = self.model.counters();
        let results: Vec<Results> = frames
            .iter()
            .map(|frame| {
                [&mut before, &mut without, &mut self.model]
                    .map(|model| leaves(model.process(port, frame), port))
            })
            .collect();
        let mut sent = Vec::new();
        let (early, late) = frames.split_at(self.chance.usize(..frames.len() / 2));
        self.feed(early, &mut sent, false);
        self.datapath.start(ppu, command);
        self.feed(late, &mut sent, false);
        self.datapath.settle(DRAIN_CYCLES, &mut sent);
        assert_eq!(self.datapath.executed(), Some(Ok(())));
        without_ppu(&mut sent);
        if let Err(at) = can_be(&results, &sent) {
            panic!("{command:?} of PPU {ppu}: frame {at} has none of its results {:?}", results.get(at));
        }
        let after: Vec<SentFrame> = results.into_iter().filter_map(|[_, _, after]| after).collect();
        sent.clear();
        let rtl_before = self.datapath.counters();
        self.feed(frames, &mut sent, false);
        self.datapath.settle(DRAIN_CYCLES, &mut sent);
        without_ppu(&mut sent);
        assert_eq!(sent, after, "{command:?} of PPU {ppu}");
        let added = |after: &[u64], before: &[u64]| -> Vec<u64> {
            after.iter().zip(before).map(|(after, before)| after - before).collect()
        };
        let (rtl, model) = (self.datapath.counters(), self.model.counters());
        assert_eq!(added(&rtl, &rtl_before), added(&model, &model_before), "{command:?} of PPU {ppu}");
    }
}

/// Returns the first entry that a frame hits.
fn hits(model: &Emulator, port: u8, frame: &[u8]) -> Option<(u8, u16)> {
    let mut after = model.clone();
    after.process(port, frame);
    let places = (0..PPUS as u8).flat_map(|ppu| (0..ENTRIES).map(move |index| (ppu, index)));
    let packets = |model: &Emulator, (ppu, index)| model.entry(ppu, index).map(|state| state.packets);
    places.into_iter().find(|place| packets(model, *place) != packets(&after, *place))
}

/// Returns the numbers of frames and of cycles.
fn run(seed: u64, count: usize) -> [u64; 2] {
    let mut chance = Rng::with_seed(seed);
    let size = (PPUS as u8, ENTRIES);
    let port = chance.u8(..);
    let mut pair = Pair {
        datapath: RtlDatapath::with_seed(seed as u32).unwrap(),
        model: Emulator::new(size.0, size.1),
        port,
        chance: Rng::with_seed(seed),
    };
    let frames: Vec<Vec<u8>> = (0..count).map(|_| frames::random(&mut chance)).collect();
    for (ppu, command) in program::random(&mut chance, size, port, &frames[..count.min(40)]) {
        pair.both(ppu, &command);
    }
    pair.check_program(&frames, seed % 3 == 2);
    for _ in 0..CHANGES {
        let start = chance.usize(..count);
        let mut some: Vec<Vec<u8>> =
            frames.iter().cycle().skip(start).take(FRAMES_OF_CHANGE).cloned().collect();
        let mut place = (chance.u8(..size.0), chance.u16(..ENTRIES));
        // Often, an entry changes while a flow of short frames hits it in every cycle.
        if let Some(hit) = hits(&pair.model, port, &some[0]).filter(|_| chance.bool()) {
            place = hit;
            some[0].truncate(64);
            let flow = some[0].clone();
            some.fill(flow);
        }
        let (ppu, index) = place;
        let slices = pair.model.slices(ppu).unwrap();
        let command = program::change(&mut chance, index, &slices, port, &frames[..count.min(40)]);
        pair.check_change(ppu, &command, &some);
    }
    let mut sent = Vec::new();
    pair.datapath.drain(DRAIN_CYCLES, &mut sent);
    assert_eq!(sent, [], "more frames left than arrived");
    [pair.datapath.counters()[0], pair.datapath.cycles()]
}

#[test]
fn random_programs_forward_as_the_model() {
    let (programs, frames) = (number("SIM_PROGRAMS", 20), number("SIM_FRAMES", 300) as usize);
    let seed = number("SIM_SEED", 1);
    let (mut sent, mut cycles) = (0, 0);
    for seed in seed..seed + programs {
        println!("seed {seed}");
        let added = run(seed, frames);
        sent += added[0];
        cycles += added[1];
    }
    let changes = programs * CHANGES as u64;
    println!("{programs} programs, {changes} changes, {sent} frames, {cycles} cycles");
    assert!(sent >= number("SIM_FRAMES_MIN", 0), "{sent} frames are fewer than SIM_FRAMES_MIN");
}
