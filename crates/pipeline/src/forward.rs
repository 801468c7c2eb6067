// SPDX-License-Identifier: Apache-2.0
//! Entry points of forwarding.
//!
//! A burst first takes the fast-forwarding path. Packets that do not pass it are queued in the backlog, or
//! continue at once where nothing may wait. The backlog is processed between bursts, in batches of bounded
//! size (quanta).

use crate::burst::{BurstContext, Pipeline, run_tables};
use crate::egress::Egress;
use crate::lanes::{Kind, Lanes};
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, ProbeStep};
use crate::slab::{BURST, Burst, Slab};
use crate::usage::Usage;
use flow::{DropReason, Nanos};
use frame::Frame;

impl Pipeline {
    /// Processes a burst of at most [`BURST`] frames. `frames` is empty afterwards.
    ///
    /// Returns the number of low-latency packets. They have left, those of the stateless forwarder first, or
    /// are held for earlier packets of their flow. If lanes are enabled and the fast-forwarding path is open,
    /// the other packets wait for [`Pipeline::work`]. Otherwise they have left, too. Call this only while
    /// [`Pipeline::may_hold_back`] returns true.
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
        let Self { rules, counters, ffp, slab, lanes, keys, outputs } = self;
        let mut context = rules.context(egress, outputs, lanes.window(), now);
        context.burst_counters.received = received as u64;
        let mut count = received;
        if let Some(forwarder) = context.stateless {
            let slot = slab.burst(1).first().map_or(0, |slot| usize::from(*slot));
            let taken = context.pass_stateless(forwarder, frames, received, slot, probe);
            count -= taken;
            if taken > 0 {
                probe.mark(ProbeStep::Stateless, taken as u32);
            }
            if count == 0 {
                counters.add(&context.burst_counters);
                return received;
            }
        }
        let burst = slab.burst(count);
        let packets = &mut slab.packets[..];
        for (slot, frame) in burst.iter().zip(frames.drain(..count)) {
            let slot = usize::from(*slot);
            probe.arrives(slot, &frame);
            probe.packet(frame.meta.in_port, frame.meta.sequence);
            context.admit(&mut packets[slot], frame);
        }
        probe.mark(ProbeStep::Admit, count as u32);
        let is_open = ffp.is_open();
        if is_open {
            ffp.walk(&mut context, packets, &burst, keys, counters, probe);
        }
        let mut low_latency = context.burst_counters.fast as usize;
        if low_latency == count {
            probe.mark(ProbeStep::Finish, count as u32);
        } else if is_open && lanes.is_on() {
            slab.take(count);
            low_latency += enqueue_or_finish(&mut context, lanes, slab, &burst, probe);
            counters.set_held(lanes.held() as u64);
            probe.mark(ProbeStep::Finish, count as u32);
        } else {
            run_tables(&mut context, ffp, packets, &burst, keys, counters, probe);
        }
        counters.add(&context.burst_counters);
        low_latency + (received - count)
    }

    /// Processes up to `most` packets of the backlog, then a burst of held packets whose fences have passed.
    ///
    /// Returns the number of packets processed; 0 if nothing waits. Call it again while
    /// [`Pipeline::releases`] returns true, before anything is received.
    pub fn work<E: Egress, P: Probe>(
        &mut self,
        most: usize,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> usize {
        let Self { rules, counters, ffp, slab, lanes, keys, outputs } = self;
        if lanes.held() == 0 {
            return 0;
        }
        // Held packets that may leave come before the rest of the backlog, which arrived later.
        let quantum = if lanes.releases() { Burst::new() } else { lanes.quantum(most, &slab.packets) };
        let mut context = rules.context(egress, outputs, lanes.window(), now);
        run_tables(&mut context, ffp, &mut slab.packets, &quantum, keys, counters, probe);
        slab.free(&quantum);
        let mut worked = quantum.len();
        context.released = true;
        let released = lanes.released();
        if !released.is_empty() {
            // Released packets that miss continue through the tables at once. Later packets of their flows
            // may be in the backlog and must not overtake them.
            ffp.walk(&mut context, &mut slab.packets, &released, keys, counters, probe);
            run_tables(&mut context, ffp, &mut slab.packets, &released, keys, counters, probe);
            slab.free(&released);
            worked += released.len();
        }
        counters.add(&context.burst_counters);
        counters.set_held(lanes.held() as u64);
        worked
    }

    /// Drops all waiting packets and their pending outputs, because the worker ends. Returns the number of
    /// packets.
    pub fn drop_waiting<E: Egress, P: Probe>(&mut self, now: Nanos, egress: &mut E, probe: &mut P) -> usize {
        let Self { rules, counters, slab, lanes, outputs, .. } = self;
        let mut context = rules.context(egress, outputs, lanes.window(), now);
        let mut dropped = 0;
        loop {
            let burst = lanes.take_any(&slab.packets);
            if burst.is_empty() {
                break;
            }
            for slot in &burst {
                let packet = &mut slab.packets[usize::from(*slot)];
                refuse(&mut context, packet, usize::from(*slot), DropReason::Shutdown, probe);
            }
            slab.free(&burst);
            dropped += burst.len();
        }
        counters.add(&context.burst_counters);
        counters.set_held(lanes.held() as u64);
        dropped
    }

    /// Returns the usage of the backlog's shares, of the hold queue and of the pending outputs.
    #[must_use]
    pub fn usages(&self) -> [Usage; 4] {
        let [normal, unknown, hold] = self.lanes.usages(&self.slab.packets);
        [normal, unknown, hold, self.outputs.usage()]
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

    /// Returns the number of all waiting packets. Operations are applied only at 0.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lanes.held()
    }

    /// Notes that a turn begins in which an operation waits for the backlog to drain. The shares of the
    /// backlog shrink with each such turn.
    pub fn close(&mut self) {
        self.lanes.close();
    }

    /// Notes that an operation was applied and the next one waits.
    pub fn reopen_between(&mut self) {
        self.lanes.reopen_between();
    }

    /// Notes that no operation waits.
    pub fn reopen(&mut self) {
        self.lanes.reopen();
    }
}

