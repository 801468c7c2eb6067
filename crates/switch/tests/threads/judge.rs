// SPDX-License-Identifier: Apache-2.0
//! Records each packet, and checks its copies.

use crate::book::{Book, EGRESS, Sends};
use crate::packet::{FLOWS, Seen, Tag};
use crate::totals::Outside;
use std::collections::HashMap;

/// Maximum number of ingress queues.
pub const INGRESSES: usize = 8;

/// What is known about a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// The state that a barrier had confirmed when the packet arrived.
    floor: u32,
    /// The state of the rules that the packet met, known once a copy has left.
    state: Option<u32>,
    /// Number of copies that left, by port of [`EGRESS`].
    copies: [u8; 3],
}

/// The packets of one flow that entered through one ingress queue.
#[derive(Clone, Debug, Default)]
struct Stream {
    fates: Vec<Fate>,
    /// Sequence number of the last packet that left through each port.
    last: [Option<u32>; 3],
}

/// Records of all packets so far.
pub struct Judge<'a> {
    book: &'a Book,
    lossy: bool,
    streams: Vec<Stream>,
    /// The port that a select group chose for each flow and state.
    chosen: HashMap<(u8, u32), usize>,
    /// Number of packets with missing copies, counted only in runs without losses.
    open: usize,
    pub pushed: u64,
    /// Number of copies that left, by port of [`EGRESS`].
    pub left: [u64; 3],
}

impl<'a> Judge<'a> {
    pub fn new(book: &'a Book, lossy: bool) -> Self {
        let streams = vec![Stream::default(); FLOWS * INGRESSES];
        Self { book, lossy, streams, chosen: HashMap::new(), open: 0, pushed: 0, left: [0; 3] }
    }

    /// Returns the tag of the next packet of a flow.
    pub fn next(&self, flow: usize, ingress: usize) -> Tag {
        let sequence = self.streams[flow * INGRESSES + ingress].fates.len() as u32;
        Tag { flow: flow as u8, ingress: ingress as u8, sequence }
    }

    /// Records that a packet arrives. `floor` is the oldest state that the packet may meet. Must be called
    /// before the packet is pushed.
    pub fn arrives(&mut self, tag: Tag, floor: u32) {
        let fate = Fate { floor, ..Fate::default() };
        self.streams[stream(tag)].fates.push(fate);
        self.pushed += 1;
        self.open += 1;
    }

    /// Records and checks a copy that left through port number `at` of [`EGRESS`].
    pub fn leaves(&mut self, at: usize, bytes: &[u8]) {
        let seen = Seen::of(bytes);
        let state = self.book.state(&seen);
        let Tag { flow, sequence, .. } = seen.tag;
        let stream = &mut self.streams[stream(seen.tag)];
        let last = stream.last[at].replace(sequence);
        assert!(
            last.is_none_or(|last| last <= sequence),
            "{seen:?} leaves port {} after {last:?}",
            EGRESS[at]
        );
        let fate = &mut stream.fates[sequence as usize];
        assert!(
            state >= fate.floor,
            "{seen:?} met older rules than state {}, which a barrier confirmed",
            fate.floor
        );
        assert!(fate.state.is_none_or(|other| other == state), "{seen:?}: its copies met different rules");
        fate.state = Some(state);
        fate.copies[at] += 1;
        self.left[at] += 1;
        let sends = self.book.sends(flow, state);
        assert!(
            sends.allows(fate.copies, true),
            "{seen:?} left as {:?}, but its rules are {sends:?}",
            fate.copies
        );
        if let Sends::One(_) = sends {
            let chosen = *self.chosen.entry((flow, state)).or_insert(at);
            assert_eq!(at, chosen, "{seen:?}: the group had chosen another port for state {state}");
        }
        if fate.copies.iter().map(|count| usize::from(*count)).sum::<usize>() == sends.copies() {
            self.open -= 1;
        }
    }

    /// Returns the number of packets of each flow.
    pub fn arrived(&self) -> [u64; FLOWS] {
        let of = |flow: usize| &self.streams[flow * INGRESSES..][..INGRESSES];
        std::array::from_fn(|flow| of(flow).iter().map(|stream| stream.fates.len() as u64).sum())
    }

    /// Returns the number of packets with missing copies.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Returns the totals as seen from outside the switch, which must be idle.
    pub fn outside(&self, packet_ins: &[Tag]) -> Outside {
        let (mut seen, mut missing) = (0, 0);
        for (at, stream) in self.streams.iter().enumerate() {
            for fate in &stream.fates {
                let Some(state) = fate.state else { continue };
                let copies: usize = fate.copies.into_iter().map(usize::from).sum();
                seen += 1;
                missing += (self.book.sends((at / INGRESSES) as u8, state).copies() - copies) as u64;
            }
        }
        let has_left = |tag: &&Tag| self.streams[stream(**tag)].fates[tag.sequence as usize].state.is_some();
        let packet_ins = packet_ins.len() - packet_ins.iter().filter(has_left).count();
        let (pushed, left) = (self.pushed, self.left);
        Outside { pushed, left, seen, missing, only_packet_ins: packet_ins as u64 }
    }

    /// Returns the first packets with missing copies, for reports.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (at, stream) in self.streams.iter().enumerate() {
            let (flow, ingress) = (at / INGRESSES, at % INGRESSES);
            let open = stream.fates.iter().enumerate().filter(|(_, fate)| !self.is_complete(flow, fate));
            missing.extend(
                open.map(|(number, fate)| format!("flow {flow} ingress {ingress} packet {number}: {fate:?}")),
            );
        }
        missing.truncate(10);
        missing
    }

    fn is_complete(&self, flow: usize, fate: &Fate) -> bool {
        fate.state.is_some_and(|state| self.book.sends(flow as u8, state).allows(fate.copies, false))
    }

    /// Checks the order and completeness of all packets. The switch must be idle. A later packet of a flow
    /// must have met the same or newer rules than an earlier one. Without losses, all copies of every packet
    /// must have left.
    pub fn end(&self) {
        for (at, stream) in self.streams.iter().enumerate() {
            let flow = at / INGRESSES;
            let mut newest = 0;
            for (number, fate) in stream.fates.iter().enumerate() {
                let Some(state) = fate.state else {
                    assert!(self.lossy, "packet {number} of flow {flow} is lost");
                    continue;
                };
                assert!(
                    state >= newest,
                    "flow {flow}: packet {number} met state {state} after one that met {newest}"
                );
                newest = state;
                let sends: Sends = self.book.sends(flow as u8, state);
                assert!(
                    sends.allows(fate.copies, self.lossy),
                    "flow {flow}, packet {number}: {fate:?}, {sends:?}"
                );
            }
        }
    }
}

fn stream(tag: Tag) -> usize {
    usize::from(tag.flow) * INGRESSES + usize::from(tag.ingress)
}
