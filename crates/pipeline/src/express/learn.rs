// SPDX-License-Identifier: Apache-2.0
//! Makes records of the paths that packets have taken, after the whole burst has been processed.

use super::budget::{FrameCache, RecordBudget};
use super::cache::{Express, Missed};
use super::path::Path;
use super::waiting::WaitingKeys;
use crate::context::BurstContext;
use crate::packet::{self, Packet};
use crate::probe::{Probe, ProbeStep};
use crate::slab::{BURST, PacketSlot};
use keys::{ExpressKey, FoundPath, Hops, PathHop};

impl Express {
    /// Makes records for the packets of the burst that have left without a record. Saves the keys of
    /// packets that wait in the backlog.
    #[inline]
    pub(crate) fn learn<E, P: Probe>(
        &mut self,
        context: &BurstContext<'_, E>,
        packets: &mut [Packet],
        waiting: &mut WaitingKeys,
        lanes_on: bool,
        budget: &mut RecordBudget<'_>,
        probe: &mut P,
    ) {
        // A packet that left on the fast-forwarding path shows that no earlier packet with its values in the
        // LUTs waits. If keys are coarse, an earlier packet with its key may have other values and wait.
        let may_record = !self.has_coarse_keys || context.window.is_empty();
        for number in 0..self.missed.len() {
            let Missed { slot, at } = self.missed[number];
            let packet = &mut packets[slot.index()];
            if lanes_on && packet.path != packet::Path::Left {
                packet.awaits_record = true;
                waiting.save(slot, &self.burst.keys[at]);
                continue;
            }
            if !may_record || may_lack_question(context, packet) {
                continue;
            }
            let Some(path) = Path::of(context, packet, self.permitted) else {
                self.negative |= 1 << (at % BURST);
                continue;
            };
            // While a packet of the flow waits in the backlog, every new record of the flow needs a fence.
            let hash = self.burst.hashes[at];
            let waits = |missed: &Missed| {
                self.burst.hashes[missed.at] == hash
                    && packets[missed.slot.index()].path != packet::Path::Left
            };
            if !(lanes_on && self.missed.iter().any(waits)) {
                let key = self.burst.keys[at];
                self.learn_path(&key, hash, &path, 0, context, budget);
            }
        }
        if self.takes_over {
            self.learn_previous(context, packets, budget);
        }
        if !self.missed.is_empty() {
            probe.mark(ProbeStep::Learn, self.missed.len() as u32);
        }
        self.missed.clear();
    }

    /// Makes a record for the packets with this key, which take a path that a search has found under the
    /// present rules. Packets of the flow may wait in the backlog.
    pub(crate) fn learn_found<E>(
        &mut self,
        context: &BurstContext<'_, E>,
        (key, hash): (&ExpressKey, u64),
        found: &FoundPath,
        budget: &mut RecordBudget<'_>,
    ) {
        let FoundPath { hops, stations } = found;
        // A record that displaces another one is made only for a flow that arrives again. The path is found
        // for the first packet, so it is looked up in the tables, which note that the flow has arrived.
        if may_ask(context, hops) || !self.store.has_room(hash, key) {
            return;
        }
        let fence = context.window.fence().filter(|_| !self.has_coarse_keys || context.window.is_empty());
        let path = Path::through(context, hops, *stations, budget.in_port, self.permitted);
        if let (Some(fence), Some(path)) = (fence, path) {
            self.learn_path(key, hash, &path, fence, context, budget);
        }
    }

    /// Makes records for packets that have left after they waited in the backlog or were held. Notes in the
    /// port cache which of them cannot have a record.
    #[inline]
    pub(crate) fn learn_waiting<E, P: Probe>(
        &mut self,
        context: &BurstContext<'_, E>,
        mut cache: Option<&mut FrameCache>,
        packets: &mut [Packet],
        burst: &[PacketSlot],
        waiting: &WaitingKeys,
        probe: &mut P,
    ) {
        cache.iter_mut().for_each(|cache| self.overtake_waiting(cache, packets, burst, waiting));
        let mut unknown = 0;
        for slot in burst {
            let packet = &mut packets[slot.index()];
            if !std::mem::take(&mut packet.awaits_record) {
                continue;
            }
            unknown += 1;
            if may_lack_question(context, packet) {
                continue;
            }
            let Some(fence) = context.window.fence() else { continue };
            let key = waiting.key(*slot);
            let hash = self.reader.hash(&key);
            let in_port = packet.data.ext.in_port();
            if let Some(path) = Path::of(context, packet, self.permitted) {
                let mut budget = RecordBudget::new(cache.as_deref_mut(), in_port);
                self.learn_path(&key, hash, &path, fence, context, &mut budget);
            } else if let Some(cache) = &mut cache {
                cache.set_negative(in_port, &key, hash);
            }
        }
        if unknown > 0 {
            probe.mark(ProbeStep::Learn, unknown);
        }
    }
}

/// Returns whether the controller may be asked about packets that take these hops. The first of them must go
/// through the tables, so that it asks and the others wait.
fn may_ask<E>(context: &BurstContext<'_, E>, hops: &Hops) -> bool {
    let is_miss = |hop: &PathHop| context.entry(hop.entry).is_some_and(|(_, program)| program.miss_entry);
    let mut hops = hops.list().iter();
    context.settings.ask_controller && hops.any(|hop| context.quench.has(hop.table) && is_miss(&hop))
}

/// Returns whether the controller would have been asked about a packet if there had been more space. Later
/// packets of its flow must not hit a record, because nothing would limit their packet-ins.
fn may_lack_question<E>(context: &BurstContext<'_, E>, packet: &Packet) -> bool {
    context.quenches && packet.scarce && packet.leaves.is_none()
}
