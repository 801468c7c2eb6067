// SPDX-License-Identifier: Apache-2.0
//! A worker and its poll loop. One poll iteration ([`Worker::turn`]) applies pending operations, takes a
//! burst from each queue through the pipeline, processes a part of the backlog, and sends queued frames.

use crate::answered::AnsweredUntil;
use crate::egress::WorkerEgress;
use crate::handover::{Arrivals, Handover};
use crate::instruments::BurstInstruments;
use crate::latency::{LatencyMonitor, StampRuns};
use crate::mirror::{MirroredQueue, Mirrors};
use crate::outbox::Outbox;
use crate::port_change::{Request, Served};
use crate::published::{PortReport, Published, WorkerUsage};
use crate::quantum::Quantum;
use crate::search::SearchLink;
use crate::sleep::{Alarm, SleepFlag, Sleeper};
use dataplane::Counters;
use flow::{DropReason, Nanos, RuleVersion};
use frame::Frame;
use pipeline::{BURST, Egress, HitsToCount, Pipeline, Probe, ProbeStep, Update};
use port::wait::Wake;
use rtrb::{Consumer, Producer};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of operations applied per poll iteration, so that packets do not wait for a long queue of
/// operations.
const OPERATIONS_PER_TURN: usize = 16;

/// Maximum number of operations applied for each burst of the last poll iteration, if it received packets and
/// no packets can wait in the backlog.
const BUSY_OPERATIONS: usize = 2;

/// Number of applied parts after which no further operation is started in a poll iteration. A part is one
/// [`Update`] of an operation; a swap counts as [`SWAP_PARTS`] parts.
const PARTS_PER_TURN: usize = 128;

/// Cost of a swap, in parts. A swap accesses memory that is not in the caches.
const SWAP_PARTS: usize = 16;

/// Backlog length in packets above which whole bursts are processed while an operation waits for an empty
/// backlog.
const LONG_PACKETS: usize = 8 * BURST;

/// Maximum number of path records whose hits are counted in a poll iteration of an idle worker. Packets that
/// arrive meanwhile wait for them.
const IDLE_COUNTS: usize = 16;

/// Number of consecutive poll iterations without packets after which a worker is idle and counts all hits.
/// Between packets that arrive every few microseconds, it counts only the hits of which a round is due.
const IDLE_TURNS: u32 = 32;

/// Maximum number of path records whose hits are counted in a poll iteration that receives few packets, or no
/// packets for a short time. It is small because counting the hits of a record takes up to 0.2 us, several
/// times as long as forwarding a packet.
const BUSY_COUNTS: usize = 8;

/// In other poll iterations, the hits of one path record are counted for this many packets.
const BUSY_PART: usize = 4;

/// While an operation waits for the hits of all path records to be counted, each busy poll iteration counts
/// the hits of this many records more than the last iteration received packets. The wait is therefore
/// bounded.
const MORE_COUNTS: usize = 16;

/// Maximum number of times that a port's egress queues are served before those of the next port.
const PARTS_PER_SEND: usize = 8;

/// Packets and frames that were left in a worker when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownLoss {
    /// Packets that waited in the worker.
    pub packets: u64,
    /// Frames that waited for a device.
    pub frames: u64,
}

/// The worker's end of the rings to and from the control thread.
pub(crate) struct Channel {
    pub requests: Consumer<Box<Request>>,
    pub retired: Producer<Box<Request>>,
    pub applied: Arc<AtomicU64>,
    /// Number of operations requested so far, including those that wait for space in the ring.
    pub requested: Arc<AtomicU64>,
    /// Time in nanoseconds before which all hits are counted, or the greatest time if no hit is uncounted.
    pub counted_until: Arc<AtomicU64>,
    pub sleeping: Arc<SleepFlag>,
    pub answered: AnsweredUntil,
}

