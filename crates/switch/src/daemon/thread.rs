// SPDX-License-Identifier: Apache-2.0
//! The thread of workers: it runs turns while there is work and sleeps while there is none.
//!
//! A thread runs the worker of its number of every datapath (docs/adr/0054). [`worker::SharedWorker`] defines
//! how a worker sleeps without missing work, and how the control thread applies operations to a sleeping
//! worker. `crew.rs` starts the threads. Begin with [`Member::turn`] and [`run`].

use super::clock::MonotonicClock;
use super::search::SharedSearch;
use config::Pace;
use flow::Nanos;
use port::wait::{MAX_DESCRIPTORS, Wake, wait};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;
use worker::{PublishFence, SharedWorker, ShutdownLoss, SleepFlag, Turn, Worker, sleep_all};

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
pub struct Shared {
    worker: SharedWorker<Worker, Arc<Wake>>,
    /// How often the worker's thread has published links and counters, which it does at least every 100 ms.
    publications: AtomicU64,
    /// Progress of the worker towards empty rings, before another process continues its work.
    drain: AtomicU8,
    /// Number of turns during [`Shared::begin_drain`] in which the worker had something to do.
    busy_turns: AtomicU64,
}

/// The worker is not asked for empty rings.
const NO_DRAIN: u8 = 0;
/// The worker must report when it has nothing left.
const DRAIN: u8 = 1;
/// The worker has nothing left.
const DRAINED: u8 = 2;

impl Shared {
    /// Creates the shared part of a worker. `alarm` is the alarm of its thread.
    pub fn new(worker: Worker, alarm: Arc<Wake>) -> Self {
        let flag = worker.sleeping();
        Self {
            worker: SharedWorker::new(worker, flag, alarm),
            publications: AtomicU64::new(0),
            drain: AtomicU8::new(NO_DRAIN),
            busy_turns: AtomicU64::new(0),
        }
    }

    /// Makes the worker stay awake, send the frames of its egress queues at once, and report when it has
    /// nothing left.
    pub fn begin_drain(&self) {
        self.drain.store(DRAIN, Ordering::Release);
        self.wake();
    }

    /// Ends [`Shared::begin_drain`].
    pub fn end_drain(&self) {
        self.drain.store(NO_DRAIN, Ordering::Release);
    }

    /// Returns whether a whole turn since [`Shared::begin_drain`] has found no packet.
    pub fn is_drained(&self) -> bool {
        self.drain.load(Ordering::Acquire) == DRAINED
    }

    /// Returns the number of turns during all drains in which the worker had something to do.
    pub fn busy_turns(&self) -> u64 {
        self.busy_turns.load(Ordering::Acquire)
    }

    /// Returns how often the worker's thread has published links and counters. The number stands still if the
    /// thread does.
    pub fn publications(&self) -> u64 {
        self.publications.load(Ordering::Relaxed)
    }

    /// Returns the alarm of the worker's thread.
    pub fn alarm(&self) -> Arc<Wake> {
        Arc::clone(self.worker.alarm())
    }

    /// Wakes the worker's thread, if it sleeps.
    pub fn wake(&self) {
        self.worker.alarm().wake();
    }

    /// Applies queued operations for a sleeping worker, or wakes it.
    pub fn apply_or_wake(&self) {
        self.worker.apply_or_wake();
    }

    /// Applies all queued operations. The worker's thread must not have started yet.
    pub fn apply(&self) {
        let mut worker = self.worker.lock();
        while worker.apply() > 0 {}
    }

    /// Publishes the links and counters of a sleeping worker. A worker that is awake publishes them itself.
    pub fn keep_house(&self) {
        let Some(mut worker) = self.worker.try_lock() else { return };
        worker.housekeeping();
        drop(worker);
        // A device may have been reopened while the worker sleeps on the old device's descriptors, so wake
        // the worker.
        self.worker.alarm().wake();
    }

    /// Ends the worker. The threads must have released all workers of the datapath already.
    pub fn end(&self) -> ShutdownLoss {
        self.worker.lock().end()
    }

