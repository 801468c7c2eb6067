// SPDX-License-Identifier: Apache-2.0
//! How much room a case has for what waits. Most cases have room for everything, and nothing may be lost in them. The
//! others are scarce in one thing or several, and every loss must be counted by name.

use fastrand::Rng;
use flow::EgressQueue;

/// In each run of three cases out of SCARCE such runs, something is scarce.
const SCARCE: u64 = 5;

/// Sizes of what waits in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Small frames of each worker.
    pub small_frames: usize,
    /// Frames of each worker for the controller.
    pub controller_frames: usize,
    /// Reports on their way from a worker.
    pub events: usize,
    /// Normal frames in an outbox.
    pub outbox_frames: usize,
    /// Frames of each lane on their way from one worker to another.
    pub handovers: usize,
    /// Frames of each lane in an egress queue.
    pub queue_frames: u16,
    /// Turns in a row after which no device is emptied, at most.
    pub untaken_max: usize,
}

impl Room {
    /// Room for everything.
    pub const AMPLE: Self = Self {
        small_frames: 4_096,
        controller_frames: 1_024,
        events: 4_096,
        outbox_frames: 4_096,
        handovers: 4_096,
        queue_frames: EgressQueue::FRAMES_MAX,
        untaken_max: 3,
    };

    /// The room of a case.
    pub fn of(seed: u64) -> Self {
        if seed / 3 % SCARCE != 1 {
            return Self::AMPLE;
        }
        // A generator of its own: what else a case does is the same with and without room.
        let mut rng = Rng::with_seed(seed);
        let mut room = Self { untaken_max: rng.usize(3..40), ..Self::AMPLE };
        let scarce = rng.u8(1..64);
        let mut size = |bit: u8, sizes: [usize; 4], ample: usize| {
            let size = sizes[rng.usize(0..sizes.len())];
            if scarce >> bit & 1 == 1 { size } else { ample }
        };
        room.small_frames = size(0, [12, 24, 48, 96], room.small_frames);
        room.controller_frames = size(1, [1, 2, 4, 8], room.controller_frames);
        room.events = size(2, [1, 4, 8, 16], room.events);
        room.outbox_frames = size(3, [1, 2, 4, 16], room.outbox_frames);
        room.handovers = size(4, [1, 2, 4, 8], room.handovers);
        room.queue_frames = size(5, [1, 2, 4, 16], room.queue_frames.into()) as u16;
        room
    }

    /// Whether nothing may be lost.
    pub fn is_ample(&self) -> bool {
        *self == Self::AMPLE
    }

    /// Whether copies may find no buffer, and packets no frame.
    pub fn lacks_frames(&self) -> bool {
        self.small_frames < Self::AMPLE.small_frames
    }
}
