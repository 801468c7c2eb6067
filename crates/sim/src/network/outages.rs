// SPDX-License-Identifier: Apache-2.0
//! Failures of a run, and the classification of packets by the failures that they encountered and the
//! protection that the plan promises.

use crate::network::exposure::Exposure;
use crate::network::report::{FailureReport, NetworkPlace};
use crate::network::spec::{Act, Flow, Hop, Network, NetworkLink};
use flow::Nanos;

/// A switch that a packet reached, and the link through which the packet arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub link: usize,
    pub node: usize,
    pub at_ns: Nanos,
}

/// The path of a packet, and where and when the packet was delivered or lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip<'a> {
    pub sent_ns: Nanos,
    pub ended_ns: Nanos,
    /// Switches visited after the first one.
    pub way: &'a [Visit],
    /// Place where the packet was lost, if it was lost.
    pub lost_at: Option<NetworkPlace>,
}

#[derive(Clone, Debug)]
struct Outage {
    /// The link or switch that failed.
    part: NetworkPlace,
    from_ns: Nanos,
    detected_ns: Nanos,
    /// Time at which the repair is detected.
    over_ns: Nanos,
    /// Links that are down because of the failure.
    links: Vec<usize>,
    /// Switches at which packets encounter the failure.
    beside: Vec<usize>,
    met: u64,
    guarded: u64,
}

impl Outage {
    fn new(part: NetworkPlace, from_ns: Nanos, detected_ns: Nanos, links: &[NetworkLink]) -> Self {
        let touches = |link: &NetworkLink, node| link.ends.iter().any(|end| end.node == node);
        let (links_gone, node): (Vec<usize>, _) = match part {
            NetworkPlace::Link(link) => (vec![link], None),
            NetworkPlace::Node(node) => {
                ((0..links.len()).filter(|at| touches(&links[*at], node)).collect(), Some(node))
            }
            NetworkPlace::Host(_) => (Vec::new(), None),
        };
        let ends = links_gone.iter().filter_map(|link| links.get(*link)).flat_map(|link| link.ends);
        let beside = ends.map(|end| end.node).chain(node).collect();
        Self {
            part,
            from_ns,
            detected_ns,
            over_ns: Nanos::MAX,
            links: links_gone,
            beside,
            met: 0,
            guarded: 0,
        }
    }

    /// Returns whether a loss at this place is caused by the failure.
    fn is_at(&self, place: NetworkPlace) -> bool {
        match place {
            NetworkPlace::Link(link) => self.links.contains(&link),
            place => place == self.part,
        }
    }

    /// Returns the weakest protection that the plan promises to the paths of a flow for this failure.
    fn concerns(&self, network: &Network, flow: &Flow, routes: &[&Vec<Hop>]) -> Exposure {
        let at = |host: usize| network.hosts.get(host).map(|host| NetworkPlace::Node(host.at.node));
        if [at(flow.from), at(flow.to)].contains(&Some(self.part)) {
            return Exposure::End;
        }
        let of_routes = routes.iter().map(|route| {
            let hops = route.iter().filter_map(|hop| match self.part {
                NetworkPlace::Link(link) => (hop.link == link).then_some(hop.link_guarded),
                NetworkPlace::Node(node) => (hop.node == node).then_some(hop.node_guarded),
                NetworkPlace::Host(_) => None,
            });
            hops.map(|guarded| if guarded { Exposure::Guarded } else { Exposure::Unguarded })
                .max()
                .unwrap_or(Exposure::OffPath)
        });
        of_routes.max().unwrap_or(Exposure::Unguarded)
    }
}

/// All failures of a run in order of time.
#[derive(Debug, Default)]
pub(super) struct Outages {
    all: Vec<Outage>,
}

impl Outages {
    pub fn of(network: &Network) -> Self {
        let mut acts: Vec<_> = network.acts.iter().collect();
        acts.sort_by_key(|(at, _)| *at);
        let mut all: Vec<Outage> = Vec::new();
        for (at, act) in acts {
            let (part, works) = match act {
                Act::Link { link, works } => (NetworkPlace::Link(*link), *works),
                Act::Node { node, works } => (NetworkPlace::Node(*node), *works),
                Act::Configure { .. } => continue,
            };
            let knows_ns = at.saturating_add(network.detection_ns);
            let open = all.iter_mut().find(|outage| outage.part == part && outage.over_ns == Nanos::MAX);
            match (works, open) {
                (true, Some(outage)) => outage.over_ns = knows_ns,
                (false, None) => all.push(Outage::new(part, *at, knows_ns, &network.links)),
                _ => {}
            }
        }
        Self { all }
    }

