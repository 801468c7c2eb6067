// SPDX-License-Identifier: Apache-2.0
//! Ports of the simulated switch: a receive ring with packets of flows, and a transmitter that counts.

use crate::traffic::{Arrival, Flow, Recording};
use frame::{Frame, Stamp};
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::PacketBuilder;

/// Maximum number of packets that wait in a receive ring.
pub const RING: usize = 512;

/// Length of the FCS, which frames do not contain.
const FCS_BYTES: usize = 4;

/// UDP destination port of the first flows.
const DESTINATION_PORT: u16 = 9;

/// Returns the IPv4 address of a host.
pub fn address(host: u8) -> [u8; 4] {
    [10, 0, host, 1]
}

/// Frames of the flows of a recording. A flow without packets has an empty frame.
pub fn frames(recording: &Recording, bytes: u16) -> Arc<[Vec<u8>]> {
    let mut frames = vec![Vec::new(); recording.flows.len()];
    for Arrival { flow, .. } in &recording.arrivals {
        let frame = &mut frames[*flow as usize];
        if frame.is_empty() {
            *frame = packet(&recording.flows[*flow as usize], usize::from(bytes));
        }
    }
    frames.into()
}

fn packet(flow: &Flow, bytes: usize) -> Vec<u8> {
    let headers = PacketBuilder::ethernet([2, 0, 0, 0, 0, flow.to], [2, 0, 0, 0, 0, flow.from])
        .ipv4(address(flow.from), address(flow.to))
        .udp(flow.source_port, DESTINATION_PORT + flow.round);
    let empty = headers.clone().build().len();
    headers.payload(&vec![0; (bytes - FCS_BYTES).saturating_sub(empty)]).build()
}

/// Packets at a port.
#[derive(Debug, Default)]
pub struct Line {
    /// Flows of the packets that wait to be received.
    ring: VecDeque<u32>,
    /// Number of packets that found the ring full.
    pub lost: u64,
}

/// Both ends of a port share the line.
pub type SharedLine = Arc<Mutex<Line>>;

/// Locks a line.
pub fn lock(line: &SharedLine) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Makes a packet arrive.
    pub fn arrive(&mut self, flow: u32) {
        if self.ring.len() < RING {
            self.ring.push_back(flow);
        } else {
            self.lost += 1;
        }
    }
}

/// Worker's end of a port.
pub struct Port {
    /// Port number, from 1.
    pub number: u32,
    /// Packets that arrive.
    pub line: SharedLine,
    /// Frame of each flow.
    pub frames: Arc<[Vec<u8>]>,
    /// Counters.
    pub statistics: Statistics,
    /// Number of frames received.
    pub sequence: u64,
}

impl Queue for Port {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let mut line = lock(&self.line);
        let mut count = 0;
        while count < max
            && let Some(flow) = line.ring.front()
            && let Some(mut frame) = pools.filled(&self.frames[*flow as usize])
        {
            frame.meta.arrive(self.number, self.sequence, stamp);
            self.sequence += 1;
            self.statistics.received(frame.len());
            burst.push(frame);
            line.ring.pop_front();
            count += 1;
        }
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let count = frames.len();
        frames.iter().for_each(|frame| self.statistics.sent(frame.len()));
        done.append(frames);
        count
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn poll_link(&mut self) -> Link {
        Link { up: true, ..Link::default() }
    }
}
