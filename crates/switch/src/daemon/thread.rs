// SPDX-License-Identifier: Apache-2.0
//! A worker's thread: turns while there is work, sleeps when there is none.
//!
//! The thread holds the worker's lock while it is awake. Asleep it does not, so that the control thread can apply
//! operations to the worker in its stead: a barrier then costs no wake-up round trip. Against lost wake-ups: the thread
//! sets the sleeping flag and looks for work once more before it lets go of the lock; others queue their work and then
//! look at the flag. An eventfd wakes those who cannot be helped by hand.

use super::clock::Clock;
use super::sleeps;
use crate::config::WorkerConfig;
use flow::Nanos;
use port::wait::{MAX_DESCRIPTORS, Wake, wait};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};
use worker::{Rest, Turn, Worker};

/// How long a worker spins after its last packet.
const SPIN_NS: Nanos = 50_000;
/// Between two publications of links and counters.
const KEEPING_NS: Nanos = 100_000_000;
/// The same when packets came since the last and the worker is about to sleep.
const KEEPING_SOON_NS: Nanos = 20_000_000;
/// Longest sleep while frames wait for a device: by then it has sent most of what may be outstanding, unless it is slow.
const RETRY: Duration = Duration::from_micros(200);
/// Longest sleep while a queue has no descriptor to sleep on.
const POLLING: Duration = Duration::from_micros(200);

/// How the control thread is woken.
pub struct ControlWake {
    pub wake: Wake,
    /// It sleeps, or is about to.
    pub asleep: AtomicBool,
}

/// What a worker's thread shares with others.
pub struct Shared {
    worker: Mutex<Worker>,
    sleeping: Arc<AtomicBool>,
    wake: Wake,
    stop: AtomicBool,
}

impl Shared {
    pub fn new(worker: Worker) -> io::Result<Self> {
        let sleeping = worker.sleeping();
        Ok(Self { worker: Mutex::new(worker), sleeping, wake: Wake::new()?, stop: AtomicBool::new(false) })
    }

    /// Does for a sleeping worker what was queued for it, or wakes it.
    pub fn nudge(&self) {
        match self.worker.try_lock() {
            Ok(mut worker) => {
                while worker.apply() > 0 {}
                // A packet of the controller's waits for its device, or in another worker's ring.
                if worker.has_output() || worker.handed_over().next().is_some() {
                    self.wake.wake();
                }
            }
            Err(_) => self.wake.wake(),
        }
    }

    /// Applies what is queued, in the place of a thread that has not started yet.
    pub fn apply(&self) {
        let mut worker = self.lock();
        while worker.apply() > 0 {}
    }

    /// Publishes a sleeping worker's links and counters; one that is awake does so itself.
    pub fn keep_house(&self) {
        match self.worker.try_lock() {
            Ok(mut worker) => worker.housekeeping(),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return,
        }
        // A device may have been opened anew, and the worker sleeps on descriptors of the old one.
        self.wake.wake();
    }

    /// Ends the worker, when no thread of any worker runs any more.
    pub fn end(&self) -> Rest {
        self.lock().end()
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread of worker `number`, one of `all`.
pub fn start(
    number: usize,
    config: WorkerConfig,
    clock: Clock,
    all: Arc<[Arc<Shared>]>,
    control: Arc<ControlWake>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        if let Some(cpu) = config.cpu {
            pin(number, cpu);
        }
        if let Some(shared) = all.get(number) {
            Loop { shared, all: &all, control: &control, clock, sleeps: sleeps(config.idle) }.run();
        }
    })
}

fn pin(number: usize, cpu: usize) {
    let mut cpus = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        cpus.set(cpu);
    }
    if let Err(error) = sched_setaffinity(None, &cpus) {
        tracing::warn!("worker {number} is not pinned to CPU {cpu}, which this process can not use: {error}");
    }
}

struct Loop<'a> {
    shared: &'a Shared,
    all: &'a [Arc<Shared>],
    control: &'a ControlWake,
    clock: Clock,
    sleeps: bool,
}

impl Loop<'_> {
    fn run(&self) {
        let mut worker = self.shared.lock();
        let mut active_ns = self.clock.now();
        let mut kept_ns = 0;
        let mut descriptors = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let turn = self.turn(&mut worker, now);
            if turn.received + turn.sent + turn.applied + turn.worked > 0 {
                active_ns = now;
            }
            if now.saturating_sub(kept_ns) >= KEEPING_NS {
                worker.housekeeping();
                kept_ns = now;
            }
            if !self.sleeps || now.saturating_sub(active_ns) < SPIN_NS {
                if turn.received == 0 {
                    std::hint::spin_loop();
                }
                continue;
            }
            // Counters of the last packets must not be old for long, and keeping house costs system calls.
            let period_ns = if active_ns >= kept_ns { KEEPING_SOON_NS } else { KEEPING_NS };
            if now.saturating_sub(kept_ns) >= period_ns {
                worker.housekeeping();
                kept_ns = now;
            }
            let left_ns = (kept_ns + if active_ns >= kept_ns { KEEPING_SOON_NS } else { KEEPING_NS })
                .saturating_sub(now);
            // Frames in a queue wait for their rate, not for a device.
            let left_ns = turn.opens_ns.map_or(left_ns, |opens_ns| left_ns.min(opens_ns.saturating_sub(now)));
            worker = self.sleep(worker, &mut descriptors, turn, Duration::from_nanos(left_ns));
        }
        worker.housekeeping();
    }

    fn turn(&self, worker: &mut Worker, now: Nanos) -> Turn {
        let turn = worker.turn(now);
        if worker.has_events() || worker.handed_over().next().is_some() {
            worker.rest();
            // Pairs with the fences of who goes to sleep: frames and events were put into their rings before.
            fence(Ordering::SeqCst);
            for peer in worker.handed_over() {
                if let Some(peer) = self.all.get(peer).filter(|peer| peer.sleeping.load(Ordering::SeqCst)) {
                    peer.wake.wake();
                }
            }
            if worker.has_events()
                && self.control.asleep.load(Ordering::SeqCst)
                && self.control.asleep.swap(false, Ordering::SeqCst)
            {
                self.control.wake.wake();
            }
        }
        turn
    }

    fn sleep<'w>(
        &'w self,
        worker: MutexGuard<'w, Worker>,
        descriptors: &mut Vec<RawFd>,
        turn: Turn,
        at_most: Duration,
    ) -> MutexGuard<'w, Worker> {
        self.shared.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if worker.has_pending() {
            self.shared.sleeping.store(false, Ordering::SeqCst);
            return worker;
        }
        descriptors.clear();
        descriptors.push(self.shared.wake.descriptor());
        worker.descriptors(descriptors);
        let too_many = descriptors.len() > MAX_DESCRIPTORS;
        descriptors.truncate(MAX_DESCRIPTORS);
        let limit = match turn.waiting {
            _ if worker.must_poll() || too_many => POLLING,
            true => RETRY,
            false => at_most,
        };
        drop(worker);
        if wait(descriptors, Some(limit.min(at_most))).is_err() {
            // Without a way to sleep on descriptors, look again soon.
            thread::sleep(POLLING);
        }
        let mut worker = self.shared.lock();
        worker.rest();
        self.shared.sleeping.store(false, Ordering::SeqCst);
        self.shared.wake.clear();
        worker
    }
}
