// SPDX-License-Identifier: Apache-2.0
//! Execution of groups.
//!
//! Each executed bucket works on a copy of the packet in the state in which it entered the group. If the
//! group is the packet's last action, the last bucket works on the packet itself.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, Take};
use actions::{CompiledGroup, GroupCells};
use flow::group::{Bucket, GroupType, pick};
use flow::{DropReason, GroupId, Limits};

impl<E: Egress> BurstContext<'_, E> {
    /// Executes a group for the packet. `take` states whether the group's last output may take the packet's
    /// frame. `chain` is the number of groups that the packet has already entered.
    #[inline(never)]
    pub(crate) fn group(&mut self, packet: &mut Packet, id: GroupId, take: Take, chain: usize) {
        let groups = self.groups;
        let Some((compiled, cells)) = groups.get(id).filter(|_| chain < Limits::GROUP_CHAIN) else {
            return self.fail(packet, DropReason::NoSuchGroup);
        };
        cells.total.count(1, packet.data.frame.len() as u64, self.now);
        let group = compiled.group();
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
                pick(packet.data.flow_hash(), weights)
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
        cells.buckets[number].count(1, packet.data.frame.len() as u64, self.now);
        let steps = group.steps(number);
        if take == Take::Frame {
            self.steps(packet, steps, Take::Frame, chain + 1);
            return;
        }
        // The copy has as much headroom as the packet, so a push of a tag succeeds for both or for neither.
        let Some(mut copy) = self.egress.buffer(packet.data.frame.room_len()) else {
            return self.fail(packet, DropReason::NoBuffer);
        };
        if !copy.copy_with_room(&packet.data.frame) {
            self.egress.free(copy);
            return self.fail(packet, DropReason::NoBuffer);
        }
        let original = std::mem::replace(&mut packet.data.frame, copy);
        let kept = (packet.data.ext, packet.data.layers, packet.data.queue);
        self.steps(packet, steps, Take::Copy, chain + 1);
        (packet.data.ext, packet.data.layers, packet.data.queue) = kept;
        let copy = std::mem::replace(&mut packet.data.frame, original);
        self.egress.free(copy);
    }

    fn is_live(&self, bucket: &Bucket, chain: usize) -> bool {
        let port_up = |port| self.ports.get(port).is_some_and(|state| state.up);
        let group_live = |id| {
            let group = self.groups.get(id).filter(|_| chain < Limits::GROUP_CHAIN);
            group.is_some_and(|(g, _)| g.group().buckets.iter().any(|bucket| self.is_live(bucket, chain + 1)))
        };
        bucket.is_live(port_up, group_live)
    }
}
