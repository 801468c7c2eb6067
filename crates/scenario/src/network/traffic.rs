// SPDX-License-Identifier: Apache-2.0
//! Traffic between hosts: pairs, flows and packet templates.

use super::file;
use super::plan::{Graph, Numberings, Pair, PathPlan, Way, mac};
use config::Mistake;
use config::mistakes::{at, wrong};
use config::value::{duration, in_range};
use flow::group::FlowHash;
use flow::{Limits, Nanos};
use sim::network::{Flow, Network, distances};
use std::collections::{BTreeMap, HashMap, HashSet};
use wire::PacketBuilder;

/// Maximum number of packets in a run. The simulation keeps state for each packet.
const PACKETS: u64 = 100_000_000;
/// Maximum number of flows; each path of a pair has one flow. The simulation keeps a template and the path of
/// each flow.
const FLOWS: u64 = 2_000_000;
/// Maximum number of flows of a pair, if switches forward by entries.
const PAIR_FLOWS: i64 = 10_000;
/// Range of packet lengths in bytes. The shortest packet holds all headers and the packet's number.
const BYTES: std::ops::RangeInclusive<i64> = 82..=1_518;
/// Length of the FCS in bytes.
const FCS_BYTES: usize = 4;
/// Total length of the Ethernet, IPv4 and UDP headers in bytes.
const HEADER_BYTES: usize = 42;
/// Range of UDP source ports in which a port for each path is searched.
const SOURCE_PORTS: std::ops::RangeInclusive<u16> = 1_024..=u16::MAX;
const TARGET_PORT: u16 = 9;

/// Pairs of hosts that send packets, with the number, interval and length of these packets.
pub struct Traffic {
    pub pairs: Vec<Pair>,
    pub packets: u32,
    pub interval_ns: Nanos,
    pub bytes: usize,
    /// Number of flows of each pair, if switches forward by entries. Otherwise each path has a flow.
    pub per_pair: Option<usize>,
}

/// Checks the traffic section. `per_pair` is the number of flows of each pair, if switches forward by
/// entries.
pub fn traffic(
    section: &file::Traffic,
    per_pair: Option<i64>,
    plan: &mut PathPlan,
    seed: u64,
) -> Result<Traffic, Mistake> {
    let key = |name: &str| format!("network.traffic.{name}");
    let number =
        |name: &str, value: Option<i64>, usual, range| at(key(name), in_range(value.unwrap_or(usual), range));
    let packets = number("packets", section.packets, 1, 1..=1_000_000)?;
    let bytes = number("bytes", section.bytes, 128, BYTES)? as usize;
    let paths = number("paths", section.paths, 1_024, 1..=1_024)? as usize;
    plan.limit_paths(paths);
    let per_pair = per_pair.map(|flows| number("flows", Some(flows), 1, 1..=PAIR_FLOWS)).transpose()?;
    let per_pair = per_pair.map(|flows| flows as usize);
    let interval = section.interval.as_deref().unwrap_or("1ms");
    let interval_ns = at(key("interval"), duration(interval))?;
    if interval_ns == Nanos::ZERO || interval_ns > Nanos(3_600_000_000_000) {
        return Err(wrong(key("interval"), format!("\"{interval}\" is out of range; use \"1us\" to \"1h\"")));
    }
    let pairs = match (&section.pairs, section.sample) {
        (Some(_), Some(_)) => {
            return Err(wrong(key("sample"), "cannot be combined with pairs; give one of them"));
        }
        (Some(listed), None) => these(listed, plan)?,
        (None, Some(count)) => {
            let count = at(key("sample"), in_range(count, 1..=FLOWS as i64))? as usize;
            sample(plan, count, seed)
        }
        (None, None) => {
            let hosts = plan.graph().hosts.len();
            if (hosts as u64).pow(2) > FLOWS {
                let problem = format!(
                    "is missing: there are {hosts} hosts, too many for all pairs; give sample or pairs"
                );
                return Err(wrong(key("pairs"), problem));
            }
            let all = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
            all.filter(|pair| pair.0 != pair.1 && plan.has(*pair)).collect()
        }
    };
    if pairs.is_empty() {
        return Err(wrong(key("pairs"), "has no pair: the plan has no route between hosts"));
    }
    let traffic = Traffic { pairs, packets: packets as u32, interval_ns, bytes, per_pair };
    traffic.check(plan)?;
    Ok(traffic)
}