/// Result of a poll iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Packets received.
    pub received: usize,
    /// Frames accepted by devices.
    pub sent: usize,
    /// Operations applied.
    pub applied: usize,
    /// Packets of the backlog that were processed.
    pub worked: usize,
    /// Packets that the port cache released.
    pub released: usize,
    /// Whether path records have hits that are not yet added to the counters of their entries.
    pub counting: bool,
    /// Whether frames still wait for a device.
    pub waiting: bool,
    /// Time at which the first egress queue above its rate may send again, or `None` if no queue waits for
    /// its rate.
    pub opens_ns: Option<Nanos>,
    /// Time of the next answer or timeout of a search of the port cache, or `None` if no packet waits for an
    /// answer.
    pub answers_ns: Option<Nanos>,
}

impl Turn {
    /// Returns whether nothing happened and nothing waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }
}

/// One worker. Its alignment keeps other data out of its cache lines, which cores prefetch in pairs. `P` is
/// its probe; `()` stands for no probe.
#[repr(align(128))]
pub struct Worker<P: Probe = ()> {
    pub(crate) pipeline: Pipeline,
    pub(crate) counters: Arc<Counters>,
    pub(crate) egress: WorkerEgress,
    pub(crate) served: Vec<Served>,
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) mirrors: Mirrors,
    pub(crate) channel: Channel,
    /// Rings to and from the search worker, if there is one.
    pub(crate) search: Option<SearchLink>,
    pub(crate) published: Published<WorkerUsage>,
    pub(crate) burst: Vec<Frame>,
    pub(crate) done: Vec<Frame>,
    /// Time at which the current or the last poll iteration began.
    pub(crate) now: Nanos,
    pub(crate) quantum: Quantum,
    /// Packets that the last poll iteration received.
    pub(crate) received: usize,
    /// Number of poll iterations since the last one that received or processed packets.
    pub(crate) idle_turns: u32,
    /// Index of the queue polled first: the queue at which the previous iteration stopped for lack of space,
    /// so that no queue is favoured.
    pub(crate) first: usize,
    /// Measures the latency of frames.
    pub(crate) latency: LatencyMonitor,
    pub(crate) probe: P,
    /// Instruments for selected bursts, independent of the probe.
    pub(crate) instruments: BurstInstruments,
}

impl<P: Probe> Worker<P> {
    /// Runs one poll iteration. Never blocks. Called by the worker's thread with the current time.
    pub fn turn(&mut self, now: Nanos) -> Turn {
        if self.pipeline.has_port_cache() {
            self.turn_with::<true>(now)
        } else {
            self.turn_with::<false>(now)
        }
    }

