// SPDX-License-Identifier: Apache-2.0
//! Groups: one action that stands for several lists of them.

use crate::Action;
use crate::{PortNo, port_no};

/// How a group uses its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// All buckets, each on its own copy.
    All,
    /// One bucket, chosen by a hash of the packet's flow.
    Select,
    /// The only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// One list of actions in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Share of the packets, for select groups.
    pub weight: u16,
    /// The port that must be up, for fast failover.
    pub watch_port: Option<u32>,
    /// The group that must be live, for fast failover.
    pub watch_group: Option<u32>,
    /// What is done, as an action set.
    pub actions: Vec<Action>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// How it uses its buckets.
    pub kind: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// The hash by which a select group chooses a bucket: FNV-1a (64 bit) over the packet as it reaches the group, folded to
/// 32 bits. The bytes, in network order: destination MAC, source MAC, EtherType behind VLAN tags (2 bytes), VLAN word of
/// the extended header without priority (2 bytes: tag present, VID), then of an ARP packet sender and target protocol
/// address, of an IPv4 or IPv6 packet the upper-layer protocol (1 byte), source and destination address, and of TCP, UDP
/// and SCTP source and destination port. Packets of a connection in one direction have one hash.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash(u64);

impl Default for FlowHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FlowHash {
    /// Takes the next bytes in.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash.
    #[must_use]
    pub fn finish(self) -> u32 {
        // The low bits of FNV depend on the low bits of the bytes only: the multiplication spreads them.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }
}

/// Which of these shares a hash falls into; none if all are 0.
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
    /// Groups that its buckets send to or watch.
    pub fn references(&self) -> impl Iterator<Item = u32> + '_ {
        self.buckets.iter().flat_map(|bucket| bucket.groups().chain(bucket.watch_group))
    }

    /// The ports that its buckets send to or watch.
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
    /// Groups that it sends to.
    pub fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }

    /// Whether the bucket can be used: it watches nothing, or what it watches is live.
    pub fn is_live(&self, port_up: impl Fn(PortNo) -> bool, group_live: impl Fn(u32) -> bool) -> bool {
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
