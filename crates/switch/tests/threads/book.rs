// SPDX-License-Identifier: Apache-2.0
//! History of the rules of each flow, with the outputs of the rules.

use crate::packet::{FLOWS, Seen};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports to which rules output packets.
pub const EGRESS: [u32; 3] = [3, 4, 5];

/// Output of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// The packet goes to all of these ports. The list may be empty.
    All(Vec<u32>),
    /// One of these ports gets all packets of the flow until the rules change.
    One(Vec<u32>),
}

impl Sends {
    /// Returns the number of copies that leave if no copy is lost.
    pub fn copies(&self) -> usize {
        match self {
            Self::All(ports) => ports.len(),
            Self::One(_) => 1,
        }
    }

    /// Returns whether these numbers of copies per port of [`EGRESS`] are possible. With `lossy`, copies may
    /// be missing.
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

/// The history of a flow's rules. State n is the state after the n-th change.
#[derive(Clone, Debug, Default)]
struct History {
    /// For each state, the versions that tables 0 and 1 write into packets.
    states: Vec<[u32; 2]>,
    /// For each state, the new output of table 1 or of the group, or `None` if the change left the output
    /// unchanged.
    sends: Vec<Option<Sends>>,
}

/// Histories of all flows.
#[derive(Debug)]
pub struct Book {
    histories: [Mutex<History>; FLOWS],
    /// For each flow, the latest state that a barrier confirmed. Later packets must meet this state or a
    /// newer one.
    floors: [AtomicU32; FLOWS],
}

impl Book {
    /// Creates the histories with state 0 of each flow.
    pub fn new(first: impl Fn(usize) -> Sends) -> Self {
        let history = |flow| History { states: vec![[0, 0]], sends: vec![Some(first(flow))] };
        Self { histories: std::array::from_fn(|flow| Mutex::new(history(flow))), floors: Default::default() }
    }

    /// Records the next state. Must be called before the change is sent. `sends` is the new output of table
    /// 1, if it changes.
    pub fn note(&self, flow: usize, tables: [bool; 2], sends: Option<Sends>) -> u32 {
        let mut history = self.histories[flow].lock().unwrap();
        let number = history.states.len() as u32;
        let last = *history.states.last().unwrap();
        history.states.push([0, 1].map(|table| if tables[table] { number } else { last[table] }));
        history.sends.push(sends);
        number
    }

    /// Returns the newest states, which the next barrier confirms.
    pub fn newest(&self) -> [u32; FLOWS] {
        std::array::from_fn(|flow| self.histories[flow].lock().unwrap().states.len() as u32 - 1)
    }

    pub fn confirm(&self, states: [u32; FLOWS]) {
        for (floor, state) in self.floors.iter().zip(states) {
            floor.store(state, Ordering::SeqCst);
        }
    }

    /// Returns the oldest state that a packet arriving now can meet.
    pub fn floor(&self, flow: usize) -> u32 {
        self.floors[flow].load(Ordering::SeqCst)
    }

    /// Returns the state of the rules that a packet met. Panics if the packet's versions belong to different
    /// states.
    pub fn state(&self, seen: &Seen) -> u32 {
        let history = self.histories[usize::from(seen.tag.flow)].lock().unwrap();
        let number = seen.versions[0].max(seen.versions[1]);
        let state = history.states.get(number as usize);
        assert_eq!(state, Some(&seen.versions), "{seen:?}: no state of the rules has these versions");
        number
    }

    /// Returns the output of the rules in a state.
    pub fn sends(&self, flow: u8, state: u32) -> Sends {
        let history = self.histories[usize::from(flow)].lock().unwrap();
        let [_, version] = history.states[state as usize];
        history.sends[version as usize].clone().unwrap()
    }
}
