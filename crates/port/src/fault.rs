// SPDX-License-Identifier: Apache-2.0
//! Fault injection: a queue that loses, damages and refuses frames at given rates. The same seed gives the
//! same faults.

use crate::{Capabilities, Link, MIN_FRAME_BYTES, Outstanding, Pools, PortDrop, Queue, Statistics};
use frame::{Frame, Stamp};
use std::os::fd::RawFd;

/// Rates of injected faults, in events per thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Received frames that are lost.
    pub drop_per_mille: u32,
    /// Received frames in which one bit is flipped.
    pub corrupt_per_mille: u32,
    /// Received frames that are cut to a random length.
    pub truncate_per_mille: u32,
    /// Calls of `transmit` that accept no frame.
    pub refuse_per_mille: u32,
    /// Seed of the random sequence.
    pub seed: u64,
}

/// A queue with injected faults. Lost frames count as `PortDrop::Fault`.
pub struct Faulty<Q> {
    inner: Q,
    faults: Faults,
    random: Random,
    scratch: Vec<Frame>,
    sequence: u64,
    lost: u64,
    lost_bytes: u64,
}

impl<Q: Queue> Faulty<Q> {
    /// Injects `faults` into `inner`.
    pub fn new(inner: Q, faults: Faults) -> Self {
        Self {
            inner,
            faults,
            random: Random(faults.seed),
            scratch: Vec::new(),
            sequence: 0,
            lost: 0,
            lost_bytes: 0,
        }
    }

    /// Injects faults into a received frame. Returns true if the frame is lost.
    fn strike(&mut self, frame: &mut Frame) -> bool {
        if self.random.happens(self.faults.drop_per_mille) {
            return true;
        }
        if self.random.happens(self.faults.corrupt_per_mille) {
            let at = self.random.below(frame.len());
            let bit = self.random.below(8);
            frame.bytes_mut()[at] ^= 1 << bit;
        }
        if self.random.happens(self.faults.truncate_per_mille) {
            let len = self.random.below(frame.len());
            let cut = frame.set_len(len);
            debug_assert!(cut, "shorter always fits");
            // The sender's offload metadata no longer describes these bytes.
            frame.meta.checksum = None;
            frame.meta.gso = None;
        }
        frame.len() < MIN_FRAME_BYTES
    }
}

impl<Q: Queue> Queue for Faulty<Q> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.inner.receive(pools, &mut scratch, max, stamp);
        let before = burst.len();
        for mut frame in scratch.drain(..) {
            let len = frame.len();
            if self.strike(&mut frame) {
                self.lost += 1;
                self.lost_bytes += len as u64;
                // The frame must have come from these pools. If a queue violates this, the frame is freed.
                let _ = pools.put(frame);
                continue;
            }
            self.lost_bytes += (len - frame.len()) as u64;
            frame.meta.sequence = self.sequence;
            self.sequence += 1;
            burst.push(frame);
        }
        self.scratch = scratch;
        burst.len() - before
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        if self.random.happens(self.faults.refuse_per_mille) {
            return 0;
        }
        self.inner.transmit(frames, done)
    }

    fn outstanding(&self) -> Outstanding {
        self.inner.outstanding()
    }

    fn set_outstanding(&mut self, most_bytes: usize) {
        self.inner.set_outstanding(most_bytes);
    }

    fn start(&mut self) {
        self.inner.start();
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.inner.descriptor()
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.inner.statistics();
        statistics.rx_packets -= self.lost;
        statistics.rx_bytes -= self.lost_bytes;
        statistics.dropped_many(PortDrop::Fault, self.lost);
        statistics
    }

    fn poll_link(&mut self) -> Link {
        self.inner.poll_link()
    }
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number from 0 to `limit` - 1, or 0 if `limit` is 0.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem;

    /// Offers 1,000 frames of 100 bytes 0x55. Returns the received frames and the counters.
    fn run(faults: Faults) -> (Vec<Vec<u8>>, Statistics) {
        let (mut queues, mut handle) = mem::pair(1, 1, 1000);
        for _ in 0..1000 {
            assert!(handle.push(0, &[0x55; 100]));
        }
        let mut queue = Faulty::new(queues.remove(0), faults);
        let mut pools = Pools::new(0, 1000, 0);
        let mut burst = Vec::new();
        let count = queue.receive(&mut pools, &mut burst, 1000, Stamp::NONE);
        assert_eq!(count, burst.len());
        assert_eq!(pools.available() + count, 1000, "lost frames return to the pool");
        assert!(burst.iter().enumerate().all(|(i, f)| f.meta.sequence == i as u64));
        (burst.iter().map(|f| f.bytes().to_vec()).collect(), queue.statistics())
    }

    #[test]
    fn rates_hold_and_every_frame_is_accounted_for() {
        let (frames, statistics) = run(Faults { drop_per_mille: 200, seed: 1, ..Faults::default() });
        assert!((750..850).contains(&frames.len()), "{}", frames.len());
        assert_eq!(frames.len() as u64 + statistics.drops(PortDrop::Fault), 1000);
        assert_eq!(statistics.rx_bytes, 100 * frames.len() as u64);

        let (frames, _) = run(Faults { corrupt_per_mille: 300, seed: 2, ..Faults::default() });
        let flipped = |f: &Vec<u8>| f.iter().map(|b| (b ^ 0x55).count_ones()).sum::<u32>();
        assert!(frames.iter().all(|f| flipped(f) <= 1));
        assert!((250..350).contains(&frames.iter().filter(|f| flipped(f) == 1).count()));

        let (frames, statistics) = run(Faults { truncate_per_mille: 300, seed: 3, ..Faults::default() });
        assert!((200..350).contains(&frames.iter().filter(|f| f.len() < 100).count()));
        assert!(frames.iter().all(|f| f.len() >= MIN_FRAME_BYTES));
        assert_eq!(statistics.rx_bytes, frames.iter().map(|f| f.len() as u64).sum::<u64>());
    }

    #[test]
    fn the_seed_decides() {
        let faults = |seed| Faults { drop_per_mille: 300, corrupt_per_mille: 300, seed, ..Faults::default() };
        assert_eq!(run(faults(5)).0, run(faults(5)).0);
        assert_ne!(run(faults(5)).0, run(faults(6)).0);
    }

    #[test]
    fn refused_frames_stay() {
        let (mut queues, mut handle) = mem::pair(1, 1, 1000);
        let mut queue =
            Faulty::new(queues.remove(0), Faults { refuse_per_mille: 500, seed: 4, ..Faults::default() });
        let mut refused = 0;
        for _ in 0..200 {
            let mut out = vec![Frame::from_bytes(&[1; 60])];
            let taken = queue.transmit(&mut out, &mut Vec::new());
            assert_eq!(taken + out.len(), 1);
            refused += out.len();
        }
        assert!((60..140).contains(&refused), "{refused}");
        assert_eq!(std::iter::from_fn(|| handle.pop(0)).count(), 200 - refused);
    }
}
