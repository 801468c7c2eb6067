// SPDX-License-Identifier: Apache-2.0
//! Receive: converts UMEM chunks to frames.

use super::handover::RingUse;
use super::{XdpQueue, partial};
use crate::sys::Refused;
use crate::{MIN_FRAME_BYTES, Pools, PortDrop};
use frame::{Frame, Stamp};

/// Result of handling a packet.
enum Arrival {
    Frame(Frame),
    Dropped(PortDrop),
    /// No buffer is free: the packet stays in the ring.
    Waits,
}

impl XdpQueue {
    pub(super) fn receive_burst(
        &mut self,
        pools: &mut Pools,
        burst: &mut Vec<Frame>,
        max: usize,
        stamp: Stamp,
    ) -> usize {
        let ring_use = self.ring_use();
        if ring_use >= RingUse::Paused {
            return 0;
        }
        let xsk = &mut self.socket.xsk;
        if xsk.has_unsent() {
            // Queued frames are also sent here, because a worker with nothing more to send does not call
            // `transmit`.
            self.is_down = xsk.send().refused == Refused::Link;
        }
        if ring_use == RingUse::SendOnly {
            return 0;
        }
        let (mut count, mut seen) = (0, false);
        // Drops count towards `max`, so that a flood of dropped packets does not block the worker.
        for _ in 0..max {
            let Some(bytes) = xsk.peek() else { break };
            match arrival(bytes, pools) {
                Arrival::Frame(mut frame) => {
                    if self.socket.is_local {
                        frame.meta.checksum = partial::find(frame.bytes());
                    }
                    frame.meta.arrive(self.number, self.sequence, stamp);
                    self.sequence += 1;
                    self.statistics.received(frame.len());
                    burst.push(frame);
                    count += 1;
                }
                Arrival::Dropped(reason) => self.statistics.dropped(reason),
                Arrival::Waits => break,
            }
            xsk.give_back();
            seen = true;
        }
        if seen {
            xsk.end_receive();
        }
        count
    }
}

fn arrival(bytes: &[u8], pools: &mut Pools) -> Arrival {
    let len = bytes.len();
    if len < MIN_FRAME_BYTES {
        Arrival::Dropped(PortDrop::RxRunt)
    } else if !pools.fits(len) {
        Arrival::Dropped(PortDrop::RxOversized)
    } else if pools.lacks_only_large(len) {
        Arrival::Dropped(PortDrop::RxNoLargeFrame)
    } else {
        pools.filled(bytes).map_or(Arrival::Waits, Arrival::Frame)
    }
}
