// SPDX-License-Identifier: Apache-2.0
//! Sleep and wake-up of threads without lost wake-ups.
//!
//! The sleeper sets its flag and then looks for work once more. Other threads queue their work and then read
//! the flag. With a sequentially consistent fence between the two steps on both sides, at least one side sees
//! the other.
//!
//! A worker's thread holds the worker's lock while it is awake and releases it for its sleep. The control
//! thread can then apply operations in its place, so that a barrier costs no wake-up. A thread may run
//! several workers, which have one alarm ([`sleep_all`]). `loom/` checks this file under every interleaving.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence};
use std::sync::{Arc, PoisonError};

/// Proof that work queued earlier is visible to every thread that announces its sleep from now on.
#[derive(Debug)]
pub struct PublishFence(());

impl PublishFence {
    /// Executes the fence. Call it after the work is in its ring and before the flags are read.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        fence(Ordering::SeqCst);
        Self(())
    }
}

impl Default for PublishFence {
    fn default() -> Self {
        Self::new()
    }
}

/// Flag of a thread that sleeps or is about to sleep.
#[derive(Debug)]
pub struct SleepFlag(AtomicBool);

impl Default for SleepFlag {
    fn default() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl SleepFlag {
    /// Sets the flag. Called by the thread before it sleeps. The thread must then look for work once more.
    pub fn announce(&self) {
        self.0.store(true, Ordering::SeqCst);
        // Pairs with the fence of `PublishFence::new`.
        fence(Ordering::SeqCst);
    }

    /// Clears the flag. Called by the thread when it is awake.
    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Returns whether the thread must be woken for the published work.
    #[must_use]
    pub fn is_set(&self, _published: &PublishFence) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Like `is_set`, but clears the flag. Until the next announcement, only one caller gets true.
    #[must_use]
    pub fn take(&self, published: &PublishFence) -> bool {
        self.is_set(published) && self.0.swap(false, Ordering::SeqCst)
    }
}

/// A means of ending a thread's sleep, such as an eventfd.
pub trait Alarm {
    /// Ends the current sleep, or the next one. Any thread may call it.
    fn raise(&self);

    /// Clears all alarms raised so far.
    fn clear(&self);
}

impl<A: Alarm> Alarm for Arc<A> {
    fn raise(&self) {
        (**self).raise();
    }

    fn clear(&self) {
        (**self).clear();
    }
}

/// The functions of a worker on which its sleep depends.
pub trait Sleeper {
    /// Applies some of the pending operations. Returns their number.
    fn apply(&mut self) -> usize;

    /// Returns whether any operations are pending for the worker.
    fn has_operations(&self) -> bool;

    /// Returns whether operations, packets or handed-off frames wait for the worker.
    fn has_pending(&self) -> bool;

    /// Returns whether frames of the worker wait for a device, or in the ring to another worker.
    fn has_output(&self) -> bool;
}

/// Sleeps like [`SharedWorker::sleep`] on a thread that runs several workers, if no work waits for any of
/// them. All workers must have the alarm `alarm`. `guards` holds the locks of all `workers` in the same
/// order, before and after the call. The caller must look for work of every worker afterwards.
pub fn sleep_all<'w, W: Sleeper, A: Alarm, T>(
    workers: &[&'w SharedWorker<W, A>],
    guards: &mut Vec<MutexGuard<'w, W>>,
    alarm: &A,
    prepare: impl FnOnce(&[MutexGuard<'w, W>]) -> T,
    wait: impl FnOnce(T),
) {
    debug_assert_eq!(workers.len(), guards.len(), "each worker is locked");
    for worker in workers {
        worker.flag.announce();
    }
    if guards.iter().any(|worker| worker.has_pending()) {
        workers.iter().for_each(|worker| worker.flag.end());
        return;
    }
    let prepared = prepare(guards);
    guards.clear();
    wait(prepared);
    guards.extend(workers.iter().map(|worker| worker.lock()));
    workers.iter().for_each(|worker| worker.flag.end());
    // The alarm is cleared before the caller looks for work. Work that is queued from now on raises the alarm
    // again.
    alarm.clear();
}

/// A worker shared by its own thread and the control thread.
#[derive(Debug)]
pub struct SharedWorker<W, A> {
    worker: Mutex<W>,
    flag: Arc<SleepFlag>,
    alarm: A,
    stop: AtomicBool,
}

impl<W: Sleeper, A: Alarm> SharedWorker<W, A> {
    /// Creates the shared worker. `flag` is the flag that other threads read after they queue work for the
    /// worker.
    pub fn new(worker: W, flag: Arc<SleepFlag>, alarm: A) -> Self {
        Self { worker: Mutex::new(worker), flag, alarm, stop: AtomicBool::new(false) }
    }

    /// Locks the worker; blocks until it is free.
    pub fn lock(&self) -> MutexGuard<'_, W> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the worker unless another thread holds it or has panicked while holding it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, W>> {
        self.worker.try_lock().ok()
    }

    /// Returns the alarm that ends the worker's sleep.
    pub fn alarm(&self) -> &A {
        &self.alarm
    }

    /// Applies operations queued for the worker on the calling thread, or wakes the worker if it is locked.
    /// Called by the control thread after it has seen the worker's flag set.
    pub fn apply_or_wake(&self) {
        match self.try_lock() {
            Some(mut worker) => {
                while worker.apply() > 0 {}
                // A packet-out may wait for its device or in another worker's ring. The ring for retired
                // operations may also be full; an awake worker retries until the ring has space.
                if worker.has_output() || worker.has_operations() {
                    self.alarm.raise();
                }
            }
            None => self.alarm.raise(),
        }
    }

    /// Wakes the worker if it sleeps, so that it handles work that was published before.
    pub fn wake(&self, published: &PublishFence) {
        if self.flag.is_set(published) {
            self.alarm.raise();
        }
    }

    /// Like `wake`, but raises the alarm once per sleep at most.
    pub fn wake_once(&self, published: &PublishFence) {
        if self.flag.take(published) {
            self.alarm.raise();
        }
    }

    /// Ends the worker's loop. Its thread sees the request before its next poll iteration.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.alarm.raise();
    }

    /// Returns whether the loop must end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// If no work waits, releases the lock and calls `wait` with the result of `prepare`. `wait` sleeps until
    /// the alarm is raised, or for a shorter time. Returns with the worker locked again. The caller must look
    /// for work afterwards.
    pub fn sleep<'w, T>(
        &'w self,
        worker: MutexGuard<'w, W>,
        prepare: impl FnOnce(&W) -> T,
        wait: impl FnOnce(T),
    ) -> MutexGuard<'w, W> {
        self.flag.announce();
        if worker.has_pending() {
            self.flag.end();
            return worker;
        }
        let prepared = prepare(&worker);
        drop(worker);
        wait(prepared);
        let worker = self.lock();
        self.flag.end();
        // The alarm is cleared before the caller looks for work. Work that is queued from now on raises the
        // alarm again.
        self.alarm.clear();
        worker
    }
}
