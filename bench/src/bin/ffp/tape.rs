// SPDX-License-Identifier: Apache-2.0
//! Reads what ports send.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use frame::Frame;
use port::{Capabilities, Link, Pools, Queue, Statistics};

/// What all ports of a switch sent.
#[derive(Debug, Default)]
pub struct Tape {
    /// Sum of the first eight bytes of all packets: written, so that reading is not left out.
    sum: AtomicU64,
    recording: AtomicBool,
    sent: Mutex<Vec<(u32, Vec<u8>)>>,
}

impl Tape {
    /// Keeps copies of packets from now on, or no more.
    pub fn record(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
    }

    /// Takes what was recorded and holds it against what was to be sent: ports and packets, in any order.
    pub fn judge<'p>(&self, expected: impl Iterator<Item = (u32, &'p [u8])>) -> Result<usize, String> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        let mut counts: HashMap<(u32, &[u8]), i64> = HashMap::new();
        expected.for_each(|packet| *counts.entry(packet).or_default() += 1);
        for (port, packet) in &sent {
            *counts.entry((*port, packet)).or_default() -= 1;
        }
        match counts.iter().find(|(_, count)| **count != 0) {
            None => Ok(sent.len()),
            Some(((port, packet), count)) => {
                Err(format!("port {port}: {count} packets too few of {packet:02x?}, and maybe more"))
            }
        }
    }
}

/// A queue whose packets are read when they are sent: their first eight bytes always, all of them while the tape records.
pub struct Tapped<Q> {
    pub number: u32,
    pub queue: Q,
    pub tape: Arc<Tape>,
}

impl<Q: Queue> Queue for Tapped<Q> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        self.queue.receive(pools, burst, max)
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        let sum = frames.iter().filter_map(|frame| frame.bytes().first_chunk::<8>());
        let sum = sum.fold(0_u64, |sum, bytes| sum.wrapping_add(u64::from_ne_bytes(*bytes)));
        self.tape.sum.fetch_add(sum, Ordering::Relaxed);
        if self.tape.recording.load(Ordering::Relaxed) {
            let mut sent = self.tape.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.extend(frames.iter().map(|frame| (self.number, frame.bytes().to_vec())));
        }
        self.queue.transmit(frames, done)
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.queue.descriptor()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.queue.poll_link()
    }
}
