// SPDX-License-Identifier: Apache-2.0
//! Traffic of a fat tree, and the packets that arrive at one of its switches.
//!
//! Each host has sources that are alternately on and off. While it is on, a source sends packets of its flow.
//! After some periods, it begins a new flow to a random host. The durations of the periods and the intervals
//! between packets are lognormal. A link sends one packet at a time, and drops packets while too many wait.

use crate::tree::{
    HOSTS, LINKS, Level, Path, Position, Router, Routing, aggregation_up, core_down, edge, edge_up, level,
    pod,
};
use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parameters of the lognormal distributions of the thesis: mean and standard deviation of the logarithm.
const MU: f64 = 0.9;
const SIGMA: f64 = 2.3;

/// Mean number of ON periods of a flow.
pub const FLOW_PERIODS: u32 = 8;
/// Time before the first packet in nanoseconds, in which sources only turn on and off.
const PREPARATION_NS: f64 = 5e8;
/// Number of ON periods from which a flow is long for the policy that distributes long flows.
const LONG_PERIODS: u32 = 2 * FLOW_PERIODS;

/// Number of UDP source ports.
pub const SOURCE_PORTS: u32 = 60_000;

/// Bytes of preamble and gap on the wire.
const WIRE_BYTES: f64 = 20.0;
/// Duration of a byte on a link of 1 Gbit/s, in nanoseconds.
const BYTE_NS: f64 = 8.0;
/// Maximum number of packets that wait for a link.
const LINK_PACKETS: f64 = 1_000.0;

/// Traffic to generate.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Method that selects paths.
    pub routing: Routing,
    /// Length of all packets in bytes, with the FCS.
    pub bytes: u16,
    /// Duration in nanoseconds.
    pub span_ns: f64,
    /// Number of sources per host.
    pub sources: usize,
    /// Unit of intervals between packets in nanoseconds, for packets of 64 bytes. For longer packets it grows
    /// with their length on the wire, so that the load in bit/s is the same.
    pub interval_unit_ns: f64,
    /// Unit of periods in nanoseconds.
    pub period_unit_ns: f64,
    /// Seed of all random values.
    pub seed: u64,
}

/// Source and destination of a flow. Flows with equal hosts differ in their UDP ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the sending host.
    pub from: u8,
    /// Number of the receiving host.
    pub to: u8,
    /// UDP source port.
    pub source_port: u16,
    /// Number of times that the source ports were used up before. The UDP destination port contains it.
    pub round: u16,
    is_long: bool,
    path: Path,
}

/// A packet that arrives at a port of the recorded switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Time in nanoseconds.
    pub at_ns: f64,
    /// Flow, as an index.
    pub flow: u32,
    /// Port, from 0.
    pub port: u8,
}

/// Packets that arrive at a switch, in order of time.
#[derive(Clone, Debug)]
pub struct Recording {
    /// All flows of the tree.
    pub flows: Vec<Flow>,
    /// Packets.
    pub arrivals: Vec<Arrival>,
}

/// Packets that all hosts have sent, as they leave the hosts' links.
pub struct Sent {
    traffic: Traffic,
    flows: Vec<Flow>,
    packets: Vec<Arrival>,
}

/// Returns a random value of the lognormal distribution.
fn lognormal(rng: &mut Rng) -> f64 {
    // Box-Muller. The first random number is below 1, so the argument of the logarithm is above 0.
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * rng.f64()).cos();
    (MU + SIGMA * normal).exp()
}

/// Returns a hash of a number.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A source whose next period begins.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    begins_ns: f64,
    host: u8,
    /// Flow of the source, and the number of ON periods that it still has.
    flow: u32,
    periods: u32,
    turns_on: bool,
}

impl Eq for Period {}

impl Ord for Period {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.begins_ns.total_cmp(&other.begins_ns).then(self.host.cmp(&other.host))
    }
}

impl PartialOrd for Period {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// All flows of the tree.
struct Flows {
    all: Vec<Flow>,
    router: Router,
    seed: u64,
}

impl FlowSource for Flows {
    fn begin(&mut self, from: u8, rng: &mut Rng) -> (u32, u32) {
        let number = self.all.len() as u32;
        let to = (from + rng.u8(1..HOSTS as u8)) % HOSTS as u8;
        let periods = periods(rng);
        let hash = mixed(self.seed ^ (u64::from(number) << 16) ^ u64::from(from));
        let is_long = periods >= LONG_PERIODS;
        let path = self.router.begin((from.into(), to.into()), hash, is_long, rng);
        let (source_port, round) = (1_024 + (number % SOURCE_PORTS) as u16, (number / SOURCE_PORTS) as u16);
        self.all.push(Flow { from, to, source_port, round, is_long, path });
        (number, periods)
    }