    /// Returns whether there are no failures.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Classifies a packet, and counts the failures that it encountered. A packet encounters a failure if it
    /// is lost because of the failure, or if it reaches a switch next to the failure and has left its planned
    /// path or leaves it there. A failure off the planned path counts only if a failure on the planned path
    /// diverted the packet.
    pub fn exposure(&mut self, network: &Network, flow: &Flow, trip: Trip<'_>) -> Exposure {
        let Trip { sent_ns, ended_ns, way, lost_at } = trip;
        let begun = self.all.partition_point(|outage| outage.from_ns <= ended_ns);
        let mut exposure = Exposure::None;
        let mut met: Vec<(&mut Outage, Exposure)> = Vec::new();
        let followed = |route: &Vec<Hop>| {
            way.iter().zip(route).take_while(|(visit, hop)| visit.link == hop.link).count()
        };
        let as_planned = flow.routes.iter().map(followed).max().unwrap_or(0);
        // Paths that the packet may have taken.
        let routes: Vec<&Vec<Hop>> =
            flow.routes.iter().filter(|route| followed(route) == as_planned).collect();
        let first = network.hosts.get(flow.from).map(|host| (host.at.node, sent_ns));
        let visits = first.into_iter().chain(way.iter().map(|visit| (visit.node, visit.at_ns)));
        let visits = visits.skip(as_planned).take_while(|(_, at_ns)| *at_ns <= ended_ns);
        for outage in self.all[..begun].iter_mut().filter(|outage| outage.over_ns > sent_ns) {
            exposure = Exposure::OffPath;
            let lasts = outage.from_ns..outage.over_ns;
            let takes = |place| lasts.contains(&ended_ns) && outage.is_at(place);
            let meets = |(node, at_ns)| lasts.contains(&at_ns) && outage.beside.contains(&node);
            if lost_at.is_some_and(takes) || visits.clone().any(meets) {
                let promised = outage.concerns(network, flow, &routes);
                met.push((outage, promised));
            }
        }
        let is_on_path = |(_, promised): &(&mut Outage, Exposure)| *promised != Exposure::OffPath;
        if met.iter().any(is_on_path) {
            exposure = match &met[..] {
                [(outage, promised)] => match lost_at {
                    // A failure that is not detected yet affects only packets that reach the failed part.
                    Some(place) if ended_ns < outage.detected_ns && !outage.is_at(place) => Exposure::OffPath,
                    _ if ended_ns < outage.detected_ns => Exposure::Undetected,
                    _ if ended_ns >= outage.over_ns => Exposure::Repaired,
                    _ => *promised,
                },
                _ => Exposure::Several,
            };
            let counts =
                |one: &&mut (&mut Outage, Exposure)| exposure != Exposure::OffPath && is_on_path(one);
            for (outage, _) in met.iter_mut().filter(counts) {
                outage.met += 1;
                outage.guarded += u64::from(exposure == Exposure::Guarded);
            }
        }
        exposure
    }

    /// Returns all failures with the number of packets that encountered them.
    pub fn failures(&self) -> Vec<FailureReport> {
        let failure = |outage: &Outage| {
            let Outage { part, from_ns, met, guarded, .. } = *outage;
            FailureReport { part, from_ns, met, guarded }
        };
        self.all.iter().map(failure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{End, Host};
    use Exposure::{
        End as AtEnd, Guarded, None as Nothing, OffPath, Repaired, Several, Undetected, Unguarded,
    };
    use flow::PortNo;

    /// Switches 0 to 3 form a row. There is an alternative path from switch 0 via 4 to 2. Link 7 connects the
    /// distant switches 8 and 9.
    fn network(acts: Vec<(Nanos, Act)>) -> Network {
        let host = |node| Host { name: String::new(), at: End { node, port: PortNo(9) } };
        let ends = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 2), (5, 6), (6, 7), (8, 9)];
        let end = |node, port| End { node, port };
        let links = ends.map(|(a, b)| NetworkLink {
            ends: [end(a, PortNo(1)), end(b, PortNo(2))],
            delay_ns: Nanos(5),
            rate_bps: None,
            queue_frames: 0,
        });
        let (hosts, links) = (vec![host(0), host(3)], links.to_vec());
        Network { hosts, links, acts, detection_ns: Nanos(10), ..Network::default() }
    }

