// SPDX-License-Identifier: Apache-2.0
//! A worker: one turn of its loop applies pending operations, takes a burst from each of its queues through the
//! pipeline, and sends what waits.

use crate::aside::Aside;
use crate::board::{Board, PortReport, WorkerLevels};
use crate::dock::Dock;
use crate::handover::{Arrivals, Handover};
use crate::latency::Watch;
use crate::outbox::Outbox;
use crate::quantum::Quantum;
use crate::sleep::{Alarm, SleepFlag, Sleeper};
use flow::{DropReason, Nanos, PortNo};
use frame::Frame;
use pipeline::{BURST, Counters, Egress, Pipeline, Probe, Step, Update, Updates};
use port::Queue;
use port::wait::Wake;
use rtrb::{Consumer, Producer};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations applied in one turn at most, so that packets never wait for a long queue of them.
const OPERATIONS_PER_TURN: usize = 16;

/// No more operations are begun in a turn once so many parts were applied: a part that adds a rule to a large table takes
/// about 0.1 us, one that swaps a view counts as [`SWAP_PARTS`]. An operation is applied as a whole, and has about as many
/// parts at most.
const PARTS_PER_TURN: usize = 128;

/// A swap touches lines that no cache holds: it takes as long as so many single changes.
const SWAP_PARTS: usize = 16;

/// While an operation waits for more packets than that, they are worked off by whole bursts.
const LONG_PACKETS: usize = 8 * BURST;

/// Times that a port's egress queues are asked for frames before other ports are looked at.
const PARTS_PER_SEND: usize = 8;

/// One queue that this worker serves.
pub(crate) struct Served {
    pub number: PortNo,
    pub queue: Box<dyn Queue>,
    pub board: Board,
}

/// What of a worker was left when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Packets that waited in it.
    pub packets: u64,
    /// Frames that waited for a device.
    pub frames: u64,
}

/// The worker's end of its channel to the control thread.
pub(crate) struct Channel {
    pub requests: Consumer<Box<Updates>>,
    pub spent: Producer<Box<Updates>>,
    pub applied: Arc<AtomicU64>,
    pub sleeping: Arc<SleepFlag>,
}

/// What a turn brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Packets received.
    pub received: usize,
    /// Frames taken by devices.
    pub sent: usize,
    /// Operations applied.
    pub applied: usize,
    /// Packets of the backlog worked off.
    pub worked: usize,
    /// Frames still wait for a device.
    pub waiting: bool,
    /// When the first egress queue that waits for its rate may send again.
    pub opens_ns: Option<Nanos>,
}

impl Turn {
    /// True if nothing happened and nothing waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }
}

/// One worker, in lines of its own. `P` listens to it; `()` does not.
#[repr(align(128))]
pub struct Worker<P: Probe = ()> {
    pub(crate) pipeline: Pipeline,
    pub(crate) counters: Arc<Counters>,
    pub(crate) dock: Dock,
    pub(crate) served: Vec<Served>,
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) channel: Channel,
    pub(crate) board: Board<WorkerLevels>,
    pub(crate) burst: Vec<Frame>,
    pub(crate) done: Vec<Frame>,
    /// When the turn began, or the last one.
    pub(crate) now: Nanos,
    pub(crate) quantum: Quantum,
    /// The queue that a turn begins with: where the last one had to leave off, so that none is favoured.
    pub(crate) first: usize,
    /// Tells latencies.
    pub(crate) watch: Watch,
    pub(crate) probe: P,
    /// Listens to single bursts beside it.
    pub(crate) aside: Aside,
}

