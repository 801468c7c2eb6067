// SPDX-License-Identifier: Apache-2.0
//! A fat tree of 4-port switches: hosts, links, and the paths of flows by routing policy.

use serde::Serialize;

/// Number of pods, and of hosts in each pod.
pub const PODS: usize = 4;
/// Number of hosts.
pub const HOSTS: usize = 16;
/// Number of hosts at each edge switch, of edge and aggregation switches in each pod, and of core switches
/// at each aggregation switch.
pub const HALF: usize = 2;

/// Number of links from hosts to edge switches, from edge to aggregation switches, and so on. Each level of
/// the tree has the same number of links in each direction.
pub const LINKS: usize = 16;

/// Method that selects the path of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// All flows take the links of one spanning tree, whose root is a core switch.
    SpanningTree,
    /// Each flow takes a random path.
    Random,
    /// A hash of the flow's addresses and ports selects one of the shortest paths.
    Ecmp,
    /// Long flows take the path with the fewest other long flows. All other flows use the hash.
    ElephantAware,
}

impl Routing {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::SpanningTree, Self::Random, Self::Ecmp, Self::ElephantAware];
}

/// Switch whose traffic is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// First aggregation switch of the first pod.
    Aggregation,
    /// First core switch.
    Core,
}

impl Position {
    /// All positions.
    pub const ALL: [Self; 2] = [Self::Aggregation, Self::Core];
}

/// Path of a flow above the edge switches: an aggregation switch of each pod, and a core switch of that
/// aggregation switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Number of the aggregation switch in its pod.
    pub aggregation: u8,
    /// Number of the core switch at that aggregation switch.
    pub core: u8,
}

/// Returns the pod of a host.
pub fn pod(host: usize) -> usize {
    host / (HOSTS / PODS)
}

/// Returns the number of a host's edge switch in the whole tree.
pub fn edge(host: usize) -> usize {
    host / HALF
}

/// Level of the highest switch between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The hosts have the same edge switch.
    Edge,
    /// The hosts are in the same pod.
    Aggregation,
    /// The hosts are in different pods.
    Core,
}

/// Returns the level of the highest switch between two hosts.
pub fn level(from: usize, to: usize) -> Level {
    if edge(from) == edge(to) {
        Level::Edge
    } else if pod(from) == pod(to) {
        Level::Aggregation
    } else {
        Level::Core
    }
}

/// Selects paths.
#[derive(Debug)]
pub struct Router {
    routing: Routing,
    /// Number of long flows on each link: upwards from edge switches, upwards from aggregation switches, and
    /// downwards from core switches.
    long: [[u32; LINKS]; 3],
}

impl Router {
    /// Creates a router without flows.
    pub fn new(routing: Routing) -> Self {
        Self { routing, long: [[0; LINKS]; 3] }
    }

    /// Returns the path of a flow that begins. `hash` is the hash of its addresses and ports. `is_long` is
    /// whether the flow is long.
    pub fn begin(
        &mut self,
        (from, to): (usize, usize),
        hash: u64,
        is_long: bool,
        rng: &mut fastrand::Rng,
    ) -> Path {
        let hashed = Path { aggregation: (hash & 1) as u8, core: (hash >> 1 & 1) as u8 };
        match self.routing {
            Routing::SpanningTree => Path::default(),
            Routing::Random => Path { aggregation: rng.u8(0..2), core: rng.u8(0..2) },
            Routing::Ecmp => hashed,
            Routing::ElephantAware if !is_long => hashed,
            Routing::ElephantAware => {
                let paths = (0..4).map(|n| Path { aggregation: n >> 1, core: n & 1 });
                let load = |path: &Path| {
                    let links = self.links((from, to), *path).into_iter().flatten();
                    let loads = links.map(|(way, link)| self.long[way][link]);
                    (loads.clone().max(), loads.sum::<u32>())
                };
                let path = paths.min_by_key(load).unwrap_or_default();
                self.count((from, to), path, 1);
                path
            }
        }
    }

    /// Notes that a long flow has ended.
    pub fn end(&mut self, ends: (usize, usize), path: Path) {
        if self.routing == Routing::ElephantAware {
            self.count(ends, path, u32::MAX);
        }
    }

    /// Adds `change`, which may be -1 as a wrapping number, to the long flows of the links of a path.
    fn count(&mut self, ends: (usize, usize), path: Path, change: u32) {
        for (way, link) in self.links(ends, path).into_iter().flatten() {
            self.long[way][link] = self.long[way][link].wrapping_add(change);
        }
    }

    /// Returns the links that only some of the paths between two hosts use.
    fn links(&self, (from, to): (usize, usize), path: Path) -> [Option<(usize, usize)>; 3] {
        let level = level(from, to);
        [
            (level > Level::Edge).then(|| (0, edge_up(from, path))),
            (level > Level::Aggregation).then(|| (1, aggregation_up(from, path))),
            (level > Level::Aggregation).then(|| (2, core_down(to, path))),
        ]
    }
}

/// Returns the number of the link from the sender's edge switch to the aggregation switch of a path.
pub fn edge_up(from: usize, path: Path) -> usize {
    edge(from) * HALF + usize::from(path.aggregation)
}

/// Returns the number of the link from the aggregation switch in the sender's pod to the core switch.
pub fn aggregation_up(from: usize, path: Path) -> usize {
    pod(from) * 4 + usize::from(path.aggregation) * HALF + usize::from(path.core)
}

/// Returns the number of the link from the core switch to the aggregation switch in the receiver's pod.
pub fn core_down(to: usize, path: Path) -> usize {
    aggregation_up(to, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_policy() {
        let mut rng = fastrand::Rng::with_seed(1);
        let ends = (0, 15);
        let mut paths = |routing| {
            let mut router = Router::new(routing);
            (0..64).map(|hash| router.begin(ends, hash, true, &mut rng)).collect::<Vec<_>>()
        };
        assert!(paths(Routing::SpanningTree).iter().all(|path| *path == Path::default()));
        let hashed = paths(Routing::Ecmp);
        assert!(hashed[..4] == hashed[4..8] && (1..4).all(|n| hashed[0] != hashed[n]), "{hashed:?}");
        let spread = paths(Routing::ElephantAware);
        assert!(spread.chunks(4).all(|four| (1..4).all(|n| !four[..n].contains(&four[n]))), "{spread:?}");
        assert!(paths(Routing::Random)[..8] != hashed[..8]);
    }

    #[test]
    fn long_flows_that_end_leave_their_links() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut router = Router::new(Routing::ElephantAware);
        for _ in 0..10 {
            let path = router.begin((0, 15), 0, true, &mut rng);
            assert_eq!(path, Path::default());
            router.end((0, 15), path);
        }
        assert_eq!(router.begin((0, 15), 3, false, &mut rng), Path { aggregation: 1, core: 1 });
    }

    #[test]
    fn links_are_numbered_without_gaps() {
        let paths = (0..4).map(|n| Path { aggregation: n >> 1, core: n & 1 });
        let all = |of: fn(usize, Path) -> usize| {
            let links = paths.clone().flat_map(|path| (0..HOSTS).map(move |host| of(host, path)));
            links.collect::<std::collections::BTreeSet<_>>()
        };
        for of in [edge_up, aggregation_up, core_down] {
            assert_eq!(all(of), (0..LINKS).collect());
        }
        assert_eq!((level(0, 1), level(0, 2), level(0, 4)), (Level::Edge, Level::Aggregation, Level::Core));
    }
}