    /// Runs one poll iteration. `CACHE` is whether there is a port cache.
    fn turn_with<const CACHE: bool>(&mut self, now: Nanos) -> Turn {
        self.probe.mark(ProbeStep::Turn, 1);
        (self.now, self.egress.now) = (now, now);
        self.latency.begin(&self.probe);
        let mut turn = Turn { applied: self.apply(), ..Turn::default() };
        if turn.applied > 0 {
            self.latency.changed(&self.probe);
        }
        self.egress.collect();
        self.quantum.begin();
        if CACHE && self.pipeline.tends_misses() {
            let answers = self.search.as_mut().map_or(0, |search| search.answers_to_take(self.received));
            self.release_misses(answers, &mut turn);
        }
        let (first, mut lacks) = (self.first, false);
        for at in (first..self.served.len()).chain(0..first) {
            // Packets in the hold queue are never dropped, so a burst is received only if the hold queue has
            // space for it.
            if !self.has_room::<CACHE>() {
                self.first = at;
                break;
            }
            let received = self.receive::<CACHE>(at);
            if !lacks && self.egress.pools.is_used_up() {
                // The next poll iteration begins with the queue that found no free frame.
                lacks = true;
                self.first = (at + usize::from(received > 0)) % self.served.len();
            }
            if received == 0 {
                continue;
            }
            if turn.received == 0 && self.pipeline.has_express() {
                // The control thread must not assume that the hits of this poll iteration are counted.
                self.publish_counted(self.pipeline.counted_until().min(now));
            }
            turn.received += received;
            self.latency.worked(received);
            self.probe.mark(ProbeStep::Receive, received as u32);
            let low_latency = if self.instruments.listens(&self.channel.applied) {
                self.forward_instrumented(now)
            } else {
                self.pipeline.forward(&mut self.burst, now, &mut self.egress, &mut self.probe)
            };
            self.quantum.saw(received, low_latency, now);
            if CACHE && self.pipeline.has_misses() {
                // The packets of this burst do not wait for answers to others.
                self.release_misses(0, &mut turn);
            }
            turn.sent += self.send_after(low_latency > 0);
            if self.quantum.is_due() {
                turn.worked += self.work_quantum(self.quantum.size(now), &mut turn.sent);
                // The quantum may have included packets of low-latency flows: first packets of new flows, or
                // held packets.
                turn.sent += self.send_after(true);
            }
        }
        // An operation waits until the backlog is empty, so the backlog is processed even if queues have more
        // packets.
        let closing = !self.channel.requests.is_empty();
        let hurry = closing && self.pipeline.backlogged() > LONG_PACKETS;
        if hurry || !self.has_room::<CACHE>() {
            turn.worked += self.work_quantum(BURST, &mut turn.sent);
        } else if turn.worked == 0 && (closing || !self.quantum.is_more()) {
            turn.worked = self.work_quantum(self.quantum.size(now), &mut turn.sent);
        }
        turn.sent += self.take_over();
        turn.sent += self.send();
        self.received = turn.received;
        let is_busy = turn.received + turn.worked + turn.released > 0;
        self.idle_turns = if is_busy { 0 } else { self.idle_turns.saturating_add(1) };
        turn.counting = !if self.idle_turns > IDLE_TURNS {
            self.count_hits(HitsToCount::All, IDLE_COUNTS)
        } else {
            self.count_hits(HitsToCount::Due, BUSY_COUNTS.max(turn.received / BUSY_PART))
        };
        turn.waiting = self.egress.outboxes.iter().any(Outbox::is_waiting);
        turn.answers_ns = if CACHE { self.answers_at() } else { None };
        turn.opens_ns = self.egress.outboxes.iter().filter_map(Outbox::opens_ns).min();
        turn
    }

    /// Returns the time of the next answer or timeout of a search.
    fn answers_at(&self) -> Option<Nanos> {
        let due = self.pipeline.misses_due();
        let is_answered = self.search.as_ref().is_some_and(SearchLink::has_answers);
        if is_answered { due.map(|_| self.now) } else { due }
    }

    /// Receives a burst from a queue, unless the port cache blocks its port. Returns the number of packets.
    #[inline]
    fn receive<const CACHE: bool>(&mut self, at: usize) -> usize {
        let most = if CACHE { self.pipeline.accepts(self.served[at].number) } else { BURST };
        if most == 0 {
            return 0;
        }
        let stamp = self.latency.poll(&self.probe);
        let served = &mut self.served[at];
        let received = served.queue.receive(&mut self.egress.pools, &mut self.burst, most, stamp);
        if received > 0 && served.taps.ingress != 0 {
            self.mirrors.received(served.number, served.taps.ingress, &self.burst, &mut self.egress);
        }
        received
    }

    /// Counts hits of at most `most` path records, and publishes the time before which all hits are counted.
    /// Returns whether no uncounted hit remains.
    #[inline]
    fn count_hits(&mut self, which: HitsToCount, most: usize) -> bool {
        let counted = self.pipeline.count_hits(which, most, self.now);
        if counted > 0 {
            self.latency.worked(counted);
        }
        let until = self.pipeline.counted_until();
        self.publish_counted(until);
        until == Nanos::MAX
    }

    #[inline]
    fn publish_counted(&self, until: Nanos) {
        if self.channel.counted_until.load(Ordering::Relaxed) != until.0 {
            self.channel.counted_until.store(until.0, Ordering::Release);
        }
    }

    /// Forwards a burst with the instruments of `BurstInstruments`. This is a second instantiation of the
    /// same code, so that other bursts do not pay for the instruments.
    #[inline(never)]
    fn forward_instrumented(&mut self, now: Nanos) -> usize {
        let mut both = (&mut self.probe, &mut self.instruments);
        self.pipeline.forward(&mut self.burst, now, &mut self.egress, &mut both)
    }

