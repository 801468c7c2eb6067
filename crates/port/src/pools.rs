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
    /// Frames for memory that devices lend ([`frame::Loan`]); may be empty.
    pub shells: Pool,
}

impl Pools {
    /// Pools of `small` and `large` frames whose home is number `home`.
    #[must_use]
    pub fn new(home: u16, small: usize, large: usize) -> Self {
        Self {
            small: Pool::new(home, small, SMALL_FRAME_BYTES),
            large: Pool::new(home, large, LARGE_FRAME_BYTES),
            shells: Pool::of_shells(home, 0),
        }
    }

    /// The same with `shells` frames for memory on loan.
    #[must_use]
    pub fn with_shells(self, shells: usize) -> Self {
        Self { shells: Pool::of_shells(self.small.home(), shells), ..self }
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
        self.small.put(frame).or_else(|frame| self.shells.put(frame)).or_else(|frame| self.large.put(frame))
    }

    /// True if the pool for frames of `len` bytes has less than a quarter of them left.
    #[must_use]
    #[inline]
    pub fn lacks(&self, len: usize) -> bool {
        has_less_than(if len <= self.small.capacity_bytes() { &self.small } else { &self.large }, 4)
    }

    /// The pool that frames like this are from.
    #[inline]
    fn pool_of(&self, frame: &Frame) -> &Pool {
        match frame.capacity() {
            0 => &self.shells,
            bytes if bytes == self.small.capacity_bytes() => &self.small,
            _ => &self.large,
        }
    }

    /// True if the pool that this frame is from has less than a quarter of its frames left.
    #[must_use]
    #[inline]
    pub fn is_scarce(&self, frame: &Frame) -> bool {
        has_less_than(self.pool_of(frame), 4)
    }

    /// True if it has less than half of them left.
    #[must_use]
    #[inline]
    pub fn is_half_used(&self, frame: &Frame) -> bool {
        has_less_than(self.pool_of(frame), 2)
    }

    /// True if less than a quarter of the small frames are left, or of the shells.
    #[must_use]
    #[inline]
    pub fn is_low(&self) -> bool {
        has_less_than(&self.small, 4) || has_less_than(&self.shells, 4)
    }

    /// True if some queue may have found no frame.
    #[must_use]
    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.small.available() == 0 || self.shells.available() == 0 && self.shells.total() > 0
    }

    /// Small frames free now.
    #[must_use]
    #[inline]
    pub fn available(&self) -> usize {
        self.small.available()
    }
}

/// Whether less than one of so many frames of a pool is left.
#[inline]
fn has_less_than(pool: &Pool, part: usize) -> bool {
    pool.available() * part < pool.total()
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
        let mut pools = Pools::new(0, 8, 4);
        let (frame, other) = (pools.get(60).unwrap(), pools.get(9_000).unwrap());
        let mut told = Vec::new();
        for _ in 0..6 {
            let _taken = pools.get(60);
            told.push((pools.is_half_used(&frame), pools.is_scarce(&frame), pools.is_low()));
        }
        let at = |left: usize| (left < 4, left < 2, left < 2);
        assert_eq!(told, [6, 5, 4, 3, 2, 1].map(at));
        assert!(!pools.is_half_used(&other), "large frames are counted apart");
        assert!(!Pools::new(0, 4, 0).fits(3000));
    }
}
