// SPDX-License-Identifier: Apache-2.0
//! Builds fat trees.

use crate::network::spec::{End, Host, Layer, Network, NetworkLink, Node, Setup};
use flow::{Nanos, PortNo};

/// Properties of all links of a fat tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeLinks {
    /// Delay in nanoseconds.
    pub delay_ns: Nanos,
    /// Rate in bit/s. If `None`, transmission takes no time.
    pub rate_bps: Option<u64>,
    /// Queue capacity per direction in frames.
    pub queue_frames: usize,
}

/// Returns a fat tree of switches with `ports` ports, without entries and flows. The number of ports is
/// even. Each pod has `ports / 2` edge and as many aggregation switches. Edge switches come first, pod by
/// pod, then aggregation switches and core switches. The lower half of the ports leads to lower layers. Port
/// `n` of a core switch leads to pod `n - 1`.
#[must_use]
pub fn fat_tree(ports: usize, links: TreeLinks) -> Network {
    let (half, pods) = (ports / 2, ports);
    let (edges, cores) = (pods * half, half * half);
    let node = |layer: Layer, number: usize| Node {
        name: format!("{}{}", layer.name(), number + 1),
        ports: (1..=ports as u32).map(PortNo).collect(),
        layer: Some(layer),
        setup: Setup::default(),
    };
    let layers = [(Layer::Edge, edges), (Layer::Aggregation, edges), (Layer::Core, cores)];
    let nodes = layers.into_iter().flat_map(|(layer, count)| (0..count).map(move |at| node(layer, at)));
    let end = |node: usize, port: usize| End { node, port: PortNo(port as u32 + 1) };
    let mut ends = Vec::new();
    for pod in 0..pods {
        for upper in 0..half {
            let aggregation = edges + pod * half + upper;
            for lower in 0..half {
                ends.push([end(pod * half + lower, half + upper), end(aggregation, lower)]);
                ends.push([end(aggregation, half + lower), end(2 * edges + upper * half + lower, pod)]);
            }
        }
    }
    let TreeLinks { delay_ns, rate_bps, queue_frames } = links;
    let link = |ends| NetworkLink { ends, delay_ns, rate_bps, queue_frames };
    let host = |at: usize| Host { name: format!("h{}", at + 1), at: end(at / half, at % half) };
    Network {
        nodes: nodes.collect(),
        links: ends.into_iter().map(link).collect(),
        hosts: (0..edges * half).map(host).collect(),
        ..Network::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_port_of_a_tree_has_a_link_or_host() {
        let links = TreeLinks { delay_ns: Nanos(1), rate_bps: None, queue_frames: 0 };
        for (ports, switches, hosts) in [(4, 20, 16), (8, 80, 128)] {
            let tree = fat_tree(ports, links);
            assert_eq!((tree.nodes.len(), tree.hosts.len(), tree.links.len()), (switches, hosts, 2 * hosts));
            let ends =
                tree.links.iter().flat_map(|link| link.ends).chain(tree.hosts.iter().map(|host| host.at));
            assert_eq!(ends.collect::<HashSet<_>>().len(), switches * ports);
        }
    }
}