    /// Takes up to `answers` answers of the search worker. Then processes packets of the port cache whose
    /// flow has been searched, while there is room for them in the hold queue. If there is no room in the
    /// backlog, a quantum of it is processed first.
    #[inline(never)]
    fn release_misses(&mut self, answers: usize, turn: &mut Turn) {
        if turn.received == 0 && self.pipeline.has_express() {
            // Released packets may hit records before a burst is received.
            self.publish_counted(self.pipeline.counted_until().min(self.now));
        }
        if let Some(search) = &mut self.search {
            let applied = RuleVersion(self.channel.applied.load(Ordering::Relaxed));
            search.poll(answers, &mut self.pipeline, applied, self.now, &mut self.egress, &mut self.probe);
        }
        while self.may_process() {
            let requested = self.channel.requested.load(Ordering::Acquire);
            let answered = self.channel.answered.get(self.now, requested);
            let released = if self.instruments.records_next(&self.channel.applied) {
                let mut both = (&mut self.probe, &mut self.instruments);
                self.pipeline.release(self.now, answered, &mut self.egress, &mut both)
            } else {
                self.pipeline.release(self.now, answered, &mut self.egress, &mut self.probe)
            };
            if released.packets > 0 {
                turn.released += released.packets;
                self.latency.worked(released.packets);
                self.quantum.saw(0, released.low_latency, self.now);
                turn.sent += self.send_after(released.low_latency > 0);
            } else if self.pipeline.releases_misses() {
                turn.worked += self.work_quantum(self.quantum.size(self.now), &mut turn.sent);
                turn.sent += self.send_after(true);
            } else {
                break;
            }
        }
        if let Some(search) = &mut self.search {
            search.send(&mut self.pipeline);
        }
    }

    /// Sends after a burst. If it contained low-latency packets, they are sent before the next burst is
    /// received. Returns the number of frames sent.
    fn send_after(&mut self, has_low_latency: bool) -> usize {
        if has_low_latency && self.egress.lanes { self.send() } else { self.send_long() }
    }

    /// Returns whether a burst can be received. Packets that the port cache releases come first, because
    /// later packets of their flows may have path records.
    fn has_room<const CACHE: bool>(&self) -> bool {
        self.may_process() && !(CACHE && self.pipeline.releases_misses())
    }

    /// Returns whether a burst can be processed. The hold queue must have space for all of it, and held
    /// packets must not take the last free frames.
    fn may_process(&self) -> bool {
        self.pipeline.may_hold_back() && (self.pipeline.held_back() == 0 || !self.is_low())
    }

    /// Returns whether less than a quarter of the small frames, or of the buffers of a device, is free.
    fn is_low(&self) -> bool {
        let is_low = |served: &Served| served.queue.buffers().is_below(4);
        self.egress.pools.is_low() || self.served.iter().any(is_low)
    }

    /// Processes a quantum of up to `most` packets of the backlog, if any wait.
    fn work_quantum(&mut self, most: usize, sent: &mut usize) -> usize {
        self.quantum.taken();
        if self.pipeline.held() > 0 { self.work(most, sent) } else { 0 }
    }

    /// Processes up to `most` packets of the backlog, and all held packets that waited only for them. Returns
    /// their number. Frames are sent between bursts, so that outboxes do not overflow; their number is added
    /// to `sent`.
    fn work(&mut self, most: usize, sent: &mut usize) -> usize {
        let mut worked = self.work_once(most);
        while self.pipeline.releases() {
            *sent += self.send();
            worked += self.work_once(most);
        }
        worked
    }

    fn work_once(&mut self, most: usize) -> usize {
        let worked = if self.instruments.records_next(&self.channel.applied) {
            let mut both = (&mut self.probe, &mut self.instruments);
            self.pipeline.work(most, self.now, &mut self.egress, &mut both)
        } else {
            self.pipeline.work(most, self.now, &mut self.egress, &mut self.probe)
        };
        self.latency.worked(worked);
        worked
    }

