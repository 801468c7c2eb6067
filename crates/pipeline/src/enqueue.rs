// SPDX-License-Identifier: Apache-2.0
//! The stage after the fast-forwarding path if lanes are on. Packets leave, are held until earlier packets of
//! their flow have left, join the backlog, or are dropped because the backlog is full.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::lanes::Lanes;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, Via};
use crate::slab::{PacketSlot, Slab};
use flow::DropReason;

/// Distributes a burst after the fast-forwarding path. Frees the slots of packets that have left, queues
/// packets with a fence in the hold queue, and admits the other packets to the backlog or drops them. Returns
/// the number of packets newly held.
pub(crate) fn enqueue_or_finish<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    lanes: &mut Lanes,
    slab: &mut Slab,
    burst: &[PacketSlot],
    probe: &mut P,
) -> usize {
    let alone = lanes.backlogged() == 0;
    lanes.queue_last_burst(&slab.packets);
    let mut held = 0;
    for slot in burst {
        let packet = &mut slab.packets[slot.index()];
        if packet.state == State::Finish && packet.path == Path::Tables {
            probe.finishing(*slot);
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
            // A finished packet without outputs need not keep its order, because it sends nothing.
            _ if packet.state == State::Done && packet.outputs.is_empty() && packet.leaves.is_none() => {
                context.finish(packet, *slot, Via::Tables, probe);
            }
            _ if alone => {
                lanes.last_burst.push(*slot);
                continue;
            }
            _ if context.egress.may_hold(&packet.data.frame, packet.share())
                && lanes.admit(*slot, packet) =>
            {
                continue;
            }
            _ => refuse(context, packet, *slot, packet.share().refused(), probe),
        }
        slab.free(&[*slot]);
    }
    held
}

/// Drops a packet and its pending outputs, because the backlog has no space for it or because the worker
/// ends.
#[inline(never)]
pub(crate) fn refuse<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packet: &mut Packet,
    slot: PacketSlot,
    reason: DropReason,
    probe: &mut P,
) {
    probe.refused(&packet.data.frame, packet.waits_for(), reason);
    context.discard(packet);
    context.fail(packet, reason);
    packet.state = State::Done;
    context.finish(packet, slot, Via::Tables, probe);
}
