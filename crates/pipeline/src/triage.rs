// SPDX-License-Identifier: Apache-2.0
//! Triage: a burst walks the fast-forwarding path, and who does not get through waits, or goes on at once where nothing is
//! to wait. What waits is worked off in quanta, between bursts.

use crate::burst::{BURST, Pipeline, Run, through};
use crate::lanes::{Kind, Lanes};
use crate::level::Level;
use crate::output::Egress;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, Step};
use crate::slab::{Burst, Slab};
use flow::{DropReason, Nanos};
use frame::Frame;

impl Pipeline {
    /// Takes in a burst of at most [`BURST`] frames; `frames` is empty afterwards. Returns how many packets are low-latency:
    /// they have left, those by the stateless lane first, or are held back for earlier ones of their flow. With lanes, and
    /// while the fast-forwarding path is open, the others wait for [`Pipeline::work`]; else they have left too. To be called
    /// only while [`Pipeline::may_hold_back`] a burst.
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
        let Self { rules, counters, ffp, slab, lanes, keys, outs } = self;
        let mut run = rules.run(egress, outs, lanes.window(), now);
        run.tally.received = received as u64;
        let mut count = received;
        if let Some(lane) = run.stateless {
            let slot = slab.burst(1).first().map_or(0, |slot| usize::from(*slot));
            let taken = run.pass_stateless(lane, frames, received, slot, probe);
            count -= taken;
            if taken > 0 {
                probe.mark(Step::Stateless, taken as u32);
            }
            if count == 0 {
                counters.add(&run.tally);
                return received;
            }
        }
        let burst = slab.burst(count);
        let packets = &mut slab.packets[..];
        for (slot, frame) in burst.iter().zip(frames.drain(..count)) {
            let slot = usize::from(*slot);
            probe.arrives(slot, &frame);
            probe.packet(frame.meta.in_port, frame.meta.sequence);
            run.admit(&mut packets[slot], frame);
        }
        probe.mark(Step::Admit, count as u32);
        let is_open = ffp.is_open();
        if is_open {
            ffp.walk(&mut run, packets, &burst, keys, counters, probe);
        }
        let mut low_latency = run.tally.fast as usize;
        if low_latency == count {
            probe.mark(Step::Finish, count as u32);
        } else if is_open && lanes.is_on() {
            slab.take(count);
            low_latency += share_out(&mut run, lanes, slab, &burst, probe);
            counters.set_held(lanes.held() as u64);
            probe.mark(Step::Finish, count as u32);
        } else {
            through(&mut run, ffp, packets, &burst, keys, counters, probe);
        }
        counters.add(&run.tally);
        low_latency + (received - count)
    }

    /// Works off up to `most` packets that wait, and lets a burst of those go on that were held back for them. Returns how
    /// many that were; 0: nothing waits. To be called again while more [`Pipeline::releases`] before anything is received.
    pub fn work<E: Egress, P: Probe>(
        &mut self,
        most: usize,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> usize {
        let Self { rules, counters, ffp, slab, lanes, keys, outs } = self;
        if lanes.held() == 0 {
            return 0;
        }
        // What may go on goes before what came later.
        let quantum = if lanes.releases() { Burst::new() } else { lanes.quantum(most, &slab.packets) };
        let mut run = rules.run(egress, outs, lanes.window(), now);
        through(&mut run, ffp, &mut slab.packets, &quantum, keys, counters, probe);
        slab.free(&quantum);
        let mut worked = quantum.len();
        run.released = true;
        let released = lanes.released();
        if !released.is_empty() {
            // Those that do not get through go on at once: later packets of their flows may be in the backlog, and these
            // must not come behind them.
            ffp.walk(&mut run, &mut slab.packets, &released, keys, counters, probe);
            through(&mut run, ffp, &mut slab.packets, &released, keys, counters, probe);
            slab.free(&released);
            worked += released.len();
        }
        counters.add(&run.tally);
        counters.set_held(lanes.held() as u64);
        worked
    }

    /// Drops all that waits, with what it was to send: the worker ends. Returns how many packets that were.
    pub fn drop_waiting<E: Egress, P: Probe>(&mut self, now: Nanos, egress: &mut E, probe: &mut P) -> usize {
        let Self { rules, counters, slab, lanes, outs, .. } = self;
        let mut run = rules.run(egress, outs, lanes.window(), now);
        let mut dropped = 0;
        loop {
            let burst = lanes.take_any(&slab.packets);
            if burst.is_empty() {
                break;
            }
            for slot in &burst {
                let packet = &mut slab.packets[usize::from(*slot)];
                refuse(&mut run, packet, usize::from(*slot), DropReason::Shutdown, probe);
            }
            slab.free(&burst);
            dropped += burst.len();
        }
        counters.add(&run.tally);
        counters.set_held(lanes.held() as u64);
        dropped
    }

    /// What is in use of the room for packets that wait, and for what they are to send.
    #[must_use]
    pub fn levels(&self) -> [Level; 4] {
        let [normal, unknown, hold] = self.lanes.levels(&self.slab.packets);
        [normal, unknown, hold, self.outs.level()]
    }

    /// Whether packets that were held back may go on now.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.lanes.releases()
    }

    /// Whether another burst may be held back, all of it.
    #[must_use]
    pub fn may_hold_back(&self) -> bool {
        self.lanes.holds_more()
    }

    /// Packets that are held back.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.lanes.hold.len()
    }

    /// Packets that wait for tables.
    #[must_use]
    pub fn backlogged(&self) -> usize {
        self.lanes.backlogged()
    }

    /// All packets that wait. Operations are applied when there are none.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lanes.held()
    }

    /// Tells that a turn begins in which operations wait for the backlog to be empty: fewer packets join it, in the end none.
    pub fn close(&mut self) {
        self.lanes.close();
    }

    /// Tells that operations are in force and the next one waits.
    pub fn reopen_between(&mut self) {
        self.lanes.reopen_between();
    }

    /// Tells that no operation waits.
    pub fn reopen(&mut self) {
        self.lanes.reopen();
    }
}

/// Shares out what has walked: frees the slots of packets that have left, holds back who must wait for others, and takes the
/// rest into the backlog, or drops it without room. Returns how many are held back.
fn share_out<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
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
            run.action_set(packet);
        }
        match packet.path {
            Path::Left => {}
            Path::Held => {
                lanes.hold.push(*slot, packet.fence, run.window);
                run.tally.held_back += 1;
                held += 1;
                continue;
            }
            // Nobody sees whether it comes before or after others.
            _ if packet.state == State::Done && packet.outs.is_empty() && packet.leaves.is_none() => {
                run.finish(packet, usize::from(*slot), false, probe);
            }
            _ if alone => {
                lanes.last_burst.push(*slot);
                continue;
            }
            _ if run.egress.may_hold(&packet.frame, Kind::of(packet) == Kind::Normal)
                && lanes.admit(*slot, packet) =>
            {
                continue;
            }
            _ => refuse(run, packet, usize::from(*slot), Kind::of(packet).refused(), probe),
        }
        slab.free(&[*slot]);
    }
    held
}

/// Drops a packet that cannot wait, with all that it was to send.
#[inline(never)]
fn refuse<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
    packet: &mut Packet,
    slot: usize,
    reason: DropReason,
    probe: &mut P,
) {
    probe.refused(&packet.frame, packet.state.waits_for(), reason);
    run.discard(packet);
    run.fail(packet, reason);
    packet.state = State::Done;
    run.finish(packet, slot, false, probe);
}
