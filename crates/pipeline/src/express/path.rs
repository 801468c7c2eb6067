// SPDX-License-Identifier: Apache-2.0
//! What a path record does with a packet.

use crate::context::BurstContext;
use crate::packet::Packet;
use actions::{HeaderChange, MacReplacement, MacWrite, Route, TtlSpot};
use flow::{EntryId, PortNo};
use frame::{Frame, Lane};
use keys::{HopList, Hops, PathHop, Stations, is_recordable};

/// Whether packets leave without running their entries' instructions, and in which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Directness {
    /// The entries' instructions run.
    Indirect,
    /// Packets leave directly. They are normal.
    Normal,
    /// Packets leave directly. They are low-latency.
    LowLatency,
}

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
    dec_ttl: bool,
    /// Whether the path decrements the TTL or replaces a MAC address.
    rewrites: bool,
    directness: Directness,
    /// Whether packets could leave directly once NORMAL has learned their addresses.
    awaits_stations: bool,
    /// Lane of the packets. It is low-latency if every entry of the path is low-latency.
    pub lane: Lane,
}

impl Path {
    /// Returns the path that a packet has taken, or `None` if its key does not determine the path.
    ///
    /// `permitted` is the greatest header change by an entry after which keys still determine the bits that
    /// later tables examine.
    pub fn of<E>(context: &BurstContext<'_, E>, packet: &Packet, permitted: HeaderChange) -> Option<Self> {
        let hops = packet.hops.list();
        let programs = || hops.entries().map(|entry| Some(context.entry(entry)?.1));
        if !hops.is_known() || !is_recordable(programs(), permitted) {
            return None;
        }
        let is_low_latency = programs().all(|program| program.is_some_and(|program| program.low_latency));
        let lane = if is_low_latency { Lane::LowLatency } else { Lane::Normal };
        let effect = Effect { lane, ..Effect::NONE };
        Some(Self { hops: packet.hops, stations: Stations::NONE, effect }.directly(context, packet))
    }

    /// Compiles the effect of the path's entries, if it is simple.
    fn directly<E>(mut self, context: &BurstContext<'_, E>, packet: &Packet) -> Self {
        let (mut route, mut output) = (Route::NONE, None);
        for PathHop { entry, .. } in packet.hops.list().iter() {
            let Some((_, program)) = context.entry(entry) else { return self };
            if let Some(next) = &program.route {
                let Some(both) = route.then(next) else { return self };
                route = both;
            }
            // Before the last entry, an entry may only rewrite packets as a router does, or write metadata.
            if program.next.is_some() && program.passage.is_none() && !program.only_marks {
                return self;
            }
            output = program.output;
            // The key contains the addresses on arrival, so no entry may have changed them before NORMAL.
            if program.only_normal && route.macs == MacWrite::NONE {
                self.stations = packet.stations;
                self.effect.awaits_stations = !packet.stations.are_known();
                if packet.stations.are_known() {
                    let destination = context.entry(packet.stations.destination);
                    output = destination.and_then(|(_, program)| program.learned_port());
                }
            }
        }
        let output = output.filter(|port| *port != packet.data.ext.in_port() && context.ports.is_open(*port));
        // With this setting, fragments are dropped at their admission.
        let output = output.filter(|_| !context.settings.drop_fragments);
        match (output, route.macs.as_replacement()) {
            (Some(output), Some(macs)) => {
                self.effect = Effect {
                    output,
                    macs,
                    dec_ttl: route.dec_ttl,
                    rewrites: route.dec_ttl || macs != MacReplacement::NONE,
                    directness: match self.effect.lane {
                        Lane::Normal => Directness::Normal,
                        Lane::LowLatency => Directness::LowLatency,
                    },
                    ..self.effect
                };
                self
            }
            _ => self,
        }
    }
}

impl RecordedPath<'_> {
    /// Returns a copy of the path.
    pub fn to_path(self) -> Path {
        let mut hops = Hops::NONE;
        hops.set(self.hops);
        Path { hops, stations: self.stations, effect: *self.effect }
    }

    /// Returns whether packets may take another path because this entry changes.
    pub fn depends_on(&self, id: EntryId) -> bool {
        self.hops.entries().any(|entry| entry == id) || self.stations.have(id)
    }

    /// Returns whether packets could leave directly once NORMAL has learned their addresses.
    pub fn awaits_stations(&self) -> bool {
        self.effect.awaits_stations
    }
}

impl Effect {
    /// The effect of a path that needs its entries' instructions.
    pub const NONE: Self = Self {
        output: PortNo(0),
        macs: MacReplacement::NONE,
        dec_ttl: false,
        rewrites: false,
        directness: Directness::Indirect,
        awaits_stations: false,
        lane: Lane::Normal,
    };

    /// Returns whether packets can leave without running their entries' instructions, provided that the
    /// path's rewrites succeed.
    #[inline(always)]
    pub fn directness(&self) -> Directness {
        self.directness
    }

    /// Returns whether the path decrements the TTL.
    #[inline(always)]
    pub fn decrements_ttl(&self) -> bool {
        self.dec_ttl
    }

    /// Rewrites a frame whose TTL is at this place. If the path decrements the TTL, the TTL must be high
    /// enough.
    #[inline(always)]
    pub fn rewrite(&self, frame: &mut Frame, ttl: TtlSpot) {
        if self.rewrites
            && let Some(start) = frame.start_mut()
        {
            if self.dec_ttl {
                ttl.decrement(start);
            }
            self.macs.write(start);
        }
    }
}
