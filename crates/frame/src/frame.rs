// SPDX-License-Identifier: Apache-2.0
//! Frames: packet bytes with free space before and after them.

use crate::{Lender, Loan, Memory, Meta, prefetch};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

/// Headroom: bytes kept free before a received frame, for pushed headers (VLAN, MPLS, PBB, KeyFlow keys).
pub const HEADROOM_BYTES: usize = 128;

/// Tailroom: bytes kept free after a frame, so that wide loads near its end stay inside the buffer.
pub const TAILROOM_BYTES: usize = 64;

/// Length of the two MAC addresses in bytes.
const MACS_BYTES: usize = 12;

/// An owned packet buffer. `bytes` are the frame from the destination MAC address to the last byte before the
/// FCS.
///
/// A `Frame` is a handle of one word, because frames are moved often: through pools, bursts and queues.
#[derive(Debug)]
pub struct Frame {
    body: Option<Box<Body>>,
}

/// The parts of a frame except its bytes, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Body {
    memory: Memory,
    start: u32,
    len: u32,
    label: FrameDescriptor,
}

impl Drop for Frame {
    /// Inlined because most dropped frames are hollow: their body was moved to another frame.
    #[inline]
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            drop_body(body);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_body(body: Box<Body>) {
    drop(body);
}

/// The public fields of a frame, accessible by `Deref`.
#[derive(Debug)]
pub struct FrameDescriptor {
    /// Metadata of the frame.
    pub meta: Meta,
}

/// Descriptor of a hollow frame.
static BLANK: FrameDescriptor = FrameDescriptor { meta: Meta::NONE };

impl Deref for Frame {
    type Target = FrameDescriptor;

    #[inline]
    fn deref(&self) -> &FrameDescriptor {
        self.body.as_ref().map_or(&BLANK, |body| &body.label)
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut FrameDescriptor {
        &mut self.body.get_or_insert_with(Body::without_buffer).label
    }
}

impl Body {
    /// Returns the body that a hollow frame gets when its metadata is changed.
    #[cold]
    fn without_buffer() -> Box<Self> {
        let label = FrameDescriptor { meta: Meta::NONE };
        Box::new(Self { memory: Memory::none(0), start: 0, len: 0, label })
    }

    /// Returns the maximum number of bytes after the headroom.
    #[inline]
    fn capacity(&self) -> usize {
        self.memory.len().saturating_sub(HEADROOM_BYTES + TAILROOM_BYTES)
    }

    /// Returns whether `len` bytes fit after the headroom.
    #[inline]
    fn fits(&self, len: usize) -> bool {
        len + HEADROOM_BYTES + TAILROOM_BYTES <= self.memory.len()
    }

    #[inline]
    fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    fn set_len(&mut self, len: usize) -> bool {
        if self.start as usize + len > HEADROOM_BYTES + self.capacity() || self.memory.is_empty() {
            return false;
        }
        self.len = len as u32;
        true
    }

    /// Inserts `count` bytes at offset `at` by moving the first `at` bytes into the headroom.
    fn insert(&mut self, at: usize, count: usize) -> bool {
        let start = self.start as usize;
        if at > self.len as usize || count > start {
            return false;
        }
        self.memory.copy_within(start..start + at, start - count);
        self.start -= count as u32;
        self.len += count as u32;
        self.shift_offloads(at, count as i32);
        true
    }

    /// Removes `count` bytes at offset `at` by moving the first `at` bytes away from the headroom.
    fn remove(&mut self, at: usize, count: usize) -> bool {
        let start = self.start as usize;
        if at + count > self.len as usize {
            return false;
        }
        self.memory.copy_within(start..start + at, start + count);
        self.start += count as u32;
        self.len -= count as u32;
        self.shift_offloads(at, -(count as i32));
        true
    }