impl<P: Probe> Worker<P> {
    /// One turn of the loop. Never blocks.
    pub fn turn(&mut self, now: Nanos) -> Turn {
        self.probe.mark(Step::Turn, 1);
        (self.now, self.dock.now) = (now, now);
        self.watch.begin(&self.probe);
        let mut turn = Turn { applied: self.apply(), ..Turn::default() };
        if turn.applied > 0 {
            self.watch.changed(&self.probe);
        }
        self.dock.collect();
        self.quantum.begin();
        let (first, mut lacks) = (self.first, false);
        for at in (first..self.served.len()).chain(0..first) {
            // What is held back is never dropped, so there must be room for it.
            if !self.has_room() {
                self.first = at;
                break;
            }
            self.watch.poll(&self.probe);
            let received = self.served[at].queue.receive(&mut self.dock.pools, &mut self.burst, BURST);
            if !lacks && self.dock.pools.is_used_up() {
                // The next turn begins with the queue that found no frame.
                lacks = true;
                self.first = (at + usize::from(received > 0)) % self.served.len();
            }
            if received == 0 {
                continue;
            }
            turn.received += received;
            self.watch.stamp(&mut self.burst);
            self.probe.mark(Step::Receive, received as u32);
            let low_latency = if self.aside.listens(&self.channel.applied) {
                self.forward_aside(now)
            } else {
                self.pipeline.forward(&mut self.burst, now, &mut self.dock, &mut self.probe)
            };
            self.quantum.saw(received, low_latency, now);
            // Low-latency frames leave before the next burst is looked at.
            let urgent = low_latency > 0 && self.dock.lanes;
            turn.sent += if urgent { self.send() } else { self.send_long() };
            if self.quantum.is_due() {
                turn.worked += self.work_quantum(self.quantum.size(now), &mut turn.sent);
                // Among them were first packets of low-latency flows, or such as were held back for order.
                turn.sent += if self.dock.lanes { self.send() } else { self.send_long() };
            }
        }
        // An operation waits for the backlog: it is worked off whatever there is to be received.
        let closing = !self.channel.requests.is_empty();
        let hurry = closing && self.pipeline.backlogged() > LONG_PACKETS;
        if hurry || !self.has_room() {
            turn.worked += self.work_quantum(BURST, &mut turn.sent);
        } else if turn.worked == 0 && (closing || !self.quantum.is_more()) {
            turn.worked = self.work_quantum(self.quantum.size(now), &mut turn.sent);
        }
        turn.sent += self.take_over();
        turn.sent += self.send();
        turn.waiting = self.dock.outboxes.iter().any(Outbox::is_waiting);
        turn.opens_ns = self.dock.outboxes.iter().filter_map(Outbox::opens_ns).min();
        turn
    }

    /// Forwards a burst with an instrument beside the worker's own: the same code, compiled once more, so that all
    /// other bursts pay nothing for it.
    #[inline(never)]
    fn forward_aside(&mut self, now: Nanos) -> usize {
        let mut both = (&mut self.probe, &mut self.aside);
        self.pipeline.forward(&mut self.burst, now, &mut self.dock, &mut both)
    }

    /// Whether a burst can be taken in: all of it may have to be held back for order, and what is held back never takes the
    /// last frames from receiving.
    fn has_room(&self) -> bool {
        self.pipeline.may_hold_back() && (self.pipeline.held_back() == 0 || !self.dock.pools.is_low())
    }

    /// Works off a quantum of so many packets, if any wait.
    fn work_quantum(&mut self, most: usize, sent: &mut usize) -> usize {
        self.quantum.taken();
        if self.pipeline.held() > 0 { self.work(most, sent) } else { 0 }
    }

    /// Works off up to `most` packets of the backlog, and all that was held back for them; returns how many. Between bursts
    /// frames are sent, so that outboxes do not overflow: `sent` counts them.
    fn work(&mut self, most: usize, sent: &mut usize) -> usize {
        let mut worked = self.work_once(most);
        while self.pipeline.releases() {
            *sent += self.send();
            worked += self.work_once(most);
        }
        worked
    }

    fn work_once(&mut self, most: usize) -> usize {
        let worked = if self.aside.records_next(&self.channel.applied) {
            let mut both = (&mut self.probe, &mut self.aside);
            self.pipeline.work(most, self.now, &mut self.dock, &mut both)
        } else {
            self.pipeline.work(most, self.now, &mut self.dock, &mut self.probe)
        };
        self.watch.worked(worked);
        worked
    }

    /// Whether nothing waits in the backlog, so that an operation may be applied. What is left is worked off at once if that
    /// is no more than a burst, with all that was held back for it.
    fn is_worked_off(&mut self) -> bool {
        if self.pipeline.held() > 0 && self.pipeline.backlogged() <= BURST {
            while self.work(BURST, &mut 0) > 0 {}
        }
        self.pipeline.held() == 0
    }

