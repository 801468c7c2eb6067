// SPDX-License-Identifier: Apache-2.0
//! A worker's pools of frames: small frames for packets, large frames for super-frames and jumbo frames.

use frame::{CacheLine, FillLevel, Frame, Meta, Pool};

/// Capacity of a small frame in bytes.
pub const SMALL_FRAME_BYTES: usize = 2048;

/// Capacity of a large frame in bytes: the longest IP packet with its Ethernet header and tags.
pub const LARGE_FRAME_BYTES: usize = 65_600;

/// A worker's pools of frames.
#[derive(Debug)]
pub struct Pools {
    /// Frames of [`SMALL_FRAME_BYTES`].
    pub small: Pool,
    /// Frames of [`LARGE_FRAME_BYTES`], for GSO super-frames and jumbo frames; may be empty.
    pub large: Pool,
}

impl Pools {
    /// Creates pools of `small` and `large` frames; `home` identifies the pools' worker.
    #[must_use]
    pub fn new(home: u16, small: usize, large: usize) -> Self {
        Self {
            small: Pool::new(home, small, SMALL_FRAME_BYTES),
            large: Pool::new(home, large, LARGE_FRAME_BYTES),
        }
    }

    /// Returns an empty frame with space for `len` bytes, or `None` if the pool for this length is empty.
    #[inline]
    pub fn get(&mut self, len: usize) -> Option<Frame> {
        if len <= self.small.capacity_bytes() {
            self.small.get()
        } else if len <= self.large.capacity_bytes() {
            self.large.get()
        } else {
            None
        }
    }

    /// Returns a frame with a copy of these bytes, or `None` if the pool for this length is empty.
    #[inline]
    pub fn filled(&mut self, bytes: &[u8]) -> Option<Frame> {
        let mut frame = self.get(bytes.len())?;
        let filled = frame.fill(bytes);
        debug_assert!(filled, "the pool was chosen by length");
        Some(frame)
    }

    /// Returns a frame with the first `len` bytes of these cache lines and this metadata, or `None` if the
    /// pool for this length is empty.
    #[inline]
    pub(crate) fn receive(&mut self, lines: &[CacheLine], len: usize, meta: &Meta) -> Option<Frame> {
        let is_small = len <= self.small.capacity_bytes();
        if is_small { &mut self.small } else { &mut self.large }.receive(lines, len, meta)
    }

    /// Returns whether `get(len)` can ever succeed. If not, a frame of this length must not wait for a
    /// buffer.
    #[must_use]
    #[inline]
    pub fn fits(&self, len: usize) -> bool {
        if len <= self.small.capacity_bytes() {
            self.small.total() > 0
        } else {
            len <= self.large.capacity_bytes() && self.large.total() > 0
        }
    }

    /// Returns whether a frame of `len` bytes needs a large buffer while only small buffers are free. The
    /// frame is then dropped, so that frames behind it need not wait.
    #[must_use]
    #[inline]
    pub fn lacks_only_large(&self, len: usize) -> bool {
        len > self.small.capacity_bytes() && self.large.available() == 0 && self.small.available() > 0
    }

    /// Puts a frame back into its pool. A frame of another home is returned to the caller as the error.
    #[inline]
    pub fn put(&mut self, frame: Frame) -> Result<(), Frame> {
        self.small.put(frame).or_else(|frame| self.large.put(frame))
    }

    /// Returns whether the pool for frames of `len` bytes has less than a quarter of its frames left.
    #[must_use]
    #[inline]
    pub fn lacks(&self, len: usize) -> bool {
        let pool = if len <= self.small.capacity_bytes() { &self.small } else { &self.large };
        pool.level().is_below(4)
    }

    /// Returns the fill level of the pool that serves frames like this one: this worker's small or large
    /// pool, or the pool of the frame's device.
    #[inline]
    fn level_of(&self, frame: &Frame) -> FillLevel {
        frame.device_level().unwrap_or_else(|| {
            let is_small = frame.capacity() == self.small.capacity_bytes();
            if is_small { &self.small } else { &self.large }.level()
        })
    }

    /// Returns whether the pool of this frame has less than a quarter of its frames left.
    #[must_use]
    #[inline]
    pub fn is_scarce(&self, frame: &Frame) -> bool {
        self.level_of(frame).is_below(4)
    }

    /// Returns whether the pool of this frame has less than half of its frames left.
    #[must_use]
    #[inline]
    pub fn is_half_used(&self, frame: &Frame) -> bool {
        self.level_of(frame).is_below(2)
    }

    /// Returns whether fewer than a quarter of the small frames are left.
    #[must_use]
    #[inline]
    pub fn is_low(&self) -> bool {
        self.small.level().is_below(4)
    }

    /// Returns whether no small frame is free. A queue may then have left packets in its device.
    #[must_use]
    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.small.available() == 0
    }

    /// Returns the number of free small frames.
    #[must_use]
    #[inline]
    pub fn available(&self) -> usize {
        self.small.available()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_selects_the_pool_and_frames_return_to_it() {
        let mut pools = Pools::new(3, 1, 1);
        let small = pools.get(SMALL_FRAME_BYTES).unwrap();
        let large = pools.get(SMALL_FRAME_BYTES + 1).unwrap();
        assert!(pools.get(1).is_none() && pools.get(9000).is_none());
        assert!(!pools.lacks_only_large(9000));
        assert!(pools.fits(9000) && !pools.fits(LARGE_FRAME_BYTES + 1));
        assert!(pools.put(small).is_ok());
        assert!(pools.lacks_only_large(9000) && !pools.lacks_only_large(SMALL_FRAME_BYTES));
        assert!(pools.put(large).is_ok() && !pools.lacks_only_large(9000));
        assert_eq!((pools.available(), pools.large.available()), (1, 1));
        assert!(pools.put(Frame::with_capacity(SMALL_FRAME_BYTES, 4)).is_err());
        let mut pools = Pools::new(0, 8, 4);
        let (frame, other) = (pools.get(60).unwrap(), pools.get(9_000).unwrap());
        let mut reported = Vec::new();
        for _ in 0..6 {
            let _taken = pools.get(60);
            reported.push((pools.is_half_used(&frame), pools.is_scarce(&frame), pools.is_low()));
        }
        let at = |left: usize| (left < 4, left < 2, left < 2);
        assert_eq!(reported, [6, 5, 4, 3, 2, 1].map(at));
        assert!(!pools.is_half_used(&other), "large frames are counted separately");
        assert!(!Pools::new(0, 4, 0).fits(3000));
    }
}
