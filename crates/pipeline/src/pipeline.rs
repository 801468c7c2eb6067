// SPDX-License-Identifier: Apache-2.0
//! The pipeline of one worker, and the stages of a burst in order.
//!
//! ```text
//! forward:  stateless ──► express ──► admit ──► walk ─┬─► enqueue               (lanes on: the rest waits)
//!                            │                        └─► run_tables ──► finish  (lanes off)
//!                            └─► port cache, if on: packets without a path record
//! work:     backlog ──► entries of a path record, or ────► run_tables ──► finish
//! release:  port cache ──► forward
//! ```
//!
//! The backlog is processed between bursts, in batches of bounded size (quanta). Operations are applied
//! between bursts only, so a packet sees one version of all rules.

mod quench;
mod release;
mod search;

pub use release::ReleasedPackets;

use crate::context::{BurstContext, HitCounters, Rules, TABLES};
use crate::egress::Egress;
use crate::enqueue::{enqueue_or_finish, refuse};
use crate::express::{Express, FrameCache, HitsToCount, RecordBudget, WaitingKeys};
use crate::ffp::Ffp;
use crate::lanes::{LaneUsage, Lanes, Queued};
use crate::packet::Packet;
use crate::probe::{Probe, ProbeStep};
use crate::run_tables::{Waiting, run_tables};
use crate::slab::{BURST, Burst, Slab};
use crate::update::{Update, Updates};
use actions::{Cells, CompiledPacketOut, PendingOutputs};
use backlog::LaneLimits;
use dataplane::{Counters, Usage};
use flow::{DropReason, Limits, Nanos, PortNo};
use frame::Frame;
use std::sync::Arc;

/// Usage of the bounded resources of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipelineUsage {
    /// Usage of the backlog and of the hold queue.
    pub lanes: LaneUsage,
    /// Usage of the space for copies and packet-ins that are not sent yet.
    pub copies: Usage,
}

/// Where a burst comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A port. Packets without a path record may wait in the port cache.
    Port,
    /// The port cache.
    PortCache,
}

/// Forwarding state of one worker.
#[derive(Debug)]
pub struct Pipeline {
    rules: Rules,
    counters: Arc<Counters>,
    /// `None` while the express path is off.
    express: Option<Box<Express>>,
    /// `None` while the port cache is off.
    port_cache: Option<Box<FrameCache>>,
    /// Temporary list for a burst of the port cache.
    released: Vec<Frame>,
    waiting_keys: WaitingKeys,
    ffp: Ffp,
    slab: Slab,
    lanes: Lanes,
    keys: Box<[u64]>,
    outputs: PendingOutputs,
}

impl Pipeline {
    /// Creates an empty pipeline that counts in `counters`.
    #[must_use]
    pub fn new(counters: Arc<Counters>, limits: LaneLimits) -> Self {
        let packets = limits.packets();
        Self {
            rules: Rules::new(),
            counters,
            express: None,
            port_cache: None,
            released: Vec::new(),
            waiting_keys: WaitingKeys::new(packets),
            ffp: Ffp::new(TABLES, packets),
            slab: Slab::new(packets),
            lanes: Lanes::new(limits),
            keys: vec![0; BURST * Limits::KEY_WORDS].into_boxed_slice(),
            outputs: PendingOutputs::new(),
        }
    }

