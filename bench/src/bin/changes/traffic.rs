// SPDX-License-Identifier: Apache-2.0
//! The ports of a worker. One port receives the packets of all flows again and again, at full speed or at
//! fixed times. The others measure the delays of the packets that they send.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frame::{Frame, Stamp};
use port::mem::LoopQueue;
use port::{Pools, Queue};

use crate::clock::ActiveClock;
use crate::delays::Delays;

/// Capacity of the receive ring in packets, as drivers configure it.
const RING: u64 = 1_024;

/// After a preemption, packets do not count for this time, because the caches are cold.
pub const RECOVERY_NS: u64 = 200_000;

/// Times at which packets arrive, in nanoseconds: the time of the first packet, and the interval between
/// packets.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub first_ns: u64,
    pub interval_ns: f64,
}

/// State that the ports share with the owner of the worker. Only the worker's thread takes the lock.
#[derive(Debug)]
pub struct Traffic {
    pub clock: ActiveClock,
    /// Arrival times, or `None` at full speed.
    pub schedule: Option<Schedule>,
    /// Number of packets that have left the ring since the schedule began: received or lost.
    next: u64,
    /// Packets lost because the ring was full.
    pub lost: u64,
    pub sent: u64,
    /// Sent packets that do not count because of preemption.
    pub excluded: u64,
    pub delays: Delays,
    /// Number and transmission time of packets sent in this poll iteration.
    turn: Vec<(u64, u64)>,
}

impl Traffic {
    /// Creates traffic at full speed. Called by the worker's thread.
    pub fn new() -> Self {
        Self {
            clock: ActiveClock::new(),
            schedule: None,
            next: 0,
            lost: 0,
            sent: 0,
            excluded: 0,
            delays: Delays::new(),
            turn: Vec::with_capacity(8 * RING as usize),
        }
    }

    /// Begins a schedule, or full speed if `None`.
    pub fn begin(&mut self, schedule: Option<Schedule>) {
        self.schedule = schedule;
        self.next = 0;
        self.clear();
    }

    /// Resets counters and delays.
    pub fn clear(&mut self) {
        (self.lost, self.sent, self.excluded) = (0, 0, 0);
        self.turn.clear();
        self.delays.clear();
    }

    /// Counts the delays of a poll iteration's packets. The clock excludes the time that this takes.
    pub fn end_turn(&mut self) {
        let Some(schedule) = self.schedule else { return };
        let until_ns = self.clock.gap_end_ns() + RECOVERY_NS;
        for (number, sent_ns) in self.turn.drain(..) {
            let arrival_ns = schedule.first_ns + (number as f64 * schedule.interval_ns) as u64;
            if arrival_ns < until_ns {
                self.excluded += 1;
            } else {
                self.delays.add(sent_ns.saturating_sub(arrival_ns));
            }
        }
        self.clock.skip();
    }

    /// Returns the number of packets in the ring. Packets that found the ring full are lost.
    fn arrived(&mut self, schedule: Schedule, now_ns: u64) -> u64 {
        let span_ns = now_ns.saturating_sub(schedule.first_ns);
        let all = (span_ns as f64 / schedule.interval_ns) as u64;
        let waiting = all.saturating_sub(self.next);
        let lost = waiting.saturating_sub(RING);
        self.lost += lost;
        self.next += lost;
        waiting - lost
    }
}

pub fn lock(traffic: &Mutex<Traffic>) -> MutexGuard<'_, Traffic> {
    traffic.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port that receives packets according to the schedule, or measures the delays of packets that it sends.
pub struct TimedQueue {
    pub queue: LoopQueue,
    pub traffic: Arc<Mutex<Traffic>>,
}

impl Queue for TimedQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let mut traffic = lock(&self.traffic);
        let Some(schedule) = traffic.schedule else {
            return self.queue.receive(pools, burst, max, stamp);
        };
        let now_ns = traffic.clock.now_ns();
        let most = max.min(traffic.arrived(schedule, now_ns) as usize);
        if most == 0 {
            return 0;
        }
        let before = burst.len();
        let received = self.queue.receive(pools, burst, most, stamp);
        // When the packet is sent, its arrival time is computed from this number.
        for (frame, number) in burst[before..].iter_mut().zip(traffic.next..) {
            frame.meta.sequence = number;
        }
        traffic.next += received as u64;
        received
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let mut traffic = lock(&self.traffic);
        let traffic = &mut *traffic;
        if traffic.schedule.is_some() {
            let now_ns = traffic.clock.now_ns();
            traffic.turn.extend(frames.iter().map(|frame| (frame.meta.sequence, now_ns)));
        }
        traffic.sent += frames.len() as u64;
        self.queue.transmit(frames, done)
    }

    shunt_bench::as_wrapped_queue!(queue);
}

/// A port that only sends. It has its own type, so that polling it costs nothing.
pub struct SendingQueue(pub TimedQueue);

impl Queue for SendingQueue {
    fn receive(&mut self, _: &mut Pools, _: &mut Vec<Frame>, _: usize, _: Stamp) -> usize {
        0
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.0.transmit(frames, done)
    }

    shunt_bench::as_wrapped_queue!(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_in_the_ring_and_are_lost_beyond_it() {
        let mut traffic = Traffic::new();
        let schedule = Schedule { first_ns: 1_000, interval_ns: 100.0 };
        traffic.begin(Some(schedule));
        assert_eq!((traffic.arrived(schedule, 21_000), traffic.lost), (200, 0));
        assert_eq!((traffic.arrived(schedule, 151_000), traffic.lost), (RING, 1_500 - RING));
        assert_eq!(traffic.next, traffic.lost);
    }
}
