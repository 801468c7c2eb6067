// SPDX-License-Identifier: Apache-2.0
//! What had failed while a packet was under way, and what was promised about that.

use crate::network::spec::{Act, Flow, Network};
use flow::Nanos;

/// How a packet met with failures. A packet that is lost for lack of room is no loss by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposure {
    /// Nothing had failed.
    None,
    /// Something had that was not on its path.
    Aside,
    /// Something had on its path that the plan says may, and its neighbours knew.
    Guarded,
    /// Something had on its path that the plan says nothing about, or the path was not known.
    Unguarded,
    /// The switch that it came from, or was for, had.
    End,
    /// It was over before the failure was detected.
    Undetected,
    /// The repair was detected while it was under way.
    Repaired,
    /// Several things had failed.
    Several,
}

impl Exposure {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Aside,
        Self::Guarded,
        Self::Unguarded,
        Self::End,
        Self::Undetected,
        Self::Repaired,
        Self::Several,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no failure",
            Self::Aside => "failure off the path",
            Self::Guarded => "protected hop, detected",
            Self::Unguarded => "unprotected hop, detected",
            Self::End => "end of the path failed",
            Self::Undetected => "not yet detected",
            Self::Repaired => "repaired under way",
            Self::Several => "several failures",
        }
    }

    /// Whether nothing may be lost.
    #[must_use]
    pub fn is_safe(self) -> bool {
        matches!(self, Self::None | Self::Aside | Self::Guarded)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Link(usize),
    Node(usize),
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    what: What,
    from_ns: Nanos,
    detected_ns: Nanos,
    /// When its repair is detected.
    over_ns: Nanos,
}

/// All failures of a run, the earliest first.
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
            let (what, works) = match act {
                Act::Link { link, works } => (What::Link(*link), *works),
                Act::Node { node, works } => (What::Node(*node), *works),
                Act::Configure { .. } => continue,
            };
            let knows_ns = at.saturating_add(network.detection_ns);
            let open = all.iter_mut().find(|outage| outage.what == what && outage.over_ns == Nanos::MAX);
            match (works, open) {
                (true, Some(outage)) => outage.over_ns = knows_ns,
                (false, None) => {
                    all.push(Outage { what, from_ns: *at, detected_ns: knows_ns, over_ns: Nanos::MAX });
                }
                _ => {}
            }
        }
        Self { all }
    }

    /// How a packet met with failures that was sent and ended then.
    pub fn exposure(&self, network: &Network, flow: &Flow, sent_ns: Nanos, ended_ns: Nanos) -> Exposure {
        let begun = self.all.iter().take_while(|outage| outage.from_ns <= ended_ns);
        let mut met = begun.filter(|outage| outage.over_ns > sent_ns);
        let Some(outage) = met.next() else { return Exposure::None };
        if met.next().is_some() {
            return Exposure::Several;
        }
        if ended_ns < outage.detected_ns {
            return Exposure::Undetected;
        }
        if ended_ns >= outage.over_ns {
            return Exposure::Repaired;
        }
        let at = |host: usize| network.hosts.get(host).map(|host| host.at.node);
        if let What::Node(node) = outage.what
            && [at(flow.from), at(flow.to)].contains(&Some(node))
        {
            return Exposure::End;
        }
        let of_routes = flow.routes.iter().map(|route| {
            let hops = route.iter().filter_map(|hop| match outage.what {
                What::Link(link) => (hop.link == link).then_some(hop.link_guarded),
                What::Node(node) => (hop.node == node).then_some(hop.node_guarded),
            });
            hops.map(|guarded| if guarded { Exposure::Guarded } else { Exposure::Unguarded })
                .max()
                .unwrap_or(Exposure::Aside)
        });
        // The least that is promised.
        of_routes.max().unwrap_or(Exposure::Unguarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{End, Hop, Host};

    fn network(acts: Vec<(Nanos, Act)>) -> Network {
        let host = |node| Host { name: String::new(), at: End { node, port: 9 } };
        Network { hosts: vec![host(0), host(3)], acts, detection_ns: 10, ..Network::default() }
    }

    fn flow(routes: Vec<Vec<Hop>>) -> Flow {
        let template = std::sync::Arc::from([0; 60]);
        let (first_ns, interval_ns, packets, hops_max) = (0, 1, 1, 9);
        Flow { from: 0, to: 1, template, payload_at: 42, first_ns, interval_ns, packets, hops_max, routes }
    }

    fn path() -> Vec<Hop> {
        let hop = |link, node, link_guarded, node_guarded| Hop { link, node, link_guarded, node_guarded };
        vec![hop(0, 1, true, true), hop(1, 2, true, false), hop(2, 3, false, false)]
    }

    #[test]
    fn what_is_promised_depends_on_what_failed() {
        let cases = [
            (Act::Link { link: 0, works: false }, Exposure::Guarded),
            (Act::Link { link: 2, works: false }, Exposure::Unguarded),
            (Act::Link { link: 7, works: false }, Exposure::Aside),
            (Act::Node { node: 1, works: false }, Exposure::Guarded),
            (Act::Node { node: 2, works: false }, Exposure::Unguarded),
            (Act::Node { node: 3, works: false }, Exposure::End),
            (Act::Node { node: 0, works: false }, Exposure::End),
            (Act::Node { node: 7, works: false }, Exposure::Aside),
        ];
        for (act, expected) in cases {
            let network = network(vec![(100, act)]);
            let found = Outages::of(&network).exposure(&network, &flow(vec![path()]), 120, 130);
            assert_eq!(found, expected, "{:?}", network.acts);
        }
    }

    #[test]
    fn of_several_paths_the_weakest_counts_and_of_none_nothing() {
        let network = network(vec![(100, Act::Link { link: 2, works: false })]);
        let outages = Outages::of(&network);
        let told = |routes| outages.exposure(&network, &flow(routes), 120, 130);
        assert_eq!(told(vec![path()[..2].to_vec()]), Exposure::Aside);
        assert_eq!(told(vec![path()[..2].to_vec(), path()]), Exposure::Unguarded);
        assert_eq!(told(Vec::new()), Exposure::Unguarded);
    }

    #[test]
    fn times_decide_what_a_packet_met() {
        let mut acts =
            vec![(200, Act::Link { link: 0, works: true }), (100, Act::Link { link: 0, works: false })];
        let found = |acts: &[(Nanos, Act)], sent, ended| {
            let network = network(acts.to_vec());
            Outages::of(&network).exposure(&network, &flow(vec![path()]), sent, ended)
        };
        let cases = [
            (50, 99, Exposure::None),
            (50, 100, Exposure::Undetected),
            (105, 109, Exposure::Undetected),
            (105, 110, Exposure::Guarded),
            (150, 209, Exposure::Guarded),
            (150, 210, Exposure::Repaired),
            (209, 220, Exposure::Repaired),
            (210, 220, Exposure::None),
        ];
        for (sent, ended, expected) in cases {
            assert_eq!(found(&acts, sent, ended), expected, "{sent} to {ended}");
        }
        acts.push((150, Act::Node { node: 9, works: false }));
        assert_eq!(found(&acts, 120, 140), Exposure::Guarded);
        assert_eq!(found(&acts, 120, 150), Exposure::Several);
        assert_eq!(found(&acts, 300, 310), Exposure::Aside);
    }
}