    /// Processes a burst of at most [`BURST`] frames, all from one port. `frames` is empty afterwards.
    ///
    /// Returns the number of low-latency packets, including those that the stateless forwarder sent or
    /// dropped. Each of them has left, or is held until earlier packets of its flow have left. If lanes are
    /// enabled and the fast-forwarding path is open, the other packets wait for [`Pipeline::work`], except
    /// some of a short burst. Otherwise all other packets have left as well. Call this only while
    /// [`Pipeline::may_hold_back`] returns true and [`Pipeline::releases_misses`] returns false.
    pub fn forward<E: Egress, P: Probe>(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> usize {
        let received = frames.len().min(BURST);
        for frame in &frames[..received] {
            frame.prefetch();
        }
        let low_latency = self.forward_burst(frames, Origin::Port, now, egress, probe);
        if self.port_cache.is_some() {
            self.set_held();
        }
        low_latency
    }

    /// Processes a burst as [`Self::forward`] does. Only one copy of this code exists, so that its stages are
    /// inlined.
    #[inline(never)]
    fn forward_burst<E: Egress, P: Probe>(
        &mut self,
        frames: &mut Vec<Frame>,
        origin: Origin,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> usize {
        let received = frames.len().min(BURST);
        let Self { rules, counters, express, port_cache, ffp, slab, lanes, keys, outputs, .. } = self;
        let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
        context.burst_counters.received = if origin == Origin::Port { received as u64 } else { 0 };
        // Stateless: tagged frames leave before any table lookup.
        let mut count = context.stateless_stage(frames, received, slab, probe);
        // Express: packets with a direct path leave, but normal packets may have to wait.
        let is_open = ffp.is_open();
        let lanes_on = is_open && lanes.is_on();
        let queued = lanes.queued();
        let mut cache = port_cache.as_deref_mut();
        let mut express = express.as_mut().filter(|_| count > 0 && (lanes_on || queued == Queued::Nothing));
        let mut low_latency = received - count;
        let in_port = PortNo(frames.first().map_or(0, |frame| frame.meta.in_port));
        if let Some(express) = &mut express {
            let slots = if P::LISTENS { slab.burst(count) } else { Burst::new() };
            let before = lanes.state(queued, lanes_on, count, &slab.packets);
            low_latency += express.pass_frames(&mut context, frames, &slots, before, probe);
            if let Some(cache) = cache.as_mut().filter(|_| origin == Origin::Port) {
                cache.count_hits(in_port, count - frames.len().min(count));
                express.divert(&mut context, cache, frames);
                context.drop_full(slab, cache, probe);
            }
            count = frames.len();
            context.notes_hops = express.asks();
            context.quenches = context.may_quench(cache.as_deref());
        }
        if count == 0 {
            context.add_counters();
            return low_latency;
        }
        // Admit: the other frames become packets. A packet has its slot until it leaves.
        let burst = slab.burst(count);
        let admitted = context.admit_burst(&mut slab.packets, &burst, frames.drain(..burst.len()), probe);
        probe.mark(ProbeStep::Admit, count as u32);
        let passed = express
            .as_mut()
            .filter(|express| express.asks())
            .map(|express| express.pass_packets(&mut context, &mut slab.packets, &burst, lanes_on, probe));
        let rest = passed.as_ref().map_or(&burst, |passed| &passed.rest);
        if let Some(passed) = &passed {
            low_latency += passed.low_latency;
            count -= passed.left;
        }
        // Walk: packets that hit low-latency entries in all tables leave.
        if is_open {
            ffp.walk(&mut context, &mut slab.packets, rest, keys, probe);
        }
        let fast = context.burst_counters.fast as usize;
        low_latency += fast;
        if fast < count && lanes_on {
            // Enqueue: the other packets wait for `work`, unless they are done.
            slab.take(burst.len());
            low_latency += enqueue_or_finish(&mut context, lanes, slab, &burst, probe);
            counters.set_held(lanes.held() as u64);
            probe.mark(ProbeStep::Enqueue, count as u32);
        } else if fast < count {
            // Tables and finish: the other packets are processed immediately.
            let is_whole = admitted == burst.len();
            let waiting = if is_open || !is_whole { Waiting::Anywhere } else { Waiting::First };
            run_tables(&mut context, ffp, &mut slab.packets, rest, waiting, keys, probe);
        }
        if let Some(express) = express {
            let at = (in_port, lanes_on);
            learn_paths(&mut context, express, cache, &mut slab.packets, &mut self.waiting_keys, at, probe);
        }
        context.drop_asked(slab, port_cache.as_deref_mut(), probe);
        context.add_counters();
        low_latency
    }

    /// Processes up to `most` packets of the backlog, and then a burst of held packets that may leave.
    ///
    /// Returns the number of packets processed, or 0 if no packet waits. Call it again while
    /// [`Pipeline::releases`] returns true, before the next burst is received.
    pub fn work<E: Egress, P: Probe>(
        &mut self,
        most: usize,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> usize {
        let Self {
            rules, counters, express, port_cache, waiting_keys, ffp, slab, lanes, keys, outputs, ..
        } = self;
        if lanes.held() == 0 {
            return 0;
        }
        // Held packets that may leave come first, because the rest of the backlog arrived later.
        let quantum = if lanes.releases() { Burst::new() } else { lanes.quantum(most, &slab.packets) };
        let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
        context.notes_hops = express.is_some();
        context.quenches = express.is_some() && context.may_quench(port_cache.as_deref());
        context.run_waiting(express.as_deref(), &mut slab.packets, &quantum, probe);
        run_tables(&mut context, ffp, &mut slab.packets, &quantum, Waiting::Anywhere, keys, probe);
        if let Some(express) = express {
            let mut cache = port_cache.as_deref_mut();
            if !context.asking.is_empty() {
                context.quench(cache.as_deref_mut(), express, &mut slab.packets, waiting_keys, probe);
            }
            express.learn_waiting(&context, cache, &mut slab.packets, &quantum, waiting_keys, probe);
        }
        slab.free(&quantum);
        let mut worked = quantum.len();
        context.released = true;
        let released = lanes.released();
        if !released.is_empty() {
            context.run_waiting(express.as_deref(), &mut slab.packets, &released, probe);
            // Released packets that miss continue through the tables immediately. Later packets of their
            // flows may be in the backlog and must not overtake them.
            ffp.walk(&mut context, &mut slab.packets, &released, keys, probe);
            run_tables(&mut context, ffp, &mut slab.packets, &released, Waiting::Anywhere, keys, probe);
            if let Some(express) = express {
                let mut cache = port_cache.as_deref_mut();
                if !context.asking.is_empty() {
                    context.quench(cache.as_deref_mut(), express, &mut slab.packets, waiting_keys, probe);
                }
                express.learn_waiting(&context, cache, &mut slab.packets, &released, waiting_keys, probe);
            }
            slab.free(&released);
            worked += released.len();
        }
        context.drop_asked(slab, port_cache.as_deref_mut(), probe);
        context.add_counters();
        let window = lanes.window();
        port_cache.iter_mut().for_each(|cache| cache.settle(|end| window.may_have_burst(end)));
        self.set_held();
        worked
    }

    /// Forwards a packet-out of the controller, which is counted as a received packet. The backlog must be
    /// empty.
    pub fn packet_out<E: Egress, P: Probe>(
        &mut self,
        out: &CompiledPacketOut,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) {
        if let Some(cache) = &mut self.port_cache {
            quench::note_packet_out(cache, out, self.express.as_deref(), now);
        }
        if !out.sends {
            return;
        }
        let Self { rules, counters, ffp, slab, lanes, keys, outputs, .. } = self;
        let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
        let burst = slab.burst(1);
        let packets = &mut slab.packets[..];
        let Some(packet) = burst.first().and_then(|slot| packets.get_mut(slot.index())) else { return };
        context.admit_packet_out(packet, out);
        if ffp.is_open() {
            ffp.walk(&mut context, packets, &burst, keys, probe);
        }
        run_tables(&mut context, ffp, packets, &burst, Waiting::Anywhere, keys, probe);
        context.burst_counters.received = 1;
        context.add_counters();
    }

    /// Adds the uncounted hits of at most `most` path records to the counters of the records' entries.
    /// Returns the number of these records. [`Self::counted_until`] shows whether uncounted hits remain.
    #[inline]
    pub fn count_hits(&mut self, which: HitsToCount, most: usize, now: Nanos) -> usize {
        let to = HitCounters { cells: &self.rules.cells, counters: &self.counters };
        self.express.as_mut().map_or(0, |express| express.count_hits(which, most, now, to))
    }

    /// Returns whether packets may hit path records.
    #[must_use]
    pub fn has_express(&self) -> bool {
        self.express.is_some()
    }

    /// Returns the earliest possible time of an uncounted hit of a path record, or [`Nanos::MAX`] if the
    /// entries' counters contain all hits.
    #[must_use]
    pub fn counted_until(&self) -> Nanos {
        self.express.as_ref().map_or(Nanos::MAX, |express| express.counted_until())
    }

    /// Returns whether all hits of path records must be counted before an operation, because the operation
    /// ends or resets counters of recorded paths, or replaces what the hits refer to.
    #[must_use]
    pub fn needs_counts(&self, updates: &Updates) -> bool {
        updates.needs_counts(&self.rules.cells)
    }

    /// Applies an operation between two bursts. Replaced objects are left in `updates`, for the control
    /// thread to free. If the operation [needs counts](Self::needs_counts), the caller must have counted
    /// all hits of path records before.
    pub fn apply<P: Probe>(&mut self, updates: &mut Updates, probe: &mut P) {
        // A removed entry may have been recorded since the caller asked, by packets of the backlog. No hit of
        // its records is uncounted then.
        let needs_counts = updates.needs_counts(&Cells::default());
        debug_assert!(!needs_counts || self.counted_until() == Nanos::MAX, "hits are not counted");
        let mut outdates_paths = false;
        for update in &mut updates.parts {
            let swaps = update.is_swap();
            outdates_paths |= update.outdates_paths();
            match update {
                Update::SwapExpress(express) => {
                    std::mem::swap(&mut self.express, express);
                    match &mut self.express {
                        Some(new) => new.succeed(express),
                        None => express.iter().for_each(|before| before.retire()),
                    }
                    self.port_cache.iter_mut().for_each(|cache| cache.forget_records());
                    match (&mut self.port_cache, &self.express) {
                        (Some(cache), Some(express)) => cache.rekey(|frame| express.key_of(frame)),
                        (Some(cache), None) => cache.answer_all(),
                        (None, _) => {}
                    }
                    // The rules for which the plan was made may concern any flow.
                    self.port_cache.iter_mut().for_each(|cache| cache.note_rules(|_| true));
                }
                Update::EndPrevious(previous) => {
                    *previous = self.express.as_mut().and_then(|express| express.take_previous());
                }
                Update::CoarseKeys(are_coarse) => {
                    self.express.iter_mut().for_each(|express| express.has_coarse_keys = *are_coarse);
                }
                Update::PathChanges(changes) => {
                    let cells = &self.rules.cells;
                    if let Some(express) = &mut self.express {
                        let before = express.rules_version();
                        express.note(changes, cells);
                        let cache = self.port_cache.as_mut();
                        if let Some(cache) = cache.filter(|cache| changes.adds() && cache.is_asking()) {
                            cache.note_rules(|key| express.may_hit_added(key, before));
                        }
                    }
                }
                Update::SwapFullPorts(_) => {
                    self.express.iter_mut().for_each(|express| express.note_full_ports());
                }
                Update::EndWaits(flows) => {
                    let cache = self.port_cache.iter_mut();
                    cache.for_each(|cache| flows.iter().for_each(|flow| cache.answer(*flow)));
                }
                Update::Settings(settings) if !settings.ask_controller => {
                    self.port_cache.iter_mut().for_each(|cache| cache.end_questions());
                }
                // Packets that wait may now be forwarded before any table, like all later packets of their
                // flows.
                Update::SwapStateless(_) => {
                    self.port_cache.iter_mut().for_each(|cache| cache.answer_all());
                }
                _ => {}
            }
            self.rules.apply(&mut self.ffp, update);
            probe.mark(if swaps { ProbeStep::Swap } else { ProbeStep::Change }, 1);
        }
        if let Some(express) = self.express.as_mut().filter(|_| outdates_paths) {
            express.invalidate();
        }
        probe.applied(updates.version);
    }

    /// Drops all waiting packets and their pending outputs, because the worker ends. Returns the number of
    /// packets dropped.
    pub fn drop_waiting<E: Egress, P: Probe>(&mut self, now: Nanos, egress: &mut E, probe: &mut P) -> usize {
        let Self { rules, counters, port_cache, slab, lanes, outputs, .. } = self;
        let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
        let mut dropped = 0;
        while let Some(frame) = port_cache.as_mut().and_then(|cache| cache.take_any()) {
            context.drop_frame(slab, frame, DropReason::Shutdown, probe);
            dropped += 1;
        }
        loop {
            let burst = lanes.take_any(&slab.packets);
            if burst.is_empty() {
                break;
            }
            for slot in &burst {
                let packet = &mut slab.packets[slot.index()];
                refuse(&mut context, packet, *slot, DropReason::Shutdown, probe);
            }
            slab.free(&burst);
            dropped += burst.len();
        }
        context.add_counters();
        self.set_held();
        dropped
    }

    /// Returns the usage of the pipeline's bounded resources.
    #[must_use]
    pub fn usage(&self) -> PipelineUsage {
        PipelineUsage { lanes: self.lanes.usage(&self.slab.packets), copies: self.outputs.usage() }
    }

    /// Returns whether held packets may leave now.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.lanes.releases()
    }

    /// Returns whether the hold queue has space for another whole burst.
    #[must_use]
    pub fn may_hold_back(&self) -> bool {
        self.lanes.holds_more()
    }

    /// Returns the number of held packets.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.lanes.hold.len()
    }

    /// Returns the number of packets in the backlog.
    #[must_use]
    pub fn backlogged(&self) -> usize {
        self.lanes.backlogged()
    }

    /// Returns the total number of waiting packets. Operations are applied only when it is 0.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lanes.held()
    }

