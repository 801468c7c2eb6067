// SPDX-License-Identifier: Apache-2.0
//! Mirrors: copies of the frames that devices deliver and accept (docs/adr/0064).
//!
//! Begin with [`Mirrors::received`], which copies a received burst. [`MirroredQueue`] copies what a device
//! accepts. A copy goes to another port, or into a ring to a thread that writes a file.

mod counters;
mod ring;
mod tap;

pub use counters::MirrorCounts;
pub(crate) use counters::{CopyOutcome, MirrorCells};
pub use ring::{CaptureInlet, CaptureOutlet, MirroredFrame, capture_rings};
pub(crate) use tap::MirroredQueue;

use crate::egress::WorkerEgress;
use flow::mirror::VLAN_MAX;
use flow::{MirrorSelection, Nanos, Passage, PortNo, QueueId};
use frame::{Frame, Lane};
use pipeline::Egress;
use port::Pools;
use ring::Put;
use std::sync::Arc;
use tap::{COPIES, PART_FRAMES, PendingCopy};

/// Number of a mirror. A datapath never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MirrorId(pub u64);

/// A mirror to add to the workers of a datapath.
pub struct MirrorSetup {
    /// Number of the mirror.
    pub id: MirrorId,
    /// Frames to copy.
    pub selection: MirrorSelection,
    /// Where the copies go.
    pub target: MirrorTarget,
}

/// Where copies go.
pub enum MirrorTarget {
    /// A port, which must be no source of a mirror.
    Port(PortNo),
    /// Rings to the thread that writes a file, one for each worker.
    Capture(Vec<CaptureInlet>),
}

/// Mirrors of a queue: bit `n` stands for the mirror at place `n` of the worker's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taps {
    /// Mirrors of received frames.
    pub ingress: u32,
    /// Mirrors of sent frames.
    pub egress: u32,
}

const _: () = assert!(flow::mirror::MIRRORS_MAX == u32::BITS as usize, "a mask has a bit for each mirror");

/// Number of 64-bit words with one bit for each VLAN ID.
const VLAN_WORDS: usize = (VLAN_MAX as usize + 1) / 64;

/// Output of a mirror in one worker.
enum Output {
    Port(PortNo),
    Capture(CaptureInlet),
}

/// A mirror in one worker.
pub(crate) struct WorkerMirror {
    id: MirrorId,
    selection: MirrorSelection,
    /// A bit for each VLAN ID, or `None` if all frames are selected.
    vlans: Option<Box<[u64; VLAN_WORDS]>>,
    output: Output,
    cells: Arc<MirrorCells>,
}

/// Change of a worker's mirrors.
pub(crate) struct MirrorChange {
    /// Mirrors that the worker gives back.
    pub removed: Vec<MirrorId>,
    /// Mirrors that the worker takes. They come after all others.
    pub added: Vec<WorkerMirror>,
    /// Empty lists with space for all mirrors after the change.
    pub space: Mirrors,
    /// Empty list with space for the mirrors that are given back.
    pub given_back: Vec<WorkerMirror>,
}

/// The mirrors of one worker. All lists have their full capacity from the start.
#[derive(Default)]
pub(crate) struct Mirrors {
    list: Vec<WorkerMirror>,
    /// Copies of the frames that are being offered to a device.
    offered: Vec<PendingCopy>,
    /// Copies for ports that are not in an outbox yet.
    copies: Vec<PendingCopy>,
    /// The part of an outbox that is being offered to a device; empty otherwise.
    part: Vec<Frame>,
}

impl Mirrors {
    /// Creates empty lists with space for `count` mirrors.
    pub fn with_space(count: usize) -> Self {
        if count == 0 {
            return Self::default();
        }
        Self {
            list: Vec::with_capacity(count),
            offered: Vec::with_capacity(count * PART_FRAMES),
            copies: Vec::with_capacity(COPIES),
            part: Vec::with_capacity(PART_FRAMES),
        }
    }

    /// Applies a change. Nothing is allocated or freed.
    pub fn change(&mut self, change: &mut MirrorChange) {
        debug_assert!(self.copies.is_empty() && self.offered.is_empty(), "copies never wait between bursts");
        let space = &mut change.space;
        for mirror in self.list.drain(..) {
            let is_removed = change.removed.contains(&mirror.id);
            if is_removed { &mut change.given_back } else { &mut space.list }.push(mirror);
        }
        space.list.append(&mut change.added);
        std::mem::swap(self, space);
    }

