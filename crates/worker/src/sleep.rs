// SPDX-License-Identifier: Apache-2.0
//! How a thread goes to sleep without missing work, and how others find out that they must wake it.
//!
//! The sleeper sets its flag and then looks for work once more. Others queue their work and then look at the flag. With
//! a sequentially consistent fence between the two steps on both sides, at least one side sees the other.
//!
//! A worker's thread holds the worker's lock while it is awake and releases it for its sleep. The control thread can
//! then apply operations in its place, so that a barrier costs no wake-up. `loom/` checks this file under every
//! interleaving.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence};
use std::sync::{Arc, PoisonError};

/// Proof that what the caller queued is visible to every thread that announces its sleep from now on.
#[derive(Debug)]
pub struct Published(());

impl Published {
    /// Call it after the work is in its ring and before the flags are asked.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        fence(Ordering::SeqCst);
        Self(())
    }
}

impl Default for Published {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a thread sleeps or is about to.
#[derive(Debug)]
pub struct SleepFlag(AtomicBool);

impl Default for SleepFlag {
    fn default() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl SleepFlag {
    /// The thread is about to sleep. It must look for work once more before it does.
    pub fn announce(&self) {
        self.0.store(true, Ordering::SeqCst);
        // Pairs with the fence of `Published::new`.
        fence(Ordering::SeqCst);
    }

    /// The thread is awake.
    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Whether the thread must be woken for what was published.
    #[must_use]
    pub fn is_set(&self, _published: &Published) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The same, but true for one caller only until the next announcement.
    #[must_use]
    pub fn take(&self, published: &Published) -> bool {
        self.is_set(published) && self.0.swap(false, Ordering::SeqCst)
    }
}

/// What ends a thread's sleep.
pub trait Alarm {
    /// Ends the current sleep, or the next one. Any thread may call it.
    fn raise(&self);

    /// Takes back all that was raised so far.
    fn clear(&self);
}

/// A worker, as far as its sleep is concerned.
pub trait Sleeper {
    /// Applies some of the operations that wait, and returns how many.
    fn apply(&mut self) -> usize;

    /// Whether operations wait.
    fn has_operations(&self) -> bool;

    /// Whether operations, packets or handed-over frames wait for the worker.
    fn has_pending(&self) -> bool;

    /// Whether frames of the worker wait for a device, or in the ring to another worker.
    fn has_output(&self) -> bool;
}

/// A worker that its own thread and the control thread share.
#[derive(Debug)]
pub struct SharedWorker<W, A> {
    worker: Mutex<W>,
    flag: Arc<SleepFlag>,
    alarm: A,
    stop: AtomicBool,
}

impl<W: Sleeper, A: Alarm> SharedWorker<W, A> {
    /// `flag` is the one that those who queue work for the worker look at.
    pub fn new(worker: W, flag: Arc<SleepFlag>, alarm: A) -> Self {
        Self { worker: Mutex::new(worker), flag, alarm, stop: AtomicBool::new(false) }
    }

    /// Waits for the worker.
    pub fn lock(&self) -> MutexGuard<'_, W> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker, unless a thread has it or panicked with it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, W>> {
        self.worker.try_lock().ok()
    }

    /// What ends the worker's sleep.
    pub fn alarm(&self) -> &A {
        &self.alarm
    }

    /// Applies in the worker's place what was queued for it, or wakes it. For callers that saw its flag set.
    pub fn nudge(&self) {
        match self.try_lock() {
            Some(mut worker) => {
                while worker.apply() > 0 {}
                // A packet of the controller's waits for its device, or in another worker's ring. Or the ring for spent
                // operations was full: a worker that is awake turns until it is not.
                if worker.has_output() || worker.has_operations() {
                    self.alarm.raise();
                }
            }
            None => self.alarm.raise(),
        }
    }

    /// Wakes the worker if it sleeps, for what was published.
    pub fn wake(&self, published: &Published) {
        if self.flag.is_set(published) {
            self.alarm.raise();
        }
    }

    /// Ends the worker's loop: its thread sees it before its next turn.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.alarm.raise();
    }

    /// Whether the loop is to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps without the lock by calling `wait` with what `prepare` returned, unless work waits. `wait` returns when the
    /// alarm was raised, or earlier. The caller looks for work after it.
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
        // Before the caller looks for work: what is queued from now on raises the alarm again.
        self.alarm.clear();
        worker
    }
}
