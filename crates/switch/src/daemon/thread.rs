// SPDX-License-Identifier: Apache-2.0
//! The thread of a worker: it runs turns while there is work and sleeps while there is none.
//!
//! [`worker::SharedWorker`] defines how a worker sleeps without missing work, and how the control thread
//! applies operations to a sleeping worker. Begin with [`start`].

use super::clock::MonotonicClock;
use super::search::SharedSearch;
use super::sleeps;
use config::{Pace, WorkerConfig};
use flow::Nanos;
use port::wait::{MAX_DESCRIPTORS, Wake, wait};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::RawFd;
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};
use worker::{PublishFence, SharedWorker, ShutdownLoss, SleepFlag, Turn, Worker};

/// Longest sleep while frames wait for a device.
const RETRY: Duration = Duration::from_micros(200);
/// Longest sleep while a queue has no descriptor to wait for.
const POLLING: Duration = Duration::from_micros(200);

/// Eventfd that wakes the control thread, with its sleep flag.
pub struct ControlWake {
    pub wake: Wake,
    /// Whether the control thread sleeps or is about to.
    pub asleep: SleepFlag,
}

/// The threads that a worker may wake.
#[derive(Clone)]
pub struct Others {
    /// All workers.
    pub workers: Arc<[Arc<Shared>]>,
    /// The search worker, if there is one.
    pub search: Option<Arc<SharedSearch>>,
    /// The control thread.
    pub control: Arc<ControlWake>,
}

/// The part of a worker's thread that other threads share.
pub struct Shared(SharedWorker<Worker, Wake>);

impl Shared {
    pub fn new(worker: Worker) -> io::Result<Self> {
        let flag = worker.sleeping();
        Ok(Self(SharedWorker::new(worker, flag, Wake::new()?)))
    }

    /// Applies queued operations for a sleeping worker, or wakes it.
    pub fn apply_or_wake(&self) {
        self.0.apply_or_wake();
    }

    /// Applies all queued operations. The worker's thread must not have started yet.
    pub fn apply(&self) {
        let mut worker = self.0.lock();
        while worker.apply() > 0 {}
    }

    /// Publishes the links and counters of a sleeping worker. A worker that is awake publishes them itself.
    pub fn keep_house(&self) {
        let Some(mut worker) = self.0.try_lock() else { return };
        worker.housekeeping();
        drop(worker);
        // A device may have been reopened while the worker sleeps on the old device's descriptors, so wake
        // the worker.
        self.0.alarm().wake();
    }

    /// Ends the worker. All worker threads must have ended already.
    pub fn end(&self) -> ShutdownLoss {
        self.0.lock().end()
    }

    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Starts the thread of worker `number`, which is an index into `all`.
pub fn start(
    number: usize,
    config: WorkerConfig,
    pace: Pace,
    clock: MonotonicClock,
    others: Others,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        if let Some(cpu) = config.cpu {
            pin(&format!("worker {number}"), cpu);
        }
        if let Some(shared) = others.workers.get(number) {
            Loop { shared, others: &others, clock, pace, sleeps: sleeps(config.idle) }.run();
        }
    })
}

/// Pins the calling thread to a CPU. `who` names the thread in the log.
pub fn pin(who: &str, cpu: usize) {
    let mut cpus = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        cpus.set(cpu);
    }
    if let Err(error) = sched_setaffinity(None, &cpus) {
        tracing::warn!("{who} is not pinned to CPU {cpu}, which this process cannot use: {error}");
    }
}

struct Loop<'a> {
    shared: &'a Shared,
    others: &'a Others,
    clock: MonotonicClock,
    pace: Pace,
    sleeps: bool,
}

impl Loop<'_> {
    fn run(&self) {
        let Pace { spin_ns, keeping_ns, keeping_soon_ns } = self.pace;
        let mut worker = self.shared.0.lock();
        let mut active_ns = self.clock.now();
        let mut kept_ns = Nanos::ZERO;
        let mut descriptors = Vec::new();
        while !self.shared.0.is_stopped() {
            let now = self.clock.now();
            let turn = self.turn(&mut worker, now);
            if turn.received + turn.sent + turn.applied + turn.worked + turn.released > 0 {
                active_ns = now;
            }
            if now.saturating_sub(kept_ns) >= keeping_ns {
                worker.housekeeping();
                kept_ns = now;
            }
            if !self.sleeps || now.saturating_sub(active_ns) < spin_ns {
                if turn.received == 0 {
                    std::hint::spin_loop();
                }
                continue;
            }
            // Publish soon after the last packets, but not before every sleep, because housekeeping makes
            // system calls.
            let period_ns = if active_ns >= kept_ns { keeping_soon_ns } else { keeping_ns };
            if now.saturating_sub(kept_ns) >= period_ns {
                worker.housekeeping();
                kept_ns = now;
            }
            let period_ns = if active_ns >= kept_ns { keeping_soon_ns } else { keeping_ns };
            let left_ns = (kept_ns + period_ns).saturating_sub(now);
            // Frames in an egress queue wait for the queue's rate, so sleep until the queue may send.
            let left_ns = turn.opens_ns.map_or(left_ns, |opens_ns| left_ns.min(opens_ns.saturating_sub(now)));
            worker = self.sleep(worker, &mut descriptors, turn, left_ns.into());
        }
        worker.housekeeping();
    }

    fn turn(&self, worker: &mut Worker, now: Nanos) -> Turn {
        let turn = worker.turn(now);
        let searches = worker.take_searches();
        if worker.has_events() || searches || worker.handed_over().next().is_some() {
            worker.rest();
            let published = PublishFence::new();
            for peer in worker.handed_over() {
                if let Some(peer) = self.others.workers.get(peer) {
                    peer.0.wake(&published);
                }
            }
            if let Some(search) = self.others.search.as_ref().filter(|_| searches) {
                search.wake(&published);
            }
            if worker.has_events() && self.others.control.asleep.take(&published) {
                self.others.control.wake.wake();
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
        let shared = &self.shared.0;
        let prepare = |worker: &Worker| {
            descriptors.clear();
            descriptors.push(shared.alarm().descriptor());
            worker.descriptors(descriptors);
            let too_many = descriptors.len() > MAX_DESCRIPTORS;
            descriptors.truncate(MAX_DESCRIPTORS);
            let limit = match turn.waiting {
                _ if worker.must_poll() || too_many => POLLING,
                true => RETRY,
                false => at_most,
            };
            (descriptors, limit.min(at_most))
        };
        let mut worker = shared.sleep(worker, prepare, |(descriptors, limit)| {
            if wait(descriptors, Some(limit)).is_err() {
                // If waiting for the descriptors failed, poll again after a pause.
                thread::sleep(POLLING);
            }
        });
        worker.rest();
        worker
    }
}
