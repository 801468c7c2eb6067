// SPDX-License-Identifier: Apache-2.0
//! Model of a worker thread, the control thread and another worker. There are no timeouts, so a lost wake-up
//! is a deadlock.

use crate::explore;
use crate::ring::{Consumer, Producer, RingBuffer};
use crate::sleep::{Alarm, PublishFence, SharedWorker, SleepFlag, Sleeper, sleep_all};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{self, Thread};
use std::sync::{Arc, Mutex};

/// Model of the eventfd, which stays raised until it is cleared. A waiting thread holds no lock, so that loom
/// reports deadlocks.
struct Bell {
    raised: AtomicBool,
    waiter: Mutex<Option<Thread>>,
}

impl Bell {
    fn new() -> Self {
        Self { raised: AtomicBool::new(false), waiter: Mutex::new(None) }
    }

    /// Waits until the bell is raised. Only one thread may wait.
    fn wait(&self) {
        *self.waiter.lock().unwrap() = Some(thread::current());
        while !self.raised.fetch_or(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}

impl Alarm for Bell {
    fn raise(&self) {
        self.raised.swap(true, Ordering::AcqRel);
        if let Some(waiter) = &*self.waiter.lock().unwrap() {
            waiter.unpark();
        }
    }

    fn clear(&self) {
        self.raised.swap(false, Ordering::AcqRel);
    }
}

/// Model of a worker, with operations from the control thread and frames from another worker.
struct Worker {
    requests: Consumer<u32>,
    spent: Producer<u32>,
    arrivals: Consumer<u32>,
    /// Applied operations in order.
    applied: Vec<u32>,
    /// Operation that creates a packet for a device, which only the worker's own thread may send.
    sends: Option<u32>,
    output: bool,
    /// Number of operations, frames and packets that are not processed yet.
    open: usize,
    /// Bell that is raised when all pending items are processed.
    done: Arc<Bell>,
}

impl Worker {
    /// Runs one poll iteration on the worker's own thread.
    fn turn(&mut self) {
        while self.apply() > 0 {}
        while self.arrivals.pop().is_ok() {
            self.one_is_done();
        }
        if std::mem::take(&mut self.output) {
            self.one_is_done();
        }
    }

    fn one_is_done(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.done.raise();
        }
    }
}

impl Sleeper for Worker {
    fn apply(&mut self) -> usize {
        if self.spent.slots() == 0 {
            return 0;
        }
        let Ok(operation) = self.requests.pop() else { return 0 };
        self.applied.push(operation);
        self.output |= self.sends == Some(operation);
        assert!(self.spent.push(operation).is_ok());
        self.one_is_done();
        1
    }

    fn has_operations(&self) -> bool {
        !self.requests.is_empty()
    }

    fn has_pending(&self) -> bool {
        self.has_operations() || !self.arrivals.is_empty()
    }

    fn has_output(&self) -> bool {
        self.output
    }
}

/// The control thread's end of the rings.
struct Link {
    requests: Producer<u32>,
    spent: Consumer<u32>,
    flag: Arc<SleepFlag>,
}

impl Link {
    /// Like `WorkerSet::reclaim_and_flush`: takes back retired objects, sends operations that fit the ring,
    /// and wakes the worker.
    fn reclaim_and_flush(&mut self, parked: &mut Vec<u32>, shared: &SharedWorker<Worker, Arc<Bell>>) {
        while self.spent.pop().is_ok() {}
        let mut moved = false;
        while let Some(operation) = parked.pop() {
            if self.requests.push(operation).is_err() {
                parked.push(operation);
                break;
            }
            moved = true;
        }
        if moved && self.flag.is_set(&PublishFence::new()) {
            shared.apply_or_wake();
        }
    }
}

/// Objects of one run of the model.
struct Scene {
    shared: Arc<SharedWorker<Worker, Arc<Bell>>>,
    link: Link,
    handover: Producer<u32>,
    done: Arc<Bell>,
}

impl Scene {
    /// Creates a worker with rings of capacity `room` and `open` pending items.
    fn new(room: usize, open: usize, sends: Option<u32>) -> Self {
        Self::with_alarm(room, open, sends, Arc::new(Bell::new()))
    }

    /// Like `new`, with the alarm of the worker's thread.
    fn with_alarm(room: usize, open: usize, sends: Option<u32>, alarm: Arc<Bell>) -> Self {
        let flag = Arc::new(SleepFlag::default());
        let (requests, requests_out) = RingBuffer::new(room);
        let (spent, spent_out) = RingBuffer::new(room);
        let (handover, arrivals) = RingBuffer::new(room);
        let done = Arc::new(Bell::new());
        let worker = Worker {
            requests: requests_out,
            spent,
            arrivals,
            applied: Vec::new(),
            sends,
            output: false,
            open,
            done: Arc::clone(&done),
        };
        let shared = Arc::new(SharedWorker::new(worker, Arc::clone(&flag), alarm));
        Self { shared, link: Link { requests, spent: spent_out, flag }, handover, done }
    }

    /// Starts the worker's thread. The model runs until this thread ends, because loom cannot join unparked
    /// threads.
    fn start(&self) {
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || run(&shared));
    }

    /// Waits until all items are processed, and ends the worker's thread.
    fn end(&self) {
        self.done.wait();
        self.shared.stop();
    }
}