    /// Returns whether the backlog is empty, so that an operation may be applied. A backlog of at most one
    /// burst is processed immediately, together with the packets held for it.
    fn is_worked_off(&mut self) -> bool {
        if self.pipeline.held() > 0 && self.pipeline.backlogged() <= BURST {
            while self.work(BURST, &mut 0) > 0 {}
        }
        self.pipeline.held() == 0
    }

    /// Applies pending operations and returns their number. While packets wait in the backlog, no operation
    /// is applied, and the backlog is closed step by step until it is empty. The control thread may call this
    /// while the worker sleeps; then no packets wait.
    pub fn apply(&mut self) -> usize {
        let (mut applied, mut parts) = (0, 0);
        let is_busy = self.received > 0;
        let most = if is_busy && !self.egress.lanes {
            OPERATIONS_PER_TURN.min(BUSY_OPERATIONS * self.received.div_ceil(BURST))
        } else {
            OPERATIONS_PER_TURN
        };
        let counts = if is_busy { self.received + MORE_COUNTS } else { IDLE_COUNTS };
        // An operation is taken only if the ring for retired updates has space, because the worker must not
        // free memory.
        while applied < most && parts < PARTS_PER_TURN && self.channel.retired.slots() > 0 {
            let Ok(next) = self.channel.requests.peek() else {
                self.pipeline.reopen();
                break;
            };
            let (is_record, needs_counts) = (
                matches!(next.updates.parts[..], [Update::Record(_)]),
                self.pipeline.needs_counts(&next.updates),
            );
            // Hits under earlier versions of the rules are counted first, a limited number at a time. The
            // backlog stays open meanwhile; its packets are counted in the cells of their entries.
            if needs_counts && !self.count_hits(HitsToCount::All, counts) {
                break;
            }
            if !is_record && !self.is_worked_off() {
                self.pipeline.close();
                break;
            }
            let Ok(mut request) = self.channel.requests.pop() else { break };
            self.channel.answered.take();
            let updates = &mut request.updates;
            if let [Update::Record(recorder)] = &mut updates.parts[..] {
                std::mem::swap(&mut self.instruments.recorder, recorder);
                drop(self.channel.retired.push(request));
                continue;
            }
            parts +=
                updates.parts.iter().map(|part| if part.is_swap() { SWAP_PARTS } else { 1 }).sum::<usize>();
            self.pipeline.apply(updates, &mut self.probe);
            for part in &updates.parts {
                match part {
                    Update::PacketOut(out) => {
                        self.pipeline.packet_out(out, self.now, &mut self.egress, &mut self.probe);
                    }
                    Update::Lanes { promotes, requeues } => {
                        self.egress.change_lanes(*promotes, *requeues);
                    }
                    _ => {}
                }
            }
            let version = updates.version;
            if let Some(change) = &mut request.ports {
                self.change_ports(change);
                parts += SWAP_PARTS;
            }
            self.channel.applied.store(version.0, Ordering::Release);
            drop(self.channel.retired.push(request));
            applied += 1;
        }
        if applied > 0 && !self.channel.requests.is_empty() {
            self.pipeline.reopen_between();
        }
        applied
    }

    /// Transmits frames that other workers have handed off for ports of this worker. Returns the number of
    /// frames that were sent during the call.
    fn take_over(&mut self) -> usize {
        let mut sent = 0;
        for at in 0..self.arrivals.len() {
            // Takes only the frames present at the start, because the other worker may add frames faster than
            // this worker sends them.
            for _ in 0..self.arrivals[at].len() {
                let Some((handover, begins)) = self.arrivals[at].next() else { break };
                if begins {
                    self.egress.freeze();
                }
                let Handover { port, queue, frame } = handover;
                if let Err((frame, reason)) = self.egress.transmit(port, queue, frame) {
                    self.counters.add_copies_dropped(reason, 1);
                    self.egress.free(frame);
                }
                sent += self.send_long();
            }
        }
        sent
    }

