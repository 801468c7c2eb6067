// SPDX-License-Identifier: Apache-2.0
//! The other end of the ports: it pushes packets in and takes packets out.

use crate::Load;
use crate::judge::Judge;
use crate::packet::FLOWS;
use crate::stage::Shared;
use crate::watchdog::PATIENCE;
use port::mem::MemHandle;
use port::wait::Wake;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Maximum number of packets in flight in a run without losses: one burst. With more packets, the backlog
/// could refuse packets while the worker applies operations.
const WINDOW: usize = 32;

/// Ingress queue that packets are pushed into.
pub struct Ingress {
    pub port: usize,
    pub queue: usize,
    /// Eventfd that wakes the queue's worker.
    pub bell: Option<Arc<Wake>>,
}

pub struct Wire {
    /// Handles of all ports, by number from 1 on.
    pub handles: Vec<MemHandle>,
    pub ingresses: Vec<Ingress>,
    pub shared: &'static Shared,
    pub judge: Judge<'static>,
    pub random: fastrand::Rng,
    pub load: Load,
}

impl Wire {
    /// Pushes random packets until it is stopped.
    pub fn run(&mut self) {
        let mut stalled = 0;
        while !self.shared.stop.load(Ordering::Relaxed) {
            let (most, rest_us) = match self.load {
                Load::Sleepy => (24, 300),
                Load::Storm => (256, 20),
            };
            for _ in 0..self.random.usize(1..=most) {
                if self.load == Load::Storm || self.judge.open() < WINDOW {
                    self.push();
                }
            }
            // Sometimes take nothing from the ports, so that buffers in the switch fill up.
            stalled = match self.load {
                Load::Storm if stalled == 0 && self.random.u8(..16) == 0 => self.random.u32(1..60),
                _ => stalled.saturating_sub(1),
            };
            if stalled == 0 {
                self.pop();
            }
            if self.load == Load::Sleepy && self.random.u8(..8) == 0 {
                self.settle();
            }
            if self.load == Load::Storm && self.random.u8(..) == 0 {
                let (egress, up) = (self.random.usize(2..5), self.random.bool());
                self.handles[egress].set_link(up);
            }
            if self.random.bool() {
                std::thread::sleep(Duration::from_micros(self.random.u64(..rest_us)));
            }
            self.shared.wire.beat();
        }
    }

    fn push(&mut self) {
        let number = self.random.usize(..self.ingresses.len());
        let Ingress { port, queue, bell } = &self.ingresses[number];
        let flow = self.random.usize(..FLOWS);
        let tag = self.judge.next(flow, number);
        let floor = self.shared.book.floor(flow);
        if !self.handles[*port].push(*queue, &tag.frame()) {
            return;
        }
        self.judge.arrives(tag, floor);
        if let Some(bell) = bell {
            bell.wake();
        }
    }

    /// Takes packets that left, and returns their number.
    pub fn pop(&mut self) -> usize {
        let mut count = 0;
        for (at, handle) in self.handles[2..].iter_mut().enumerate() {
            for queue in 0..handle.queues() {
                while handle.pop_with(queue, |bytes, _| self.judge.leaves(at, bytes)).is_some() {
                    count += 1;
                }
            }
        }
        for handle in &mut self.handles[..2] {
            for queue in 0..handle.queues() {
                assert_eq!(handle.pop(queue), None, "a packet left by a port that no rule names");
            }
        }
        count
    }

    /// Waits until all copies of every packet have left and the last barrier is answered. During this wait,
    /// nothing else can wake a worker that missed a wake-up.
    pub fn settle(&mut self) {
        let start = Instant::now();
        self.shared.quiet.store(true, Ordering::SeqCst);
        loop {
            self.pop();
            let is_quiet = self.shared.is_quiet.load(Ordering::SeqCst);
            if is_quiet && self.judge.open() == 0 {
                break;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the last barrier is {}; packets under way: {:#?}",
                if is_quiet { "answered" } else { "not answered" },
                self.judge.missing()
            );
            std::thread::sleep(Duration::from_micros(10));
        }
        self.shared.quiet.store(false, Ordering::SeqCst);
    }
}