    fn end(&mut self, number: u32) {
        let Flow { from, to, is_long, path, .. } = self.all[number as usize];
        if is_long {
            self.router.end((from.into(), to.into()), path);
        }
    }
}

/// Flows that sources begin and end.
pub trait FlowSource {
    /// Begins a flow of a host. Returns its number, and the number of its ON periods.
    fn begin(&mut self, from: u8, rng: &mut Rng) -> (u32, u32);

    /// Notes that a flow has ended.
    fn end(&mut self, _number: u32) {}
}

/// Returns the number of ON periods of a new flow.
pub fn periods(rng: &mut Rng) -> u32 {
    // A geometric distribution: each period is the last one with the same probability.
    let mut periods = 1;
    while rng.u32(0..FLOW_PERIODS) > 0 {
        periods += 1;
    }
    periods
}

impl Traffic {
    /// Returns the time in nanoseconds that a packet occupies a link.
    pub fn packet_ns(&self) -> f64 {
        (f64::from(self.bytes) + WIRE_BYTES) * BYTE_NS
    }

    /// Lets all hosts send.
    pub fn send(self) -> Sent {
        let mut rng = Rng::with_seed(self.seed);
        let mut flows = Flows { all: Vec::new(), router: Router::new(self.routing), seed: self.seed };
        let packets = self.packets(HOSTS as u8, &mut flows, &mut rng);
        let hosts = |arrival: &Arrival| Some(usize::from(flows.all[arrival.flow as usize].from));
        let packets = self.pass(packets, hosts);
        Sent { traffic: self, flows: flows.all, packets }
    }

    /// Returns the packets that the sources of this many hosts send. Those of a flow are in order of time.
    pub fn packets(&self, hosts: u8, flows: &mut impl FlowSource, rng: &mut Rng) -> Vec<Arrival> {
        let (mut packets, mut sources) = (Vec::new(), BinaryHeap::new());
        for host in 0..hosts {
            for _ in 0..self.sources {
                let begins_ns = -PREPARATION_NS + rng.f64() * self.period_unit_ns;
                let (flow, periods) = flows.begin(host, rng);
                sources.push(Reverse(Period { begins_ns, host, flow, periods, turns_on: rng.bool() }));
            }
        }
        let interval_ns = self.interval_unit_ns * (f64::from(self.bytes) + WIRE_BYTES) / (64.0 + WIRE_BYTES);
        while let Some(Reverse(mut source)) = sources.pop().filter(|next| next.0.begins_ns < self.span_ns) {
            let ends_ns = source.begins_ns + lognormal(rng) * self.period_unit_ns;
            if source.turns_on {
                // Packets before time 0 are not recorded. Intervals are independent, so the first interval
                // after that time may begin anywhere.
                let mut at_ns =
                    if source.begins_ns < 0.0 { rng.f64() * interval_ns } else { source.begins_ns };
                while at_ns < ends_ns.min(self.span_ns) {
                    packets.push(Arrival { at_ns, flow: source.flow, port: 0 });
                    at_ns += lognormal(rng) * interval_ns;
                }
                source.periods -= 1;
                if source.periods == 0 {
                    flows.end(source.flow);
                    (source.flow, source.periods) = flows.begin(source.host, rng);
                }
            }
            sources.push(Reverse(Period { begins_ns: ends_ns, turns_on: !source.turns_on, ..source }));
        }
        packets
    }

