// SPDX-License-Identifier: Apache-2.0
//! Frames: packet bytes with free space before and after them.

use crate::memory::{Buffer, FillLevel, Head};
use crate::{Meta, prefetch};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Headroom: bytes kept free before a received frame, for pushed headers (VLAN, MPLS, PBB, KeyFlow keys).
pub const HEADROOM_BYTES: usize = 128;

/// Tailroom: bytes kept free after a frame, so that wide loads near its end stay inside the buffer.
pub const TAILROOM_BYTES: usize = 64;

/// Size of a cache line in bytes. It equals the tailroom, so a copy of whole lines fits.
const LINE_BYTES: usize = TAILROOM_BYTES;

/// A cache line of a packet's bytes.
pub type CacheLine = [u8; LINE_BYTES];

/// An owned packet buffer. It contains an Ethernet frame, from the destination MAC address to the last byte
/// before the FCS.
///
/// A `Frame` is a pointer to the head of its buffer, because frames are moved often: through pools, bursts
/// and queues. A slice of frames can be passed to DPDK as an array of `rte_mbuf *`. On drop the buffer
/// returns to its owner.
#[derive(Debug)]
#[repr(transparent)]
pub struct Frame(pub(crate) Buffer);

/// Public fields of a frame, accessed through `Deref`.
#[derive(Debug)]
#[repr(transparent)]
pub struct FrameDescriptor {
    /// Metadata of the frame.
    pub meta: Meta,
}

impl Deref for Frame {
    type Target = FrameDescriptor;

    #[inline]
    fn deref(&self) -> &FrameDescriptor {
        self.0.descriptor()
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut FrameDescriptor {
        if self.0.is_shared() {
            self.0 = without_memory();
        }
        self.0.descriptor_mut()
    }
}

/// Returns a buffer without space for bytes, for a hollow frame whose metadata is changed.
#[cold]
#[inline(never)]
fn without_memory() -> Buffer {
    Buffer::new(0, 0)
}

impl Frame {
    /// Creates a frame outside any pool, with a capacity of `capacity` bytes. `home` is the number of the
    /// pool to which the freed frame returns.
    #[must_use]
    pub fn with_capacity(capacity: usize, home: u16) -> Self {
        Self(Buffer::new((HEADROOM_BYTES + capacity + TAILROOM_BYTES) as u32, home))
    }

    /// Returns a hollow frame: a placeholder without a buffer. Allocates nothing.
    #[must_use]
    #[inline]
    pub const fn hollow() -> Self {
        Self(Buffer::hollow())
    }

    /// Returns whether the frame has no buffer.
    #[must_use]
    #[inline]
    pub fn is_hollow(&self) -> bool {
        self.0.memory_bytes() == 0
    }

    /// Creates a frame outside any pool that holds a copy of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Self::with_capacity(bytes.len(), 0);
        let taken = frame.fill(bytes);
        debug_assert!(taken);
        frame
    }

    /// Gives the buffer to the caller instead of returning it to its owner.
    #[inline]
    pub fn into_head(self) -> NonNull<Head> {
        self.0.into_head()
    }

    /// Returns the head of the frame's buffer.
    #[must_use]
    #[inline]
    pub fn head(&self) -> &Head {
        self.0.head()
    }

    /// Returns the frame's bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Returns the frame's bytes for writing.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    /// Returns the frame's bytes and the bytes after them in the buffer. At least [`TAILROOM_BYTES`] bytes
    /// follow the frame.
    #[must_use]
    #[inline]
    pub fn window(&self) -> &[u8] {
        self.0.window()
    }

    /// Returns `BYTES` bytes of the buffer, from the frame's first byte on. Returns `None` if the frame and
    /// the [`TAILROOM_BYTES`] after it together are shorter.
    #[must_use]
    #[inline(always)]
    pub fn start<const BYTES: usize>(&self) -> Option<&[u8; BYTES]> {
        self.0.start()
    }

    /// Like [`Self::start`], but also returns `None` if the frame is shorter than `len_min`.
    #[must_use]
    #[inline(always)]
    pub fn start_of<const BYTES: usize>(&self, len_min: usize) -> Option<&[u8; BYTES]> {
        if self.len() < len_min { None } else { self.start() }
    }

