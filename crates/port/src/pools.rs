// SPDX-License-Identifier: Apache-2.0
//! A worker's stock of frames: small ones for packets, large ones for super-frames.

use frame::{Frame, Pool};

/// Bytes a small frame can hold.
pub const SMALL_FRAME_BYTES: usize = 2048;

/// Bytes a large frame can hold: the longest IP packet, its Ethernet header and tags.
pub const LARGE_FRAME_BYTES: usize = 65_600;

/// A worker's stock of frames.
#[derive(Debug)]
pub struct Pools {
    /// Frames of [`SMALL_FRAME_BYTES`].
    pub small: Pool,
    /// Frames of [`LARGE_FRAME_BYTES`], for GSO super-frames and jumbo frames; may be empty.
    pub large: Pool,
}

impl Pools {
    /// Pools of `small` and `large` frames whose home is number `home`.
    #[must_use]
    pub fn new(home: u16, small: usize, large: usize) -> Self {
        Self {
            small: Pool::new(home, small, SMALL_FRAME_BYTES),
            large: Pool::new(home, large, LARGE_FRAME_BYTES),
        }
    }

    /// An empty frame with room for `len` bytes, or none when the pool for that length is used up.
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

    /// True if `get(len)` can ever succeed: a frame longer than that must not wait for a buffer.
    #[must_use]
    #[inline]
    pub fn fits(&self, len: usize) -> bool {
        if len <= self.small.capacity_bytes() {
            self.small.total() > 0
        } else {
            len <= self.large.capacity_bytes() && self.large.total() > 0
        }
    }

    /// True if a frame of `len` bytes needs a large one and none is free, but small ones are: a packet that waits for it
    /// would hold up those behind it.
    #[must_use]
    #[inline]
    pub fn lacks_only_large(&self, len: usize) -> bool {
        len > self.small.capacity_bytes() && self.large.available() == 0 && self.small.available() > 0
    }

    /// Takes a frame back; a frame of another home is returned to the caller.
    #[inline]
    pub fn put(&mut self, frame: Frame) -> Result<(), Frame> {
        self.small.put(frame).or_else(|frame| self.large.put(frame))
    }

    /// True if the pool that this frame is from has less than a quarter of its frames left.
    #[must_use]
    #[inline]
    pub fn is_scarce(&self, frame: &Frame) -> bool {
        let small = frame.capacity() == self.small.capacity_bytes();
        let pool = if small { &self.small } else { &self.large };
        pool.available() * 4 < pool.total()
    }

    /// True if less than a quarter of the small frames are left.
    #[must_use]
    #[inline]
    pub fn is_low(&self) -> bool {
        self.small.available() * 4 < self.small.total()
    }

    /// True if less than half of the pool that this frame is from is left.
    #[must_use]
    #[inline]
    pub fn is_half_used(&self, frame: &Frame) -> bool {
        let small = frame.capacity() == self.small.capacity_bytes();
        let pool = if small { &self.small } else { &self.large };
        pool.available() * 2 < pool.total()
    }

    /// Small frames free now, the stock that reserves are counted in.
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
    fn length_chooses_the_pool_and_frames_come_home_to_it() {
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
        assert!(!Pools::new(0, 4, 0).fits(3000));
    }
}
