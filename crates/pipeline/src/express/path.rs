// SPDX-License-Identifier: Apache-2.0
//! What a path record does with a packet.

use crate::context::BurstContext;
use crate::packet::Packet;
use crate::port_batches::{PortBatches, WayIndex};
use actions::{MacReplacement, MacWrite, PathEdits, Route, TtlSpot};
use flow::{EntryId, PortNo};
use frame::{Frame, Lane};
use keys::{HOPS_MAX, HopList, Hops, PathHop, Permitted, Stations, is_recordable};

/// A path through the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub hops: Hops,
    /// Learned addresses on which the path depends.
    pub stations: Stations,
    pub effect: Effect,
}

/// A path that is stored in a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedPath<'a> {
    pub hops: HopList<'a>,
    pub stations: Stations,
    pub effect: &'a Effect,
}

/// What a path does, if its entries only rewrite MAC addresses and the TTL, and send the packet to one port,
/// directly or by NORMAL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// Port by which the packet leaves directly. It is open, and not the ingress port.
    pub output: PortNo,
    macs: MacReplacement,
    needs: Needs,
    /// Place of the TTL that edits decrement.
    edited: TtlSpot,
    /// Port and lane of the packets that leave directly.
    pub way: WayIndex,
    /// Lane of the packets. It is low-latency if every entry of the path is low-latency.
    pub lane: Lane,
}

/// Flags: what the packets of a path need besides their output port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs(u8);

impl Needs {
    const NOTHING: Self = Self(0);
    /// The entries' instructions must run.
    const INSTRUCTIONS: Self = Self(1);
    /// The packets are normal, so they wait if lanes are on.
    const NORMAL_LANE: Self = Self(1 << 1);
    /// A MAC address must be replaced.
    const MACS: Self = Self(1 << 2);
    /// The TTL must be decremented.
    const TTL: Self = Self(1 << 3);
    /// NORMAL must learn the packets' addresses before packets can leave directly.
    const STATIONS: Self = Self(1 << 4);
    /// The TTL must be decremented by an edit, which cannot expire.
    const EDITS: Self = Self(1 << 5);
    /// The packet must be rewritten.
    const REWRITES: Self = Self(Self::MACS.0 | Self::TTL.0 | Self::EDITS.0);

    /// Returns these needs, with `more` added if `is_needed`.
    #[inline(always)]
    fn with(self, more: Self, is_needed: bool) -> Self {
        if is_needed { Self(self.0 | more.0) } else { self }
    }

    /// Returns these needs. If `lanes_on`, [`Self::NORMAL_LANE`] is added.
    const fn with_lane(self, lanes_on: bool) -> Self {
        if lanes_on { Self(self.0 | Self::NORMAL_LANE.0) } else { self }
    }