    fn shift_offloads(&mut self, at: usize, by: i32) {
        debug_assert!(at >= MACS_BYTES || by >= 0 || at == 0);
        if let Some(sum) = &mut self.label.meta.checksum
            && usize::from(sum.start) >= at
        {
            sum.start = (i32::from(sum.start) + by) as u16;
        }
        if let Some(gso) = &mut self.label.meta.gso
            && usize::from(gso.header_len) >= at
        {
            gso.header_len = (i32::from(gso.header_len) + by) as u16;
        }
    }
}

impl Frame {
    /// Creates a frame outside any pool, with a capacity of `capacity` bytes. `home` is the pool to which it
    /// is returned when freed.
    #[must_use]
    pub fn with_capacity(capacity: usize, home: u16) -> Self {
        Self::with_memory(Memory::new(HEADROOM_BYTES + capacity + TAILROOM_BYTES, home))
    }

    /// Creates a frame that owns no memory, for borrowed memory. `home` is the pool to which it is returned
    /// when freed.
    #[must_use]
    pub fn shell(home: u16) -> Self {
        Self::with_memory(Memory::none(home))
    }

    fn with_memory(memory: Memory) -> Self {
        let label = FrameDescriptor { meta: Meta::NONE };
        Self { body: Some(Box::new(Body { memory, start: HEADROOM_BYTES as u32, len: 0, label })) }
    }

    /// Returns a hollow frame: a placeholder without a buffer. Allocates nothing.
    #[must_use]
    #[inline]
    pub const fn hollow() -> Self {
        Self { body: None }
    }

    /// Returns whether the frame has no buffer.
    #[must_use]
    #[inline]
    pub fn is_hollow(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.memory.is_empty())
    }

    /// Creates a frame outside any pool that holds a copy of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Self::with_capacity(bytes.len(), 0);
        let taken = frame.fill(bytes);
        debug_assert!(taken);
        frame
    }

