// SPDX-License-Identifier: Apache-2.0
//! What hosts send each other.

use super::file;
use super::plan::{Graph, Pair, Plan, Way, mac};
use crate::config::Mistake;
use crate::config::check::{at, wrong};
use crate::config::value::{duration, in_range};
use flow::group::{FlowHash, pick};
use sim::network::Flow;
use std::collections::{BTreeMap, HashMap, HashSet};
use wire::PacketBuilder;

/// Packets of a run at most: each is remembered.
const PACKETS: u64 = 200_000_000;
/// Pairs of hosts at most.
const PAIRS: i64 = 20_000_000;
/// Bytes of a packet: from what its headers and its number need to what a small frame has room for, with a key of 256 bits.
const BYTES: std::ops::RangeInclusive<i64> = 82..=1_518;
/// Its FCS.
const FCS_BYTES: usize = 4;
/// Headers of Ethernet, IPv4 and UDP.
const HEADER_BYTES: usize = 42;
/// Ports that packets of a choice of paths are tried with.
const SOURCE_PORTS: std::ops::Range<u16> = 1_024..u16::MAX;
const TARGET_PORT: u16 = 9;

/// What is sent: of whom, how much, how often.
pub struct Traffic {
    pub pairs: Vec<Pair>,
    pub packets: u32,
    pub interval_ns: u64,
    pub bytes: usize,
    /// Paths of a choice that are used.
    pub paths: usize,
}

/// Reads what is sent.
pub fn traffic(section: &file::Traffic, plan: &Plan, seed: u64) -> Result<Traffic, Mistake> {
    let key = |name: &str| format!("network.traffic.{name}");
    let number =
        |name: &str, value: Option<i64>, usual, range| at(key(name), in_range(value.unwrap_or(usual), range));
    let packets = number("packets", section.packets, 1, 1..=1_000_000)?;
    let bytes = number("bytes", section.bytes, 128, BYTES)? as usize;
    let paths = number("paths", section.paths, 1_024, 1..=1_024)? as usize;
    let interval = section.interval.as_deref().unwrap_or("1ms");
    let interval_ns = at(key("interval"), duration(interval))?;
    if interval_ns == 0 || interval_ns > 3_600_000_000_000 {
        return Err(wrong(key("interval"), format!("\"{interval}\" is out of range; use \"1us\" to \"1h\"")));
    }
    let pairs = match (&section.pairs, section.sample) {
        (Some(_), Some(_)) => return Err(wrong(key("sample"), "is there beside pairs; give one of them")),
        (Some(listed), None) => these(listed, plan)?,
        (None, Some(count)) => {
            let count = at(key("sample"), in_range(count, 1..=PAIRS))? as usize;
            sample(plan, count, seed)
        }
        (None, None) => {
            let hosts = plan.graph().hosts.len();
            if hosts as i64 * hosts as i64 > PAIRS {
                let problem =
                    format!("is missing: there are {hosts} hosts, too many for all pairs; give sample");
                return Err(wrong(key("pairs"), problem));
            }
            let all = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
            all.filter(|pair| pair.0 != pair.1 && plan.has(*pair)).collect()
        }
    };
    if pairs.is_empty() {
        return Err(wrong(key("pairs"), "has none: the plan leads from no host to another"));
    }
    Ok(Traffic { pairs, packets: packets as u32, interval_ns, bytes, paths })
}

fn these(listed: &[[String; 2]], plan: &Plan) -> Result<Vec<Pair>, Mistake> {
    let names: HashMap<&str, usize> =
        plan.graph().hosts.iter().enumerate().map(|(at, host)| (host.name.as_str(), at)).collect();
    let mut pairs = Vec::with_capacity(listed.len());
    for (at, [from, to]) in listed.iter().enumerate() {
        let told = |problem: String| wrong(format!("network.traffic.pairs[{at}]"), problem);
        let place = |name: &String| {
            names
                .get(name.as_str())
                .copied()
                .ok_or_else(|| told(format!("\"{name}\" is no host of the plan")))
        };
        let pair = (place(from)?, place(to)?);
        if pair.0 == pair.1 || !plan.has(pair) {
            return Err(told(format!("the plan has no way from {from} to {to}")));
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

/// So many pairs, or all if there are fewer: hosts send in turn, each to one that is drawn among those that there is a way to.
fn sample(plan: &Plan, count: usize, seed: u64) -> Vec<Pair> {
    let mut random = fastrand::Rng::with_seed(seed);
    let graph = plan.graph();
    let hosts_of = hosts_by_switch(graph);
    let targets = plan.targets();
    let mut senders: Vec<usize> = (0..graph.hosts.len()).collect();
    random.shuffle(&mut senders);
    let (mut pairs, mut known) = (Vec::with_capacity(count), HashSet::with_capacity(count));
    // A few rounds find nothing new: then next to all there are have been found.
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
    /// The flows of all pairs, and the bits of the keys that their packets carry.
    pub fn flows(&self, plan: &Plan, renumbered: bool, seed: u64) -> Result<(Vec<Flow>, Vec<u32>), Mistake> {
        let mut random = fastrand::Rng::with_seed(!seed);
        let (mut flows, mut key_bits) = (Vec::with_capacity(self.pairs.len()), Vec::new());
        for &pair in &self.pairs {
            let Way { routes, hops_max, key_bits: bits, choices } = plan.way(pair, renumbered);
            key_bits.extend(bits);
            for share in 0..choices {
                let template = self.template(pair, share, choices);
                flows.push(Flow {
                    from: pair.0,
                    to: pair.1,
                    template: template.into(),
                    payload_at: HEADER_BYTES,
                    first_ns: random.u64(0..self.interval_ns),
                    interval_ns: self.interval_ns,
                    packets: self.packets,
                    hops_max,
                    routes: routes.clone(),
                });
            }
        }
        if flows.len() as u64 * u64::from(self.packets) > PACKETS {
            let problem =
                format!("are {} for each of {} flows; {PACKETS} are the most", self.packets, flows.len());
            return Err(wrong("network.traffic.packets", problem));
        }
        Ok((flows, key_bits))
    }

    /// A packet of the pair that takes this share of its paths.
    fn template(&self, (from, to): Pair, share: usize, of: usize) -> Vec<u8> {
        let weights = std::iter::repeat_n(1_u16, of);
        let fits = |port: &u16| pick(hash(from, to, *port), weights.clone()) == Some(share);
        // Of so many ports, some fall into each share.
        let port = SOURCE_PORTS.into_iter().find(fits).unwrap_or(SOURCE_PORTS.start);
        let payload = vec![0; self.bytes - FCS_BYTES - HEADER_BYTES];
        let packet = PacketBuilder::ethernet(mac(to), mac(from)).ipv4(address(from), address(to));
        packet.udp(port, TARGET_PORT).no_udp_checksum().payload(&payload).build()
    }
}

fn address(host: usize) -> [u8; 4] {
    let [.., a, b, c] = (host as u32).to_be_bytes();
    [10, a, b, c]
}

/// The hash by which switches choose a path for such a packet.
fn hash(from: usize, to: usize, port: u16) -> u32 {
    let mut hash = FlowHash::default();
    hash.add(&mac(to));
    hash.add(&mac(from));
    hash.add(&0x0800_u16.to_be_bytes());
    hash.add(&[0; 2]);
    hash.add(&[17]);
    hash.add(&address(from));
    hash.add(&address(to));
    hash.add(&port.to_be_bytes());
    hash.add(&TARGET_PORT.to_be_bytes());
    hash.finish()
}