/// Distributes a burst after the fast-forwarding path. Frees the slots of packets that have left, queues
/// packets with a fence in the hold queue, and admits the rest to the backlog or drops it. Returns the number
/// of packets newly held.
fn enqueue_or_finish<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    lanes: &mut Lanes,
    slab: &mut Slab,
    burst: &[u16],
    probe: &mut P,
) -> usize {
    let alone = lanes.backlogged() == 0;
    lanes.queue_last_burst(&slab.packets);
    let mut held = 0;
    for slot in burst {
        let packet = &mut slab.packets[usize::from(*slot)];
        if packet.state == State::Finish && packet.path == Path::Tables {
            context.action_set(packet);
        }
        match packet.path {
            Path::Left => {}
            Path::Held => {
                lanes.hold.push(*slot, packet.fence, context.window);
                context.burst_counters.held_back += 1;
                held += 1;
                continue;
            }
            // Such a packet sends nothing, so its order is not observable.
            _ if packet.state == State::Done && packet.outputs.is_empty() && packet.leaves.is_none() => {
                context.finish(packet, usize::from(*slot), false, probe);
            }
            _ if alone => {
                lanes.last_burst.push(*slot);
                continue;
            }
            _ if context.egress.may_hold(&packet.frame, Kind::of(packet) == Kind::Normal)
                && lanes.admit(*slot, packet) =>
            {
                continue;
            }
            _ => refuse(context, packet, usize::from(*slot), Kind::of(packet).refused(), probe),
        }
        slab.free(&[*slot]);
    }
    held
}

/// Drops a packet that finds no space in the backlog, with its pending outputs.
#[inline(never)]
fn refuse<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packet: &mut Packet,
    slot: usize,
    reason: DropReason,
    probe: &mut P,
) {
    probe.refused(&packet.frame, packet.state.waits_for(), reason);
    context.discard(packet);
    context.fail(packet, reason);
    packet.state = State::Done;
    context.finish(packet, slot, false, probe);
}
