// SPDX-License-Identifier: Apache-2.0
//! Recorder of the packets that ports send.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use frame::{Frame, Stamp};
use port::{Pools, Queue};

/// The packets sent by all ports of a switch.
#[derive(Debug, Default)]
pub struct Tape {
    /// Sum of the first eight bytes of each packet. It keeps the compiler from removing the reads.
    sum: AtomicU64,
    recording: AtomicBool,
    sent: Mutex<Vec<(u32, Vec<u8>)>>,
}

impl Tape {
    /// Starts or stops the recording of packets.
    pub fn record(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
    }

    /// Compares the recorded ports and packets with the expected ones in any order, clears the recording, and
    /// returns the number of recorded packets.
    pub fn compare<'p>(&self, expected: impl Iterator<Item = (u32, &'p [u8])>) -> Result<usize, String> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        let mut counts: HashMap<(u32, &[u8]), i64> = HashMap::new();
        expected.for_each(|packet| *counts.entry(packet).or_default() += 1);
        for (port, packet) in &sent {
            *counts.entry((*port, packet)).or_default() -= 1;
        }
        match counts.iter().find(|(_, count)| **count != 0) {
            None => Ok(sent.len()),
            Some(((port, packet), count)) => Err(format!(
                "port {port} sent {count} packets too few of {packet:02x?}; other packets may differ as well"
            )),
        }
    }
}

/// Queue that reads each packet on transmission. It always reads the first eight bytes, and the whole packet
/// while recording.
pub struct Tapped<Q> {
    pub number: u32,
    pub queue: Q,
    pub tape: Arc<Tape>,
}

impl<Q: Queue> Queue for Tapped<Q> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.queue.receive(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let sum = frames.iter().filter_map(|frame| frame.bytes().first_chunk::<8>());
        let sum = sum.fold(0_u64, |sum, bytes| sum.wrapping_add(u64::from_ne_bytes(*bytes)));
        self.tape.sum.fetch_add(sum, Ordering::Relaxed);
        if self.tape.recording.load(Ordering::Relaxed) {
            let mut sent = self.tape.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.extend(frames.iter().map(|frame| (self.number, frame.bytes().to_vec())));
        }
        self.queue.transmit(frames, done)
    }

    shunt_bench::as_wrapped_queue!(queue);
}
