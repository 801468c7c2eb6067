// SPDX-License-Identifier: Apache-2.0
//! Random compiled flow tables: a daemon sends them over UDP, and frames leave as `reference` says.
//!
//! SIM_DEVICE_CASES is the number of random programs, SIM_DEVICE_SEED the first seed.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Instant;

use dataplane::{DataPlane, Event};
use device::compile::PpuLayout;
use device::plane::DevicePlane;
use device::session::DeviceSession;
use device_sim::{CHANNELS, ENTRIES, PPUS};
use fastrand::Rng;
use flow::{EntryChange, EntryId, Nanos, Operation, PortNo, PortState};

#[path = "../../../device/tests/compile/frames.rs"]
mod frames;
// This test does not use the software device to forward.
#[allow(dead_code)]
#[path = "../../../device/tests/compile/pair.rs"]
mod pair;
#[path = "../../../device/tests/compile/rules.rs"]
mod rules;

use crate::rig::{Rig, UdpLink, frame as plain_frame, socket, times, wait_until};
use frames::{frame, is_beyond_parser};
use pair::{Left, PORTS, Pair, expected, reference};
use rules::{Kind, flow};

/// Changes of the tables in each program. After each quarter, frames are compared.
const CHANGES: usize = 24;
/// Frames that are compared each time.
const FRAMES: usize = 60;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

