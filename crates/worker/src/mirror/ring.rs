// SPDX-License-Identifier: Apache-2.0
//! The rings that carry mirrored frames from the workers to a thread that writes them to a file.
//!
//! A ring holds bytes: for each frame a header of fixed length and the first bytes of the frame. So a frame
//! never leaves the worker, and the memory of a ring is bounded whatever the frames' lengths are.

use flow::{Nanos, Passage, PortNo};
use frame::{Frame, PartialChecksum};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Length in bytes of the header before each frame.
const HEADER_BYTES: usize = 28;

/// Stands for both offsets of a frame whose checksum is complete.
const NO_CHECKSUM: u16 = u16::MAX;

/// A worker's end of its ring.
#[derive(Debug)]
pub struct CaptureInlet {
    ring: Producer<u8>,
    snap_bytes: usize,
    ended: Arc<AtomicBool>,
}

/// Result of adding a frame to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Taken,
    Full,
    /// The other end takes no more frames.
    Ended,
}

impl CaptureInlet {
    /// Copies the first bytes of a frame to the ring.
    pub(crate) fn put(&mut self, frame: &Frame, port: PortNo, passage: Passage, now: Nanos) -> Put {
        if self.ended.load(Ordering::Relaxed) {
            return Put::Ended;
        }
        let bytes = frame.bytes();
        let kept = bytes.get(..self.snap_bytes).unwrap_or(bytes);
        if self.ring.slots() < HEADER_BYTES + kept.len() {
            return Put::Full;
        }
        // The checksum of a super-frame is that of its segments, so it stays open.
        let checksum = frame.meta.checksum.filter(|_| frame.meta.gso.is_none());
        let (start, offset) = checksum.map_or((NO_CHECKSUM, NO_CHECKSUM), |it| (it.start, it.offset));
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&now.0.to_le_bytes());
        header[8..12].copy_from_slice(&port.0.to_le_bytes());
        header[12..16].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        header[16..20].copy_from_slice(&(kept.len() as u32).to_le_bytes());
        header[20..22].copy_from_slice(&start.to_le_bytes());
        header[22..24].copy_from_slice(&offset.to_le_bytes());
        header[24] = u8::from(passage == Passage::Egress);
        let pushed = self.ring.push_entire_slice(&header).and_then(|()| self.ring.push_entire_slice(kept));
        debug_assert!(pushed.is_ok(), "the ring has space for the frame");
        Put::Taken
    }
}

/// A mirrored frame on its way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirroredFrame<'a> {
    /// Time of the worker's poll iteration, by the worker's clock.
    pub time: Nanos,
    /// Port that the frame passed.
    pub port: PortNo,
    /// Direction in which the frame passed the port.
    pub passage: Passage,
    /// Length of the frame in bytes.
    pub original_len: u32,
    /// Checksum that the sender left to the device. `None` for a super-frame, whose checksums are those of
    /// its segments.
    pub checksum: Option<PartialChecksum>,
    /// First bytes of the frame.
    pub bytes: &'a [u8],
}

/// The end of the rings of all workers at the thread that writes a file.
#[derive(Debug)]
pub struct CaptureOutlet {
    rings: Vec<Consumer<u8>>,
    /// Ring that is read next.
    next: usize,
    bytes: Vec<u8>,
    ended: Arc<AtomicBool>,
}

impl CaptureOutlet {
    /// Takes the next frame, from all workers in turn. Returns `None` if no ring has a complete frame.
    pub fn next_frame(&mut self) -> Option<MirroredFrame<'_>> {
        for _ in 0..self.rings.len() {
            let at = self.next;
            self.next = (at + 1) % self.rings.len();
            if let Some(header) = take(&mut self.rings[at], &mut self.bytes) {
                return Some(read(&header, &self.bytes));
            }
        }
        None
    }

    /// Returns whether no worker has its end of a ring any longer, and all frames were taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // A worker puts its last frame before it gives up its end.
        self.rings.iter().all(|ring| ring.is_abandoned() && ring.is_empty())
    }

    /// Makes the workers put no more frames into the rings.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Takes a complete frame from a ring: its header, and its bytes in `bytes`.
