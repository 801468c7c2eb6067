// SPDX-License-Identifier: Apache-2.0
//! Counters of a mirror, with one writer for each set: the worker.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a mirror, summed over the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounts {
    /// Frames copied to the output.
    pub mirrored: u64,
    /// Bytes of the frames copied to the output.
    pub mirrored_bytes: u64,
    /// Frames not copied because less than a quarter of the worker's frames was free.
    pub no_buffer: u64,
    /// Frames not copied because the queue of the output port was full.
    pub output_full: u64,
    /// Frames not copied because the ring to the thread that writes the file was full.
    pub ring_full: u64,
}

impl MirrorCounts {
    /// Returns the number of lost copies with their reasons.
    #[must_use]
    pub fn drops(&self) -> [(&'static str, u64); 3] {
        [("no_buffer", self.no_buffer), ("output_full", self.output_full), ("ring_full", self.ring_full)]
    }

    /// Adds the counters of another worker.
    pub(crate) fn add(&mut self, other: &Self) {
        self.mirrored += other.mirrored;
        self.mirrored_bytes += other.mirrored_bytes;
        self.no_buffer += other.no_buffer;
        self.output_full += other.output_full;
        self.ring_full += other.ring_full;
    }
}

/// What happened to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyOutcome {
    /// A frame of this length went to the output.
    Mirrored(usize),
    NoBuffer,
    OutputFull,
    RingFull,
    /// The file has ended, so nothing is counted.
    Ended,
}

/// Counters of a mirror in one worker.
#[derive(Debug, Default)]
pub(crate) struct MirrorCells {
    mirrored: AtomicU64,
    mirrored_bytes: AtomicU64,
    no_buffer: AtomicU64,
    output_full: AtomicU64,
    ring_full: AtomicU64,
}

impl MirrorCells {
    /// Counts a copy. Only the worker calls this.
    pub fn count(&self, outcome: CopyOutcome) {
        let add = |cell: &AtomicU64, more: u64| {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        match outcome {
            CopyOutcome::Mirrored(bytes) => {
                add(&self.mirrored, 1);
                add(&self.mirrored_bytes, bytes as u64);
            }
            CopyOutcome::NoBuffer => add(&self.no_buffer, 1),
            CopyOutcome::OutputFull => add(&self.output_full, 1),
            CopyOutcome::RingFull => add(&self.ring_full, 1),
            CopyOutcome::Ended => {}
        }
    }

    pub fn read(&self) -> MirrorCounts {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        MirrorCounts {
            mirrored: read(&self.mirrored),
            mirrored_bytes: read(&self.mirrored_bytes),
            no_buffer: read(&self.no_buffer),
            output_full: read(&self.output_full),
            ring_full: read(&self.ring_full),
        }
    }
}