    /// Sends immediately if an outbox has become long. Returns the number of frames sent.
    fn send_long(&mut self) -> usize {
        if std::mem::take(&mut self.egress.long) { self.send() } else { 0 }
    }

    /// Passes queued frames to the devices and frees the accepted frames. Returns the number of accepted
    /// frames.
    pub(crate) fn send(&mut self) -> usize {
        let (mut sent, mut queued) = (0, false);
        for (at, served) in self.served.iter_mut().enumerate() {
            let outbox = &mut self.egress.outboxes[at];
            if outbox.is_idle() {
                continue;
            }
            if outbox.has_queues() {
                queued = true;
                continue;
            }
            // Frames are freed in batches. `done` has space for the frames of one outbox.
            let is_full = self.done.len() + outbox.len() > self.done.capacity();
            if is_full {
                self.egress.free_all(&mut self.done);
            }
            let latency = |runs: &StampRuns, accepted| self.latency.sent(runs, accepted, &self.probe);
            let outbox = &mut self.egress.outboxes[at];
            sent += if served.taps.egress == 0 {
                outbox.send(&mut *served.queue, &mut self.done, latency)
            } else {
                send_mirrored(at, served, &mut self.egress, &mut self.mirrors, &mut self.done, latency)
            };
        }
        if !self.done.is_empty() {
            self.egress.free_all(&mut self.done);
        }
        if queued {
            sent += self.send_queued();
        }
        if sent > 0 {
            self.probe.mark(ProbeStep::Transmit, sent as u32);
        }
        sent
    }

    /// Serves the ports with egress queues in small parts. The queues select the frames of each part only
    /// when the part is due.
    #[inline(never)]
    fn send_queued(&mut self) -> usize {
        let mut sent = 0;
        for (at, served) in self.served.iter_mut().enumerate() {
            for _ in 0..PARTS_PER_SEND {
                let outbox = &mut self.egress.outboxes[at];
                if !outbox.has_queues() || outbox.is_idle() {
                    break;
                }
                outbox.fetch(&*served.queue, self.now);
                let latency = |runs: &StampRuns, accepted| self.latency.sent(runs, accepted, &self.probe);
                let taken = if served.taps.egress == 0 {
                    outbox.send(&mut *served.queue, &mut self.done, latency)
                } else {
                    send_mirrored(at, served, &mut self.egress, &mut self.mirrors, &mut self.done, latency)
                };
                let is_more = self.egress.outboxes[at].is_more();
                self.egress.free_all(&mut self.done);
                sent += taken;
                if taken == 0 || !is_more {
                    break;
                }
            }
            self.egress.outboxes[at].settle();
        }
        sent
    }

    /// Queries links and publishes counters. Makes system calls, so the worker's thread calls it periodically
    /// and before it sleeps.
    pub fn housekeeping(&mut self) {
        self.latency.rest();
        for (served, outbox) in self.served.iter_mut().zip(&self.egress.outboxes) {
            let link = served.queue.poll_link();
            served.published.put(PortReport {
                statistics: served.queue.statistics(),
                link,
                worker: self.egress.number,
                outbox: outbox.usage(&*served.queue),
                queues: outbox.reports(),
            });
        }
        self.published.put(WorkerUsage {
            pipeline: self.pipeline.usage(),
            egress: self.egress.usage(self.served.iter().map(|served| served.queue.buffers())),
            recorder: self.instruments.usage(),
        });
    }

    /// Ends the worker: waiting packets and frames are dropped as `shutdown`. Must be called after all
    /// workers that could hand off frames to this one have stopped.
    pub fn end(&mut self) -> ShutdownLoss {
        self.count_hits(HitsToCount::All, usize::MAX);
        let packets = self.pipeline.drop_waiting(self.now, &mut self.egress, &mut self.probe) as u64;
        let mut frames = 0;
        for arrivals in &mut self.arrivals {
            while let Some((handover, _)) = arrivals.next() {
                self.egress.free(handover.frame);
                frames += 1;
            }
        }
        for at in 0..self.egress.outboxes.len() {
            while let Some(frame) = self.egress.outboxes[at].pop() {
                self.egress.free(frame);
                frames += 1;
            }
        }
        self.counters.add_copies_dropped(DropReason::Shutdown, frames);
        ShutdownLoss { packets, frames }
    }