struct Case {
    rng: Rng,
    pair: Pair,
    plane: DevicePlane<UdpLink>,
    rig: Rig,
    kinds: Vec<Kind>,
    frames: Vec<(u8, Vec<u8>)>,
    start: Instant,
    done: usize,
    refused: usize,
    left: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let layouts: [&[u8]; 4] = [&[1, 1, 1], &[2, 1, 1], &[1, 2], &[5]];
        let tables = layouts[rng.usize(0..4)];
        let layout = || PpuLayout::new(PPUS as u8, ENTRIES, tables).unwrap();
        let rig = Rig::new(CHANNELS as u8);
        let link = UdpLink { socket: socket(), address: rig.address };
        let plane = DevicePlane::new(link, DeviceSession::new(times(), 5), layout());
        let kinds = tables.iter().map(|_| Kind::random(&mut rng)).collect();
        let made = (0..FRAMES).map(|_| (rng.u8(1..=CHANNELS as u8), frame(&mut rng)));
        let mut frames: Vec<_> = made.filter(|(_, frame)| !is_beyond_parser(frame)).collect();
        frames.push((2, plain_frame(2, 1_518, 1)));
        let pair = Pair::new(layout());
        let start = Instant::now();
        let mut case = Self { rng, pair, plane, rig, kinds, frames, start, done: 0, refused: 0, left: 0 };
        for port in 1..=PORTS {
            case.plane.submit(Operation::Port(PortState::up(PortNo(port))));
        }
        // Most packets then leave.
        for table in 1..tables.len() {
            case.change(&format!("table={},priority=0,actions=goto_table:{table}", table - 1));
        }
        let out = case.rng.u8(1..=CHANNELS as u8);
        case.change(&format!("table={},priority=0,actions=write_actions(output:{out})", tables.len() - 1));
        case
    }

    fn apply(&mut self, changes: Vec<EntryChange>) {
        let accepted = self.plane.check(&changes, &[]).is_ok();
        assert_eq!(self.pair.apply(&changes).is_ok(), accepted, "{changes:?}");
        if accepted {
            self.done += 1;
            self.plane.submit(Operation::Entries(changes));
        } else {
            self.refused += 1;
        }
    }

    /// Adds a flow. An entry with the same match and priority is replaced.
    fn change(&mut self, text: &str) {
        let entry = Arc::new(self.pair.entry(text));
        let same = self.pair.entries.values().find(|old| {
            (old.table, old.priority, &old.matching) == (entry.table, entry.priority, &entry.matching)
        });
        let remove = same.map(|old| EntryChange::Remove { id: old.id, table: old.table });
        self.apply(remove.into_iter().chain([EntryChange::Add(entry)]).collect());
    }

    /// Removes an entry, or adds a random one.
    fn change_randomly(&mut self) {
        let ids: Vec<EntryId> = self.pair.entries.keys().copied().skip(self.kinds.len()).collect();
        if !ids.is_empty() && self.rng.u8(0..4) == 0 {
            let old = &self.pair.entries[&ids[self.rng.usize(0..ids.len())]];
            let remove = EntryChange::Remove { id: old.id, table: old.table };
            return self.apply(vec![remove]);
        }
        let table = self.rng.usize(0..self.kinds.len());
        let text = flow(&mut self.rng, self.kinds[table], table as u8, self.kinds.len() as u8);
        self.change(&text);
    }

    fn poll(&mut self) {
        self.plane.tick(Nanos(self.start.elapsed().as_nanos() as u64 + 1));
    }

    /// Sends all frames, those of one port after those of another one, and compares what leaves.
    fn compare(&mut self) {
        wait_until("the device has the rules", || {
            self.poll();
            self.plane.is_ready() && self.plane.parked() == 0
        });
        for port in 1..=CHANNELS as u8 {
            let mut reference = reference(&self.pair.entries);
            let mut wanted: BTreeMap<u32, Vec<Left>> = BTreeMap::new();
            for (_, frame) in self.frames.iter().filter(|(from, _)| *from == port) {
                match expected(&mut reference, port, frame) {
                    Left::Port(to, _) if to > CHANNELS.into() => {}
                    Left::Port(to, frame) => wanted.entry(to).or_default().push(Left::Port(to, frame)),
                    left @ Left::Controller(..) => wanted.entry(0).or_default().push(left),
                    Left::Nothing => {}
                }
            }
            for (_, frame) in self.frames.iter().filter(|(from, _)| *from == port) {
                self.rig.push(port, frame);
            }
            let count = |of: &BTreeMap<u32, Vec<Left>>| of.values().map(Vec::len).sum::<usize>();
            let mut got: BTreeMap<u32, Vec<Left>> = BTreeMap::new();
            wait_until("all frames leave", || {
                self.take(&mut got);
                count(&got) >= count(&wanted)
            });
            self.left += count(&got);
            assert_eq!(got, wanted, "from port {port}: {:#?}", self.pair.entries);
        }
        let mut more = BTreeMap::new();
        self.rig.settle();
        self.take(&mut more);
        assert!(more.is_empty(), "frames left that should not: {more:?}");
    }

    fn take(&mut self, got: &mut BTreeMap<u32, Vec<Left>>) {
        self.poll();
        while let Some(event) = self.plane.next_event() {
            let Event::PacketIn(packet) = event else { continue };
            let bytes = packet.frame.bytes().to_vec();
            got.entry(0).or_default().push(Left::Controller(packet.table, packet.entry, bytes));
            self.plane.recycle(packet.frame);
        }
        for port in 1..=CHANNELS as u8 {
            while let Some(frame) = self.rig.pop(port) {
                let port = u32::from(port);
                got.entry(port).or_default().push(Left::Port(port, frame));
            }
        }
    }
}

#[test]
fn compiled_flow_tables_forward_as_the_reference() {
    let (cases, first) = (number("SIM_DEVICE_CASES", 2), number("SIM_DEVICE_SEED", 1));
    let (mut done, mut refused, mut left) = (0, 0, 0);
    for seed in first..first + cases {
        println!("seed {seed}");
        let mut case = Case::new(seed);
        for number in 1..=CHANGES {
            case.change_randomly();
            if number % (CHANGES / 4) == 0 {
                case.compare();
            }
        }
        assert_eq!(case.plane.rewrites(), 1, "the session stays up");
        done += case.done;
        refused += case.refused;
        left += case.left;
    }
    let text = format!("{done} changes, {refused} refused, {left} frames left");
    println!("{text}");
    assert!(done > refused && left > 30 * cases as usize, "{text}");
}
