// SPDX-License-Identifier: Apache-2.0
//! Flow entries that forward on all shortest paths (ECMP).
//!
//! A switch with several next hops for a host has a select group for them. Its hash is the same in all
//! switches, so groups differ in their buckets. Switches that packets reach after a choice have a bucket for
//! each combination of the earlier choices and their own: packets that the earlier switches sent one way are
//! still distributed evenly. Which port belongs to which bucket is random in each switch. This is exact if
//! the number of earlier combinations is the same on all ways to a switch, and its buckets have room for all.

use crate::network::spec::{End, Network};
use fastrand::Rng;
use flow::group::{Bucket, Group, GroupType};
use flow::{
    Action, Field, FieldMatch, FlowMod, GroupId, Instructions, Limits, Match, MatchError, PortNo, TableId,
};
use model::{Change, GroupCommand};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of buckets of a group, and of the combinations of earlier choices. If there are more
/// combinations, some of them share buckets, and their packets are no longer distributed independently.
const BUCKETS: usize = 256;
/// Maximum number of buckets in all switches.
pub const ALL_BUCKETS: usize = 1 << 22;
/// Priorities of the entries that examine the 5-tuple, and of those for hosts.
const TUPLE_PRIORITY: u16 = 2;
const HOST_PRIORITY: u16 = 1;
/// Address of which no host has packets.
const NO_HOST: u128 = 0x0101_0101;

/// Address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress(pub [u8; 4]);

/// Error of [`ecmp`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EcmpError {
    /// A match is invalid.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The groups of a switch, or of all switches, are too many or have too many buckets.
    #[error("switch {node} has too many groups or buckets; those for {hosts} receiving hosts fit")]
    Buckets {
        /// Index of the switch whose group has no place.
        node: usize,
        /// Number of hosts whose groups fit in all switches. Their switches have the lowest indices.
        hosts: usize,
    },
}

/// Groups of the switches: the next hops of each, and the number of buckets.
struct Groups {
    of: Vec<BTreeMap<NextHops, GroupId>>,
    buckets: Vec<usize>,
    all_buckets: usize,
    randoms: Vec<Rng>,
}

impl Groups {
    fn new(network: &Network) -> Self {
        let nodes = network.nodes.len();
        let seeds = (1..).map(|n: u64| (network.seed ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            of: vec![BTreeMap::new(); nodes],
            buckets: vec![0; nodes],
            all_buckets: 0,
            randoms: seeds.take(nodes).map(Rng::with_seed).collect(),
        }
    }

    /// Returns the group of a switch for these next hops, with the change that adds it if it is new. Returns
    /// `None` if the switch, or all switches, have too many groups or buckets.
    fn group(&mut self, node: usize, hops: &NextHops) -> Option<(GroupId, Option<Change>)> {
        let groups = &mut self.of[node];
        if let Some(id) = groups.get(hops) {
            return Some((*id, None));
        }
        let id = GroupId(groups.len() as u32 + 1);
        let bucket = |port| Bucket { weight: 1, actions: vec![Action::output(port)], ..Bucket::default() };
        let buckets: Vec<_> = buckets(hops, &mut self.randoms[node]).into_iter().map(bucket).collect();
        self.buckets[node] += buckets.len();
        self.all_buckets += buckets.len();
        groups.insert(hops.clone(), id);
        let is_full = groups.len() > Limits::GROUPS_PER_TYPE
            || buckets.len() > Limits::GROUP_BUCKETS
            || self.buckets[node] > Limits::BUCKETS
            || self.all_buckets > ALL_BUCKETS;
        let group = Group { id, kind: GroupType::Select, buckets };
        (!is_full).then_some((id, Some(Change::Group(GroupCommand::Add, group))))
    }
}

/// Next hops of a switch for the hosts of another switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct NextHops {
    /// Ports of the switch, in ascending order.
    ports: Vec<PortNo>,
    /// Number of combinations of choices that earlier switches on a path make, at most [`BUCKETS`].
    choices: usize,
}

/// Returns for each switch the links to its neighbours: the port, and the index of the neighbour.
fn neighbours(network: &Network) -> Vec<Vec<(PortNo, usize)>> {
    let mut all = vec![Vec::new(); network.nodes.len()];
    for [a, b] in network.links.iter().map(|link| link.ends) {
        for (End { node, port }, peer) in [(a, b.node), (b, a.node)] {
            if let Some(list) = all.get_mut(node) {
                list.push((port, peer));
            }
        }
    }
    all.iter_mut().for_each(|list| list.sort_unstable());
    all
}