fn take(ring: &mut Consumer<u8>, bytes: &mut Vec<u8>) -> Option<[u8; HEADER_BYTES]> {
    let available = ring.slots();
    let mut header = [0; HEADER_BYTES];
    {
        let chunk = ring.read_chunk(HEADER_BYTES).ok()?;
        let (first, second) = chunk.as_slices();
        let (begin, end) = header.split_at_mut(first.len());
        begin.copy_from_slice(first);
        end.copy_from_slice(second);
        // The chunk is not committed, so the header stays in the ring until its frame is complete.
    }
    let kept = u32_at(&header, 16) as usize;
    if available < HEADER_BYTES + kept {
        return None;
    }
    let chunk = ring.read_chunk(HEADER_BYTES + kept).ok()?;
    let (first, second) = chunk.as_slices();
    bytes.clear();
    bytes.extend_from_slice(first.get(HEADER_BYTES..).unwrap_or_default());
    bytes.extend_from_slice(second.get(HEADER_BYTES.saturating_sub(first.len())..).unwrap_or_default());
    chunk.commit_all();
    debug_assert_eq!(bytes.len(), kept);
    Some(header)
}

fn read<'a>(header: &[u8; HEADER_BYTES], bytes: &'a [u8]) -> MirroredFrame<'a> {
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let time = u64::from(u32_at(header, 0)) | u64::from(u32_at(header, 4)) << 32;
    let (start, offset) = (u16_at(20), u16_at(22));
    MirroredFrame {
        time: Nanos(time),
        port: PortNo(u32_at(header, 8)),
        passage: if header[24] == 0 { Passage::Ingress } else { Passage::Egress },
        original_len: u32_at(header, 12),
        checksum: (start != NO_CHECKSUM).then_some(PartialChecksum { start, offset }),
        bytes,
    }
}

fn u32_at(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Creates a ring of `ring_bytes` bytes for each worker. At most `snap_bytes` bytes of each frame are kept.
#[must_use]
pub fn capture_rings(
    workers: usize,
    ring_bytes: usize,
    snap_bytes: usize,
) -> (Vec<CaptureInlet>, CaptureOutlet) {
    let ended = Arc::<AtomicBool>::default();
    let (mut inlets, mut rings) = (Vec::with_capacity(workers), Vec::with_capacity(workers));
    for _ in 0..workers {
        let (ring, outlet) = RingBuffer::new(ring_bytes);
        inlets.push(CaptureInlet { ring, snap_bytes, ended: Arc::clone(&ended) });
        rings.push(outlet);
    }
    (inlets, CaptureOutlet { rings, next: 0, bytes: Vec::new(), ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(inlet: &mut CaptureInlet, bytes: &[u8]) -> Put {
        let mut frame = Frame::from_bytes(bytes);
        frame.meta.checksum = Some(PartialChecksum { start: 34, offset: 16 });
        inlet.put(&frame, PortNo(7), Passage::Egress, Nanos(1 << 40 | 5))
    }

    #[test]
    fn frames_come_out_as_they_were_put_in_wherever_the_ring_wraps() {
        let (mut inlets, mut outlet) = capture_rings(1, 200, 100);
        let inlet = &mut inlets[0];
        for round in 0..500_usize {
            let bytes: Vec<u8> = (0..60 + round % 41).map(|at| (at + round) as u8).collect();
            assert_eq!(put(inlet, &bytes), Put::Taken, "{round}");
            let taken = outlet.next_frame().unwrap();
            assert_eq!((taken.time, taken.port), (Nanos(1 << 40 | 5), PortNo(7)));
            assert_eq!((taken.passage, taken.original_len as usize), (Passage::Egress, bytes.len()));
            assert_eq!(taken.checksum, Some(PartialChecksum { start: 34, offset: 16 }));
            assert_eq!(taken.bytes, bytes);
            assert!(outlet.next_frame().is_none());
        }
    }

    #[test]
    fn a_full_ring_takes_no_frame_and_long_frames_are_cut() {
        let (mut inlets, mut outlet) = capture_rings(2, 2 * (HEADER_BYTES + 64), 64);
        let results: Vec<Put> = (0..3).map(|n| put(&mut inlets[1], &[n; 1_500])).collect();
        assert_eq!(results, [Put::Taken, Put::Taken, Put::Full]);
        for n in 0..2 {
            let taken = outlet.next_frame().unwrap();
            assert_eq!((taken.original_len, taken.bytes), (1_500, &[n; 64][..]));
        }
        assert!(outlet.next_frame().is_none() && !outlet.is_over());
        outlet.end();
        assert_eq!(put(&mut inlets[0], &[1; 60]), Put::Ended);
        drop(inlets);
        assert!(outlet.is_over());
    }

    #[test]
    fn a_header_without_its_frame_is_not_taken() {
        let (mut inlets, mut outlet) = capture_rings(1, 1_000, 1_000);
        let mut header = [0; HEADER_BYTES];
        header[16] = 60;
        let _ = inlets[0].ring.push_partial_slice(&header);
        assert!(outlet.next_frame().is_none());
        let _ = inlets[0].ring.push_partial_slice(&[9; 60]);
        assert_eq!(outlet.next_frame().unwrap().bytes, [9; 60]);
    }
}
