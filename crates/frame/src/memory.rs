// SPDX-License-Identifier: Apache-2.0
//! The buffer of a frame: its head and, after it, its memory. The head has the layout of DPDK's `rte_mbuf`,
//! so a device's buffer becomes a frame without a copy.
//!
//! ```text
//! byte   0  first line of `rte_mbuf`: address and size of the memory, offset and length of the packet
//! byte  64  second line of `rte_mbuf`, not accessed here
//! byte 128  private area: metadata of the frame, and its owner
//! byte 192  memory: headroom, packet, tailroom
//! ```
#![allow(unsafe_code)]

use crate::{Frame, FrameDescriptor, HEADROOM_BYTES, Meta, TAILROOM_BYTES};
use arrayvec::ArrayVec;
use std::ffi::c_void;
use std::fmt;
use std::ptr::{NonNull, null_mut};

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Size of a head in bytes.
pub const HEAD_BYTES: usize = 192;

/// Home number of frames that belong to a device.
pub const DEVICE_HOME: u16 = u16::MAX;

/// Fill level of a pool of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillLevel {
    /// Number of free buffers.
    pub free: usize,
    /// Total number of buffers.
    pub total: usize,
}

impl FillLevel {
    /// Returns whether less than 1/`part` of the buffers are free.
    #[must_use]
    #[inline]
    pub fn is_below(self, part: usize) -> bool {
        self.free * part < self.total
    }
}

/// Owner of buffers: the heap of this process, or a device driver.
pub struct Owner {
    free: unsafe fn(NonNull<Head>),
    level: fn(&Head) -> FillLevel,
}

impl Owner {
    /// Creates an owner. `free` returns a buffer to the owner; it is called on the thread that drops the
    /// frame. `level` returns the fill level of the pool to which a buffer belongs.
    ///
    /// # Safety
    /// It must be sound to call `free` once, on any thread, for each frame made by [`Frame::from_device`]
    /// from a head with this owner.
    ///
    /// [`Frame::from_device`]: crate::Frame::from_device
    #[must_use]
    pub const unsafe fn new(free: unsafe fn(NonNull<Head>), level: fn(&Head) -> FillLevel) -> Self {
        Self { free, level }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:p})", std::ptr::from_ref(self))
    }
}

/// Head of a buffer. Every buffer is used by one frame at a time.
///
/// Invariant: `offset + len + TAILROOM_BYTES <= memory_bytes`, or `len` and `memory_bytes` are both 0. The
/// memory has `memory_bytes` initialized bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Head {
    memory: NonNull<u8>,
    _address: u64,
    offset: u16,
    _references: u16,
    _segments: u16,
    _port: u16,
    _offloads: u64,
    _packet_type: u32,
    len: u32,
    _segment_len: u16,
    _received: [u16; 6],
    _memory_bytes: u16,
    pool: *mut c_void,
    _second_line: [u64; 8],
    descriptor: FrameDescriptor,
    owner: &'static Owner,
    memory_bytes: u32,
    home: u16,
    /// Padding, always 0. It completes the word of the home number and the size of the memory.
    _rest: u16,
}

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// Byte offsets of the fields of [`Head`]. Drivers must compare them with their own definition of the layout.
pub mod layout {
    use super::Head;
    use std::mem::offset_of;

    /// Address of the memory.
    pub const MEMORY: usize = offset_of!(Head, memory);
    /// Offset of the packet in the memory.
    pub const OFFSET: usize = offset_of!(Head, offset);
    /// Length of the packet.
    pub const LEN: usize = offset_of!(Head, len);
    /// Pool of the device; null for frames that belong to no device.
    pub const POOL: usize = offset_of!(Head, pool);
    /// Start of the private area.
    pub const PRIVATE: usize = offset_of!(Head, descriptor);
}

