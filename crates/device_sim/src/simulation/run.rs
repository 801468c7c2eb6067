// SPDX-License-Identifier: Apache-2.0
//! The loop of the device's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use frame::Frame;
use port::Pools;
use port::wait::{Wake, wait};

use super::channel::Port;
use super::control::ControlPath;
use super::{Shared, SimulationCounters, lock};
use crate::{CHANNELS, RtlDevice};

/// Cycles between two looks at queues and socket. A cycle takes ten times as long as the looks.
const TURN_CYCLES: u32 = 2;
/// Time between two queries of the links.
const LINK_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at a queue that has no descriptor, or that accepts no frames.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Home number of the frames.
const HOME: u16 = u16::MAX - 2;
/// Frames for packets; more than wait for all queues together.
const SMALL_FRAMES: usize = 512;
/// Frames for super-frames.
const LARGE_FRAMES: usize = 32;

/// State of the device's thread.
pub(super) struct Runner {
    rtl: RtlDevice,
    ports: Vec<Port>,
    /// Port that offers its beat first in the next cycle.
    first: usize,
    /// Whether the ports offer no beat in the next cycle.
    pauses: bool,
    control: ControlPath,
    pools: Pools,
    burst: Vec<Frame>,
    done: Vec<Frame>,
    /// Cycles without a beat, and the number after which the clock stops.
    quiet: u32,
    idle_cycles: u32,
    sleeps: u64,
    unconnected: u64,
    /// Whether the clock has run since counters were published.
    has_news: bool,
    /// Whether the last sleep ended because a descriptor was readable.
    woken: bool,
    links_due: Instant,
    shared: Arc<Shared>,
    wake: Arc<Wake>,
}

impl Runner {
    pub fn new(
        rtl: RtlDevice,
        ports: Vec<Port>,
        control: ControlPath,
        idle_cycles: u32,
        shared: Arc<Shared>,
        wake: Arc<Wake>,
    ) -> Self {
        Self {
            rtl,
            ports,
            first: 0,
            pauses: false,
            control,
            pools: Pools::new(HOME, SMALL_FRAMES, LARGE_FRAMES),
            burst: Vec::new(),
            done: Vec::new(),
            quiet: 0,
            idle_cycles,
            sleeps: 0,
            unconnected: 0,
            has_news: false,
            woken: false,
            links_due: Instant::now(),
            shared,
            wake,
        }
    }

    /// Runs until the thread must stop.
    pub fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            if Instant::now() >= self.links_due {
                self.poll_links();
                self.publish();
            }
            self.exchange();
            if self.has_work() {
                (self.woken, self.has_news) = (false, true);
                self.turn();
            } else {
                if self.has_news {
                    self.publish();
                }
                self.sleep();
            }
        }
    }

    /// Queries and publishes the state of the links.
    pub fn poll_links(&mut self) {
        self.links_due = Instant::now() + LINK_INTERVAL;
        let links = self.ports.iter_mut().map(Port::poll_link).collect();
        *lock(&self.shared.links) = links;
    }

    /// Publishes the counters.
    pub fn publish(&mut self) {
        self.has_news = false;
        let mut counters = lock(&self.shared.counters);
        let SimulationCounters { cycles, sleeps, unconnected, channels, control } = &mut *counters;
        (*cycles, *sleeps, *control) = (self.rtl.cycles(), self.sleeps, self.control.counters);
        *unconnected = self.unconnected;
        channels.clear();
        channels.extend(self.ports.iter().map(Port::counters));
    }

    /// Moves frames from and to the queues, and datagrams from the socket.
    fn exchange(&mut self) {
        self.control.receive();
        // Frames for a port that was not given leave, and are discarded.
        let mut ready = u8::MAX;
        for port in &mut self.ports {
            port.receive(&mut self.pools, &mut self.burst);
            let was_ready = port.is_ready();
            port.flush(&mut self.pools, &mut self.done);
            if !port.is_ready() {
                ready &= !(1 << port.channel());
            } else if !was_ready {
                // Frames may have waited in the device.
                self.quiet = 0;
            }
        }
        self.rtl.set_ready(ready);
    }

    /// Returns whether the clock must run.
    fn has_work(&self) -> bool {
        self.quiet < self.idle_cycles || self.control.has_frames() || self.ports.iter().any(Port::has_arrived)
    }

    /// Runs some cycles.
    fn turn(&mut self) {
        for _ in 0..TURN_CYCLES {
            self.offer();
            self.rtl.clock();
            self.quiet = if self.rtl.moved() { 0 } else { self.quiet.saturating_add(1) };
            if self.rtl.has_left() {
                self.take();
            }
        }
    }

    /// Offers at most one beat of the ports, in turn, so that the ports together do not exceed the bus; and
    /// at most one beat from the daemon. After a frame, a cycle without a beat of a port follows, because the
    /// frame may leave with one beat more.
    fn offer(&mut self) {
        let count = if std::mem::take(&mut self.pauses) { 0 } else { self.ports.len() };
        for number in 0..count {
            let at = (self.first + number) % count;
            let port = &mut self.ports[at];
            if let Some((beat, grows)) = port.next_beat() {
                self.rtl.offer(port.channel(), &beat);
                (self.first, self.pauses) = (at + 1, grows);
                break;
            }
        }
        if let Some(beat) = self.control.next_beat() {
            self.rtl.offer_control(&beat);
        }
    }

    /// Takes frames that have left.
    fn take(&mut self) {
        for channel in 0..usize::from(CHANNELS) {
            let Some(frame) = self.rtl.left(channel) else { continue };
            match self.ports.iter_mut().find(|port| port.channel() == channel) {
                Some(port) => port.store(&mut self.pools, frame),
                None => self.unconnected += 1,
            }
        }
        if let Some(frame) = self.rtl.left_control() {
            self.control.send(frame);
        }
    }

    /// Sleeps until a frame or a datagram arrives, or the links must be queried.
    fn sleep(&mut self) {
        // Nothing was found behind a readable descriptor: a socket may have an error that stays.
        if std::mem::take(&mut self.woken) {
            thread::sleep(POLL_INTERVAL);
        }
        let mut descriptors = vec![self.wake.descriptor(), self.control.descriptor()];
        let mut timeout = self.links_due.saturating_duration_since(Instant::now());
        for port in &self.ports {
            match port.descriptor() {
                Some(descriptor) => descriptors.push(descriptor),
                None => timeout = timeout.min(POLL_INTERVAL),
            }
            if port.has_waiting() {
                timeout = timeout.min(POLL_INTERVAL);
            }
        }
        self.sleeps += 1;
        match wait(&descriptors, Some(timeout)) {
            Ok(ready) => self.woken = ready > 0,
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
}
