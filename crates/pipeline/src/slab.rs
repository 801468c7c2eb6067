// SPDX-License-Identifier: Apache-2.0
//! Where packets are while they are in the pipeline. A packet stays in its slot until it has left; lists of packets are lists
//! of slots.

use crate::burst::BURST;
use crate::packet::Packet;
use arrayvec::ArrayVec;

/// Slots of packets that go together, in the order in which they came.
pub(crate) type Burst = ArrayVec<u16, BURST>;

/// All packets that there is room for.
#[derive(Debug)]
pub(crate) struct Slab {
    pub packets: Box<[Packet]>,
    /// Free slots. The last one freed is the next to be used: its lines are in the core's caches.
    free: Vec<u16>,
}

impl Slab {
    /// Room for so many packets, at most 65,536.
    pub fn new(packets: usize) -> Self {
        let free = (0..=u16::MAX).take(packets).rev().collect();
        Self { packets: (0..packets).map(|_| Packet::empty()).collect(), free }
    }

    /// Slots for so many packets. They stay free, unless they are taken: most bursts leave as a whole.
    #[inline]
    pub fn burst(&self, count: usize) -> Burst {
        let free = self.free.len().saturating_sub(count);
        Burst::try_from(&self.free[free..]).unwrap_or_default()
    }

    /// Takes the slots that the last burst was given.
    #[inline]
    pub fn take(&mut self, count: usize) {
        self.free.truncate(self.free.len().saturating_sub(count));
    }

    /// Frees slots that were taken.
    #[inline]
    pub fn free(&mut self, slots: &[u16]) {
        debug_assert!(self.free.len() + slots.len() <= self.packets.len());
        self.free.extend_from_slice(slots);
    }
}