impl Head {
    const fn new(memory: NonNull<u8>, memory_bytes: u32, home: u16, owner: &'static Owner) -> Self {
        Self {
            memory,
            _address: 0,
            offset: HEADROOM_BYTES as u16,
            _references: 1,
            _segments: 1,
            _port: 0,
            _offloads: 0,
            _packet_type: 0,
            len: 0,
            _segment_len: 0,
            _received: [0; 6],
            _memory_bytes: 0,
            pool: null_mut(),
            _second_line: [0; 8],
            descriptor: FrameDescriptor { meta: Meta::NONE },
            owner,
            memory_bytes,
            home,
            _rest: 0,
        }
    }

    /// Returns the device's pool to which the buffer belongs; null if it belongs to no device.
    #[must_use]
    #[inline]
    pub fn pool(&self) -> *mut c_void {
        self.pool
    }

    /// Sets up the private area of a device's buffer, whose memory has `memory_bytes` bytes. Called once per
    /// buffer, before frames are made from it.
    ///
    /// # Safety
    /// `head` must be the start of a buffer with the layout of [`Head`] that nothing else uses at present.
    /// Its private area must be writable.
    pub unsafe fn prepare(head: NonNull<Self>, memory_bytes: u32, owner: &'static Owner) {
        let head = head.as_ptr();
        // SAFETY: the caller guarantees that the private area is writable and not used by anything else. The
        // fields are written by address, because the rest of the head may be uninitialized.
        unsafe {
            (&raw mut (*head).descriptor).write(FrameDescriptor { meta: Meta::NONE });
            (&raw mut (*head).owner).write(owner);
            (&raw mut (*head).memory_bytes).write(memory_bytes);
            (&raw mut (*head).home).write(DEVICE_HOME);
            (&raw mut (*head)._rest).write(0);
        }
    }
}

/// Owner of buffers on the heap.
// SAFETY: `free_own` accepts the heads that `Buffer::new` has allocated. The only other head of this owner is
// `HOLLOW`, which is never freed.
static HEAP: Owner = unsafe { Owner::new(free_own, |_| FillLevel { free: 0, total: 0 }) };

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// Returns the number of cache lines of a buffer with this size of memory in bytes.
fn lines(memory_bytes: u32) -> usize {
    (HEAD_BYTES + memory_bytes as usize).div_ceil(LINE_BYTES)
}

unsafe fn free_own(head: NonNull<Head>) {
    // SAFETY: `Buffer::new` allocated the head and its memory as an array of this number of lines. The only
    // other head of this owner, `HOLLOW`, is never freed. `Buffer::drop` calls this function once.
    unsafe {
        let lines = lines(head.as_ref().memory_bytes);
        drop(Box::from_raw(NonNull::slice_from_raw_parts(head.cast::<Line>(), lines).as_ptr()));
    }
}

/// The head that all hollow frames share. It is never written.
struct Hollow(Head);

// SAFETY: the head is never written, and it gives access to no memory.
unsafe impl Sync for Hollow {}

static HOLLOW: Hollow = Hollow(Head::new(NonNull::<Line>::dangling().cast(), 0, 0, &HEAP));

/// Returns the home number and the size of the memory in one word, so that one comparison covers both.
#[inline]
pub(crate) fn kind(home: u16, memory_bytes: u32) -> u64 {
    u64::from(home) << u32::BITS | u64::from(memory_bytes)
}

/// Owning pointer to a head and its memory.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Buffer(NonNull<Head>);