    /// Returns the frame's bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], |body| &body.memory[body.range()])
    }

    /// Returns the frame's bytes for writing.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.body.as_mut().map_or(&mut [], |body| {
            let range = body.range();
            &mut body.memory[range]
        })
    }

    /// Returns the frame's bytes and the bytes after them: loads of up to [`TAILROOM_BYTES`] past the frame's
    /// end stay inside. Bytes after the end are not part of the packet.
    #[must_use]
    #[inline]
    pub fn window(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], |body| &body.memory[body.start as usize..])
    }

    /// Prefetches the frame's first 64 bytes.
    #[inline]
    pub fn prefetch(&self) {
        if let Some(body) = &self.body {
            prefetch::element(&body.memory, body.start as usize);
            prefetch::element(&body.memory, body.start as usize + 63);
        }
    }

    /// Returns the memory, the range of the frame's bytes in it, and the metadata. The memory of a hollow
    /// frame is empty.
    #[must_use]
    pub fn into_parts(mut self) -> (Memory, Range<usize>, Meta) {
        self.body.take().map_or((Memory::none(0), 0..0, Meta::NONE), |body| {
            let range = body.range();
            (body.memory, range, body.label.meta)
        })
    }

    /// Replaces the frame's memory by a loan, whose packet of `len` bytes begins at offset `start`. Returns
    /// false, and ends the loan, if the packet with [`TAILROOM_BYTES`] after it is not inside the loan, or if
    /// the frame has no body.
    #[must_use]
    #[inline]
    pub fn lend(&mut self, loan: Loan, start: u32, len: u32) -> bool {
        let fits = start as usize + len as usize + TAILROOM_BYTES <= loan.len();
        let Some(body) = self.body.as_mut().filter(|_| fits) else { return false };
        body.memory.lend(loan);
        (body.start, body.len) = (start, len);
        true
    }

    /// Returns whether the frame's memory is borrowed.
    #[must_use]
    #[inline]
    pub fn is_on_loan(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.memory.is_on_loan())
    }

    /// Returns the start of memory borrowed from `lender`, and the offset of the frame's bytes in it.
    #[must_use]
    #[inline]
    pub fn loan_from(&self, lender: &'static Lender) -> Option<(NonNull<u8>, u32)> {
        self.body.as_ref().and_then(|body| Some((body.memory.loan_start(lender)?, body.start)))
    }

    /// Takes the loan out of the frame, if there is one; then the frame is a shell. The metadata is kept.
    #[inline]
    pub fn take_loan(&mut self) -> Option<Loan> {
        let body = self.body.as_mut()?;
        let loan = body.memory.take_loan()?;
        (body.start, body.len) = (HEADROOM_BYTES as u32, 0);
        Some(loan)
    }

    /// Returns the length in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len as usize)
    }

    /// Returns whether the frame has no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum number of bytes after a reset; 0 if the memory is borrowed.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.body.as_ref().filter(|body| !body.memory.is_on_loan()).map_or(0, |body| body.capacity())
    }

    /// Returns the size of the frame's memory in bytes, including headroom and tailroom; 0 if the memory is
    /// borrowed.
    #[inline]
    pub(crate) fn own_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.memory.own_bytes())
    }

    /// Returns the home number of the pool to which this frame is returned.
    #[must_use]
    #[inline]
    pub fn home(&self) -> u16 {
        self.body.as_ref().map_or(0, |body| body.memory.home)
    }

    /// Empties the frame: no bytes, full headroom, default metadata. Ends a loan.
    #[inline]
    pub fn reset(&mut self) {
        if let Some(body) = &mut self.body {
            body.memory.end_loan();
            body.start = HEADROOM_BYTES as u32;
            body.len = 0;
            body.label.meta = Meta::NONE;
        }
    }

    /// Sets the length of a frame whose bytes a driver has written or will write. Returns false if they do
    /// not fit.
    #[must_use]
    pub fn set_len(&mut self, len: usize) -> bool {
        self.body.as_mut().is_some_and(|body| body.set_len(len))
    }

    /// Replaces the frame's bytes by a copy of `bytes`. Returns false, and leaves the frame unchanged, if
    /// they do not fit.
    #[must_use]
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let Some(body) = self.body.as_mut().filter(|body| body.fits(bytes.len())) else {
            return false;
        };
        let Some(to) = body.memory.get_mut(HEADROOM_BYTES..HEADROOM_BYTES + bytes.len()) else {
            return false;
        };
        to.copy_from_slice(bytes);
        body.start = HEADROOM_BYTES as u32;
        body.len = bytes.len() as u32;
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

    /// Returns the capacity that a copy of this frame by [`copy_with_room`](Self::copy_with_room) needs.
    #[must_use]
    pub fn room_len(&self) -> usize {
        self.len() + self.spare_headroom()
    }

    /// Returns the bytes of headroom in excess of a fresh frame's headroom. Removed headers leave such bytes.
    /// Borrowed memory is not counted.
    fn spare_headroom(&self) -> usize {
        let own = self.body.as_ref().filter(|body| !body.memory.is_on_loan());
        own.map_or(0, |body| (body.start as usize).saturating_sub(HEADROOM_BYTES))
    }

    /// Makes this frame a copy of `other`, with bytes, metadata and the remaining headroom of `other`. A push
    /// of a header therefore succeeds or fails for both frames alike. Returns false, and leaves the frame
    /// unchanged, if the copy does not fit.
    #[must_use]
    pub fn copy_with_room(&mut self, other: &Self) -> bool {
        let Some(from) = &other.body else { return self.copy_from(other) };
        // Borrowed memory may have more headroom than this frame's memory.
        let on_loan = from.memory.is_on_loan();
        let start = if on_loan { from.start.min(HEADROOM_BYTES as u32) } else { from.start };
        let range = start as usize..start as usize + other.len();
        let Some(body) = self.body.as_mut().filter(|body| body.fits(other.room_len())) else {
            return false;
        };
        let Some(to) = body.memory.get_mut(range) else { return false };
        to.copy_from_slice(other.bytes());
        (body.start, body.len) = (start, from.len);
        self.meta = other.meta;
        true
    }

    /// Opens a gap of `count` bytes at offset `at` by moving the bytes before it into the headroom. The
    /// content of the gap is unspecified. Offsets in the metadata are adjusted. Returns false, and leaves the
    /// frame unchanged, if the headroom is too small or `at` is beyond the end.
    #[must_use]
    pub fn insert(&mut self, at: usize, count: usize) -> bool {
        self.body.as_mut().is_some_and(|body| body.insert(at, count))
    }

    /// Removes `count` bytes at offset `at`. Offsets in the metadata are adjusted. Returns false, and leaves
    /// the frame unchanged, if the frame has fewer bytes.
    #[must_use]
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        self.body.as_mut().is_some_and(|body| body.remove(at, count))
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

    /// Pads the frame with zeros to `len` bytes by moving it into the headroom, so that its end stays in
    /// place. Returns false, and leaves the frame unchanged, if the headroom is too small.
    #[must_use]
    pub fn pad_into_headroom(&mut self, len: usize) -> bool {
        let old = self.len();
        let Some(missing) = len.checked_sub(old).filter(|missing| *missing > 0) else { return true };
        let Some(body) = self.body.as_mut().filter(|body| missing <= body.start as usize) else {
            return false;
        };
        let start = body.start as usize;
        body.memory.copy_within(start..start + old, start - missing);
        body.start -= missing as u32;
        body.len += missing as u32;
        self.bytes_mut()[old..].fill(0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{LENDER, give_back, loan};
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
    fn what_does_not_fit_is_refused_and_changes_nothing() {
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
    fn parts_are_the_same_bytes() {
        let (memory, range, meta) = Frame::from_bytes(&[1, 2, 3]).into_parts();
        assert_eq!((&memory[range], meta), (&[1, 2, 3][..], Meta::default()));
        assert!(Frame::hollow().into_parts().1.is_empty());
    }

    #[test]
    fn memory_on_loan_is_like_its_own_until_it_is_given_back() {
        let mut shell = Frame::shell(9);
        shell.meta.stamp = 5;
        assert!(shell.is_hollow() && shell.take_loan().is_none() && !shell.fill(&[1]));
        assert!(!shell.lend(loan(256), 128, 65) && shell.lend(loan(256), 128, 64));
        assert_eq!((shell.len(), shell.capacity(), shell.home(), shell.is_on_loan()), (64, 0, 9, true));
        assert!(shell.insert(0, 128) && !shell.insert(0, 1) && shell.remove(0, 182));
        shell.bytes_mut().copy_from_slice(&[8; 10]);
        assert_eq!((shell.bytes(), shell.window().len()), (&[8; 10][..], 10 + TAILROOM_BYTES));
        let (start, offset) = shell.loan_from(&LENDER).unwrap();
        assert_eq!(offset, 182);
        assert_eq!(shell.take_loan().unwrap().into_start(), start);
        assert!(shell.is_hollow() && shell.is_empty() && shell.meta.stamp == 5 && shell.home() == 9);
        give_back(start);
        assert!(shell.lend(loan(256), 0, 1));
        shell.reset();
        assert!(shell.is_hollow() && !Frame::hollow().lend(loan(256), 0, 1));
    }

    #[test]
    fn a_hollow_frame_takes_nothing_and_breaks_nothing() {
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
        assert_eq!((size_of::<Frame>(), size_of::<Body>()), (8, 64));
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
        // Borrowed memory with more headroom than a fresh frame, and with less.
        for (start, left) in [(140, HEADROOM_BYTES), (28, 28)] {
            let mut shell = Frame::shell(0);
            assert!(shell.lend(loan(256), start, 50));
            shell.bytes_mut().fill(7);
            let mut copy = Frame::with_capacity(shell.room_len(), 0);
            assert!(copy.copy_with_room(&shell) && copy.bytes() == [7; 50]);
            assert!(!copy.insert(0, left + 1) && copy.insert(0, left), "{start}");
            give_back(shell.take_loan().unwrap().into_start());
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
        assert!(frame.insert(0, HEADROOM_BYTES + 10) && !frame.insert(0, 1), "as long as it may grow");
        assert!(!frame.pad_into_headroom(61 + HEADROOM_BYTES));
    }
}