    fn flow(routes: Vec<Vec<Hop>>) -> Flow {
        let template = std::sync::Arc::from([0; 60]);
        let (first_ns, interval_ns, packets, hops_max) = (Nanos(0), Nanos(1), 1, 9);
        Flow {
            from: 0,
            to: 1,
            template,
            payload_at: 42,
            first_ns,
            interval_ns,
            packets,
            times: None,
            hops_max,
            routes,
        }
    }

    fn path() -> Vec<Hop> {
        let hop = |link, node, link_guarded, node_guarded| Hop { link, node, link_guarded, node_guarded };
        vec![hop(0, 1, true, true), hop(1, 2, true, false), hop(2, 3, false, false)]
    }

    fn link(at: Nanos, link: usize, works: bool) -> (Nanos, Act) {
        (at, Act::Link { link, works })
    }

    fn node(at: Nanos, node: usize, works: bool) -> (Nanos, Act) {
        (at, Act::Node { node, works })
    }

    /// Returns a path from switch 0 at time `sent_ns`, over links with a delay of 5 ns.
    fn way(sent_ns: Nanos, links: &[(usize, usize)]) -> Vec<Visit> {
        let visit = |(at, &(link, node)): (usize, &(usize, usize))| Visit {
            link,
            node,
            at_ns: sent_ns + Nanos(5 * (at as u64 + 1)),
        };
        links.iter().enumerate().map(visit).collect()
    }

    /// Classifies a packet that is sent at `sent_ns` and arrives or is lost at the end of this path.
    fn met(
        acts: &[(Nanos, Act)],
        sent_ns: Nanos,
        links: &[(usize, usize)],
        lost_at: Option<NetworkPlace>,
    ) -> Exposure {
        let (network, way) = (network(acts.to_vec()), way(sent_ns, links));
        let ended_ns = way.last().map_or(sent_ns, |visit| visit.at_ns);
        let trip = Trip { sent_ns, ended_ns, way: &way, lost_at };
        Outages::of(&network).exposure(&network, &flow(vec![path()]), trip)
    }

    const PLANNED: [(usize, usize); 3] = [(0, 1), (1, 2), (2, 3)];
    const ROUND: [(usize, usize); 3] = [(3, 4), (4, 2), (2, 3)];

    #[test]
    fn the_promised_protection_depends_on_the_failed_part() {
        // The second value is the index of the switch at which the packet is lost.
        let cases = [
            (link(Nanos(100), 0, false), 0, Guarded),
            (link(Nanos(100), 1, false), 1, Guarded),
            (link(Nanos(100), 2, false), 2, Unguarded),
            (link(Nanos(100), 7, false), 2, OffPath),
            (node(Nanos(100), 1, false), 0, Guarded),
            (node(Nanos(100), 2, false), 1, Unguarded),
            (node(Nanos(100), 3, false), 2, AtEnd),
            (node(Nanos(100), 0, false), 0, AtEnd),
            (node(Nanos(100), 7, false), 2, OffPath),
        ];
        for (act, hops, expected) in cases {
            let lost_at = Some(NetworkPlace::Node(hops));
            assert_eq!(
                met(std::slice::from_ref(&act), Nanos(120), &PLANNED[..hops], lost_at),
                expected,
                "{act:?}"
            );
        }
    }

    #[test]
    fn a_packet_is_not_affected_by_failures_of_another_path() {
        // Both paths end at switch 2. The first path leads over switch 1, and its last link fails. The second
        // path avoids switch 1.
        let hop = |link, node| Hop { link, node, link_guarded: false, node_guarded: false };
        let flow = flow(vec![vec![hop(0, 1), hop(1, 2)], vec![hop(3, 4), hop(4, 2)]]);
        let network = network(vec![link(Nanos(100), 1, false)]);
        let exposure = |links: &[(usize, usize)], lost_at| {
            let way = way(Nanos(120), links);
            let ended_ns = way.last().map_or(Nanos(120), |visit| visit.at_ns);
            let trip = Trip { sent_ns: Nanos(120), ended_ns, way: &way, lost_at };
            let mut outages = Outages::of(&network);
            (outages.exposure(&network, &flow, trip), outages.all[0].met)
        };
        assert_eq!(exposure(&ROUND[..2], None), (OffPath, 0), "delivered as planned");
        assert_eq!(
            exposure(&ROUND[..2], Some(NetworkPlace::Node(2))),
            (OffPath, 0),
            "lost at the destination of both paths"
        );
        assert_eq!(
            exposure(&PLANNED[..1], Some(NetworkPlace::Link(1))),
            (Unguarded, 1),
            "lost on the failed link"
        );
    }