    #[inline(always)]
    const fn include(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

impl Path {
    /// Returns the path that a packet has taken, or `None` if its key does not determine the path.
    ///
    /// `permitted` has the greatest changes that entries may make: after them, keys still determine the bits
    /// that later tables examine.
    pub fn of<E>(context: &BurstContext<'_, E>, packet: &Packet, permitted: Permitted) -> Option<Self> {
        Self::through(context, &packet.hops, packet.stations, packet.data.ext.in_port(), permitted)
    }

    /// As [`Self::of`], for packets that arrive at `in_port` and hit these entries. NORMAL forwards them by
    /// these learned addresses, if it does.
    pub fn through<E>(
        context: &BurstContext<'_, E>,
        hops: &Hops,
        stations: Stations,
        in_port: PortNo,
        permitted: Permitted,
    ) -> Option<Self> {
        let path = Self { hops: *hops, stations: Stations::NONE, effect: Effect::NONE };
        let hops = hops.list();
        let programs = || hops.entries().map(|entry| Some(context.entry(entry)?.1));
        if !hops.is_known() || !is_recordable(programs(), permitted) {
            return None;
        }
        let is_low_latency = programs().all(|program| program.is_some_and(|program| program.low_latency));
        let lane = if is_low_latency { Lane::LowLatency } else { Lane::Normal };
        let effect = Effect { lane, ..path.effect };
        Some(Self { effect, ..path }.directly(context, stations, in_port))
    }

    /// Compiles the effect of the path's entries, if it is simple.
    fn directly<E>(mut self, context: &BurstContext<'_, E>, stations: Stations, in_port: PortNo) -> Self {
        let (mut route, mut edits, mut output) = (Route::NONE, PathEdits::NONE, None);
        let hops = self.hops;
        for PathHop { entry, .. } in hops.list().iter() {
            let Some((_, program)) = context.entry(entry) else { return self };
            if let Some(next) = &program.route {
                let Some(both) = route.then(next) else { return self };
                route = both;
            }
            self.effect.needs = self.effect.needs.with(Needs::TTL, route.dec_ttl);
            output = program.output;
            // Before the last entry, an entry may only rewrite or edit packets as a router does, or write
            // metadata.
            if program.passage.is_none() && !program.only_marks && output.is_none() {
                match program.add_edits(&mut edits) {
                    Some(port) => output = port,
                    None if program.next.is_some() => return self,
                    None => {}
                }
            }
            // The key contains the MAC addresses of the arriving packet, so no entry may have changed them
            // before NORMAL.
            if program.only_normal && route.macs == MacWrite::NONE && edits == PathEdits::NONE {
                self.stations = stations;
                self.effect.needs = self.effect.needs.with(Needs::STATIONS, !stations.are_known());
                if stations.are_known() {
                    let destination = context.entry(stations.destination);
                    output = destination.and_then(|(_, program)| program.learned_port());
                }
            }
        }
        let output = output.filter(|port| *port != in_port && context.ports.is_open(*port));
        // Packets that leave directly skip admission, which drops fragments if the settings require it.
        let output = output.filter(|_| !context.settings.drop_fragments);
        let rewrites = match edits {
            PathEdits::NONE => Some((route.macs, TtlSpot::UNKNOWN)),
            edits => edits.finish().filter(|_| route.is_nothing()),
        };
        let rewrites = rewrites.and_then(|(macs, edited)| Some((macs.as_replacement()?, edited)));
        if let (Some(output), Some((macs, edited))) = (output, rewrites) {
            let needs = Needs::NOTHING
                .with(Needs::NORMAL_LANE, self.effect.lane == Lane::Normal)
                .with(Needs::MACS, macs != MacReplacement::NONE)
                .with(Needs::TTL, route.dec_ttl)
                .with(Needs::EDITS, edited != TtlSpot::UNKNOWN);
            self.effect = Effect { output, macs, needs, edited, ..self.effect };
        }
        self
    }
}

impl RecordedPath<'_> {
    /// Returns a copy of the path.
    pub fn to_path(self) -> Path {
        let mut hops = Hops::NONE;
        hops.set(self.hops);
        Path { hops, stations: self.stations, effect: *self.effect }
    }

    /// Returns the entries whose changes may give packets another path.
    pub fn entries(&self) -> impl Iterator<Item = EntryId> + use<'_> {
        let stations = [self.stations.source, self.stations.destination];
        self.hops.entries().chain(stations).filter(|entry| *entry != EntryId::NONE)
    }

    /// Returns whether the packet's TTL expires at a low-latency entry that rewrites packets as a router
    /// does, before any normal entry.
    pub fn expires<E>(&self, context: &BurstContext<'_, E>, packet: &mut Packet) -> bool {
        if !self.effect.decrements_ttl() {
            return false;
        }
        let Some(ttl) = packet.data.ttl().filter(|ttl| usize::from(*ttl) <= HOPS_MAX) else { return false };
        let programs = self.hops.entries().map_while(|entry| Some(context.entry(entry)?.1));
        let programs = programs.take_while(|program| program.low_latency);
        usize::from(ttl.max(1)) <= programs.filter(|p| p.route.as_ref().is_some_and(|r| r.dec_ttl)).count()
    }

    /// Returns whether the path may change when NORMAL learns an address, or when a port is no longer at its
    /// limit of learned addresses.
    pub fn awaits_stations(&self) -> bool {
        self.effect.needs.include(Needs::STATIONS) || self.stations.need_full_port()
    }
}

