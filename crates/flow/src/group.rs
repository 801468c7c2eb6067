// SPDX-License-Identifier: Apache-2.0
//! Groups: lists of actions (buckets) that entries share by reference.

use crate::{Action, GroupId, PortNo, port_no};

/// Type of a group: which buckets process a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// Every bucket, each with its own copy of the packet.
    All,
    /// One bucket, selected by a hash of the packet's flow.
    Select,
    /// The group's only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// Bucket: a list of actions in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Weight in a select group: the bucket's share of the packets.
    pub weight: u16,
    /// Port whose state decides whether the bucket is live.
    pub watch_port: Option<PortNo>,
    /// Group whose state decides whether the bucket is live.
    pub watch_group: Option<GroupId>,
    /// Actions, executed as an action set.
    pub actions: Vec<Action>,
}

/// Group of buckets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Group number.
    pub id: GroupId,
    /// Type of the group.
    pub kind: GroupType,
    /// Buckets in the controller's order.
    pub buckets: Vec<Bucket>,
}

/// Hash by which a select group chooses a bucket: FNV-1a (64 bit), mixed and folded to 32 bits.
///
/// The hash covers the packet as it reaches the group, in network byte order:
/// - destination MAC, source MAC and the EtherType after VLAN tags (2 bytes);
/// - the VLAN word of the extended header without priority (2 bytes: tag present, VID);
/// - for ARP, the sender and target protocol addresses;
/// - for IPv4 and IPv6, the upper-layer protocol (1 byte), source and destination address;
/// - for TCP, UDP and SCTP, the source and destination port.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash(u64);

impl Default for FlowHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FlowHash {
    /// Adds bytes to the hash.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns the 32-bit hash.
    #[must_use]
    pub fn finish(self) -> u32 {
        // The low bits of FNV depend only on low bits of the input. The multiplication spreads them.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }
}

/// Returns the index of the weight whose share of the hash range contains `hash`. Returns `None` if all
/// weights are 0.
#[must_use]
pub fn pick(hash: u32, weights: impl Iterator<Item = u16> + Clone) -> Option<usize> {
    let total: u64 = weights.clone().map(u64::from).sum();
    let mut at = (u64::from(hash) * total) >> 32;
    for (number, weight) in weights.enumerate() {
        if at < u64::from(weight) {
            return Some(number);
        }
        at -= u64::from(weight);
    }
    None
}

impl Group {
    /// Returns the groups that the buckets send to or watch.
    pub fn references(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.buckets.iter().flat_map(|bucket| bucket.groups().chain(bucket.watch_group))
    }

    /// Returns the real ports that the buckets send to or watch.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let sent = |action: &Action| match action {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        };
        let of_bucket = move |bucket: &Bucket| {
            bucket.actions.iter().filter_map(sent).chain(bucket.watch_port).collect::<Vec<_>>()
        };
        self.buckets.iter().flat_map(of_bucket).filter(|port| port_no::is_real(*port))
    }
}

impl Bucket {
    /// Returns the groups to which the bucket sends.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }

    /// Returns whether the bucket is live: it watches nothing, or a port or group that it watches is live.
    pub fn is_live(&self, port_up: impl Fn(PortNo) -> bool, group_live: impl Fn(GroupId) -> bool) -> bool {
        match (self.watch_port, self.watch_group) {
            (None, None) => true,
            (port, group) => port.is_some_and(port_up) || group.is_some_and(group_live),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        assert_eq!(pick(0, [0, 3, 1].into_iter()), Some(1));
        assert_eq!(pick(u32::MAX, [0, 3, 1].into_iter()), Some(2));
        assert_eq!(pick(7, [0, 0].into_iter()), None);
        let mut counts = [0; 3];
        for flow in 0..30_000u32 {
            let mut hash = FlowHash::default();
            hash.add(&flow.to_be_bytes());
            counts[pick(hash.finish(), [1, 2, 3].into_iter()).unwrap()] += 1;
        }
        for (count, expected) in counts.into_iter().zip([5_000, 10_000, 15_000i32]) {
            assert!((expected - count).abs() < expected / 10, "{counts:?}");
        }
    }
}
