// SPDX-License-Identifier: Apache-2.0
//! Sizes of pools and queues in a case. In most cases nothing may be lost. In the other cases, some resources
//! are scarce, and every loss must be counted under its reason.

use fastrand::Rng;
use flow::EgressQueue;

/// One in this many blocks of three cases has a scarce resource.
const SCARCE: u64 = 5;

/// Sizes of the pools and queues of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Number of small frames per worker.
    pub small_frames: usize,
    /// Number of frames for the controller per worker.
    pub controller_frames: usize,
    /// Capacity of a worker's ring of events to the control thread.
    pub events: usize,
    /// Maximum number of normal frames in an outbox.
    pub outbox_frames: usize,
    /// Maximum number of frames of each lane in the ring from one worker to another.
    pub handovers: usize,
    /// Maximum number of frames of each lane in an egress queue.
    pub queue_frames: u16,
    /// Maximum number of successive poll iterations in which no frames are taken from the devices.
    pub untaken_max: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self::AMPLE
    }
}

impl Room {
    /// Sizes that are sufficient for everything.
    pub const AMPLE: Self = Self {
        small_frames: 4_096,
        // A sixteenth of them are large, and a packet may be reported eight times.
        controller_frames: 4_096,
        events: 4_096,
        outbox_frames: 4_096,
        handovers: 4_096,
        queue_frames: EgressQueue::FRAMES_MAX,
        untaken_max: 3,
    };

    /// Returns the sizes for the case with a seed.
    pub fn of(seed: u64) -> Self {
        if seed / 3 % SCARCE != 1 {
            return Self::AMPLE;
        }
        // A separate generator keeps the rest of the case the same with and without scarcity.
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

    /// Returns whether there is enough space for everything, so that nothing may be lost.
    pub fn is_ample(&self) -> bool {
        *self == Self::AMPLE
    }

    /// Returns whether workers may run out of frames, so that packets or their copies may be lost.
    pub fn lacks_frames(&self) -> bool {
        self.small_frames < Self::AMPLE.small_frames
    }
}