    /// Applies pending operations, and returns how many: none while packets wait in the backlog, which is closed by degrees
    /// until it is worked off. The control thread may call it while the worker sleeps; then nothing waits.
    pub fn apply(&mut self) -> usize {
        let (mut applied, mut parts) = (0, 0);
        // An operation is taken only when there is room to give it back: nothing is freed here.
        while applied < OPERATIONS_PER_TURN && parts < PARTS_PER_TURN && self.channel.spent.slots() > 0 {
            let Ok(next) = self.channel.requests.peek() else {
                self.pipeline.reopen();
                break;
            };
            if !matches!(next.parts[..], [Update::Record(_)]) && !self.is_worked_off() {
                self.pipeline.close();
                break;
            }
            let Ok(mut updates) = self.channel.requests.pop() else { break };
            if let [Update::Record(recorder)] = &mut updates.parts[..] {
                std::mem::swap(&mut self.aside.recorder, recorder);
                drop(self.channel.spent.push(updates));
                continue;
            }
            parts +=
                updates.parts.iter().map(|part| if part.is_swap() { SWAP_PARTS } else { 1 }).sum::<usize>();
            self.pipeline.apply(&mut updates, &mut self.probe);
            for part in &updates.parts {
                match part {
                    Update::PacketOut(out) => {
                        self.pipeline.packet_out(out, self.now, &mut self.dock, &mut self.probe);
                    }
                    Update::Lanes { promotes, requeues } => {
                        self.dock.change_lanes(*promotes, *requeues);
                    }
                    _ => {}
                }
            }
            self.channel.applied.store(updates.version, Ordering::Release);
            drop(self.channel.spent.push(updates));
            applied += 1;
        }
        if applied > 0 && !self.channel.requests.is_empty() {
            self.pipeline.reopen_between();
        }
        applied
    }

    /// Queues frames that other workers hand over for ports of this one, and returns how many left meanwhile.
    fn take_over(&mut self) -> usize {
        let mut sent = 0;
        for at in 0..self.arrivals.len() {
            // Those that are there now: the other worker may be faster than this one.
            for _ in 0..self.arrivals[at].len() {
                let Some((handover, begins)) = self.arrivals[at].next() else { break };
                if begins {
                    self.dock.seal();
                }
                let Handover { port, queue, frame } = handover;
                if let Err((frame, reason)) = self.dock.transmit(port, queue, frame) {
                    self.counters.add_copies_dropped(reason, 1);
                    self.dock.free(frame);
                }
                sent += self.send_long();
            }
        }
        sent
    }

    /// Sends at once when an outbox has become long.
    fn send_long(&mut self) -> usize {
        if std::mem::take(&mut self.dock.long) { self.send() } else { 0 }
    }

    /// Gives devices what waits for them and brings home what they took.
    fn send(&mut self) -> usize {
        let (mut sent, mut queued) = (0, false);
        for (at, served) in self.served.iter_mut().enumerate() {
            let outbox = &mut self.dock.outboxes[at];
            if outbox.is_idle() {
                continue;
            }
            if outbox.has_queues() {
                queued = true;
                continue;
            }
            let watch = |frames: &[Frame]| self.watch.sent(frames, &self.probe);
            sent += outbox.send(&mut *served.queue, &mut self.done, watch);
            for frame in self.done.drain(..) {
                self.dock.free(frame);
            }
        }
        if queued {
            sent += self.send_queued();
        }
        if sent > 0 {
            self.probe.mark(Step::Transmit, sent as u32);
        }
        sent
    }

    /// The same for ports with egress queues: part by part, so that queues may go before others.
    #[inline(never)]
    fn send_queued(&mut self) -> usize {
        let mut sent = 0;
        for (at, served) in self.served.iter_mut().enumerate() {
            for _ in 0..PARTS_PER_SEND {
                let outbox = &mut self.dock.outboxes[at];
                if !outbox.has_queues() || outbox.is_idle() {
                    break;
                }
                outbox.fetch(&*served.queue, self.now);
                let watch = |frames: &[Frame]| self.watch.sent(frames, &self.probe);
                let taken = outbox.send(&mut *served.queue, &mut self.done, watch);
                let is_more = outbox.is_more();
                for frame in self.done.drain(..) {
                    self.dock.free(frame);
                }
                sent += taken;
                if taken == 0 || !is_more {
                    break;
                }
            }
            self.dock.outboxes[at].settle();
        }
        sent
    }

