// SPDX-License-Identifier: Apache-2.0
//! Which rules were in force, in which order, and what each of them does.

use crate::packet::{FLOWS, Seen};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports that packets leave by.
pub const EGRESS: [u32; 3] = [3, 4, 5];

/// Where a rule sends packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// To all of these ports, which may be none.
    All(Vec<u32>),
    /// To one of them, always the same for a flow and a state: the packet's header chooses it, in which table 0 writes.
    One(Vec<u32>),
}

impl Sends {
    /// How many copies of a packet leave when nothing is lost.
    pub fn copies(&self) -> usize {
        match self {
            Self::All(ports) => ports.len(),
            Self::One(_) => 1,
        }
    }

    /// Whether so many copies by each port of [`EGRESS`] may be all that left.
    pub fn allows(&self, copies: [u8; 3], lossy: bool) -> bool {
        let of = |ports: &[u32]| EGRESS.map(|port| ports.iter().filter(|it| **it == port).count() as u8);
        let fits = |most: [u8; 3]| {
            if lossy { copies.iter().zip(most).all(|(count, most)| *count <= most) } else { copies == most }
        };
        match self {
            Self::All(ports) => fits(of(ports)),
            Self::One(ports) => ports.iter().any(|port| fits(of(&[*port]))),
        }
    }
}

/// What is known of a flow's rules. State n is the one after its n-th change.
#[derive(Clone, Debug, Default)]
struct History {
    /// The versions that packets carry, by state.
    states: Vec<[u32; 2]>,
    /// What the rule of table 1 does, by its version; none where a change left that rule as it was.
    sends: Vec<Option<Sends>>,
}

/// All flows' histories.
#[derive(Debug)]
pub struct Book {
    histories: [Mutex<History>; FLOWS],
    /// The state that a barrier confirmed: packets that arrive from now on meet this one or a later one.
    floors: [AtomicU32; FLOWS],
}

impl Book {
    /// State 0 of each flow.
    pub fn new(first: impl Fn(usize) -> Sends) -> Self {
        let history = |flow| History { states: vec![[0, 0]], sends: vec![Some(first(flow))] };
        Self { histories: std::array::from_fn(|flow| Mutex::new(history(flow))), floors: Default::default() }
    }

    /// Notes the next state, before the switch hears of it. `sends` is what table 1 does from then on, if that changes.
    pub fn note(&self, flow: usize, tables: [bool; 2], sends: Option<Sends>) -> u32 {
        let mut history = self.histories[flow].lock().unwrap();
        let number = history.states.len() as u32;
        let last = *history.states.last().unwrap();
        history.states.push([0, 1].map(|table| if tables[table] { number } else { last[table] }));
        history.sends.push(sends);
        number
    }

    /// The newest state, which the next barrier confirms.
    pub fn newest(&self) -> [u32; FLOWS] {
        std::array::from_fn(|flow| self.histories[flow].lock().unwrap().states.len() as u32 - 1)
    }

    pub fn confirm(&self, states: [u32; FLOWS]) {
        for (floor, state) in self.floors.iter().zip(states) {
            floor.store(state, Ordering::SeqCst);
        }
    }

    /// What a packet that is about to arrive meets at least.
    pub fn floor(&self, flow: usize) -> u32 {
        self.floors[flow].load(Ordering::SeqCst)
    }

    /// The state that a packet met. Its versions must be those of one state.
    pub fn state(&self, seen: &Seen) -> u32 {
        let history = self.histories[usize::from(seen.tag.flow)].lock().unwrap();
        let number = seen.versions[0].max(seen.versions[1]);
        let state = history.states.get(number as usize);
        assert_eq!(state, Some(&seen.versions), "{seen:?}: no state of the rules has these versions");
        number
    }

    /// What the rules of a state do.
    pub fn sends(&self, flow: u8, state: u32) -> Sends {
        let history = self.histories[usize::from(flow)].lock().unwrap();
        let [_, version] = history.states[state as usize];
        history.sends[version as usize].clone().unwrap()
    }
}