    #[test]
    fn a_loss_that_no_failure_explains_is_not_excused() {
        // The packet was lost at switch 1, before it reached the failure.
        let at_1 = Some(NetworkPlace::Node(1));
        assert_eq!(met(&[link(Nanos(100), 2, false)], Nanos(120), &PLANNED[..1], at_1), OffPath);
        // Failures elsewhere have no influence, whether or not they are detected.
        let elsewhere = [link(Nanos(100), 7, false), node(Nanos(100), 6, false), link(Nanos(115), 5, false)];
        assert_eq!(met(&elsewhere, Nanos(120), &PLANNED[..1], at_1), OffPath);
        assert_eq!(met(&[link(Nanos(119), 7, false)], Nanos(120), &PLANNED[..1], at_1), OffPath);
        assert_eq!(
            met(&[link(Nanos(100), 7, false), link(Nanos(112), 7, true)], Nanos(120), &PLANNED[..1], at_1),
            OffPath
        );
        // The failure is next to the switch, but not on the packet's path.
        assert_eq!(met(&[link(Nanos(100), 3, false)], Nanos(120), &[], Some(NetworkPlace::Node(0))), OffPath);
        // An undetected failure of a link can only explain losses on that link.
        assert_eq!(met(&[link(Nanos(119), 1, false)], Nanos(120), &PLANNED[..1], at_1), OffPath);
        assert_eq!(
            met(&[link(Nanos(119), 1, false)], Nanos(120), &PLANNED[..1], Some(NetworkPlace::Link(1))),
            Undetected
        );
        // The packet had crossed the link before the link failed.
        assert_eq!(
            met(&[link(Nanos(126), 0, false)], Nanos(120), &PLANNED[..2], Some(NetworkPlace::Node(2))),
            OffPath
        );
    }

    #[test]
    fn failures_on_a_detour_count() {
        let first = link(Nanos(100), 0, false);
        assert_eq!(met(std::slice::from_ref(&first), Nanos(120), &ROUND, None), Guarded);
        for second in [link(Nanos(100), 4, false), node(Nanos(100), 4, false)] {
            let both = [first.clone(), second.clone()];
            assert_eq!(
                met(&both, Nanos(120), &ROUND[..1], Some(NetworkPlace::Node(4))),
                Several,
                "{second:?}"
            );
            // The packet would not have been diverted without the first failure.
            assert_eq!(met(&[second], Nanos(120), &ROUND[..1], Some(NetworkPlace::Node(4))), OffPath);
        }
        assert_eq!(met(&[first, link(Nanos(100), 7, false)], Nanos(120), &ROUND, None), Guarded);
    }

    #[test]
    fn the_weakest_protection_of_several_paths_counts() {
        let network = network(vec![link(Nanos(100), 2, false)]);
        let mut outages = Outages::of(&network);
        let way = way(Nanos(120), &PLANNED[..2]);
        let trip = Trip {
            sent_ns: Nanos(120),
            ended_ns: Nanos(130),
            way: &way,
            lost_at: Some(NetworkPlace::Node(2)),
        };
        let mut exposure = |routes| outages.exposure(&network, &flow(routes), trip);
        assert_eq!(exposure(vec![path()[..2].to_vec()]), OffPath);
        assert_eq!(exposure(vec![path()[..2].to_vec(), path()]), Unguarded);
        assert_eq!(exposure(Vec::new()), Unguarded);
        assert_eq!(
            outages.failures(),
            [FailureReport { part: NetworkPlace::Link(2), from_ns: Nanos(100), met: 2, guarded: 0 }]
        );
    }

    #[test]
    fn the_class_of_a_packet_depends_on_times() {
        // The packet is lost on the first link, or is diverted there and delivered 15 ns later.
        let acts = [link(Nanos(200), 0, true), link(Nanos(100), 0, false)];
        let lost = |sent| met(&acts, Nanos(sent), &[], Some(NetworkPlace::Link(0)));
        assert_eq!([99, 100, 109].map(lost), [Nothing, Undetected, Undetected]);
        let round = |sent| met(&acts, Nanos(sent), &ROUND, None);
        assert_eq!([84, 85, 99, 100].map(round), [Nothing, OffPath, OffPath, Guarded]);
        assert_eq!([194, 195, 209, 210].map(round), [Guarded, Repaired, Repaired, Nothing]);
    }
}
