// SPDX-License-Identifier: Apache-2.0
//! Admission: frames become packets, and frames that must not be forwarded are dropped.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, State, Take};
use crate::probe::Probe;
use crate::slab::PacketSlot;
use actions::CompiledPacketOut;
use flow::{DropReason, EntryId, Next, PortNo, TableId};
use frame::Frame;
use wire::Depth;
use wire::ethernet::ETHERNET_BYTES;

/// Ingress port of packets, and whether packets may be received there.
#[derive(Clone, Copy, Debug)]
struct Ingress {
    port: PortNo,
    receives: bool,
}

impl<E: Egress> BurstContext<'_, E> {
    /// Sets up one packet in each slot of `burst`, from the first of `frames`. Returns the number of admitted
    /// packets.
    pub(crate) fn admit_burst<P: Probe>(
        &mut self,
        packets: &mut [Packet],
        burst: &[PacketSlot],
        frames: impl Iterator<Item = Frame>,
        probe: &mut P,
    ) -> usize {
        let mut admitted = 0;
        // Nearly always, all frames of a burst are from one port, so only the last port is kept.
        let mut ingress = Ingress { port: PortNo(0), receives: false };
        for (slot, frame) in burst.iter().zip(frames) {
            probe.arrives(*slot, &frame);
            let port = PortNo(frame.meta.in_port);
            probe.packet(port, frame.meta.sequence);
            if port != ingress.port {
                ingress = Ingress { port, receives: self.receives(port) };
            }
            admitted += usize::from(self.admit(&mut packets[slot.index()], frame, ingress));
        }
        admitted
    }

    /// Returns whether a port may receive packets.
    #[inline(never)]
    pub(crate) fn receives(&self, port: PortNo) -> bool {
        self.ports.get(port).is_some_and(|port| port.up && !port.no_recv)
    }

    /// Sets up a packet. Drops runts, packets of ports that do not receive, and, if the settings require it,
    /// fragments. Returns whether the packet is admitted.
    #[inline(always)]
    fn admit(&mut self, packet: &mut Packet, frame: Frame, ingress: Ingress) -> bool {
        let short = frame.len() < ETHERNET_BYTES;
        packet.admit(frame, ingress.port);
        let reason = if short {
            DropReason::Runt
        } else if !ingress.receives {
            DropReason::PortNotReceiving
        } else if self.settings.drop_fragments && is_fragment(packet) {
            DropReason::Fragment
        } else {
            return true;
        };
        packet.state = State::Done;
        packet.reason = Some(reason);
        false
    }

    /// Sets up a packet for a packet-out of the controller, and runs the packet-out's actions.
    pub(crate) fn admit_packet_out(&mut self, packet: &mut Packet, out: &CompiledPacketOut) {
        let mut frame = self.egress.buffer(out.bytes.len()).unwrap_or_else(Frame::hollow);
        let copied = frame.fill(&out.bytes);
        frame.meta.in_port = out.in_port.0;
        let short = frame.len() < ETHERNET_BYTES;
        packet.admit(frame, out.in_port);
        (packet.table, packet.entry, packet.miss_entry) = (TableId(0), EntryId::NONE, false);
        packet.state = State::Done;
        if short || !copied {
            packet.reason = Some(if copied { DropReason::Runt } else { DropReason::NoBuffer });
        } else {
            let last = if out.to_tables { Take::Copy } else { Take::Frame };
            if self.steps(packet, &out.steps, last, 0) && out.to_tables {
                packet.state = State::Waits(Next::Table(TableId(0)));
            }
        }
    }
}

/// Returns whether a packet is an IP fragment. The first part of a fragmented packet is a fragment, too.
#[inline(never)]
fn is_fragment(packet: &mut Packet) -> bool {
    packet.data.locate(Depth::L4);
    packet.data.layers.fragment
}
