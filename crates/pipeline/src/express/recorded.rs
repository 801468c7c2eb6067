// SPDX-License-Identifier: Apache-2.0
//! Runs the entries of path records for admitted packets. These are packets without a direct path, and
//! packets that have waited.

use super::cache::Express;
use super::pass::Passage;
use super::path::RecordedPath;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{self, Packet, State};
use crate::probe::{Probe, ProbeStep};
use crate::slab::PacketSlot;
use actions::TtlSpot;
use dataplane::FoundBy;
use flow::EntryId;
use keys::PathHop;
use wire::Depth;

impl<E: Egress> BurstContext<'_, E> {
    /// Runs the entries that a record gave for a packet. The packet's outputs leave later.
    #[inline]
    pub(crate) fn run_recorded<P: Probe>(&mut self, packet: &mut Packet, slot: PacketSlot, probe: &mut P) {
        let hops = packet.hops.take();
        for PathHop { table, entry } in hops.list().iter() {
            probe.looked_up(slot, table, FoundBy::Express, entry, packet.data.frame.len());
            let state = self.hit(packet, table, entry);
            self.counters.add_table(table, 1, u64::from(state.is_some()));
            // An action may end a packet early, for example a decrement of a TTL that expires.
            if state.and_then(State::waits_for).is_none() {
                break;
            }
        }
        debug_assert!(packet.state.waits_for().is_none(), "the last entry of a path leads to no table");
    }

    /// Runs the entries that records gave for packets of a burst that have waited. Their outputs leave later.
    pub(crate) fn run_waiting<P: Probe>(
        &mut self,
        express: Option<&Express>,
        packets: &mut [Packet],
        burst: &[PacketSlot],
        probe: &mut P,
    ) {
        let (mut passage, mut ran) = (Passage::default(), 0);
        for slot in burst {
            let packet = &mut packets[slot.index()];
            if packet.state != State::Recorded {
                continue;
            }
            packet.path = packet::Path::Recorded;
            let in_port = packet.data.ext.in_port();
            let path = express.and_then(|express| express.path(packet.record));
            // Paths with equal entries and equal learned addresses have equal effects, whatever their keys
            // are.
            let path = path.filter(|path| {
                path.effect.is_direct()
                    && path.hops.is_same(packet.hops.list())
                    && path.stations == packet.stations
                    && path.effect.output != in_port
            });
            ran += 1;
            match path {
                Some(path) if self.run_direct(packet, path, *slot, probe) => {
                    passage.add(self, path.hops);
                }
                _ => self.run_recorded(packet, *slot, probe),
            }
        }
        passage.end(self);
        if ran > 0 {
            probe.mark(ProbeStep::Recorded, ran);
        }
    }

    /// Sends a packet by a direct path, without running the instructions of its entries. Returns false if the
    /// instructions must run, because the packet's TTL cannot be decremented or is at another place.
    #[inline]
    fn run_direct<P: Probe>(
        &mut self,
        packet: &mut Packet,
        path: RecordedPath<'_>,
        slot: PacketSlot,
        probe: &mut P,
    ) -> bool {
        let mut ttl = TtlSpot::UNKNOWN;
        if path.effect.needs_ttl(true) {
            packet.data.locate(Depth::L3);
            ttl = TtlSpot::of(&packet.data.layers);
        }
        if path.effect.rewrites() && !path.effect.rewrite(&mut packet.data.frame, ttl, true) {
            return false;
        }
        let (bytes, counting) = (packet.data.frame.len(), self.cells.counting(self.now));
        for PathHop { table, entry } in path.hops.iter() {
            probe.looked_up(slot, table, FoundBy::Express, entry, bytes);
            counting.count(entry, bytes);
        }
        if path.stations.source != EntryId::NONE {
            counting.touch(path.stations.source);
        }
        packet.leaves = Some(path.effect.output);
        packet.state = State::Done;
        true
    }
}