    pub fn stop(&self) {
        self.worker.stop();
    }
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

/// A worker of a thread.
pub struct Member {
    pub shared: Arc<Shared>,
    pub others: Others,
    /// Clock of the datapath.
    pub clock: MonotonicClock,
    /// Is used when the thread releases the worker. Is dropped without a use if the thread panics.
    pub released: Sender<()>,
}

/// What a thread knows of one of its workers.
struct State<'a> {
    member: &'a Member,
    /// Time of the last turn with work.
    active_ns: Nanos,
    /// Time of the last publication of links and counters.
    kept_ns: Nanos,
    /// Whether the egress queues may exceed their maximum rates.
    is_unlimited: bool,
}

/// The condition of a worker after a turn in which it could sleep.
#[derive(Clone, Copy)]
struct Rest {
    /// Whether frames wait for a device.
    waiting: bool,
    /// Longest sleep.
    left_ns: Nanos,
}

/// The result of one turn of every worker.
struct Round {
    /// Packets received.
    received: usize,
    /// If all workers may sleep: whether one has frames that wait for a device, and the longest sleep.
    rest: Option<Rest>,
}

/// The settings of a thread.
#[derive(Clone, Copy)]
pub struct ThreadSettings {
    pub pace: Pace,
    /// Whether the thread sleeps while there is no work.
    pub sleeps: bool,
}

impl<'a> State<'a> {
    fn new(member: &'a Member) -> Self {
        Self { member, active_ns: member.clock.now(), kept_ns: Nanos::ZERO, is_unlimited: false }
    }

    /// Runs a turn of the worker, and publishes its links and counters if it is time. Returns the number of
    /// received packets, and a value if the worker may sleep.
    #[inline]
    fn turn(&mut self, worker: &mut Worker, settings: ThreadSettings) -> (usize, Option<Rest>) {
        let Pace { spin_ns, keeping_ns, keeping_soon_ns } = settings.pace;
        let now = self.member.clock.now();
        // Read before the turn, so that a whole turn follows the request.
        let drain = self.member.shared.drain.load(Ordering::Acquire);
        if self.is_unlimited != (drain != NO_DRAIN) {
            self.is_unlimited = !self.is_unlimited;
            worker.set_unlimited(self.is_unlimited);
        }
        let turn = self.forward(worker, now);
        if drain != NO_DRAIN {
            self.active_ns = now;
            self.note_drained(worker, turn, drain);
        }
        if turn.received + turn.sent + turn.applied + turn.worked + turn.released > 0 {
            self.active_ns = now;
        }
        if now.saturating_sub(self.kept_ns) >= keeping_ns {
            self.publish(worker, now);
        }
        if !settings.sleeps || now.saturating_sub(self.active_ns) < spin_ns {
            return (turn.received, None);
        }
        // Publish soon after the last packets, but not before every sleep, because housekeeping makes system
        // calls.
        let period_ns =
            |state: &Self| if state.active_ns >= state.kept_ns { keeping_soon_ns } else { keeping_ns };
        if now.saturating_sub(self.kept_ns) >= period_ns(self) {
            self.publish(worker, now);
        }
        let left_ns = (self.kept_ns + period_ns(self)).saturating_sub(now);
        // Frames in an egress queue wait for the queue's rate, so sleep until the queue may send.
        let left_ns = turn.opens_ns.map_or(left_ns, |opens_ns| left_ns.min(opens_ns.saturating_sub(now)));
        (turn.received, Some(Rest { waiting: turn.waiting, left_ns }))
    }