// SAFETY: head and memory belong to this value alone, except the shared head of hollow frames, which is never
// written. `Owner::new` permits returning a buffer on any thread.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference only gives access to shared slices and to fields by value.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns a buffer without memory. Allocates nothing.
    #[inline]
    pub const fn hollow() -> Self {
        Self(NonNull::from_ref(&HOLLOW.0))
    }

    /// Allocates a buffer with `memory_bytes` zeroed bytes.
    pub fn new(memory_bytes: u32, home: u16) -> Self {
        let lines = vec![Line([0; LINE_BYTES]); lines(memory_bytes)].into_boxed_slice();
        let head = NonNull::from(Box::leak(lines)).cast::<Head>();
        // SAFETY: the allocation has `HEAD_BYTES` bytes for the head, aligned to a line, and then
        // `memory_bytes` bytes.
        unsafe {
            let memory = head.cast::<u8>().add(HEAD_BYTES);
            head.write(Head::new(memory, memory_bytes, home, &HEAP));
        }
        Self(head)
    }

    /// Takes over a buffer.
    ///
    /// # Safety
    /// The head must have been set up by `Head::prepare`, or come from `into_head`. Its memory, offset and
    /// length must satisfy the invariant of `Head`, and nothing else may use them.
    #[inline]
    pub unsafe fn from_head(head: NonNull<Head>) -> Self {
        Self(head)
    }

    /// Gives the buffer up without freeing it.
    #[inline]
    pub fn into_head(self) -> NonNull<Head> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Returns whether this is the shared head of hollow frames.
    #[inline]
    pub fn is_shared(&self) -> bool {
        std::ptr::eq(self.0.as_ptr(), &raw const HOLLOW.0)
    }

    #[inline]
    pub fn head(&self) -> &Head {
        // SAFETY: the head is valid as long as the buffer, which is borrowed.
        unsafe { self.0.as_ref() }
    }

    /// Returns the head for writing, or `None` for the head that hollow frames share.
    #[inline]
    fn head_mut(&mut self) -> Option<&mut Head> {
        if self.is_shared() {
            return None;
        }
        // SAFETY: the head belongs to this value alone, which is borrowed exclusively.
        Some(unsafe { self.0.as_mut() })
    }

    #[inline]
    pub fn descriptor(&self) -> &FrameDescriptor {
        &self.head().descriptor
    }

    /// Returns the descriptor for writing. Must not be called for the head that hollow frames share.
    #[inline]
    pub fn descriptor_mut(&mut self) -> &mut FrameDescriptor {
        assert!(!self.is_shared(), "the shared head is never written");
        // SAFETY: the head belongs to this value alone, which is borrowed exclusively.
        unsafe { &mut self.0.as_mut().descriptor }
    }

    /// Returns the size of the memory in bytes.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.head().memory_bytes as usize
    }

    #[inline]
    pub fn home(&self) -> u16 {
        self.head().home
    }

    /// Returns the home number and the size of the memory in one word, as [`kind`] does.
    #[inline]
    pub fn kind(&self) -> u64 {
        let head = self.head();
        kind(head.home, head.memory_bytes) | u64::from(head._rest) << 48
    }

    /// Returns the fill level of the device's pool to which the buffer belongs; `None` if it belongs to no
    /// device.
    #[inline]
    pub fn device_level(&self) -> Option<FillLevel> {
        let head = self.head();
        (head.home == DEVICE_HOME).then(|| (head.owner.level)(head))
    }

    /// Returns the offset of the packet in the memory.
    #[inline]
    pub fn offset(&self) -> usize {
        self.head().offset.into()
    }

    /// Returns the length of the packet.
    #[inline]
    pub fn len(&self) -> usize {
        self.head().len as usize
    }

    /// Sets the packet to the `len` bytes at `offset`. Returns false, and changes nothing, if these bytes and
    /// the tailroom are not inside the memory, or if the offset exceeds 65,535.
    #[inline]
    pub fn set_range(&mut self, offset: usize, len: usize) -> bool {
        let Some(head) = self.head_mut() else { return false };
        if offset + len + TAILROOM_BYTES > head.memory_bytes as usize || offset > usize::from(u16::MAX) {
            return false;
        }
        (head.offset, head.len) = (offset as u16, len as u32);
        true
    }

    /// Empties the packet and resets the metadata.
    #[inline]
    pub fn reset(&mut self) {
        if let Some(head) = self.head_mut() {
            (head.offset, head.len, head.descriptor.meta) = (HEADROOM_BYTES as u16, 0, Meta::NONE);
        }
    }

    /// Begins a packet of `len` bytes after a full headroom, with this metadata and sequence number. Returns
    /// false, and changes nothing, if the memory has no space for the headroom, the larger of `len` and
    /// `room` bytes, and the tailroom.
    #[inline]
    pub fn begin(&mut self, room: usize, len: usize, meta: &Meta, sequence: u64) -> bool {
        if HEADROOM_BYTES + room.max(len) + TAILROOM_BYTES > self.memory_bytes() {
            return false;
        }
        // SAFETY: the head is not the shared one, which has no memory: the check above fails for it. The head
        // belongs to this value alone, which is borrowed exclusively.
        let head = unsafe { self.0.as_mut() };
        (head.offset, head.len) = (HEADROOM_BYTES as u16, len as u32);
        head.descriptor.meta = *meta;
        head.descriptor.meta.sequence = sequence;
        true
    }

    /// Returns the packet's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let head = self.head();
        // SAFETY: by the invariant of `Head`, `len` bytes from `offset` on are inside the memory, which is
        // initialized and borrowed as long as `self`. `len` is 0 if there is no memory.
        unsafe {
            let start = head.memory.as_ptr().wrapping_add(head.offset.into());
            std::slice::from_raw_parts(start, head.len as usize)
        }
    }

    /// Returns `BYTES` bytes from the start of the packet on, or `None` if the packet and the tailroom
    /// together are shorter.
    #[inline(always)]
    pub fn start<const BYTES: usize>(&self) -> Option<&[u8; BYTES]> {
        let head = self.head();
        let len = head.len as usize;
        // A hollow frame has no tailroom.
        if len == 0 || len + TAILROOM_BYTES < BYTES {
            return None;
        }
        // SAFETY: by the invariant of `Head`, `len + TAILROOM_BYTES` bytes from `offset` on are inside the
        // memory, because `len` is not 0. The check above compares them with `BYTES`. The memory is
        // initialized and borrowed as long as `self`.
        Some(unsafe { head.memory.add(head.offset.into()).cast().as_ref() })
    }

    /// Like [`Self::start`], for writing.
    #[inline(always)]
    pub fn start_mut<const BYTES: usize>(&mut self) -> Option<&mut [u8; BYTES]> {
        let head = self.head();
        let len = head.len as usize;
        if len == 0 || len + TAILROOM_BYTES < BYTES {
            return None;
        }
        // SAFETY: as in `start`, the bytes are inside the memory and initialized. The memory belongs to this
        // value alone, which is borrowed exclusively.
        Some(unsafe { &mut *head.memory.as_ptr().wrapping_add(head.offset.into()).cast() })
    }

    /// Returns the packet's bytes for writing.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let head = self.head();
        // SAFETY: by the invariant of `Head`, `len` bytes from `offset` on are inside the memory, which is
        // initialized. The memory belongs to this value alone, which is borrowed exclusively.
        unsafe {
            let start = head.memory.as_ptr().wrapping_add(head.offset.into());
            std::slice::from_raw_parts_mut(start, head.len as usize)
        }
    }

    /// Returns the packet's bytes and all memory after them, for writing.
    #[inline]
    pub fn window_mut(&mut self) -> &mut [u8] {
        let head = self.head();
        let len = (head.memory_bytes as usize).saturating_sub(head.offset.into());
        // SAFETY: the bytes from `offset` to the end of the memory are initialized, by the invariant of
        // `Head`. The memory belongs to this value alone, which is borrowed exclusively.
        unsafe {
            let start = head.memory.as_ptr().wrapping_add(head.offset.into());
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    /// Returns the packet's bytes and all memory after them.
    #[inline]
    pub fn window(&self) -> &[u8] {
        let head = self.head();
        let len = (head.memory_bytes as usize).saturating_sub(head.offset.into());
        // SAFETY: the bytes from `offset` to the end of the memory are initialized and borrowed as long as
        // `self`. `len` is 0 if there is no memory.
        unsafe {
            let start = head.memory.as_ptr().wrapping_add(head.offset.into());
            std::slice::from_raw_parts(start, len)
        }
    }
}

impl Frame {
    /// Makes a frame from a device's buffer. The metadata in the buffer is not changed.
    ///
    /// # Safety
    /// The head must have been set up by [`Head::prepare`]. The packet and [`TAILROOM_BYTES`] after it must
    /// lie inside the buffer's memory, which is initialized. Nothing else may use the buffer until it is
    /// returned to its owner.
    #[must_use]
    #[inline]
    pub unsafe fn from_device(head: NonNull<Head>) -> Self {
        // SAFETY: the caller guarantees the requirements of `Buffer::from_head`.
        Self(unsafe { Buffer::from_head(head) })
    }
}

/// Moves all frames of `from` to the end of `to`. All frames are copied at once.
#[inline]
pub fn move_all<const MOST: usize>(from: &mut ArrayVec<Frame, MOST>, to: &mut Vec<Frame>) {
    let count = from.len();
    to.reserve(count);
    // SAFETY: `count` frames are initialized. They are removed from `from` first, so that each has one owner.
    // `reserve` has made room for them after the last frame of `to`, and the two are borrowed exclusively, so
    // that they do not overlap.
    unsafe {
        from.set_len(0);
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().add(to.len()), count);
        to.set_len(to.len() + count);
    }
}

