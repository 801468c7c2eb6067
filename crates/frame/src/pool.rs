// SPDX-License-Identifier: Apache-2.0
//! A pool of frames of one size, allocated once.

use crate::{FillLevel, Frame, HEADROOM_BYTES, TAILROOM_BYTES};

/// Free frames of one size, owned by one worker. `get` and `put` do not allocate.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Frame>,
    home: u16,
    total: usize,
    capacity_bytes: usize,
    /// Size of each frame's memory in bytes, including headroom and tailroom.
    memory_bytes: usize,
}

impl Pool {
    /// Creates a pool of `count` frames with a capacity of `capacity_bytes` each. `home` identifies the pool.
    #[must_use]
    pub fn new(home: u16, count: usize, capacity_bytes: usize) -> Self {
        let mut free = Vec::with_capacity(count);
        free.resize_with(count, || Frame::with_capacity(capacity_bytes, home));
        let memory_bytes = HEADROOM_BYTES + capacity_bytes + TAILROOM_BYTES;
        Self { free, home, total: count, capacity_bytes, memory_bytes }
    }

    /// Takes an empty frame; `None` if no frame is free.
    #[inline]
    pub fn get(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Puts a frame back into the pool. If the frame belongs to another home or the
    /// pool is full, the frame is returned to the caller as the error.
    #[inline]
    pub fn put(&mut self, mut frame: Frame) -> Result<(), Frame> {
        if frame.home() != self.home
            || self.free.len() == self.total
            || frame.memory_bytes() != self.memory_bytes
        {
            return Err(frame);
        }
        frame.reset();
        self.free.push(frame);
        Ok(())
    }

    /// Returns the number of free frames.
    #[must_use]
    #[inline]
    pub fn available(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of free frames and of all frames.
    #[must_use]
    #[inline]
    pub fn level(&self) -> FillLevel {
        FillLevel { free: self.free.len(), total: self.total }
    }

    /// Returns the number of frames with which the pool was created.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the capacity of each frame in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// Returns the home number of the pool.
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