fn distances_to(target: usize, neighbours: &[Vec<(PortNo, usize)>]) -> Vec<Option<u32>> {
    let mut found = vec![None; neighbours.len()];
    let mut next = VecDeque::from([(target, 0)]);
    while let Some((node, distance)) = next.pop_front() {
        match found.get_mut(node) {
            Some(place @ None) => *place = Some(distance),
            _ => continue,
        }
        next.extend(neighbours[node].iter().map(|(_, peer)| (*peer, distance + 1)));
    }
    found
}

/// Returns the number of links from each switch to `target`, or `None` for switches without a path.
#[must_use]
pub fn distances(network: &Network, target: usize) -> Vec<Option<u32>> {
    distances_to(target, &neighbours(network))
}

/// Returns the next hops of all switches for the hosts of `target`.
fn next_hops(target: usize, neighbours: &[Vec<(PortNo, usize)>]) -> Vec<NextHops> {
    let distances = distances_to(target, neighbours);
    let mut order: Vec<usize> = (0..neighbours.len()).filter(|node| distances[*node].is_some()).collect();
    order.sort_by_key(|node| std::cmp::Reverse(distances[*node]));
    let mut all = vec![NextHops { ports: Vec::new(), choices: 1 }; neighbours.len()];
    for node in order {
        let nearer = |peer: usize| distances[peer].map(|distance| distance + 1) == distances[node];
        let hops: Vec<_> = neighbours[node].iter().filter(|(_, peer)| nearer(*peer)).copied().collect();
        let choices = all[node].choices.saturating_mul(hops.len()).min(BUCKETS);
        for (_, peer) in &hops {
            all[*peer].choices = all[*peer].choices.max(choices);
        }
        all[node].ports = hops.into_iter().map(|(port, _)| port).collect();
    }
    all
}

/// Returns the buckets of a group: a port for each of them.
fn buckets(hops: &NextHops, random: &mut Rng) -> Vec<PortNo> {
    let most = (BUCKETS.min(Limits::GROUP_BUCKETS) / hops.ports.len().max(1)).max(1);
    let mut ports = hops.ports.clone();
    let shuffled = (0..hops.choices.clamp(1, most)).flat_map(|_| {
        random.shuffle(&mut ports);
        ports.clone()
    });
    shuffled.collect()
}

fn flow_mod(priority: u16, fields: Vec<FieldMatch>, apply: Vec<Action>) -> Result<Change, MatchError> {
    let (matching, instructions) = (Match::new(fields)?, Instructions::apply(apply));
    Ok(FlowMod { table: Some(TableId(0)), priority, matching, instructions, ..FlowMod::default() }.into())
}

/// Returns entries that no packet hits, but that examine the 5-tuple of TCP and UDP. So every flow has a key
/// of its own in path records and port caches.
fn tuple_entries() -> Result<[Change; 2], MatchError> {
    let entry = |protocol, [source, target]: [Field; 2]| {
        let fields = vec![
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::IpProto, protocol),
            FieldMatch::exact(Field::Ipv4Src, NO_HOST),
            FieldMatch::exact(Field::Ipv4Dst, NO_HOST),
            FieldMatch::exact(source, 1),
            FieldMatch::exact(target, 1),
        ];
        flow_mod(TUPLE_PRIORITY, fields, Vec::new())
    };
    Ok([entry(6, [Field::TcpSrc, Field::TcpDst])?, entry(17, [Field::UdpSrc, Field::UdpDst])?])
}