impl Effect {
    /// The effect of a path that needs its entries' instructions.
    pub const NONE: Self = Self {
        output: PortNo(0),
        macs: MacReplacement::NONE,
        needs: Needs::INSTRUCTIONS,
        edited: TtlSpot::UNKNOWN,
        way: WayIndex::FIRST,
        lane: Lane::Normal,
    };

    /// Returns the effect with the index of its port and lane in these batches. If no index is free, packets
    /// do not leave directly, but run their entries' instructions.
    pub fn with_way(self, batches: &mut PortBatches) -> Self {
        if !self.is_direct() {
            return self;
        }
        match batches.index_of(self.output, self.lane) {
            Some(way) => Self { way, ..self },
            None => Self { needs: self.needs.with(Needs::INSTRUCTIONS, true), ..self },
        }
    }

    /// Returns whether packets leave without running their entries' instructions, provided that the path's
    /// rewrites succeed.
    #[inline(always)]
    pub fn is_direct(&self) -> bool {
        !self.needs.include(Needs::INSTRUCTIONS)
    }

    /// Returns whether packets leave directly and immediately. If `lanes_on`, normal packets wait. Without
    /// `edits`, paths that edit the TTL do not count.
    #[inline(always)]
    pub fn leaves(&self, lanes_on: bool, edits: bool) -> bool {
        !self.needs.include(Needs::INSTRUCTIONS.with_lane(lanes_on).with(Needs::EDITS, !edits))
    }

    /// Returns whether packets leave immediately and unchanged.
    #[inline(always)]
    pub fn leaves_unchanged<const LANES: bool>(&self) -> bool {
        !self.needs.include(const { Needs(Needs::INSTRUCTIONS.with_lane(LANES).0 | Needs::REWRITES.0) })
    }

    /// Returns whether the path rewrites packets that leave directly.
    pub fn rewrites(&self) -> bool {
        self.needs.include(Needs::REWRITES)
    }

    /// Returns whether the path decrements the TTL.
    #[inline(always)]
    pub fn decrements_ttl(&self) -> bool {
        self.needs.include(Needs::TTL)
    }

    /// Returns whether the path edits the TTL.
    #[inline(always)]
    pub fn edits_ttl(&self) -> bool {
        self.needs.include(Needs::EDITS)
    }

    /// Returns the place of a frame's TTL for [`Self::rewrite`]. Calls `locate` only if it is needed.
    #[inline(always)]
    pub fn ttl_spot(&self, frame: &Frame, edits: bool, locate: impl FnOnce() -> TtlSpot) -> TtlSpot {
        if edits && self.edits_ttl() && self.edited.is_usual(frame) {
            return self.edited;
        }
        if self.needs_ttl(edits) { locate() } else { TtlSpot::UNKNOWN }
    }

    /// Returns whether the path decrements the TTL or, if `edits`, edits it.
    #[inline(always)]
    pub fn needs_ttl(&self, edits: bool) -> bool {
        self.needs.include(Needs::TTL.with(Needs::EDITS, edits))
    }

    /// Rewrites a frame whose TTL is at this place. Returns false, and changes nothing, if the path
    /// decrements the TTL but the TTL expires or the frame is not IP, or if the path edits the TTL at another
    /// place. Without `edits`, the path must not edit the TTL.
    #[must_use]
    #[inline(always)]
    pub fn rewrite(&self, frame: &mut Frame, ttl: TtlSpot, edits: bool) -> bool {
        let edits = edits && self.edits_ttl();
        if edits && !self.edited.suits(ttl, frame) {
            return false;
        }
        let Some(start) = frame.start_mut() else { return false };
        if edits {
            self.edited.edit(start);
        } else if self.decrements_ttl() {
            if !ttl.can_decrement(start) {
                return false;
            }
            ttl.decrement(start);
        }
        self.macs.write(start);
        true
    }

    /// Returns whether [`Self::rewrite`] would return true.
    pub fn may_rewrite(&self, frame: &Frame, ttl: TtlSpot) -> bool {
        let suits = !self.edits_ttl() || self.edited.suits(ttl, frame);
        suits && frame.start().is_some_and(|start| !self.decrements_ttl() || ttl.can_decrement(start))
    }
}