    /// Returns the mirrors of a queue of this port. The output of a mirror is not mirrored.
    pub fn taps(&self, port: PortNo) -> Taps {
        if self.list.iter().any(|mirror| matches!(mirror.output, Output::Port(output) if output == port)) {
            return Taps::default();
        }
        let mask = |passage| {
            let has_port = |mirror: &WorkerMirror| mirror.selection.ports(passage).contains(&port);
            let places = self.list.iter().enumerate().filter(|(_, mirror)| has_port(mirror));
            places.fold(0, |mask, (at, _)| mask | 1 << at)
        };
        Taps { ingress: mask(Passage::Ingress), egress: mask(Passage::Egress) }
    }

    /// Copies the frames of a burst that a queue of `port` has received. `mask` has its ingress mirrors.
    #[inline(never)]
    pub fn received(&mut self, port: PortNo, mask: u32, frames: &[Frame], egress: &mut WorkerEgress) {
        for frame in frames {
            let vlan = vlan_of(frame.bytes());
            for mirror in selecting(&mut self.list, mask, vlan) {
                let outcome = mirror.copy_now(frame, port, egress);
                mirror.cells.count(outcome);
            }
        }
    }

    /// Puts the copies of accepted frames into the outboxes of their ports.
    #[inline(never)]
    pub fn deliver(&mut self, egress: &mut WorkerEgress) {
        for PendingCopy { mirror, frame, .. } in self.copies.drain(..) {
            let Some(mirror) = self.list.get(mirror) else { continue };
            let (Output::Port(port), Some(frame)) = (&mirror.output, frame) else { continue };
            mirror.cells.count(send(*port, frame, egress));
        }
    }
}

/// Returns the mirrors in `mask` that select a VLAN, with exclusive access.
fn selecting(list: &mut [WorkerMirror], mask: u32, vlan: u16) -> impl Iterator<Item = &mut WorkerMirror> {
    let is_wanted =
        move |(at, mirror): &(usize, &mut WorkerMirror)| mask >> at & 1 != 0 && mirror.selects(vlan);
    list.iter_mut().enumerate().filter(is_wanted).map(|(_, mirror)| mirror)
}

impl WorkerMirror {
    /// Creates each worker's part of a mirror, with its counters.
    pub fn for_workers(setup: MirrorSetup, workers: usize) -> Vec<(Self, Arc<MirrorCells>)> {
        let MirrorSetup { id, selection, target } = setup;
        let outputs: Vec<Output> = match target {
            MirrorTarget::Port(port) => (0..workers).map(|_| Output::Port(port)).collect(),
            MirrorTarget::Capture(inlets) => inlets.into_iter().map(Output::Capture).collect(),
        };
        debug_assert_eq!(outputs.len(), workers, "each worker has a ring of its own");
        let part = |output| {
            let cells = Arc::<MirrorCells>::default();
            let vlans = (!selection.vlans.is_empty()).then(|| bits(&selection.vlans));
            (Self { id, selection: selection.clone(), vlans, output, cells: Arc::clone(&cells) }, cells)
        };
        outputs.into_iter().map(part).collect()
    }

    fn selects(&self, vlan: u16) -> bool {
        let is_in = |vlans: &[u64; VLAN_WORDS]| {
            vlans.get(usize::from(vlan) / 64).is_some_and(|word| word >> (vlan % 64) & 1 != 0)
        };
        self.vlans.as_deref().is_none_or(is_in)
    }

    /// Copies a received frame to the output.
    fn copy_now(&mut self, frame: &Frame, port: PortNo, egress: &mut WorkerEgress) -> CopyOutcome {
        match &mut self.output {
            Output::Capture(inlet) => put(inlet, frame, port, Passage::Ingress, egress.now),
            Output::Port(output) => match copy_of(frame, &mut egress.pools) {
                Some(copy) => send(*output, copy, egress),
                None => CopyOutcome::NoBuffer,
            },
        }
    }
}

fn bits(vlans: &[u16]) -> Box<[u64; VLAN_WORDS]> {
    let mut words = Box::new([0; VLAN_WORDS]);
    for vlan in vlans {
        if let Some(word) = words.get_mut(usize::from(*vlan) / 64) {
            *word |= 1 << (vlan % 64);
        }
    }
    words
}

/// Puts a frame into the ring to a file.
fn put(inlet: &mut CaptureInlet, frame: &Frame, port: PortNo, passage: Passage, now: Nanos) -> CopyOutcome {
    match inlet.put(frame, port, passage, now) {
        Put::Taken => CopyOutcome::Mirrored(frame.len()),
        Put::Full => CopyOutcome::RingFull,
        Put::Ended => CopyOutcome::Ended,
    }
}

