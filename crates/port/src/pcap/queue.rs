// SPDX-License-Identifier: Apache-2.0
//! The queue of a capture port.

use crate::{Capabilities, Link, MIN_FRAME_BYTES, Pools, PortDrop, Queue, Statistics, offload};
use frame::{Frame, Stamp};
use std::fs::File;
use std::io::BufWriter;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::capture::CaptureWriter;

/// A packet of the input, with the end of its bytes in `PcapQueue::bytes`.
struct Record {
    end: usize,
    truncated: bool,
}

/// Size of the segment buffer in bytes; holds the longest segment of a super-frame.
const SEGMENT_BYTES: usize = 65_600;

pub(super) struct PcapQueue {
    number: u32,
    bytes: Vec<u8>,
    records: Vec<Record>,
    next: usize,
    /// Number of remaining rounds, including the current one, or `None` if they never end.
    rounds: Option<u64>,
    sequence: u64,
    output: Option<CaptureWriter<BufWriter<File>>>,
    segment: Box<[u8]>,
    statistics: Statistics,
}

impl PcapQueue {
    pub(super) fn new(number: u32, rounds: Option<u64>) -> Self {
        Self {
            number,
            bytes: Vec::new(),
            records: Vec::new(),
            next: 0,
            rounds,
            sequence: 0,
            output: None,
            segment: vec![0; SEGMENT_BYTES].into_boxed_slice(),
            statistics: Statistics::default(),
        }
    }

    /// Appends a packet to the input.
    pub(super) fn add(&mut self, truncated: bool, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.records.push(Record { end: self.bytes.len(), truncated });
    }

    /// Sets the capture to which transmitted packets are written.
    pub(super) fn write_to(&mut self, output: CaptureWriter<BufWriter<File>>) {
        self.output = Some(output);
    }

    /// Writes a frame, as one or more complete packets with this timestamp. Returns the drop reason on
    /// failure.
    fn write(&mut self, frame: &mut Frame, now_ns: u64) -> Result<(), PortDrop> {
        if frame.len() < MIN_FRAME_BYTES {
            return Err(PortDrop::TxRunt);
        }
        let Some(output) = &mut self.output else { return Ok(()) };
        let mut put =
            |bytes: &[u8]| output.write(now_ns, bytes.len() as u32, bytes).map_err(|_| PortDrop::TxError);
        if frame.meta.gso.is_none() {
            if !offload::complete_checksum(frame) {
                return Err(PortDrop::TxUnfinished);
            }
            return put(frame.bytes());
        }
        let mut segments = offload::segments(frame).ok_or(PortDrop::TxUnfinished)?;
        while segments.remaining() > 0 {
            let len = segments.write_next(&mut self.segment).ok_or(PortDrop::TxUnfinished)?;
            put(&self.segment[..len])?;
        }
        Ok(())
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.records.len() {
            self.rounds = self.rounds.map(|rounds| rounds - 1);
            if self.rounds != Some(0) {
                self.next = 0;
            }
        }
    }
}

impl Queue for PcapQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let mut count = 0;
        for _ in 0..max {
            let Some(record) = self.records.get(self.next) else { break };
            let start = self.next.checked_sub(1).map_or(0, |before| self.records[before].end);
            let bytes = &self.bytes[start..record.end];
            let refused = if record.truncated {
                Some(PortDrop::RxTruncated)
            } else if bytes.len() < MIN_FRAME_BYTES {
                Some(PortDrop::RxRunt)
            } else if !pools.fits(bytes.len()) {
                Some(PortDrop::RxOversized)
            } else {
                None
            };
            if let Some(reason) = refused {
                self.statistics.dropped(reason);
                self.advance();
                continue;
            }
            let Some(mut frame) = pools.filled(bytes) else { break };
            frame.meta.arrive(self.number, self.sequence, stamp);
            self.sequence += 1;
            self.statistics.received(frame.len());
            burst.push(frame);
            count += 1;
            self.advance();
        }
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let count = frames.len();
        // All packets of a burst get the same timestamp, because they are sent together.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
        for mut frame in frames.drain(..) {
            match self.write(&mut frame, now_ns) {
                Ok(()) => self.statistics.sent(frame.len()),
                Err(reason) => self.statistics.dropped(reason),
            }
            done.push(frame);
        }
        count
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The link is up while there are packets to receive or a file to write to.
    fn poll_link(&mut self) -> Link {
        Link { up: self.output.is_some() || self.next < self.records.len(), ..Link::default() }
    }
}

impl Drop for PcapQueue {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            // A destructor has no caller to report an error to.
            let _ = output.finish();
        }
    }
}