/// Moves the last `count` frames of `from`, or all frames if there are fewer, to the end of `to`. All frames
/// are copied at once.
#[inline]
pub(crate) fn move_last(from: &mut Vec<Frame>, count: usize, to: &mut Vec<Frame>) {
    let count = count.min(from.len());
    let left = from.len() - count;
    to.reserve(count);
    // SAFETY: `count` frames from index `left` on are initialized. They are removed from `from` first, so
    // that each has one owner. `reserve` has made room for them after the last frame of `to`, and two vectors
    // that are borrowed exclusively do not overlap.
    unsafe {
        from.set_len(left);
        let end = to.as_mut_ptr().add(to.len());
        std::ptr::copy_nonoverlapping(from.as_ptr().add(left), end, count);
        to.set_len(to.len() + count);
    }
}

impl Drop for Buffer {
    /// Inlined because most dropped frames are hollow: their buffers have been moved elsewhere.
    #[inline]
    fn drop(&mut self) {
        if !self.is_shared() {
            give_back(self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn give_back(head: NonNull<Head>) {
    // SAFETY: the buffer is dropped once and was not given up by `into_head`, so this is the only call for
    // it.
    unsafe { (head.as_ref().owner.free)(head) };
}

/// Removes the first `count` frames, or all if there are fewer, and calls `each` with the index of each frame
/// and the frame, in order. If `each` panics, the frames that are left are leaked.
#[inline(always)]
pub fn take_each(frames: &mut Vec<Frame>, count: usize, mut each: impl FnMut(usize, Frame)) {
    let all = frames.len();
    let count = count.min(all);
    let start = frames.as_mut_ptr();
    // SAFETY: a length of 0 is within any capacity. The vector no longer owns the frames.
    unsafe { frames.set_len(0) };
    for at in 0..count {
        // SAFETY: `at` is below the former length, so there is a frame, which is read once.
        each(at, unsafe { start.add(at).read() });
    }
    // SAFETY: the frames from `count` to `all` were not read. They are moved to the start of the vector, in
    // place of the frames that `each` has taken, and the vector owns them again.
    unsafe {
        std::ptr::copy(start.add(count), start, all - count);
        frames.set_len(all - count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Memory of a test device's buffer in bytes.
    const MEMORY_BYTES: usize = 256;

    /// A buffer of a test device.
    #[repr(C, align(64))]
    struct DeviceBuffer {
        head: Head,
        memory: [u8; MEMORY_BYTES],
    }

    /// Addresses of the buffers that have been returned to the device.
    static RETURNED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    // SAFETY: `take_back` only records the address.
    static DEVICE: Owner = unsafe { Owner::new(take_back, |_| FillLevel { free: 1, total: 4 }) };

    unsafe fn take_back(head: NonNull<Head>) {
        RETURNED.lock().unwrap().push(head.as_ptr().addr());
    }

    fn is_returned(at: usize) -> bool {
        RETURNED.lock().unwrap().contains(&at)
    }

    /// Returns a frame of `len` bytes, all of value 7, in a device's buffer that is never freed.
    fn received(offset: u16, len: u32) -> Frame {
        let memory = [7; MEMORY_BYTES];
        let buffer =
            Box::leak(Box::new(DeviceBuffer { head: Head::new(NonNull::dangling(), 0, 0, &HEAP), memory }));
        (buffer.head.offset, buffer.head.len) = (offset, len);
        buffer.head.memory = NonNull::new(buffer.memory.as_mut_ptr()).unwrap();
        let head = NonNull::from(buffer).cast::<Head>();
        // SAFETY: the head belongs to the leaked buffer, which nothing else uses. The packet and its tailroom
        // are inside the memory for all offsets and lengths that the tests use.
        unsafe {
            Head::prepare(head, MEMORY_BYTES as u32, &DEVICE);
            Frame::from_device(head)
        }
    }

    #[test]
    fn memory_is_aligned_and_survives_a_round_trip_by_its_head() {
        let mut frame = Frame::with_capacity(65, 3);
        assert!(frame.fill(&[5; 65]));
        assert_eq!((frame.len(), frame.bytes().as_ptr().addr() % LINE_BYTES, frame.home()), (65, 0, 3));
        assert_eq!(frame.window().len(), 65 + TAILROOM_BYTES);
        assert!(frame.head().pool().is_null() && frame.device_level().is_none());
        let head = frame.into_head();
        // SAFETY: the head was just given up by a frame.
        let frame = unsafe { Frame::from_device(head) };
        assert_eq!((frame.bytes(), frame.capacity()), (&[5; 65][..], 65));
    }

    #[test]
    fn a_device_gets_its_buffer_back_once() {
        let mut frame = received(128, 64);
        let at = frame.head() as *const Head as usize;
        assert_eq!(
            (frame.len(), frame.capacity(), frame.home(), frame.is_hollow()),
            (64, 64, DEVICE_HOME, false)
        );
        assert_eq!(frame.device_level(), Some(FillLevel { free: 1, total: 4 }));
        assert!(!frame.set_len(65) && frame.set_len(64));
        assert!(frame.insert(0, 128) && !frame.insert(0, 1) && frame.remove(0, 182));
        frame.bytes_mut().copy_from_slice(&[8; 10]);
        assert_eq!((frame.bytes(), frame.window().len()), (&[8; 10][..], 10 + TAILROOM_BYTES));
        assert!(!is_returned(at));
        drop(frame);
        assert!(is_returned(at));
        let taken = received(128, 60).into_head();
        assert!(!is_returned(taken.as_ptr().addr()), "the caller owns the buffer");
        // SAFETY: the head was just given up by a frame.
        drop(unsafe { Frame::from_device(taken) });
        assert!(is_returned(taken.as_ptr().addr()));
    }

    #[test]
    fn copies_of_a_device_s_frame_have_its_headroom() {
        for (offset, left) in [(140, 140), (28, 28)] {
            let frame = received(offset, 50);
            let mut copy = Frame::with_capacity(frame.room_len(), 0);
            assert!(copy.copy_with_room(&frame) && copy.bytes() == [7; 50]);
            assert!(!copy.insert(0, left + 1) && copy.insert(0, left), "{offset}");
        }
    }

    #[test]
    fn frames_are_taken_from_the_front_in_order() {
        for (all, count, taken) in [(5, 3, 3), (5, 0, 0), (3, 3, 3), (2, 9, 2), (0, 1, 0)] {
            let mut frames: Vec<Frame> = (0..all).map(|number| Frame::from_bytes(&[number; 60])).collect();
            let mut seen = Vec::new();
            take_each(&mut frames, count, |at, frame| seen.push((at, frame.bytes()[0])));
            assert_eq!(seen, (0..taken).map(|number| (number, number as u8)).collect::<Vec<_>>());
            let left: Vec<u8> = frames.iter().map(|frame| frame.bytes()[0]).collect();
            assert_eq!(left, (taken as u8..all).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_fill_level_is_compared_with_a_share() {
        let below = |free| FillLevel { free, total: 8 }.is_below(4);
        assert_eq!([0, 1, 2, 3].map(below), [true, true, false, false]);
        assert!(!FillLevel::default().is_below(4));
    }
}