    /// Sends packets over links, one at a time. `link_of` returns the link of a packet, or `None` if the
    /// packet takes none. Returns the packets that arrive at the other ends, in order of time.
    fn pass(&self, mut packets: Vec<Arrival>, link_of: impl Fn(&Arrival) -> Option<usize>) -> Vec<Arrival> {
        packets.sort_by(|one, other| one.at_ns.total_cmp(&other.at_ns));
        let mut free_ns = [0.0_f64; LINKS];
        let packet_ns = self.packet_ns();
        packets.retain_mut(|packet| {
            let Some(link) = link_of(packet) else { return false };
            let begins_ns = packet.at_ns.max(free_ns[link]);
            if begins_ns - packet.at_ns > LINK_PACKETS * packet_ns {
                return false;
            }
            free_ns[link] = begins_ns + packet_ns;
            packet.at_ns = free_ns[link];
            true
        });
        packets.sort_by(|one, other| one.at_ns.total_cmp(&other.at_ns));
        packets
    }
}

impl Sent {
    /// Returns the packets that arrive at a switch. Ports 0 and 1 of an aggregation switch lead to edge
    /// switches, and ports 2 and 3 to core switches. Port `n` of a core switch leads to pod `n`.
    pub fn arrivals(&self, position: Position) -> Recording {
        let ends = |packet: &Arrival| {
            let Flow { from, to, path, .. } = self.flows[packet.flow as usize];
            let (from, to) = (usize::from(from), usize::from(to));
            (from, to, path, level(from, to))
        };
        let traffic = self.traffic;
        let at_aggregation = traffic.pass(self.packets.clone(), |packet| {
            let (from, _, path, level) = ends(packet);
            (level > Level::Edge).then(|| edge_up(from, path))
        });
        let at_core = traffic.pass(at_aggregation.clone(), |packet| {
            let (from, _, path, level) = ends(packet);
            (level == Level::Core).then(|| aggregation_up(from, path))
        });
        let arrivals = match position {
            Position::Core => of_ports(at_core, |packet| {
                let (from, _, path, _) = ends(packet);
                (path == Path::default()).then(|| pod(from))
            }),
            Position::Aggregation => {
                let down = traffic.pass(at_core, |packet| {
                    let (_, to, path, _) = ends(packet);
                    Some(core_down(to, path))
                });
                let mut up = of_ports(at_aggregation, |packet| {
                    let (from, _, path, _) = ends(packet);
                    (pod(from) == 0 && path.aggregation == 0).then(|| edge(from))
                });
                up.extend(of_ports(down, |packet| {
                    let (_, to, path, _) = ends(packet);
                    (pod(to) == 0 && path.aggregation == 0).then(|| 2 + usize::from(path.core))
                }));
                up.sort_by(|one, other| one.at_ns.total_cmp(&other.at_ns));
                up
            }
        };
        Recording { flows: self.flows.clone(), arrivals }
    }
}

/// Keeps the packets for which `port_of` returns a port.
fn of_ports(mut packets: Vec<Arrival>, port_of: impl Fn(&Arrival) -> Option<usize>) -> Vec<Arrival> {
    packets.retain_mut(|packet| {
        let port = port_of(packet);
        packet.port = port.unwrap_or_default() as u8;
        port.is_some()
    });
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(routing: Routing, bytes: u16) -> Traffic {
        Traffic {
            routing,
            bytes,
            span_ns: 5e6,
            sources: 200,
            interval_unit_ns: 2_000.0,
            period_unit_ns: 100_000.0,
            seed: 3,
        }
    }

    #[test]
    fn values_have_the_median_and_spread_of_the_distribution() {
        let mut rng = Rng::with_seed(1);
        let mut logs: Vec<f64> = (0..100_001).map(|_| lognormal(&mut rng).ln()).collect();
        logs.sort_by(f64::total_cmp);
        let (median, upper) = (logs[50_000], logs[84_134]);
        assert!((median - MU).abs() < 0.03 && (upper - MU - SIGMA).abs() < 0.05, "{median} {upper}");
    }

    #[test]
    fn links_are_loaded_and_never_faster_than_the_wire() {
        let sent = traffic(Routing::Ecmp, 64).send();
        let in_time = sent.packets.iter().filter(|packet| packet.at_ns < 5e6).count();
        let per_host = in_time as f64 / HOSTS as f64 / 5e-3;
        assert!((0.6e6..1.489e6).contains(&per_host), "{per_host} packets/s");
        for position in Position::ALL {
            let recording = sent.arrivals(position);
            assert!(recording.arrivals.is_sorted_by(|one, other| one.at_ns <= other.at_ns));
            for port in 0..4 {
                let times: Vec<f64> =
                    recording.arrivals.iter().filter(|it| it.port == port).map(|it| it.at_ns).collect();
                assert!(times.len() > 3_000, "port {port} of {position:?}: {}", times.len());
                assert!(times.windows(2).all(|pair| pair[1] - pair[0] > 671.9), "{position:?}");
            }
        }
    }

    #[test]
    fn a_spanning_tree_has_one_core_switch() {
        let of = |routing| traffic(routing, 64).send().arrivals(Position::Core).arrivals.len();
        let (tree, ecmp) = (of(Routing::SpanningTree), of(Routing::Ecmp));
        assert!(tree as f64 > 0.95 * 4.0 * 5e6 / 672.0 && tree > ecmp, "{tree} {ecmp}");
    }

    #[test]
    fn equal_seeds_give_equal_traffic() {
        let of =
            |seed| Traffic { seed, ..traffic(Routing::Random, 512) }.send().arrivals(Position::Core).arrivals;
        assert!(of(1) == of(1) && of(1) != of(2));
    }
}