    /// Called in each poll iteration in which an operation waits for the backlog to drain. After the first
    /// few iterations, each call reduces the number of packets that the backlog accepts.
    pub fn close(&mut self) {
        self.lanes.close();
    }

    /// Notes that an operation was applied and that the next one already waits.
    pub fn reopen_between(&mut self) {
        self.lanes.reopen_between();
    }

    /// Notes that no operation waits.
    pub fn reopen(&mut self) {
        self.lanes.reopen();
    }
}

/// Makes path records for the packets of a burst that have left. Asks the controller about other packets. The
/// burst arrived at a port, and lanes are on or off.
#[inline]
fn learn_paths<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    express: &mut Express,
    mut cache: Option<&mut FrameCache>,
    packets: &mut [Packet],
    waiting_keys: &mut WaitingKeys,
    (in_port, lanes_on): (PortNo, bool),
    probe: &mut P,
) {
    cache.iter_mut().for_each(|cache| express.overtake(cache, packets, in_port, lanes_on));
    if !context.asking.is_empty() {
        context.quench(cache.as_deref_mut(), express, packets, waiting_keys, probe);
    }
    let mut budget = RecordBudget::new(cache.as_deref_mut(), in_port);
    express.learn(context, packets, waiting_keys, lanes_on, &mut budget, probe);
    cache.iter_mut().for_each(|cache| express.note_negative(cache, in_port));
}
