// SPDX-License-Identifier: Apache-2.0
//! Groups: each bucket that is used works as an action set on a copy of the packet as it reached the group. What fails in
//! a bucket ends that copy; the packet goes on as it was.

use crate::action_set::ActionSet;
use crate::run::Run;
use crate::walk::{Network, Upper};
use flow::group::{Bucket, FlowHash, Group, GroupType, pick};
use flow::{DropReason, FlowEntry};

impl Run<'_> {
    /// Processes the packet by a group, or notes why not.
    pub(crate) fn group(&mut self, id: u32, entry: &FlowEntry) {
        let Some(group) = self.rules.group(id) else {
            self.reasons.push(DropReason::NoSuchGroup);
            return;
        };
        let used = self.used(&group);
        self.group_hits.push((id, used.clone(), self.packet.bytes.len()));
        if used.is_empty() {
            self.reasons.push(DropReason::NoLiveBucket);
        }
        for number in used {
            let packet = self.packet.clone();
            if let Err(reason) = self.bucket(&group.buckets[number], entry) {
                self.reasons.push(reason);
            }
            self.packet = packet;
        }
    }

    fn bucket(&mut self, bucket: &Bucket, entry: &FlowEntry) -> Result<(), DropReason> {
        let mut set = ActionSet::default();
        for action in &bucket.actions {
            set.write(action)?;
        }
        set.in_order().iter().try_for_each(|action| self.execute(action, entry))
    }

    /// The buckets that a packet uses.
    fn used(&self, group: &Group) -> Vec<usize> {
        let live = |bucket: &Bucket| self.is_live(bucket);
        match group.kind {
            GroupType::All => (0..group.buckets.len()).collect(),
            GroupType::Indirect => (0..group.buckets.len().min(1)).collect(),
            GroupType::FastFailover => group.buckets.iter().position(live).into_iter().collect(),
            GroupType::Select => {
                let weights = group.buckets.iter().map(|b| if live(b) { b.weight } else { 0 });
                pick(self.flow_hash(), weights).into_iter().collect()
            }
        }
    }

    fn is_live(&self, bucket: &Bucket) -> bool {
        let port_up = |port| self.rules.port(port).is_some_and(|state| state.up);
        let group_live = |id| {
            let group = self.rules.group(id);
            group.is_some_and(|group| group.buckets.iter().any(|bucket| self.is_live(bucket)))
        };
        bucket.is_live(port_up, group_live)
    }

    fn flow_hash(&self) -> u32 {
        let (bytes, headers) = (&self.packet.bytes, &self.packet.headers);
        let mut hash = FlowHash::default();
        hash.add(&bytes[..12]);
        hash.add(&headers.eth_type.to_be_bytes());
        hash.add(&headers.vlan_tci.map_or(0, |tci| 0x1000 | (tci & 0xfff)).to_be_bytes());
        if headers.network == Network::Arp {
            hash.add(&bytes[headers.l3 + 14..headers.l3 + 18]);
            hash.add(&bytes[headers.l3 + 24..headers.l3 + 28]);
        }
        if let Some(ip) = headers.ip {
            hash.add(&[ip.proto]);
            let addresses = if headers.network == Network::Ipv4 { 12..20 } else { 8..40 };
            hash.add(&bytes[headers.l3..][addresses]);
            if matches!(headers.upper, Upper::Tcp | Upper::Udp | Upper::Sctp) {
                hash.add(&bytes[ip.l4..][..4]);
            }
        }
        hash.finish()
    }
}
