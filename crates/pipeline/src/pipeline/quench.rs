// SPDX-License-Identifier: Apache-2.0
//! Quenching of packet-ins: while the controller is asked about a flow, later packets of the flow wait in the
//! port cache.
//!
//! Later packets usually join the queue of their flow before they are admitted. Packets that are further on,
//! such as those in the backlog, return to the queue, and run again after the controller's answer.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::enqueue::refuse;
use crate::express::{Express, FrameCache, WaitingKeys};
use crate::packet::Packet;
use crate::probe::{Probe, Via};
use crate::slab::PacketSlot;
use actions::{CompiledPacketOut, HeaderChange, ProgramStep};
use dataplane::Question;
use flow::operation::Releases;
use flow::{DropReason, Nanos};
use keys::ExpressKey;
use port_cache::Asked;

impl<E: Egress> BurstContext<'_, E> {
    /// Returns whether packet-ins may be quenched.
    #[inline]
    pub(super) fn may_quench(&self, cache: Option<&FrameCache>) -> bool {
        self.settings.ask_controller && cache.is_some_and(|cache| cache.quench().is_some())
    }

    /// Finishes the packets whose packet-ins may be quenched, in order. They must be packets of the last
    /// burst of `express`, or of the backlog.
    #[inline(never)]
    pub(super) fn quench<P: Probe>(
        &mut self,
        cache: Option<&mut FrameCache>,
        express: &mut Express,
        packets: &mut [Packet],
        waiting: &WaitingKeys,
        probe: &mut P,
    ) {
        let Some(cache) = cache else { return debug_assert!(false, "only a port cache quenches packet-ins") };
        cache.begin(self.now);
        self.quenches = false;
        let fence = self.window.end();
        for slot in std::mem::take(&mut self.asking) {
            let packet = &mut packets[slot.index()];
            let key = express.take_missed(slot).or_else(|| express.take_waiting(packet, slot, waiting));
            let asked = match &key {
                Some((key, hash)) => cache.ask(packet.data.ext.in_port(), (key, *hash), fence),
                None => Asked::Full,
            };
            match (asked, &key) {
                (Asked::New(flow, ends), _) => {
                    let question = Question { flow, asked: self.now, ends };
                    self.outputs.set_question(packet.outputs, question);
                    self.unsent = false;
                    self.finish(packet, slot, Via::Tables, probe);
                    if self.unsent {
                        cache.withdraw(flow);
                    }
                }
                (Asked::Before, Some((key, hash))) => {
                    self.return_to_queue(cache, packet, slot, (key, *hash), probe);
                }
                (Asked::Full | Asked::Before, _) => self.finish(packet, slot, Via::Tables, probe),
            }
        }
        self.quenches = true;
    }

    /// Puts a packet back into the queue of its flow. Drops the packet if it cannot wait.
    fn return_to_queue<P: Probe>(
        &mut self,
        cache: &mut FrameCache,
        packet: &mut Packet,
        slot: PacketSlot,
        key: (&ExpressKey, u64),
        probe: &mut P,
    ) {
        if !self.may_run_again(packet) {
            return refuse(self, packet, slot, DropReason::PacketInQuenched, probe);
        }
        self.discard(packet);
        let (in_port, frame) = (packet.data.ext.in_port(), packet.data.take_frame());
        let bytes = frame.len() as u32;
        match cache.give_back(in_port, key, frame, bytes, |frame| self.egress.set_aside(frame)) {
            Ok(()) => {
                // The packet will be counted when it is processed again.
                for hop in packet.hops.list().iter() {
                    self.entry(hop.entry).into_iter().for_each(|(cell, _)| cell.uncount(bytes.into()));
                    self.counters.uncount_table(hop.table);
                }
                probe.returned(slot);
            }
            Err(frame) => {
                packet.data.frame = frame;
                refuse(self, packet, slot, DropReason::MissQueueFull, probe);
            }
        }
    }

    /// Returns whether the packet's frame is as it was received, and no group, meter or drop of a copy has
    /// counted the packet.
    fn may_run_again(&self, packet: &Packet) -> bool {
        let hops = packet.hops.list();
        let runs_group = |step: &ProgramStep| matches!(step, ProgramStep::Group(_));
        let is_unchanged = |program: &actions::Program| {
            program.change == HeaderChange::Nothing
                && program.route.is_none()
                && program.write.is_empty()
                && program.meter.is_none()
                && !program.apply.iter().any(runs_group)
        };
        packet.reason.is_none()
            && hops.is_known()
            && hops.entries().all(|entry| self.entry(entry).is_some_and(|(_, program)| is_unchanged(program)))
    }
}

/// Releases the packets that waited for this packet-out of the controller. A packet-out without a buffer ID
/// is recognised by the key of its packet.
pub(super) fn note_packet_out(
    cache: &mut FrameCache,
    out: &CompiledPacketOut,
    express: Option<&Express>,
    now: Nanos,
) {
    cache.begin(now);
    match (out.releases, express) {
        (Releases::Held(flow), _) => cache.answer(flow),
        (Releases::SameFlow, Some(express)) if cache.is_asking() => {
            let (key, hash) = express.key_of_bytes(&out.bytes, out.in_port);
            cache.answer_flow(out.in_port, &key, hash);
        }
        (Releases::SameFlow | Releases::Nothing, _) => {}
    }
}
