// SPDX-License-Identifier: Apache-2.0
//! The rings between the control thread and the workers, for updates, events, and frames returned to workers.
//!
//! Updates that do not fit into a worker's ring are parked and sent later, in order. Replaced objects return
//! in the same box as the updates that replaced them, and are freed here.

use crate::egress::STOCK;
use crate::port_change::{PortChange, Request};
use crate::search::{SearchState, Watch};
use crate::sleep::{PublishFence, SleepFlag};
use dataplane::{Event, Usage};
use flow::{Nanos, RuleVersion};
use frame::Frame;
use pipeline::{Update, Updates};
use rtrb::{Consumer, Producer, PushError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time in nanoseconds after which a search worker that applies none of its updates is given up, so that it
/// delays no barrier and uses up no memory.
const GIVE_UP_NS: Nanos = Nanos(1_000_000_000);

/// Maximum part of this time that passes between two checks, which usually are 0.1 s apart.
const CHECK_NS: Nanos = Nanos(110_000_000);

/// Function that wakes a sleeping worker.
pub(crate) type Waker = Box<dyn FnMut() + Send>;

/// The control thread's end of a worker's rings.
pub(crate) struct Link {
    pub requests: Producer<Box<Request>>,
    pub retired: Consumer<Box<Request>>,
    pub events: Consumer<Event>,
    pub recycle: Producer<Frame>,
    pub applied: Arc<AtomicU64>,
    /// Number of operations requested so far, including those that are parked.
    pub requested: Arc<AtomicU64>,
    pub counted_until: Arc<AtomicU64>,
    pub sleeping: Arc<SleepFlag>,
    /// Updates that wait for space in the ring.
    pub parked: VecDeque<Box<Request>>,
    pub waker: Option<Waker>,
    /// State that a search worker shares, or `None` for other workers.
    pub search: Option<Arc<SearchState>>,
    /// Finds out whether a search worker applies its updates.
    pub watch: Watch,
}

impl Link {
    /// Returns whether the worker is a search worker that gets no updates any longer, because it has ended or
    /// has not applied any for too long.
    fn is_given_up(&self) -> bool {
        self.search.as_ref().is_some_and(|state| state.is_closed() || self.requests.is_abandoned())
    }

    /// Gives up a search worker that has not applied any of its updates for long.
    fn tend(&mut self, now: Nanos) {
        let Some(state) = &self.search else { return };
        let waits = !self.parked.is_empty() || self.requests.slots() < self.requests.buffer().capacity();
        let applied = self.applied.load(Ordering::Acquire);
        if self.watch.silent_ns(applied, waits, now, CHECK_NS) >= GIVE_UP_NS {
            state.close();
        }
    }

    /// Frees objects that the worker returned, and moves parked updates into the ring.
    fn flush(&mut self) {
        while self.retired.pop().is_ok() {}
        if self.is_given_up() {
            self.parked.clear();
            return;
        }
        let mut moved = false;
        while let Some(updates) = self.parked.pop_front() {
            if let Err(PushError::Full(updates)) = self.requests.push(updates) {
                self.parked.push_front(updates);
                break;
            }
            moved = true;
        }
        if moved {
            self.wake();
        }
    }

    /// Wakes the worker if it sleeps.
    fn wake(&mut self) {
        if self.sleeping.is_set(&PublishFence::new())
            && let Some(waker) = &mut self.waker
        {
            waker();
        }
    }

    /// Returns the usage of the rings for operations and events.
    pub fn usages(&self) -> [Usage; 2] {
        let (operations, events) = (self.requests.buffer().capacity(), self.events.buffer().capacity());
        [
            Usage::of("operations", operations - self.requests.slots(), operations),
            Usage::of("events", self.events.slots(), events),
        ]
    }
}

/// The links to all workers, and the version of the last operation sent over them.
pub(crate) struct Links {
    /// Links to the workers that forward packets, and after them to the search worker, if there is one.
    links: Vec<Link>,
    /// Number of workers that forward packets.
    workers: usize,
    version: RuleVersion,
    /// Worker whose events are taken next.
    next: usize,
}

impl Links {
    pub fn new(links: Vec<Link>, workers: usize) -> Self {
        Self { links, workers, version: RuleVersion(0), next: 0 }
    }

    /// Returns the number of workers that forward packets.
    pub fn len(&self) -> usize {
        self.workers
    }

    /// Returns whether updates reach the search worker, if there is one.
    pub fn reach_search_worker(&self) -> bool {
        self.links.get(self.workers).is_none_or(|link| !link.is_given_up())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().take(self.workers)
    }

    /// Sets the function that wakes a sleeping worker.
    pub fn set_waker(&mut self, worker: usize, waker: Waker) {
        if let Some(link) = self.links.get_mut(worker) {
            link.waker = Some(waker);
        }
    }

    /// Begins the next version and returns it.
    pub fn begin_version(&mut self) -> RuleVersion {
        self.version.0 += 1;
        self.version
    }

    /// Parks a worker's updates after all earlier ones, under the current version.
    pub fn park(&mut self, worker: usize, parts: Vec<Update>) {
        self.park_request(worker, parts, None);
    }

    /// Parks a change of a worker's ports after all earlier updates. The version stays the same.
    pub fn park_ports(&mut self, worker: usize, change: PortChange) {
        self.park_request(worker, Vec::new(), Some(change));
    }

    fn park_request(&mut self, worker: usize, parts: Vec<Update>, ports: Option<PortChange>) {
        let link = &mut self.links[worker];
        link.requested.fetch_add(1, Ordering::Release);
        let updates = Updates { version: self.version, parts };
        link.parked.push_back(Box::new(Request { updates, ports }));
    }

    /// Gives up a search worker that does not apply its updates.
    pub fn tend(&mut self, now: Nanos) {
        self.links.iter_mut().for_each(|link| link.tend(now));
    }

    /// Moves parked updates into the rings, and frees retired updates.
    pub fn flush(&mut self) {
        self.links.iter_mut().for_each(Link::flush);
    }

    /// Returns the version that a worker has applied, or the greatest one if the worker gets no updates any
    /// longer.
    pub fn applied_by(&self, worker: usize) -> RuleVersion {
        match &self.links[worker] {
            link if link.is_given_up() => RuleVersion(u64::MAX),
            link => RuleVersion(link.applied.load(Ordering::Acquire)),
        }
    }

    /// Returns the latest version that all workers have applied.
    pub fn applied(&self) -> RuleVersion {
        (0..self.links.len()).map(|worker| self.applied_by(worker)).min().unwrap_or(self.version)
    }

    /// Returns the time before which all workers have counted all hits.
    pub fn counted_until(&self) -> Nanos {
        let of_worker = |link: &Link| Nanos(link.counted_until.load(Ordering::Acquire));
        self.links.iter().map(of_worker).min().unwrap_or(Nanos::MAX)
    }

    /// Returns the number of parked updates of the worker that has the most of them. A search worker that
    /// gets no updates any longer does not count.
    pub fn parked(&self) -> usize {
        let links = self.links.iter().filter(|link| !link.is_given_up());
        links.map(|link| link.parked.len()).max().unwrap_or(0)
    }

    /// Takes the next event, from all workers in turn.
    pub fn next_event(&mut self) -> Option<Event> {
        for _ in 0..self.links.len() {
            let at = self.next;
            self.next = (at + 1) % self.links.len();
            if let Ok(event) = self.links[at].events.pop() {
                return Some(event);
            }
        }
        None
    }

    /// Returns the frame of a packet-in to its worker.
    pub fn recycle(&mut self, frame: Frame) {
        let worker = usize::from(frame.home() & !STOCK);
        if let Some(link) = self.links.get_mut(worker) {
            // The ring can hold all controller frames of the worker.
            let pushed = link.recycle.push(frame);
            debug_assert!(pushed.is_ok(), "more frames are returned than exist");
        }
    }
}
