// SPDX-License-Identifier: Apache-2.0
//! Slab of all packets in the pipeline. A packet stays in its slot until it has left, and lists of packets
//! are lists of slot numbers.

use crate::packet::Packet;
use arrayvec::ArrayVec;
use flow::Limits;

/// Maximum number of packets in a burst.
pub const BURST: usize = Limits::BURST_PACKETS;

/// Returns a word in which the lowest `count` bits are set, at most one for each packet of a burst.
pub(crate) fn first_bits(count: usize) -> u32 {
    const { assert!(BURST <= u32::BITS as usize) };
    (1u64 << count.min(BURST)).wrapping_sub(1) as u32
}

/// Index of a packet's slot in the slab. The slot belongs to the packet until the packet has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PacketSlot(pub u16);

impl PacketSlot {
    /// Returns the number as an index for arrays.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl From<PacketSlot> for usize {
    #[inline(always)]
    fn from(slot: PacketSlot) -> Self {
        slot.index()
    }
}

/// Slots of packets that are processed together, in order of arrival.
pub(crate) type Burst = ArrayVec<PacketSlot, BURST>;

/// Fixed set of packet slots with a free list.
#[derive(Debug)]
pub(crate) struct Slab {
    pub packets: Box<[Packet]>,
    /// Free slots. The slot freed last is used first, because its cache lines are warm.
    free: Vec<PacketSlot>,
}

impl Slab {
    /// Allocates slots for `packets` packets, at most 65,536.
    pub fn new(packets: usize) -> Self {
        let free = (0..=u16::MAX).map(PacketSlot).take(packets).rev().collect();
        Self { packets: (0..packets).map(|_| Packet::empty()).collect(), free }
    }

    /// Returns `count` free slots without taking them. The slots of a burst that leaves as a whole stay in
    /// the free list; see [`Slab::take`].
    #[inline]
    pub fn burst(&self, count: usize) -> Burst {
        let free = self.free.len().saturating_sub(count);
        let mut burst = Burst::new();
        // A slice is copied as a whole; a conversion by `try_from` would copy slot by slot.
        match burst.try_extend_from_slice(&self.free[free..]) {
            Ok(()) => burst,
            Err(_) => Burst::new(),
        }
    }

    /// Takes `count` slots. They must be the slots that the last call of [`Slab::burst`] returned.
    #[inline]
    pub fn take(&mut self, count: usize) {
        self.free.truncate(self.free.len().saturating_sub(count));
    }

    /// Returns taken slots to the free list.
    #[inline]
    pub fn free(&mut self, slots: &[PacketSlot]) {
        debug_assert!(self.free.len() + slots.len() <= self.packets.len());
        self.free.extend_from_slice(slots);
    }
}