    /// Reports whether the worker has nothing left after a turn that began in the state `drain`.
    #[cold]
    fn note_drained(&self, worker: &Worker, turn: Turn, drain: u8) {
        let Shared { drain: state, busy_turns, .. } = &*self.member.shared;
        let is_idle = turn.received + turn.sent + turn.worked + turn.released == 0 && !turn.waiting;
        if !is_idle || !worker.is_drained() {
            busy_turns.fetch_add(1, Ordering::Release);
        } else if drain == DRAIN {
            // The request may have ended meanwhile.
            let _ = state.compare_exchange(DRAIN, DRAINED, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Publishes the links and counters of the worker.
    fn publish(&mut self, worker: &mut Worker, now: Nanos) {
        worker.housekeeping();
        self.kept_ns = now;
        self.member.shared.publications.fetch_add(1, Ordering::Relaxed);
    }

    fn forward(&self, worker: &mut Worker, now: Nanos) -> Turn {
        let others = &self.member.others;
        let turn = worker.turn(now);
        let searches = worker.take_searches();
        if worker.has_events() || searches || worker.handed_over().next().is_some() {
            worker.rest();
            let published = PublishFence::new();
            for peer in worker.handed_over() {
                if let Some(peer) = others.workers.get(peer) {
                    peer.worker.wake(&published);
                }
            }
            if let Some(search) = others.search.as_ref().filter(|_| searches) {
                search.wake(&published);
            }
            if worker.has_events() && others.control.asleep.take(&published) {
                others.control.wake.wake();
            }
        }
        turn
    }
}

/// Runs workers on the calling thread until all of them are stopped. `alarm` is the alarm of all members.
pub fn run(members: &[Member], alarm: &Arc<Wake>, settings: ThreadSettings) {
    let mut workers: Vec<_> = members.iter().map(|member| &member.shared.worker).collect();
    let mut guards: Vec<_> = workers.iter().map(|worker| worker.lock()).collect();
    let mut states: Vec<_> = members.iter().map(State::new).collect();
    let mut descriptors = Vec::new();
    loop {
        if let Some(at) = workers.iter().position(|worker| worker.is_stopped()) {
            guards.remove(at).housekeeping();
            workers.remove(at);
            // The datapath may have ended without waiting for this worker.
            let _ = states.remove(at).member.released.send(());
            continue;
        }
        if workers.is_empty() {
            return;
        }
        let Round { received, rest } = round(&mut guards, &mut states, settings);
        if let Some(rest) = rest {
            sleep(&workers, &mut guards, alarm, &mut descriptors, rest);
        } else if received == 0 {
            std::hint::spin_loop();
        }
    }
}

/// Runs a turn of every worker.
fn round(guards: &mut [MutexGuard<'_, Worker>], states: &mut [State<'_>], settings: ThreadSettings) -> Round {
    let alone = guards.len() == 1;
    let (mut received, mut awake) = (0, false);
    let mut all = Rest { waiting: false, left_ns: Nanos::MAX };
    for (worker, state) in guards.iter_mut().zip(states) {
        let (packets, rest) = state.turn(worker, settings);
        received += packets;
        match rest {
            Some(rest) => {
                all.waiting |= rest.waiting;
                all.left_ns = all.left_ns.min(rest.left_ns);
            }
            None => awake = true,
        }
        if !alone {
            // The turns of other workers are no preemption of this one.
            worker.rest();
        }
    }
    Round { received, rest: (!awake).then_some(all) }
}

fn sleep<'w>(
    workers: &[&'w SharedWorker<Worker, Arc<Wake>>],
    guards: &mut Vec<MutexGuard<'w, Worker>>,
    alarm: &Arc<Wake>,
    descriptors: &mut Vec<RawFd>,
    rest: Rest,
) {
    let at_most = Duration::from(rest.left_ns);
    let prepare = |workers: &[MutexGuard<'_, Worker>]| {
        descriptors.clear();
        descriptors.push(alarm.descriptor());
        workers.iter().for_each(|worker| worker.descriptors(descriptors));
        let too_many = descriptors.len() > MAX_DESCRIPTORS;
        descriptors.truncate(MAX_DESCRIPTORS);
        let limit = match rest.waiting {
            _ if too_many || workers.iter().any(|worker| worker.must_poll()) => POLLING,
            true => RETRY,
            false => at_most,
        };
        (descriptors, limit.min(at_most))
    };
    sleep_all(workers, guards, alarm, prepare, |(descriptors, limit)| {
        if wait(descriptors, Some(limit)).is_err() {
            // If waiting for the descriptors failed, poll again after a pause.
            thread::sleep(POLLING);
        }
    });
    guards.iter_mut().for_each(|worker| worker.rest());
}