    /// Asks links and publishes counters: now and then, and before sleeping. Makes system calls.
    pub fn housekeeping(&mut self) {
        self.watch.rest();
        for (served, outbox) in self.served.iter_mut().zip(&self.dock.outboxes) {
            let link = served.queue.poll_link();
            let levels = outbox.levels(&*served.queue);
            let (worker, queues) = (self.dock.number, outbox.reports());
            let statistics = served.queue.statistics();
            served.board.put(PortReport { statistics, link, worker, levels, queues });
        }
        self.board.put(self.levels());
    }

    fn levels(&self) -> WorkerLevels {
        let [normal, unknown, hold, copies] = self.pipeline.levels();
        let [small, large, lent, controller, urgent, other] = self.dock.levels();
        [normal, unknown, hold, copies, small, large, lent, controller, urgent, other, self.aside.level()]
    }

    /// Ends the worker: what waits in it is dropped as `shutdown`. To be called when no other worker has turns any more,
    /// which might hand frames over.
    pub fn end(&mut self) -> Rest {
        let packets = self.pipeline.drop_waiting(self.now, &mut self.dock, &mut self.probe) as u64;
        let mut frames = 0;
        for arrivals in &mut self.arrivals {
            while let Some((handover, _)) = arrivals.next() {
                self.dock.free(handover.frame);
                frames += 1;
            }
        }
        for at in 0..self.dock.outboxes.len() {
            while let Some(frame) = self.dock.outboxes[at].pop() {
                self.dock.free(frame);
                frames += 1;
            }
        }
        self.counters.add_copies_dropped(DropReason::Shutdown, frames);
        Rest { packets, frames }
    }

    /// To be told when time passes between two turns that is spent on purpose, sleeping or waking others: it was not stolen.
    pub fn rest(&mut self) {
        self.watch.rest();
    }

    /// Appends the descriptors to sleep on.
    pub fn descriptors(&self, descriptors: &mut Vec<RawFd>) {
        descriptors.extend(self.served.iter().filter_map(|served| served.queue.descriptor()));
    }

    /// True if a queue has no descriptor: it must be polled.
    #[must_use]
    pub fn must_poll(&self) -> bool {
        self.served.iter().any(|served| served.queue.descriptor().is_none())
    }

    /// The flag by which the control thread and other workers know that this worker sleeps.
    #[must_use]
    pub fn sleeping(&self) -> Arc<SleepFlag> {
        Arc::clone(&self.channel.sleeping)
    }

    /// Workers that sleep while frames for them wait in a ring: the caller wakes them after a turn.
    pub fn handed_over(&self) -> impl Iterator<Item = usize> + '_ {
        self.dock
            .peers
            .iter()
            .enumerate()
            .filter_map(|(worker, ring)| ring.as_ref().filter(|ring| ring.is_awaited()).map(|_| worker))
    }

    /// Whether reports wait for the control thread: the caller wakes it after a turn if it sleeps.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.dock.events.slots() < self.dock.events.buffer().capacity()
    }

    /// The instrument.
    pub fn probe(&mut self) -> &mut P {
        &mut self.probe
    }
}

impl<P: Probe> Sleeper for Worker<P> {
    fn apply(&mut self) -> usize {
        Self::apply(self)
    }

    fn has_operations(&self) -> bool {
        !self.channel.requests.is_empty()
    }

    fn has_pending(&self) -> bool {
        let waits = self.pipeline.held() > 0 || self.has_operations();
        waits || self.arrivals.iter().any(|ring| !ring.is_empty())
    }

    fn has_output(&self) -> bool {
        self.dock.outboxes.iter().any(|outbox| !outbox.is_idle()) || self.handed_over().next().is_some()
    }
}

impl Alarm for Wake {
    fn raise(&self) {
        self.wake();
    }

    fn clear(&self) {
        Self::clear(self);
    }
}
