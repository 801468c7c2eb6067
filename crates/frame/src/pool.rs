// SPDX-License-Identifier: Apache-2.0
//! A worker's stock of frames of one size, or of frames for memory on loan, allocated once.

use crate::{Frame, HEADROOM_BYTES, TAILROOM_BYTES};

/// Free frames of one size, owned by one worker. Neither `get` nor `put` allocates.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Frame>,
    home: u16,
    total: usize,
    capacity_bytes: usize,
    /// Of each frame's memory, headroom and all.
    memory_bytes: usize,
}

impl Pool {
    /// `count` frames with room for `capacity_bytes` each, whose home is number `home`.
    #[must_use]
    pub fn new(home: u16, count: usize, capacity_bytes: usize) -> Self {
        let mut free = Vec::with_capacity(count);
        free.resize_with(count, || Frame::with_capacity(capacity_bytes, home));
        let memory_bytes = HEADROOM_BYTES + capacity_bytes + TAILROOM_BYTES;
        Self { free, home, total: count, capacity_bytes, memory_bytes }
    }

    /// `count` frames for memory on loan, whose home is number `home`.
    #[must_use]
    pub fn of_shells(home: u16, count: usize) -> Self {
        let mut free = Vec::with_capacity(count);
        free.resize_with(count, || Frame::shell(home));
        Self { free, home, total: count, capacity_bytes: 0, memory_bytes: 0 }
    }

    /// An empty frame, or none when the pool is used up.
    #[inline]
    pub fn get(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Takes a frame back, and gives back what it has on loan. A frame of another home, or one too many, is returned to the
    /// caller.
    #[inline]
    pub fn put(&mut self, mut frame: Frame) -> Result<(), Frame> {
        if frame.home() != self.home
            || self.free.len() == self.total
            || frame.own_bytes() != self.memory_bytes
        {
            return Err(frame);
        }
        frame.reset();
        self.free.push(frame);
        Ok(())
    }

    /// Frames free now.
    #[must_use]
    #[inline]
    pub fn available(&self) -> usize {
        self.free.len()
    }

    /// Frames the pool was made with.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes each frame can hold.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// The pool's number.
    #[must_use]
    pub fn home(&self) -> u16 {
        self.home
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_home_and_only_home() {
        let mut pool = Pool::new(1, 2, 64);
        let (a, b) = (pool.get().unwrap(), pool.get().unwrap());
        assert!(pool.get().is_none());
        assert!(pool.put(a).is_ok());
        assert!(pool.put(Frame::with_capacity(64, 2)).is_err());
        assert!(pool.put(b).is_ok());
        assert!(pool.put(Frame::with_capacity(64, 1)).is_err());
        assert_eq!((pool.available(), pool.total()), (2, 2));
    }
}
