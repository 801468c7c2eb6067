// SPDX-License-Identifier: Apache-2.0
//! A pool of frames of one size, allocated once.

use crate::{FillLevel, Frame, HEADROOM_BYTES, Meta, TAILROOM_BYTES};

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
        let mut frame = self.free.pop()?;
        frame.reset();
        Some(frame)
    }

    /// Takes a frame and fills it as [`Frame::receive`] does; `None` if no frame is free or the copy does not
    /// fit.
    #[inline]
    pub fn receive(&mut self, source: &[u8], len: usize, meta: &Meta) -> Option<Frame> {
        let mut frame = self.free.pop()?;
        if frame.receive(source, len, meta) {
            return Some(frame);
        }
        self.free.push(frame);
        None
    }

    /// Puts a frame back into the pool. If the frame belongs to another home or the
    /// pool is full, the frame is returned to the caller as the error.
    #[inline]
    pub fn put(&mut self, frame: Frame) -> Result<(), Frame> {
        if !self.is_ours(&frame) || self.free.len() == self.total {
            return Err(frame);
        }
        self.free.push(frame);
        Ok(())
    }

    /// Puts all of these frames back into the pool. Returns false, and takes none, if one of them does not
    /// belong to this pool.
    #[inline]
    pub fn put_all(&mut self, frames: &mut Vec<Frame>) -> bool {
        let ours = frames.iter().fold(true, |ours, frame| ours & self.is_ours(frame));
        let fits = ours && frames.len() <= self.total - self.free.len();
        if fits {
            self.free.append(frames);
        }
        fits
    }

    #[inline]
    fn is_ours(&self, frame: &Frame) -> bool {
        (frame.home() == self.home) & (frame.memory_bytes() == self.memory_bytes)
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

    #[test]
    fn several_frames_come_home_together_or_not_at_all() {
        let mut pool = Pool::new(1, 3, 64);
        let mut frames: Vec<Frame> = std::iter::from_fn(|| pool.get()).collect();
        frames.push(Frame::with_capacity(64, 2));
        assert!(!pool.put_all(&mut frames) && (frames.len(), pool.available()) == (4, 0));
        frames[3] = Frame::with_capacity(65, 1);
        assert!(!pool.put_all(&mut frames));
        frames[3] = Frame::with_capacity(64, 1);
        assert!(!pool.put_all(&mut frames), "one more than the pool has");
        frames.pop();
        assert!(pool.put_all(&mut frames) && frames.is_empty() && pool.available() == 3);
    }

    #[test]
    fn a_used_frame_is_empty_or_has_what_was_received() {
        let mut pool = Pool::new(1, 1, 140);
        let meta = |in_port| Meta { in_port, ..Meta::NONE };
        let lines: [u8; 192] = std::array::from_fn(|at| at as u8);
        for (len, takes) in [60, 64, 65, 128, 129, 140, 141].map(|len| (len, len <= 140)) {
            let received = pool.receive(&lines, len, &meta(4));
            assert_eq!((received.is_some(), pool.available()), (takes, usize::from(!takes)), "{len}");
            let Some(mut frame) = received else { continue };
            assert_eq!((frame.bytes(), frame.meta), (&lines[..len], meta(4)));
            assert!(frame.insert(0, HEADROOM_BYTES));
            assert!(pool.put(frame).is_ok());
            let frame = pool.get().unwrap();
            assert_eq!((frame.len(), frame.meta, frame.capacity()), (0, Meta::NONE, 140));
            assert!(pool.put(frame).is_ok());
        }
        assert!(pool.receive(&lines[..60], 61, &meta(4)).is_none() && pool.available() == 1);
        assert!(pool.receive(&lines[..60], 60, &meta(4)).is_some_and(|frame| frame.bytes() == &lines[..60]));
    }
}
