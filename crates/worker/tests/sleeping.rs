// SPDX-License-Identifier: Apache-2.0
//! Steps of a worker's thread before and after its sleep, and of threads that queue work for it. The tests
//! run the steps one by one on a single thread. `loom/` checks the same code under every interleaving.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use worker::{Alarm, PublishFence, SharedWorker, SleepFlag, Sleeper, sleep_all};

/// A worker with `operations` pending operations. The return ring has space for `room` of them.
#[derive(Default)]
struct Fake {
    operations: usize,
    room: usize,
    pending: bool,
    output: bool,
}

impl Sleeper for Fake {
    fn apply(&mut self) -> usize {
        // One call applies at most two operations.
        let applied = self.operations.min(self.room).min(2);
        self.operations -= applied;
        self.room -= applied;
        applied
    }

    fn has_operations(&self) -> bool {
        self.operations > 0
    }

    fn has_pending(&self) -> bool {
        self.pending
    }

    fn has_output(&self) -> bool {
        self.output
    }
}

/// An alarm that counts how often it was raised since it was last cleared.
#[derive(Default)]
struct Bell(Cell<usize>);

impl Alarm for Bell {
    fn raise(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn clear(&self) {
        self.0.set(0);
    }
}

fn shared(worker: Fake) -> (SharedWorker<Fake, Bell>, Arc<SleepFlag>) {
    let flag = Arc::new(SleepFlag::default());
    (SharedWorker::new(worker, Arc::clone(&flag), Bell::default()), flag)
}

fn raised(shared: &SharedWorker<Fake, Bell>) -> usize {
    shared.alarm().0.take()
}

#[test]
fn a_flag_is_set_from_the_announcement_to_its_end() {
    let (flag, published) = (SleepFlag::default(), PublishFence::new());
    assert!(!flag.is_set(&published) && !flag.take(&published));
    flag.announce();
    assert!(flag.is_set(&published) && flag.is_set(&published));
    assert!(flag.take(&published));
    assert!(!flag.take(&published), "only the first caller gets true");
    flag.announce();
    flag.end();
    assert!(!flag.is_set(&published));
}

#[test]
fn only_a_worker_that_sleeps_is_woken() {
    let (shared, flag) = shared(Fake::default());
    shared.wake(&PublishFence::new());
    assert_eq!(raised(&shared), 0);
    flag.announce();
    shared.wake(&PublishFence::new());
    assert_eq!(raised(&shared), 1);
    flag.end();
    shared.wake(&PublishFence::new());
    assert_eq!(raised(&shared), 0);
}

#[test]
fn apply_or_wake_applies_all_operations_and_wakes_a_worker_that_must_go_on() {
    for (operations, room, output, left, wakes) in [
        (0, 9, false, 0, 0),
        (5, 9, false, 0, 0),
        (5, 3, false, 2, 1),
        (5, 9, true, 0, 1),
        (0, 9, true, 0, 1),
    ] {
        let (shared, _) = shared(Fake { operations, room, output, ..Fake::default() });
        shared.apply_or_wake();
        assert_eq!(
            (shared.lock().operations, raised(&shared)),
            (left, wakes),
            "{operations} of {room}, {output}"
        );
    }
    let (shared, _) = shared(Fake { operations: 1, room: 1, ..Fake::default() });
    let awake = shared.lock();
    shared.apply_or_wake();
    assert_eq!((awake.operations, raised(&shared)), (1, 1), "the worker's own thread applies it");
    assert!(shared.try_lock().is_none());
    drop(awake);
    assert!(shared.try_lock().is_some());
}

#[test]
fn a_worker_sleeps_without_its_lock_unless_work_waits() {
    let (shared, flag) = shared(Fake::default());
    let published = PublishFence::new();
    let steps = RefCell::new(Vec::new());
    let worker = shared.sleep(
        shared.lock(),
        |worker| {
            steps.borrow_mut().push(("prepare", flag.is_set(&published), shared.try_lock().is_some()));
            worker.operations + 7
        },
        |prepared| {
            assert_eq!(prepared, 7);
            steps.borrow_mut().push(("wait", flag.is_set(&published), shared.try_lock().is_some()));
            shared.wake(&published);
        },
    );
    assert_eq!(*steps.borrow(), [("prepare", true, false), ("wait", true, true)]);
    assert_eq!(
        (flag.is_set(&published), raised(&shared)),
        (false, 0),
        "the worker is awake and the alarm is cleared"
    );
    assert!(shared.try_lock().is_none());
    drop(worker);

    shared.lock().pending = true;
    let _worker =
        shared.sleep(shared.lock(), |_| unreachable!("it has work"), |()| unreachable!("it has work"));
    assert!(!flag.is_set(&published) && shared.try_lock().is_none());
}

#[test]
fn a_worker_that_is_stopped_is_woken_and_sees_it() {
    let (shared, _) = shared(Fake::default());
    assert!(!shared.is_stopped());
    shared.stop();
    assert_eq!((shared.is_stopped(), raised(&shared)), (true, 1));
}

/// An alarm that several workers share.
#[derive(Clone, Default)]
struct SharedBell(Rc<Bell>);

impl Alarm for SharedBell {
    fn raise(&self) {
        self.0.raise();
    }

    fn clear(&self) {
        self.0.clear();
    }
}

#[test]
fn a_thread_sleeps_without_the_locks_of_its_workers_unless_work_waits_for_one() {
    let bell = SharedBell::default();
    let worker =
        || SharedWorker::new(Fake::default(), Arc::new(SleepFlag::default()), SharedBell::clone(&bell));
    let (one, two) = (worker(), worker());
    let workers = [&one, &two];
    let mut guards = workers.map(SharedWorker::lock).into_iter().collect::<Vec<_>>();
    let rung = || {
        workers.iter().for_each(|worker| worker.wake(&PublishFence::new()));
        bell.0.0.get()
    };
    let locked = || workers.map(|worker| worker.try_lock().is_none());
    let mut waits = 0;
    sleep_all(
        &workers,
        &mut guards,
        &bell,
        |workers| {
            assert_eq!((workers.len(), locked(), rung()), (2, [true; 2], 2));
            7
        },
        |prepared| {
            assert_eq!((prepared, locked(), rung()), (7, [false; 2], 4));
            two.lock().operations = 3;
            waits += 1;
        },
    );
    assert_eq!((waits, locked(), rung()), (1, [true; 2], 0), "both are awake and the alarm is cleared");
    assert_eq!(
        guards.iter().map(|worker| worker.operations).collect::<Vec<_>>(),
        [0, 3],
        "the order is kept"
    );

    guards[1].pending = true;
    sleep_all(
        &workers,
        &mut guards,
        &bell,
        |_| unreachable!("one has work"),
        |()| unreachable!("one has work"),
    );
    assert_eq!((locked(), rung()), ([true; 2], 0));
}
