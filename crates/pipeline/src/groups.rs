// SPDX-License-Identifier: Apache-2.0
//! Execution of groups.
//!
//! Each executed bucket works on a copy of the packet as it entered the group. If the group is the packet's
//! last action, the last bucket works on the packet itself.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::group_table::{CompiledGroup, GroupCells};
use crate::packet::{Packet, Take};
use flow::group::{Bucket, FlowHash, GroupType, pick};
use flow::{DropReason, Limits};
use wire::Depth;
use wire::layers::header;

impl<E: Egress> BurstContext<'_, E> {
    /// Processes the packet by a group. `take` is what the group's last output may take of the packet;
    /// `chain` is the number of groups already entered.
    #[inline(never)]
    pub(crate) fn group(&mut self, packet: &mut Packet, id: u32, take: Take, chain: usize) {
        let groups = self.groups;
        let Some((compiled, cells)) = groups.get(id).filter(|_| chain < Limits::GROUP_CHAIN) else {
            return self.fail(packet, DropReason::NoSuchGroup);
        };
        cells.total.count(1, packet.frame.len() as u64, self.now);
        let group = &compiled.group;
        let one = match group.kind {
            GroupType::All => {
                for number in 0..group.buckets.len() {
                    let take = if number + 1 == group.buckets.len() { take } else { Take::Copy };
                    self.bucket(packet, compiled, cells, number, take, chain);
                }
                if group.buckets.is_empty() {
                    self.fail(packet, DropReason::NoLiveBucket);
                }
                return;
            }
            GroupType::Indirect => group.buckets.first().map(|_| 0),
            GroupType::FastFailover => group.buckets.iter().position(|bucket| self.is_live(bucket, chain)),
            GroupType::Select => {
                let weights = group.buckets.iter().map(|b| if self.is_live(b, chain) { b.weight } else { 0 });
                pick(flow_hash(packet), weights)
            }
        };
        match one {
            Some(number) => self.bucket(packet, compiled, cells, number, take, chain),
            None => self.fail(packet, DropReason::NoLiveBucket),
        }
    }

    fn bucket(
        &mut self,
        packet: &mut Packet,
        group: &CompiledGroup,
        cells: &GroupCells,
        number: usize,
        take: Take,
        chain: usize,
    ) {
        cells.buckets[number].count(1, packet.frame.len() as u64, self.now);
        let steps = &group.steps[number];
        if take == Take::Frame {
            self.steps(packet, steps, Take::Frame, chain + 1);
            return;
        }
        // The copy has the same headroom as the packet, so a bucket's pushes succeed or fail alike on both.
        let Some(mut copy) = self.egress.buffer(packet.frame.room_len()) else {
            return self.fail(packet, DropReason::NoBuffer);
        };
        if !copy.copy_with_room(&packet.frame) {
            self.egress.free(copy);
            return self.fail(packet, DropReason::NoBuffer);
        }
        let original = std::mem::replace(&mut packet.frame, copy);
        let kept = (packet.ext, packet.layers, packet.queue);
        self.steps(packet, steps, Take::Copy, chain + 1);
        (packet.ext, packet.layers, packet.queue) = kept;
        let copy = std::mem::replace(&mut packet.frame, original);
        self.egress.free(copy);
    }

    fn is_live(&self, bucket: &Bucket, chain: usize) -> bool {
        let port_up = |port| self.ports.get(port).is_some_and(|state| state.up);
        let group_live = |id| {
            let group = self.groups.get(id).filter(|_| chain < Limits::GROUP_CHAIN);
            group.is_some_and(|(g, _)| g.group.buckets.iter().any(|bucket| self.is_live(bucket, chain + 1)))
        };
        bucket.is_live(port_up, group_live)
    }
}

/// Returns the packet's hash, as [`FlowHash`] defines it.
fn flow_hash(packet: &mut Packet) -> u32 {
    packet.locate(Depth::L4);
    let (bytes, layers) = (packet.frame.bytes(), &packet.layers);
    let part = |from: usize, len: usize| bytes.get(from..from + len).unwrap_or_default();
    let mut hash = FlowHash::default();
    hash.add(part(0, 12));
    hash.add(&layers.eth_type.to_be_bytes());
    let tagged = layers.present & header::VLAN != 0;
    hash.add(&if tagged { 0x1000 | (layers.vlan_tci & 0xfff) } else { 0 }.to_be_bytes());
    if layers.present & header::ARP != 0 {
        hash.add(part(usize::from(layers.l3) + 14, 4));
        hash.add(part(usize::from(layers.l3) + 24, 4));
    }
    if layers.present & header::IP != 0 {
        hash.add(&[layers.ip_proto]);
        let (at, len) = if layers.present & header::IPV4 != 0 { (12, 8) } else { (8, 32) };
        hash.add(part(usize::from(layers.l3) + at, len));
        let ported = header::TCP | header::UDP | header::SCTP;
        if layers.present & ported != 0 {
            hash.add(part(layers.l4.into(), 4));
        }
    }
    hash.finish()
}