/// Returns the entries and groups of each switch for packets to these hosts, by the index of the switch.
/// `address` returns the address of a host.
///
/// # Errors
/// Returns an error if a match is invalid, or if there are too many groups or buckets.
pub fn ecmp(
    network: &Network,
    hosts: &[usize],
    address: impl Fn(usize) -> HostAddress,
) -> Result<Vec<Vec<Change>>, EcmpError> {
    let neighbours = neighbours(network);
    let mut by_switch: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    hosts.iter().for_each(|host| by_switch.entry(network.hosts[*host].at.node).or_default().push(*host));
    let mut changes: Vec<Vec<Change>> = Vec::with_capacity(network.nodes.len());
    for _ in &network.nodes {
        changes.push(tuple_entries()?.into());
    }
    let (mut groups, mut done) = (Groups::new(network), 0);
    for (target, hosts) in by_switch {
        let all = next_hops(target, &neighbours);
        for (node, hops) in all.into_iter().enumerate() {
            let changes = &mut changes[node];
            let apply = match &hops.ports[..] {
                _ if node == target => None,
                [] => continue,
                [port] => Some(Action::output(*port)),
                _ => {
                    let full = EcmpError::Buckets { node, hosts: done };
                    let (id, change) = groups.group(node, &hops).ok_or(full)?;
                    changes.extend(change);
                    Some(Action::Group(id))
                }
            };
            for host in &hosts {
                let action = apply.clone().unwrap_or(Action::output(network.hosts[*host].at.port));
                let fields = vec![
                    FieldMatch::exact(Field::EthType, 0x0800),
                    FieldMatch::exact(Field::Ipv4Dst, u32::from_be_bytes(address(*host).0).into()),
                ];
                changes.push(flow_mod(HOST_PRIORITY, fields, vec![action])?);
            }
        }
        done += hosts.len();
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::fat_tree::{TreeLinks, fat_tree};
    use crate::network::spec::{Host, NetworkLink, Node};
    use flow::Nanos;
    use flow::group::pick;

    /// Returns the port for packets with this hash.
    fn port_of(buckets: &[PortNo], hash: u32) -> PortNo {
        buckets[pick(hash, buckets.iter().map(|_| 1)).unwrap()]
    }

    #[test]
    fn choices_of_the_layers_are_independent_and_differ_by_switch() {
        let links = TreeLinks { delay_ns: Nanos(1), rate_bps: None, queue_frames: 0 };
        let tree = fat_tree(8, links);
        let (first_edge, last_edge, first_aggregation) = (0, 31, 32);
        let all = next_hops(last_edge, &neighbours(&tree));
        let of = |node: usize, seed| buckets(&all[node], &mut Rng::with_seed(seed));
        assert_eq!((of(first_edge, 1).len(), of(first_aggregation, 1).len()), (4, 16));
        // Core switches and the aggregation switches of the last pod have one way down.
        assert!(all[64..].iter().chain(&all[60..64]).all(|hops| hops.ports.len() == 1));
        // The aggregation switches of the first pod use their uplinks evenly, whatever the edge switch chose.
        let mut counts = BTreeMap::<_, u32>::new();
        for n in 0..16_000_u32 {
            let hash = n * (u32::MAX / 16_000);
            let choice = port_of(&of(first_edge, 1), hash);
            *counts.entry((choice, port_of(&of(first_aggregation, 2), hash))).or_default() += 1;
        }
        assert!(counts.len() == 16 && counts.values().all(|count| count.abs_diff(1_000) <= 2), "{counts:?}");
        let different = (1..10).filter(|seed| of(first_edge, *seed) != of(first_edge, 0)).count();
        assert!(different > 6, "{different}");
        // Switches in the pod of the target have the choices of their own only.
        assert_eq!(all[28].choices, 1);
    }

    #[test]
    fn groups_have_a_limited_number_of_buckets() {
        let hops = NextHops { ports: (1..=24).map(PortNo).collect(), choices: 576 };
        let ports = buckets(&hops, &mut Rng::with_seed(1));
        assert_eq!(ports.len(), 240);
        assert!(hops.ports.iter().all(|port| ports.iter().filter(|other| *other == port).count() == 10));
    }

    /// Returns a network with these links, which are pairs of switches. Each switch has a host.
    fn network(nodes: usize, pairs: &[(usize, usize)]) -> Network {
        let mut network = Network::default();
        let mut ports = vec![0; nodes];
        let mut end = |node: usize| {
            ports[node] += 1;
            End { node, port: PortNo(ports[node]) }
        };
        for (a, b) in pairs {
            let ends = [end(*a), end(*b)];
            network.links.push(NetworkLink { ends, delay_ns: Nanos(1), rate_bps: None, queue_frames: 0 });
        }
        network.hosts = (0..nodes).map(|node| Host { name: String::new(), at: end(node) }).collect();
        network.nodes = vec![Node::default(); nodes];
        network
    }

    /// Returns the links of a grid, or of a torus.
    fn grid(side: usize, is_torus: bool) -> Vec<(usize, usize)> {
        let places = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
        let links = places.flat_map(|(x, y)| [((x, y), (x + 1, y)), ((x, y), (x, y + 1))]);
        let links = links.filter(|(_, (x, y))| is_torus || (*x < side && *y < side));
        let index = |(x, y): (usize, usize)| y % side * side + x % side;
        links.map(|(from, to)| (index(from), index(to))).collect()
    }

    #[test]
    fn long_paths_have_a_limited_number_of_choices() {
        // The paths across the grid have more than 2^64 combinations of choices.
        let network = network(1_600, &grid(40, false));
        let all = next_hops(0, &neighbours(&network));
        assert_eq!((all[1_599].choices, all[1_599].ports.len()), (1, 2));
        assert_eq!((all[41].choices, buckets(&all[41], &mut Rng::with_seed(1)).len()), (BUCKETS, BUCKETS));
    }

    #[test]
    fn equal_next_hops_share_a_group_if_their_choices_exceed_the_limit() {
        let network = network(256, &grid(16, true));
        let neighbours = neighbours(&network);
        let all = (1..256).map(|target| next_hops(target, &neighbours).swap_remove(0));
        let groups: std::collections::BTreeSet<_> = all.filter(|hops| hops.ports.len() > 1).collect();
        let buckets: usize = groups.iter().map(|hops| buckets(hops, &mut Rng::with_seed(1)).len()).sum();
        assert!(groups.len() < 50 && buckets < 8_000, "{} {buckets}", groups.len());
    }

    #[test]
    fn too_many_buckets_are_refused_with_the_number_of_hosts_that_fit() {
        // Switches 0 to 8 form a chain with two links each, so the last one has 256 buckets in each group.
        // It has a link to each of 24 switches, and each target is linked to another pair of these.
        let (last, middle, first) = (8, 9, 9 + 24);
        let mut links: Vec<_> = (0..last).flat_map(|node| [(node, node + 1); 2]).collect();
        links.extend((middle..first).map(|node| (last, node)));
        let pairs = (middle..first).flat_map(|a| (a + 1..first).map(move |b| (a, b)));
        let targets: Vec<usize> = (first..first + 257).collect();
        links.extend(targets.iter().zip(pairs).flat_map(|(target, (a, b))| [(a, *target), (b, *target)]));
        let network = network(first + 257, &links);
        let address = |host: usize| HostAddress((host as u32).to_be_bytes());
        let fitting = ecmp(&network, &targets[..256], address).unwrap();
        let count = |change: &&Change| matches!(change, Change::Group(..));
        assert_eq!(fitting[last].iter().filter(count).count(), 256);
        let refusal = ecmp(&network, &targets, address).unwrap_err();
        assert_eq!(refusal, EcmpError::Buckets { node: last, hosts: 256 });
    }

    /// Returns for each switch of a fat tree its groups, as lists of buckets.
    fn groups(seed: u64) -> Vec<Vec<Vec<Bucket>>> {
        let mut tree = fat_tree(8, TreeLinks { delay_ns: Nanos(1), rate_bps: None, queue_frames: 0 });
        tree.seed = seed;
        let hosts: Vec<usize> = (0..tree.hosts.len()).collect();
        let changes = ecmp(&tree, &hosts, |host| HostAddress([10, 0, host as u8, 1])).unwrap();
        let buckets = |change| match change {
            Change::Group(GroupCommand::Add, group) => Some(group.buckets),
            _ => None,
        };
        changes.into_iter().map(|changes| changes.into_iter().filter_map(buckets).collect()).collect()
    }

    #[test]
    fn groups_of_switches_differ_by_switch_and_by_seed() {
        let [one, other] = [groups(1), groups(2)];
        let different = |layer: std::ops::Range<usize>| {
            one[layer]
                .iter()
                .map(|groups| format!("{groups:?}"))
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        };
        // The four uplinks of an edge switch have 24 orders, those of an aggregation switch 24^4.
        assert!(
            different(0..32) >= 12 && different(32..64) >= 30,
            "{} {}",
            different(0..32),
            different(32..64)
        );
        let by_seed = (0..64).filter(|node| one[*node] != other[*node]).count();
        assert!(by_seed >= 56, "{by_seed}");
    }
}