    /// Like [`Self::start`], for writing.
    #[must_use]
    #[inline(always)]
    pub fn start_mut<const BYTES: usize>(&mut self) -> Option<&mut [u8; BYTES]> {
        self.0.start_mut()
    }

    /// Prefetches the cache line in which the frame begins.
    #[inline]
    pub fn prefetch(&self) {
        prefetch::element(self.0.bytes(), 0);
    }

    /// Returns the length in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the frame has no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length in bytes of the longest frame that the buffer can hold after a reset.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.memory_bytes().saturating_sub(HEADROOM_BYTES + TAILROOM_BYTES)
    }

    /// Returns one word that contains the frame's home number and the size of its memory.
    #[inline]
    pub(crate) fn kind(&self) -> u64 {
        self.0.kind()
    }

    /// Returns the home number of the pool to which this frame is returned, or
    /// [`DEVICE_HOME`](crate::DEVICE_HOME) if it belongs to a device.
    #[must_use]
    #[inline]
    pub fn home(&self) -> u16 {
        self.0.home()
    }

    /// Returns the fill level of the device's pool from which the frame was taken, or `None` if it belongs to
    /// no device.
    #[must_use]
    #[inline]
    pub fn device_level(&self) -> Option<FillLevel> {
        self.0.device_level()
    }

    /// Empties the frame. It then has no bytes, full headroom and default metadata.
    #[inline]
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// Sets the length of a frame whose bytes a driver has written or will write. Returns false if they do
    /// not fit.
    #[must_use]
    pub fn set_len(&mut self, len: usize) -> bool {
        self.0.set_range(self.0.offset(), len)
    }

    /// Replaces the frame's bytes by a copy of `bytes`. Returns false, and leaves the frame unchanged, if
    /// they do not fit.
    #[must_use]
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let fits = self.0.set_range(HEADROOM_BYTES, bytes.len());
        if fits {
            self.0.bytes_mut().copy_from_slice(bytes);
        }
        fits
    }

    /// Replaces the frame by a copy of the first `len` bytes of these cache lines, with this metadata and
    /// sequence number. Returns false, and leaves the frame unchanged, if the copy does not fit or there are
    /// too few lines.
    #[must_use]
    #[inline]
    pub fn receive(&mut self, lines: &[CacheLine], len: usize, meta: &Meta, sequence: u64) -> bool {
        if let [line, ..] = lines
            && len <= LINE_BYTES
            && self.0.begin(LINE_BYTES, len, meta, sequence)
            && let Some(to) = self.0.window_mut().first_chunk_mut()
        {
            *to = *line;
            return true;
        }
        self.receive_long(lines, len, meta, sequence)
    }

    /// Receives a frame that is longer than a cache line, or whose capacity is less than a cache line.
    #[inline(never)]
    fn receive_long(&mut self, lines: &[CacheLine], len: usize, meta: &Meta, sequence: u64) -> bool {
        let Some(bytes) = lines.as_flattened().get(..len) else { return false };
        if !self.0.begin(len, len, meta, sequence) {
            return false;
        }
        if let ([first, second, ..], false) = (lines, len > 2 * LINE_BYTES)
            && let Some(to) = self.0.window_mut().first_chunk_mut()
        {
            let both: &mut [u8; 2 * LINE_BYTES] = to;
            let (to_first, to_second) = both.split_at_mut(LINE_BYTES);
            to_first.copy_from_slice(first);
            to_second.copy_from_slice(second);
        } else {
            self.0.bytes_mut().copy_from_slice(bytes);
        }
        true
    }

    /// Appends a copy of `bytes`. Returns false, and leaves the frame unchanged, if they do not fit.
    #[must_use]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let old = self.len();
        if !self.set_len(old + bytes.len()) {
            return false;
        }
        self.bytes_mut()[old..].copy_from_slice(bytes);
        true
    }

    /// Makes this frame a copy of `other`, with bytes and metadata. Returns false, and leaves the frame
    /// unchanged, if the copy does not fit.
    #[must_use]
    pub fn copy_from(&mut self, other: &Self) -> bool {
        if !self.fill(other.bytes()) {
            return false;
        }
        self.meta = other.meta;
        true
    }

    /// Returns the capacity in bytes that a frame needs to receive a copy of this frame by
    /// [`copy_with_room`](Self::copy_with_room).
    #[must_use]
    pub fn room_len(&self) -> usize {
        self.len() + self.0.offset().saturating_sub(HEADROOM_BYTES)
    }

    /// Makes this frame a copy of `other`: its bytes, its metadata and the size of its remaining headroom.
    /// Returns false, and leaves the frame unchanged, if the copy does not fit.
    #[must_use]
    pub fn copy_with_room(&mut self, other: &Self) -> bool {
        if other.is_hollow() {
            return self.copy_from(other);
        }
        if !self.0.set_range(other.0.offset(), other.len()) {
            return false;
        }
        self.bytes_mut().copy_from_slice(other.bytes());
        self.meta = other.meta;
        true
    }

    /// Opens a gap of `count` bytes at offset `at` by moving the bytes before it into the headroom. The
    /// content of the gap is unspecified. Offsets in the metadata are adjusted. Returns false, and leaves the
    /// frame unchanged, if the headroom is too small or `at` is beyond the end.
    #[must_use]
    pub fn insert(&mut self, at: usize, count: usize) -> bool {
        let (offset, len) = (self.0.offset(), self.len());
        if at > len || count > offset || !self.0.set_range(offset - count, len + count) {
            return false;
        }
        self.bytes_mut().copy_within(count..count + at, 0);
        self.shift_offloads(at, count as i32);
        true
    }

    /// Removes `count` bytes at offset `at`. Offsets in the metadata are adjusted. Returns false, and leaves
    /// the frame unchanged, if the frame is too short, or if it would begin more than 65,535 bytes after the
    /// start of its memory.
    #[must_use]
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        let (offset, len) = (self.0.offset(), self.len());
        if at + count > len || offset + count > usize::from(u16::MAX) || self.is_hollow() {
            return false;
        }
        self.bytes_mut().copy_within(..at, count);
        let moved = self.0.set_range(offset + count, len - count);
        debug_assert!(moved, "the end of the frame stays in place");
        self.shift_offloads(at, -(count as i32));
        true
    }

    fn shift_offloads(&mut self, at: usize, by: i32) {
        if let Some(sum) = &mut self.meta.checksum
            && usize::from(sum.start) >= at
        {
            sum.start = (i32::from(sum.start) + by).max(0) as u16;
        }
        if let Some(gso) = &mut self.meta.gso
            && usize::from(gso.header_len) >= at
        {
            gso.header_len = (i32::from(gso.header_len) + by).max(0) as u16;
        }
    }

    /// Pads the frame with zeros to `len` bytes. Returns false if `len` bytes do not fit.
    #[must_use]
    pub fn pad_to(&mut self, len: usize) -> bool {
        let old = self.len();
        if old >= len {
            return true;
        }
        if !self.set_len(len) {
            return false;
        }
        self.bytes_mut()[old..].fill(0);
        true
    }

    /// Pads the frame with zeros to `len` bytes. The frame's start moves into the headroom; its end stays in
    /// place. Returns false, and leaves the frame unchanged, if the headroom is too small.
    #[must_use]
    pub fn pad_into_headroom(&mut self, len: usize) -> bool {
        let (offset, old) = (self.0.offset(), self.len());
        let Some(missing) = len.checked_sub(old).filter(|missing| *missing > 0) else { return true };
        if missing > offset || !self.0.set_range(offset - missing, len) {
            return false;
        }
        let bytes = self.bytes_mut();
        bytes.copy_within(missing.., 0);
        bytes[old..].fill(0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gso, GsoKind, PartialChecksum};

    #[test]
    fn insert_and_remove_move_the_front_and_the_offloads() {
        let mut frame = Frame::from_bytes(&(0..40).collect::<Vec<u8>>());
        frame.meta.checksum = Some(PartialChecksum { start: 34, offset: 6 });
        frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: false, size: 10, header_len: 38 });
        assert!(frame.insert(12, 4));
        frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
        assert_eq!(frame.len(), 44);
        assert_eq!(&frame.bytes()[..17], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0, 7, 12]);
        assert_eq!(frame.meta.checksum.map(|c| c.start), Some(38));
        assert_eq!(frame.meta.gso.map(|g| g.header_len), Some(42));
        assert!(frame.remove(12, 4));
        assert_eq!(frame.bytes(), (0..40).collect::<Vec<u8>>());
        assert_eq!(frame.meta.checksum.map(|c| c.start), Some(34));
    }

    #[test]
    fn the_start_of_a_frame_ends_with_its_tailroom() {
        let mut frame = Frame::from_bytes(&[5, 7]);
        assert!(frame.start_mut::<{ TAILROOM_BYTES + 3 }>().is_none());
        if let Some([_, second]) = frame.start_mut::<2>() {
            *second = 6;
        }
        assert_eq!(frame.start::<2>(), Some(&[5, 6]));
        assert!(frame.start::<{ TAILROOM_BYTES + 2 }>().is_some_and(|bytes| bytes.starts_with(&[5, 6])));
        assert!(frame.start::<{ TAILROOM_BYTES + 3 }>().is_none());
        assert!(Frame::hollow().start::<1>().is_none() && Frame::from_bytes(&[]).start::<1>().is_none());
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused_without_a_change() {
        let mut frame = Frame::from_bytes(&[1, 2, 3]);
        assert!(!frame.insert(4, 1));
        assert!(!frame.insert(0, HEADROOM_BYTES + 1));
        assert!(!frame.remove(2, 2));
        assert!(!frame.fill(&[0; 4]));
        assert!(!frame.append(&[0]));
        assert_eq!(frame.bytes(), &[1, 2, 3]);
        assert!(frame.insert(0, HEADROOM_BYTES));
    }

    #[test]
    fn operations_on_a_hollow_frame_are_harmless() {
        let mut frame = Frame::hollow();
        assert!(
            frame.is_hollow()
                && frame.is_empty()
                && frame.bytes().is_empty()
                && frame.meta == Meta::default()
        );
        assert!(!frame.fill(&[1]) && !frame.fill(&[]) && !frame.insert(0, 1) && !frame.remove(0, 1));
        assert!(!frame.append(&[1]) && !frame.pad_to(60) && !frame.pad_into_headroom(60));
        frame.meta.in_port = 7;
        assert!(frame.is_hollow() && !frame.fill(&[1]) && frame.meta.in_port == 7);
        assert_eq!((size_of::<Frame>(), size_of::<Option<Frame>>()), (8, 8));
    }

    #[test]
    fn a_copy_with_room_can_grow_as_far_as_its_original() {
        for (inserted, removed) in [(100, 0), (0, 20), (0, 0)] {
            let mut frame = Frame::from_bytes(&[7; 60]);
            assert!(frame.insert(0, inserted) && frame.remove(0, removed));
            let left = HEADROOM_BYTES + removed - inserted;
            frame.meta.in_port = 5;
            let mut copy = Frame::with_capacity(frame.room_len(), 0);
            assert!(copy.copy_with_room(&frame));
            assert_eq!((copy.bytes(), copy.meta), (frame.bytes(), frame.meta));
            assert!(
                !copy.insert(0, left + 1) && copy.insert(0, left),
                "{inserted} inserted, {removed} removed"
            );
        }
        let long = Frame::from_bytes(&[1; 61]);
        let mut short = Frame::from_bytes(&[2; 60]);
        assert!(!short.copy_with_room(&long) && short.bytes() == [2; 60]);
    }

    #[test]
    fn padding_is_zero() {
        let mut frame = Frame::with_capacity(60, 3);
        assert!(frame.fill(&[7; 60]));
        assert!(frame.fill(&[1]));
        assert!(frame.pad_to(60));
        assert_eq!(frame.bytes()[1..], [0; 59]);
        assert_eq!(frame.home(), 3);
        assert!(!frame.pad_to(61));
        assert!(frame.fill(&[7; 60]));
        assert!(frame.remove(0, 50) && frame.pad_into_headroom(50) && frame.pad_into_headroom(20));
        assert_eq!((&frame.bytes()[..10], &frame.bytes()[10..]), (&[7; 10][..], &[0; 40][..]));
        assert!(frame.insert(0, HEADROOM_BYTES + 10) && !frame.insert(0, 1), "the headroom is used up");
        assert!(!frame.pad_into_headroom(61 + HEADROOM_BYTES));
    }
}
