// SPDX-License-Identifier: Apache-2.0
//! Processes the packets of the port cache: those that are released, and those that are dropped.

use super::{Origin, Pipeline};
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::enqueue::refuse;
use crate::express::FrameCache;
use crate::packet::State;
use crate::probe::{Probe, Via};
use crate::slab::{BURST, Slab};
use actions::PacketInLimits;
use dataplane::CacheWait;
use flow::{DropReason, Nanos, PortNo};
use frame::Frame;
use std::sync::Arc;

/// Packets that the port cache has released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleasedPackets {
    /// Number of packets.
    pub packets: usize,
    /// Number of low-latency packets among them, as [`Pipeline::forward`] counts them.
    pub low_latency: usize,
}

impl Pipeline {
    /// Uses a port cache. It is effective while there are path records.
    #[must_use]
    pub fn with_port_cache(mut self, cache: Option<FrameCache>) -> Self {
        self.released = Vec::with_capacity(if cache.is_some() { BURST } else { 0 });
        self.rules.quench = cache.as_ref().and_then(FrameCache::quench).unwrap_or_default();
        self.port_cache = cache.map(Box::new);
        self
    }

    /// Uses rate limits for packet-ins, which other workers may share.
    #[must_use]
    pub fn with_packet_in_limits(mut self, limits: Arc<PacketInLimits>) -> Self {
        self.rules.packet_in_limits = limits;
        self
    }

    /// Exchanges the rate limits for packet-ins.
    pub fn swap_packet_in_limits(&mut self, limits: &mut Arc<PacketInLimits>) {
        std::mem::swap(&mut self.rules.packet_in_limits, limits);
    }

    /// Returns whether there is a port cache.
    #[must_use]
    #[inline]
    pub fn has_port_cache(&self) -> bool {
        self.port_cache.is_some()
    }

    /// Returns whether packets wait in the port cache.
    #[must_use]
    #[inline]
    pub fn has_misses(&self) -> bool {
        self.port_cache.as_ref().is_some_and(|cache| cache.waiting() > 0)
    }

    /// Returns the maximum number of packets that may be received from a port now. It is less than [`BURST`]
    /// only if the port cache blocks ports.
    #[must_use]
    #[inline]
    pub fn accepts(&self, port: PortNo) -> usize {
        self.port_cache.as_ref().map_or(BURST, |cache| cache.accepts(port))
    }

    /// Returns whether [`Self::release`] may have something to do: packets wait in the port cache, or the
    /// controller has been asked about a flow.
    #[must_use]
    #[inline]
    pub fn tends_misses(&self) -> bool {
        self.port_cache.as_ref().is_some_and(|cache| cache.waiting() > 0 || cache.is_asking())
    }

    /// Returns whether packets of the port cache must be processed by [`Self::release`] before the next burst
    /// is received.
    #[must_use]
    #[inline]
    pub fn releases_misses(&self) -> bool {
        self.port_cache.as_ref().is_some_and(|cache| cache.releases())
    }

    /// Returns the time from which [`Self::release`] will find something to do, or `None` if no packet waits
    /// in the port cache.
    #[must_use]
    pub fn misses_due(&self) -> Option<Nanos> {
        self.port_cache.as_ref()?.due_at()
    }

    /// Takes answers of the searcher, and processes a burst of packets of the port cache whose flow has been
    /// searched. Call it while [`Self::releases_misses`] returns true, and only while
    /// [`Self::may_hold_back`] returns true. If it releases nothing then, the backlog has no room for a
    /// burst: call [`Self::work`] first.
    ///
    /// All operations that were requested by the time `answered` have been applied. The controller's answer
    /// to a question whose time was over later may be an operation that still waits, so the question goes on.
    pub fn release<E: Egress, P: Probe>(
        &mut self,
        now: Nanos,
        answered: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) -> ReleasedPackets {
        let mut released = ReleasedPackets::default();
        let Some(cache) = &mut self.port_cache else { return released };
        cache.begin(now);
        let window = self.lanes.window();
        let is_passed = |fence| !window.waits(fence);
        if let Some(frame) = cache.poll(answered, is_passed) {
            let Self { rules, counters, slab, lanes, outputs, .. } = self;
            let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
            let mut next = Some(frame);
            while let Some(frame) = next {
                context.drop_frame(slab, frame, DropReason::MissTimeout, probe);
                next = cache.poll(answered, is_passed);
            }
            context.add_counters();
        }
        let lanes_on = self.ffp.is_open() && self.lanes.is_on();
        // The backlog must not drop a packet that has waited in the port cache. Packets of a searcher that
        // answers at once were just received, so the backlog may drop them.
        let must_fit = lanes_on && cache.waits();
        if cache.next_port().is_some_and(|port| !must_fit || self.lanes.has_room_for_burst(port)) {
            let mut frames = std::mem::take(&mut self.released);
            let waited = if cache.releases_firsts() { CacheWait::First } else { CacheWait::Follower };
            let backlog = lanes_on.then(|| self.lanes.window().end());
            released.packets = cache.release(backlog, |frame| frames.push(frame));
            probe.released(Some(waited));
            released.low_latency = self.forward_burst(&mut frames, Origin::PortCache, now, egress, probe);
            probe.released(None);
            self.released = frames;
            let window = self.lanes.window();
            let cache = self.port_cache.iter_mut();
            cache.for_each(|cache| cache.end_release(released.packets, |end| window.may_have_burst(end)));
        }
        self.set_held();
        released
    }

    /// Publishes the number of waiting packets.
    pub(super) fn set_held(&self) {
        let misses = self.port_cache.as_ref().map_or(0, |cache| cache.waiting());
        self.counters.set_held((self.lanes.held() + misses) as u64);
    }
}

impl<E: Egress> BurstContext<'_, E> {
    /// Drops the frames of a burst that the port cache has no space for.
    pub(super) fn drop_full<P: Probe>(&mut self, slab: &mut Slab, cache: &mut FrameCache, probe: &mut P) {
        while let Some(frame) = cache.take_full() {
            self.drop_frame(slab, frame, DropReason::MissQueueFull, probe);
        }
    }

    /// Drops the packets that had waited for a search and have no space to wait for the controller.
    #[inline]
    pub(super) fn drop_asked<P: Probe>(
        &mut self,
        slab: &mut Slab,
        cache: Option<&mut FrameCache>,
        probe: &mut P,
    ) {
        if let Some(cache) = cache.filter(|cache| cache.has_full()) {
            self.drop_full(slab, cache, probe);
        }
    }

    /// Drops a frame that has not been admitted.
    #[inline(never)]
    pub(super) fn drop_frame<P: Probe>(
        &mut self,
        slab: &mut Slab,
        frame: Frame,
        reason: DropReason,
        probe: &mut P,
    ) {
        let burst = slab.burst(1);
        let Some(slot) = burst.first() else { return self.egress.free(frame) };
        let admitted = self.admit_burst(&mut slab.packets, &burst, std::iter::once(frame), probe);
        let packet = &mut slab.packets[slot.index()];
        if admitted > 0 {
            return refuse(self, packet, *slot, reason, probe);
        }
        debug_assert!(packet.state == State::Done);
        self.finish(packet, *slot, Via::Tables, probe);
    }
}