fn these(listed: &[[String; 2]], plan: &PathPlan) -> Result<Vec<Pair>, Mistake> {
    let names: HashMap<&str, usize> =
        plan.graph().hosts.iter().enumerate().map(|(at, host)| (host.name.as_str(), at)).collect();
    let mut pairs = Vec::with_capacity(listed.len());
    for (at, [from, to]) in listed.iter().enumerate() {
        let refuse = |problem: String| wrong(format!("network.traffic.pairs[{at}]"), problem);
        let place = |name: &String| {
            names
                .get(name.as_str())
                .copied()
                .ok_or_else(|| refuse(format!("\"{name}\" is not a host of the plan")))
        };
        let pair = (place(from)?, place(to)?);
        if pair.0 == pair.1 || !plan.has(pair) {
            return Err(refuse(format!("the plan has no route from {from} to {to}")));
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Draws `count` pairs at random, or almost all pairs if there are fewer. The hosts take turns as senders.
/// The receiver is a random host to which the sender has a route.
fn sample(plan: &PathPlan, count: usize, seed: u64) -> Vec<Pair> {
    let mut random = fastrand::Rng::with_seed(seed);
    let graph = plan.graph();
    let hosts_of = hosts_by_switch(graph);
    let targets = plan.targets();
    let mut senders: Vec<usize> = (0..graph.hosts.len()).collect();
    random.shuffle(&mut senders);
    let (mut pairs, mut known) = (Vec::with_capacity(count), HashSet::with_capacity(count));
    // If 64 rounds in a row find no new pair, almost all pairs have been drawn.
    let mut idle = 0;
    while pairs.len() < count && idle < 64 {
        let before = pairs.len();
        for &from in &senders {
            let switch = graph.hosts[from].at.node;
            let Some(target) = targets.get(&switch).and_then(|list| random.choice(list.iter())) else {
                continue;
            };
            let Some(to) = hosts_of.get(target).and_then(|list| random.choice(list)).copied() else {
                continue;
            };
            if from != to && plan.has((from, to)) && known.insert((from, to)) {
                pairs.push((from, to));
                if pairs.len() == count {
                    break;
                }
            }
        }
        idle = if pairs.len() == before { idle + 1 } else { 0 };
    }
    pairs
}

pub fn hosts_by_switch(graph: &Graph) -> BTreeMap<usize, Vec<usize>> {
    let mut hosts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, host) in graph.hosts.iter().enumerate() {
        hosts.entry(host.at.node).or_default().push(place);
    }
    hosts
}

impl Traffic {
    /// Checks the number of flows and of packets, and the number of groups at each switch.
    fn check(&self, plan: &PathPlan) -> Result<(), Mistake> {
        let refuse = |problem: String| Err(wrong("network.traffic", problem));
        let shares = |pair: &Pair| self.per_pair.unwrap_or_else(|| plan.shares(*pair)) as u64;
        let flows: u64 = self.pairs.iter().map(shares).sum();
        let key = if self.per_pair.is_some() { "flows" } else { "paths" };
        if flows > FLOWS {
            return refuse(format!(
                "has {flows} {key} of {} pairs; the maximum is {FLOWS}: give sample or {key}",
                self.pairs.len()
            ));
        }
        if flows * u64::from(self.packets) > PACKETS {
            return refuse(format!(
                "has {} packets for each of {flows} flows; the maximum is {PACKETS} in total: give fewer packets, sample or {key}",
                self.packets
            ));
        }
        if self.per_pair.is_some() {
            return Ok(());
        }
        // A switch needs a select group for each destination host that it reaches on several paths.
        let hosts = &plan.graph().hosts;
        let mut groups: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut known = HashSet::new();
        for &pair in &self.pairs {
            let (node, shares) = (hosts[pair.0].at.node, plan.shares(pair));
            if shares < 2 || !known.insert((node, pair.1)) {
                continue;
            }
            let (count, buckets) = groups.entry(node).or_default();
            *count += 1;
            *buckets += shares;
            if *count > Limits::GROUPS_PER_TYPE || *buckets > Limits::BUCKETS {
                let (name, groups, all) =
                    (&plan.graph().switches[node], Limits::GROUPS_PER_TYPE, Limits::BUCKETS);
                return refuse(format!(
                    "needs more than {groups} groups, or more than {all} paths in groups, at {name}: give sample or paths"
                ));
            }
        }
        Ok(())
    }

    /// Returns the flows of all pairs, and the sizes of their keys in bits.
    pub fn flows(
        &self,
        plan: &PathPlan,
        numberings: Numberings,
        seed: u64,
    ) -> Result<(Vec<Flow>, Vec<u32>), Mistake> {
        let mut random = fastrand::Rng::with_seed(!seed);
        let (mut flows, mut key_bits) = (Vec::with_capacity(self.pairs.len()), Vec::new());
        for &pair in &self.pairs {
            let ports = source_ports(pair, plan.shares(pair)).ok_or_else(|| {
                let [from, to] = [pair.0, pair.1].map(|host| &plan.graph().hosts[host].name);
                let problem =
                    format!("are more than the hash can distinguish from {from} to {to}; give fewer");
                wrong("network.traffic.paths", problem)
            })?;
            for (share, port) in ports.into_iter().enumerate() {
                let Way { routes, hops_max, key_bits: bits } = plan.way(pair, share, numberings);
                key_bits.extend(bits);
                flows.push(Flow {
                    from: pair.0,
                    to: pair.1,
                    template: self.template(pair, port).into(),
                    payload_at: HEADER_BYTES,
                    first_ns: Nanos(random.u64(0..self.interval_ns.0)),
                    interval_ns: self.interval_ns,
                    packets: self.packets,
                    times: None,
                    hops_max,
                    routes,
                });
            }
        }
        Ok((flows, key_bits))
    }

    /// Returns the flows of all pairs, if switches forward by entries. The flows of a pair differ in their
    /// source ports.
    pub fn flows_by_entries(&self, network: &Network, seed: u64) -> Result<Vec<Flow>, Mistake> {
        let mut random = fastrand::Rng::with_seed(!seed);
        let mut flows = Vec::with_capacity(self.pairs.len());
        let mut known: HashMap<usize, Vec<Option<u32>>> = HashMap::new();
        for &(from, to) in &self.pairs {
            let [source, target] = [from, to].map(|host| network.hosts[host].at.node);
            let all = known.entry(target).or_insert_with(|| distances(network, target));
            let Some(hops_max) = all[source] else {
                let [from, to] = [from, to].map(|host| &network.hosts[host].name);
                let problem = format!("there is no path from {from} to {to}; leave this pair out");
                return Err(wrong("network.traffic.pairs", problem));
            };
            for port in SOURCE_PORTS.take(self.per_pair.unwrap_or(1)) {
                flows.push(Flow {
                    from,
                    to,
                    template: self.template((from, to), port).into(),
                    payload_at: HEADER_BYTES,
                    first_ns: Nanos(random.u64(0..self.interval_ns.0)),
                    interval_ns: self.interval_ns,
                    packets: self.packets,
                    times: None,
                    hops_max,
                    routes: Vec::new(),
                });
            }
        }
        Ok(flows)
    }

    fn template(&self, (from, to): Pair, port: u16) -> Vec<u8> {
        let payload = vec![0; self.bytes - FCS_BYTES - HEADER_BYTES];
        let packet = PacketBuilder::ethernet(mac(to), mac(from)).ipv4(address(from), address(to));
        packet.udp(port, TARGET_PORT).no_udp_checksum().payload(&payload).build()
    }
}

/// Returns for each share the first source port whose packets belong to the share, or `None` if a share has
/// no such port.
fn source_ports(pair: Pair, shares: usize) -> Option<Vec<u16>> {
    let mut found = vec![None; shares];
    let (mut missing, before) = (shares, hash(pair));
    for port in SOURCE_PORTS {
        if missing == 0 {
            break;
        }
        let place = &mut found[share(before, port, shares)];
        missing -= usize::from(place.is_none());
        place.get_or_insert(port);
    }
    found.into_iter().collect()
}

/// Returns the index of the share to which packets with this source port belong, like `flow::group::pick`
/// with equal weights.
fn share(mut hash: FlowHash, port: u16, shares: usize) -> usize {
    hash.add(&port.to_be_bytes());
    hash.add(&TARGET_PORT.to_be_bytes());
    ((u64::from(hash.finish()) * shares as u64) >> 32) as usize
}

/// Returns the IPv4 address of a host.
pub fn address(host: usize) -> [u8; 4] {
    let [.., a, b, c] = (host as u32).to_be_bytes();
    [10, a, b, c]
}

/// Returns the state of the flow hash of a pair's packets before the ports are added.
fn hash((from, to): Pair) -> FlowHash {
    let mut hash = FlowHash::default();
    hash.add(&mac(to));
    hash.add(&mac(from));
    hash.add(&0x0800_u16.to_be_bytes());
    hash.add(&[0; 2]);
    hash.add(&[17]);
    hash.add(&address(from));
    hash.add(&address(to));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::group::pick;

    #[test]
    fn each_share_has_the_first_port_that_switches_assign_to_it() {
        for shares in [1, 3, 144, 1_024] {
            let ports = source_ports((5, 70), shares).unwrap();
            assert_eq!(ports.len(), shares);
            let weights = std::iter::repeat_n(1_u16, shares);
            for port in SOURCE_PORTS.take(3_000) {
                let mut hash = hash((5, 70));
                hash.add(&port.to_be_bytes());
                hash.add(&TARGET_PORT.to_be_bytes());
                let picked = pick(hash.finish(), weights.clone()).unwrap();
                assert_eq!(share(super::hash((5, 70)), port, shares), picked);
                assert!(ports[picked] <= port);
            }
        }
        // 40,000 shares need more source ports than there are in the range.
        assert_eq!(source_ports((5, 70), 40_000), None);
    }
}