/// Returns a copy of a frame for the normal lane, unless less than a quarter of the frames is free. The
/// latency of copies is not measured.
fn copy_of(frame: &Frame, pools: &mut Pools) -> Option<Frame> {
    if pools.lacks(frame.len()) {
        return None;
    }
    let mut copy = pools.get(frame.len())?;
    let fits = copy.copy_from(frame);
    debug_assert!(fits, "the pool was chosen by length");
    copy.meta.lane = Lane::Normal;
    (copy.meta.stamp, copy.meta.stamp_round) = (0, 0);
    Some(copy)
}

/// Puts a copy into the outbox of its port.
fn send(port: PortNo, copy: Frame, egress: &mut WorkerEgress) -> CopyOutcome {
    let bytes = copy.len();
    match egress.transmit(port, QueueId(0), copy) {
        Ok(()) => CopyOutcome::Mirrored(bytes),
        Err((copy, _)) => {
            egress.free(copy);
            CopyOutcome::OutputFull
        }
    }
}

/// Returns the VLAN ID of a frame's outermost tag, or 0 if the frame has no complete tag.
fn vlan_of(bytes: &[u8]) -> u16 {
    match bytes {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x81 | 0x91, 0x00, high, low, ..]
        | [_, _, _, _, _, _, _, _, _, _, _, _, 0x88, 0xa8, high, low, ..] => {
            u16::from_be_bytes([*high, *low]) & VLAN_MAX
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(id: u64, output: Output, ingress: &[u32], egress: &[u32], vlans: &[u16]) -> WorkerMirror {
        let ports = |list: &[u32]| list.iter().copied().map(PortNo).collect();
        let selection =
            MirrorSelection { ingress: ports(ingress), egress: ports(egress), vlans: vlans.to_vec() };
        let vlans = (!vlans.is_empty()).then(|| bits(vlans));
        WorkerMirror { id: MirrorId(id), selection, vlans, output, cells: Arc::default() }
    }

    #[test]
    fn a_mirror_selects_its_vlans_and_only_these() {
        let mirror = mirror(1, Output::Port(PortNo(9)), &[1], &[], &[0, 63, 64, 4_095]);
        let selected: Vec<u16> = (0..=4_095).filter(|vlan| mirror.selects(*vlan)).collect();
        assert_eq!(selected, [0, 63, 64, 4_095]);
        let tagged = |kind: u16, tci: u16| {
            let mut bytes = [0; 60];
            bytes[12..14].copy_from_slice(&kind.to_be_bytes());
            bytes[14..16].copy_from_slice(&tci.to_be_bytes());
            vlan_of(&bytes)
        };
        assert_eq!([tagged(0x8100, 0xe00a), tagged(0x88a8, 0x1fff), tagged(0x9100, 7)], [10, 4_095, 7]);
        assert_eq!([tagged(0x0800, 10), tagged(0x8101, 10), tagged(0x88a9, 10)], [0, 0, 0]);
        assert_eq!(vlan_of(&[0x81; 15]), 0);
    }

    #[test]
    fn changes_keep_other_mirrors_and_outputs_are_not_sources() {
        let port = |number| Output::Port(PortNo(number));
        let mut mirrors = Mirrors::with_space(3);
        mirrors.list.push(mirror(1, port(9), &[1, 2], &[2], &[]));
        mirrors.list.push(mirror(2, port(8), &[2, 9], &[1], &[]));
        assert_eq!(mirrors.taps(PortNo(1)), Taps { ingress: 0b01, egress: 0b10 });
        assert_eq!(mirrors.taps(PortNo(2)), Taps { ingress: 0b11, egress: 0b01 });
        assert_eq!(mirrors.taps(PortNo(9)), Taps::default(), "a copy would be copied");
        let mut change = MirrorChange {
            removed: vec![MirrorId(1)],
            added: vec![mirror(3, port(7), &[1], &[], &[])],
            space: Mirrors::with_space(3),
            given_back: Vec::with_capacity(3),
        };
        mirrors.change(&mut change);
        let ids: Vec<MirrorId> = mirrors.list.iter().map(|mirror| mirror.id).collect();
        assert_eq!((ids, change.given_back[0].id), (vec![MirrorId(2), MirrorId(3)], MirrorId(1)));
        assert_eq!(mirrors.taps(PortNo(1)), Taps { ingress: 0b10, egress: 0b01 });
    }
}
