// SPDX-License-Identifier: Apache-2.0
//! A pool of frames of one size, allocated once.

use crate::memory::{kind, move_last};
use crate::{CacheLine, FillLevel, Frame, HEADROOM_BYTES, Meta, TAILROOM_BYTES};

/// Free frames of one size, owned by one worker. `get` and `put` do not allocate.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Frame>,
    home: u16,
    total: usize,
    capacity_bytes: usize,
    /// Home number and size of the memory, the same for all frames of the pool.
    kind: u64,
}

impl Pool {
    /// Creates a pool of `count` frames with a capacity of `capacity_bytes` each. `home` identifies the pool.
    #[must_use]
    pub fn new(home: u16, count: usize, capacity_bytes: usize) -> Self {
        let mut free = Vec::with_capacity(count);
        free.resize_with(count, || Frame::with_capacity(capacity_bytes, home));
        let kind = kind(home, (HEADROOM_BYTES + capacity_bytes + TAILROOM_BYTES) as u32);
        Self { free, home, total: count, capacity_bytes, kind }
    }

    /// Takes an empty frame. Returns `None` if no frame is free.
    #[inline]
    pub fn get(&mut self) -> Option<Frame> {
        let mut frame = self.free.pop()?;
        frame.reset();
        Some(frame)
    }

    /// Takes a frame and fills it as [`Frame::receive`] does. Returns `None` if no frame is free or the copy
    /// does not fit.
    #[inline]
    pub fn receive(&mut self, lines: &[CacheLine], len: usize, meta: &Meta) -> Option<Frame> {
        let mut frame = self.free.pop()?;
        if frame.receive(lines, len, meta, meta.sequence) {
            return Some(frame);
        }
        self.free.push(frame);
        None
    }

    /// Appends a frame to `burst` for each of these packets, and fills it as [`Frame::receive`] does. A
    /// packet is given by its cache lines and its length. `first` is the metadata of the first frame; each
    /// further frame has the next sequence number. Stops at the first packet for which no frame is free or
    /// whose copy does not fit. Returns the number of frames and their total number of bytes.
    #[inline]
    pub fn receive_burst<'a>(
        &mut self,
        burst: &mut Vec<Frame>,
        first: &Meta,
        packets: impl ExactSizeIterator<Item = (&'a [CacheLine], usize)>,
    ) -> (usize, usize) {
        let before = burst.len();
        move_last(&mut self.free, packets.len(), burst);
        let (mut sequence, mut bytes) = (first.sequence, 0);
        for (frame, (lines, len)) in burst[before..].iter_mut().zip(packets) {
            if !frame.receive(lines, len, first, sequence) {
                break;
            }
            sequence += 1;
            bytes += len;
        }
        let filled = (sequence - first.sequence) as usize;
        let unfilled = burst.len() - before - filled;
        if unfilled > 0 {
            move_last(burst, unfilled, &mut self.free);
        }
        (filled, bytes)
    }

    /// Puts a frame back into the pool. If the frame belongs to another pool, or if this pool is full,
    /// returns the frame as the error.
    #[inline]
    pub fn put(&mut self, frame: Frame) -> Result<(), Frame> {
        if !self.is_ours(&frame) || self.free.len() == self.total {
            return Err(frame);
        }
        self.free.push(frame);
        Ok(())
    }

    /// Puts all these frames back into the pool. Returns false, and changes nothing, if a frame does not
    /// belong to this pool or if the pool has too little space.
    #[inline]
    pub fn put_all(&mut self, frames: &mut Vec<Frame>) -> bool {
        let others = frames.iter().fold(0, |others, frame| others | (frame.kind() ^ self.kind));
        let fits = others == 0 && frames.len() <= self.total - self.free.len();
        if fits {
            self.free.append(frames);
        }
        fits
    }

    #[inline]
    fn is_ours(&self, frame: &Frame) -> bool {
        frame.kind() == self.kind
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
    fn frames_return_only_to_their_pool() {
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
    fn frames_return_to_their_pool_together_or_not_at_all() {
        let mut pool = Pool::new(1, 3, 64);
        let mut frames: Vec<Frame> = std::iter::from_fn(|| pool.get()).collect();
        frames.push(Frame::with_capacity(64, 2));
        assert!(!pool.put_all(&mut frames) && (frames.len(), pool.available()) == (4, 0));
        frames[3] = Frame::with_capacity(65, 1);
        assert!(!pool.put_all(&mut frames));
        frames[3] = Frame::with_capacity(64, 1);
        assert!(!pool.put_all(&mut frames), "one frame more than the pool's capacity");
        frames.pop();
        assert!(pool.put_all(&mut frames) && frames.is_empty() && pool.available() == 3);
    }

    /// Bytes 0 to 191 in cache lines.
    const LINES: [CacheLine; 3] = {
        let mut lines = [[0; 64]; 3];
        let mut at = 0;
        while at < 192 {
            lines[at / 64][at % 64] = at as u8;
            at += 1;
        }
        lines
    };

    fn meta(in_port: u32) -> Meta {
        Meta { in_port, ..Meta::NONE }
    }

    #[test]
    fn a_reused_frame_is_empty_or_holds_the_received_packet() {
        let mut pool = Pool::new(1, 1, 140);
        for (len, takes) in [60, 64, 65, 128, 129, 140, 141].map(|len| (len, len <= 140)) {
            let received = pool.receive(&LINES, len, &meta(4));
            assert_eq!((received.is_some(), pool.available()), (takes, usize::from(!takes)), "{len}");
            let Some(mut frame) = received else { continue };
            assert_eq!((frame.bytes(), frame.meta), (&LINES.as_flattened()[..len], meta(4)));
            assert!(frame.insert(0, HEADROOM_BYTES));
            assert!(pool.put(frame).is_ok());
            let frame = pool.get().unwrap();
            assert_eq!((frame.len(), frame.meta, frame.capacity()), (0, Meta::NONE, 140));
            assert!(pool.put(frame).is_ok());
        }
        assert!(pool.receive(&LINES[..1], 65, &meta(4)).is_none() && pool.available() == 1);
        assert!(pool.receive(&LINES[..1], 64, &meta(4)).is_some_and(|frame| *frame.bytes() == LINES[0]));
    }

    #[test]
    fn a_burst_ends_with_the_last_frame_that_is_free_or_fits() {
        let first = Meta { sequence: 7, ..meta(4) };
        // Lengths of the packets, number of free frames, and number of packets received.
        let cases: [(&[usize], usize, usize); 5] =
            [(&[60, 130, 14], 4, 3), (&[60; 5], 3, 3), (&[60, 141, 60], 4, 1), (&[193], 2, 0), (&[], 1, 0)];
        for (lens, free, received) in cases {
            let mut pool = Pool::new(1, free, 140);
            let mut burst = vec![Frame::from_bytes(&[1; 60])];
            let packets = lens.iter().map(|len| (&LINES[..], *len));
            let bytes = lens[..received].iter().sum();
            assert_eq!(pool.receive_burst(&mut burst, &first, packets), (received, bytes), "{lens:?}");
            assert_eq!((burst.len(), pool.available()), (1 + received, free - received));
            for ((frame, len), sequence) in burst[1..].iter().zip(lens).zip(7..) {
                assert_eq!(frame.bytes(), &LINES.as_flattened()[..*len]);
                assert_eq!(frame.meta, Meta { sequence, ..first });
            }
        }
    }
}