    /// Excludes the time until the next poll iteration from the detection of preemption. Called before the
    /// thread sleeps or wakes other threads.
    pub fn rest(&mut self) {
        self.latency.rest();
    }

    /// Appends the descriptors to wait for while the worker sleeps.
    pub fn descriptors(&self, descriptors: &mut Vec<RawFd>) {
        descriptors.extend(self.served.iter().filter_map(|served| served.queue.descriptor()));
    }

    /// Returns whether a queue has no descriptor, so that the worker must poll it.
    #[must_use]
    pub fn must_poll(&self) -> bool {
        self.served.iter().any(|served| served.queue.descriptor().is_none())
    }

    /// Returns the flag that shows the control thread and other workers that this worker sleeps.
    #[must_use]
    pub fn sleeping(&self) -> Arc<SleepFlag> {
        Arc::clone(&self.channel.sleeping)
    }

    /// Returns the workers for which frames wait in a ring. After a poll iteration, the caller wakes the
    /// sleeping workers among them.
    pub fn handed_over(&self) -> impl Iterator<Item = usize> + '_ {
        self.egress
            .peers
            .iter()
            .enumerate()
            .filter_map(|(worker, ring)| ring.as_ref().filter(|ring| ring.is_awaited()).map(|_| worker))
    }

    /// Returns whether the search worker may have got work since the last call. The caller calls it after
    /// each poll iteration, and wakes the search worker if it sleeps.
    #[must_use]
    #[inline]
    pub fn take_searches(&mut self) -> bool {
        self.search.as_mut().is_some_and(SearchLink::take_work)
    }

    /// Returns whether events wait for the control thread. After a poll iteration, the caller wakes the
    /// control thread if it sleeps.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.egress.events.slots() < self.egress.events.buffer().capacity()
    }

    /// Lets egress queues exceed their maximum rates, so that their frames are sent at once, or no longer.
    pub fn set_unlimited(&mut self, is_unlimited: bool) {
        self.egress.outboxes.iter_mut().for_each(|outbox| outbox.set_unlimited(is_unlimited));
    }

    /// Returns whether no received packet waits in the worker or on its way to it.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.pipeline.held() == 0 && self.arrivals.iter().all(Arrivals::is_empty)
    }

    /// Returns the worker's probe.
    pub fn probe(&mut self) -> &mut P {
        &mut self.probe
    }
}

/// Passes queued frames of the outbox at place `at` to a device like [`Outbox::send`], and mirrors the frames
/// that the device accepts. Their copies are sent with the next frames of their ports.
#[inline(never)]
fn send_mirrored(
    at: usize,
    served: &mut Served,
    egress: &mut WorkerEgress,
    mirrors: &mut Mirrors,
    done: &mut Vec<Frame>,
    latency: impl FnMut(&StampRuns, usize),
) -> usize {
    let mut queue = MirroredQueue {
        queue: &mut *served.queue,
        port: served.number,
        mask: served.taps.egress,
        mirrors,
        pools: &mut egress.pools,
        now: egress.now,
    };
    let sent = egress.outboxes[at].send(&mut queue, done, latency);
    mirrors.deliver(egress);
    sent
}

impl<P: Probe> Sleeper for Worker<P> {
    fn apply(&mut self) -> usize {
        Self::apply(self)
    }

    fn has_operations(&self) -> bool {
        !self.channel.requests.is_empty()
    }

    fn has_pending(&self) -> bool {
        let counts = self.pipeline.counted_until() != Nanos::MAX;
        let waits = self.pipeline.held() > 0 || self.pipeline.has_misses() || counts || self.has_operations();
        waits || self.arrivals.iter().any(|ring| !ring.is_empty())
    }

    fn has_output(&self) -> bool {
        self.egress.outboxes.iter().any(|outbox| !outbox.is_idle()) || self.handed_over().next().is_some()
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