/// Loop of a worker's thread, which sleeps after every poll iteration.
fn run(shared: &SharedWorker<Worker, Arc<Bell>>) {
    let mut worker = shared.lock();
    while !shared.is_stopped() {
        worker.turn();
        if worker.has_pending() {
            // The ring of retired objects is full, so the control thread must run next.
            drop(worker);
            thread::yield_now();
            worker = shared.lock();
        }
        worker = shared.sleep(worker, |_| (), |()| shared.alarm().wait());
    }
}

/// Loop of a thread with several workers, which sleeps after every poll iteration of all of them. The workers
/// are stopped together.
fn run_all(shared: &[Arc<SharedWorker<Worker, Arc<Bell>>>], alarm: &Arc<Bell>) {
    let workers: Vec<_> = shared.iter().map(|worker| &**worker).collect();
    let mut guards: Vec<_> = workers.iter().map(|worker| worker.lock()).collect();
    while !workers.iter().all(|worker| worker.is_stopped()) {
        guards.iter_mut().for_each(|worker| worker.turn());
        sleep_all(&workers, &mut guards, alarm, |_| (), |()| alarm.wait());
    }
}

/// Operations of one worker and frames of the other arrive at a thread that runs both.
#[test]
fn workers_of_one_thread_and_alarm_miss_no_work() {
    explore(|| {
        let alarm = Arc::new(Bell::new());
        let mut scenes: Vec<_> = (0..2).map(|_| Scene::with_alarm(2, 1, None, Arc::clone(&alarm))).collect();
        let shared: Vec<_> = scenes.iter().map(|scene| Arc::clone(&scene.shared)).collect();
        thread::spawn(move || run_all(&shared, &alarm));
        assert!(scenes[1].handover.push(1).is_ok());
        scenes[1].shared.wake(&PublishFence::new());
        let scene = &mut scenes[0];
        scene.link.reclaim_and_flush(&mut vec![1], &scene.shared);
        scenes.iter().for_each(|scene| scene.done.wait());
        scenes.iter().for_each(|scene| scene.shared.stop());
    });
}

#[test]
fn every_operation_is_applied_by_one_of_the_two_threads() {
    explore(|| {
        let mut scene = Scene::new(2, 2, None);
        scene.start();
        for operation in [1, 2] {
            scene.link.reclaim_and_flush(&mut vec![operation], &scene.shared);
        }
        scene.end();
        assert_eq!(scene.shared.lock().applied, [1, 2]);
    });
}

#[test]
fn a_sleeping_worker_learns_of_handed_over_frames() {
    explore(|| {
        let mut scene = Scene::new(2, 2, None);
        scene.start();
        for frame in [1, 2] {
            assert!(scene.handover.push(frame).is_ok());
            scene.shared.wake(&PublishFence::new());
        }
        scene.end();
    });
}

#[test]
fn frames_and_operations_come_at_once() {
    explore(|| {
        let mut scene = Scene::new(2, 2, None);
        scene.start();
        let (mut handover, _) = RingBuffer::new(1);
        std::mem::swap(&mut handover, &mut scene.handover);
        let shared = Arc::clone(&scene.shared);
        thread::spawn(move || {
            assert!(handover.push(1).is_ok());
            shared.wake(&PublishFence::new());
        });
        scene.link.reclaim_and_flush(&mut vec![1], &scene.shared);
        scene.end();
    });
}

#[test]
fn a_packet_of_the_controller_leaves_a_sleeping_worker() {
    explore(|| {
        let mut scene = Scene::new(1, 2, Some(1));
        scene.start();
        scene.link.reclaim_and_flush(&mut vec![1], &scene.shared);
        scene.end();
    });
}

/// The worker applies the first operation and falls asleep while the control thread queues the second. The
/// ring of retired objects is full, so the control thread cannot apply the second operation itself.
#[test]
fn an_operation_is_applied_once_the_full_ring_of_retired_objects_is_emptied() {
    explore(|| {
        let mut scene = Scene::new(1, 2, None);
        scene.start();
        // `pop` takes the last element first.
        let mut parked = vec![2, 1];
        while !parked.is_empty() {
            scene.link.reclaim_and_flush(&mut parked, &scene.shared);
            thread::yield_now();
        }
        // The control thread also makes this call while it waits for a barrier.
        scene.link.reclaim_and_flush(&mut parked, &scene.shared);
        scene.end();
    });
}

#[test]
fn a_stop_ends_the_sleep() {
    explore(|| {
        let scene = Scene::new(1, 0, None);
        scene.start();
        scene.shared.stop();
    });
}

#[test]
fn the_control_thread_learns_of_reports() {
    explore(|| {
        let control = Arc::new((SleepFlag::default(), Bell::new()));
        let (mut events, mut events_out) = RingBuffer::new(2);
        let woken = Arc::clone(&control);
        thread::spawn(move || {
            for event in [1, 2] {
                assert!(events.push(event).is_ok());
                if woken.0.take(&PublishFence::new()) {
                    woken.1.raise();
                }
            }
        });
        let (flag, bell) = &*control;
        let mut seen = 0;
        loop {
            flag.announce();
            while events_out.pop().is_ok() {
                seen += 1;
            }
            if seen == 2 {
                break;
            }
            bell.wait();
            bell.clear();
        }
    });
}
