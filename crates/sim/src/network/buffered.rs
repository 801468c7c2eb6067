// SPDX-License-Identifier: Apache-2.0
//! Switches in which packets may wait: in receive rings, and in port caches until a search is answered.

use crate::network::instance::{Fate, Instance, Snapshot};
use crate::network::link_state::LinkState;
use crate::network::port::Sent;
use crate::network::report::{BufferReport, LayerReport, NetworkPlace};
use crate::network::run::{Copy, Event, Running, START_NS};
use crate::network::spec::{End, Layer, Network, NetworkLink, SwitchBuffers};
use flow::Nanos;
use hdrhistogram::CreationError;
use std::collections::{BTreeSet, HashMap};

/// Loss reason: the receive ring of the port is full.
pub(super) const RING_FULL: &str = "ring_full";

/// A copy inside a switch, without its bytes, and the time of its arrival.
#[derive(Debug)]
struct Passage {
    copy: Copy,
    arrived_ns: Nanos,
    /// Whether a path record has forwarded the copy.
    is_express: bool,
}

/// Contents of all switches and their counters.
#[derive(Debug)]
pub(super) struct Buffered {
    buffers: SwitchBuffers,
    /// For each switch, the packets inside it.
    inside: Vec<HashMap<u64, Passage>>,
    /// For each switch, the time of its next planned [`Event::Wake`].
    wakes: Vec<Option<Nanos>>,
    /// For each flow and each number of crossed links, the last packet that left a switch.
    last: Vec<Vec<u64>>,
    /// Links of hosts. End 0 is the host.
    host_links: Vec<LinkState>,
    /// For each switch, the index of its layer in the report.
    layer_of: Vec<usize>,
    /// Counters of the switches at the begin of the time that is counted.
    begin: Vec<Snapshot>,
    /// Whether the end of the time that is counted has passed.
    is_over: bool,
    fates: Vec<(u64, Fate)>,
    pub report: BufferReport,
}

impl Buffered {
    pub fn new(network: &Network, buffers: SwitchBuffers) -> Result<Self, CreationError> {
        let nodes = network.nodes.len();
        let all: BTreeSet<Option<Layer>> = network.nodes.iter().map(|node| node.layer).collect();
        let layers: Vec<Option<Layer>> = all.into_iter().collect();
        let index = |layer| layers.iter().position(|other| *other == layer).unwrap_or_default();
        let layer_of: Vec<usize> = network.nodes.iter().map(|node| index(node.layer)).collect();
        let count = |at| layer_of.iter().filter(|layer| **layer == at).count();
        let report = |(at, layer): (usize, &Option<Layer>)| LayerReport::new(*layer, count(at));
        let reports = layers.iter().enumerate().map(report).collect::<Result<_, _>>()?;
        let host_link = |end: End, (rate_bps, queue_frames)| {
            let rate_bps = Some(rate_bps);
            LinkState::new(NetworkLink { ends: [end; 2], delay_ns: Nanos(0), rate_bps, queue_frames })
        };
        let with_links = network.hosts.iter().filter_map(|host| Some((host.at, buffers.host_link?)));
        Ok(Self {
            buffers,
            inside: (0..nodes).map(|_| HashMap::new()).collect(),
            wakes: vec![None; nodes],
            last: vec![Vec::new(); network.flows.len()],
            host_links: with_links.map(|(end, link)| host_link(end, link)).collect(),
            layer_of,
            begin: vec![Snapshot::default(); nodes],
            is_over: false,
            fates: Vec::new(),
            report: BufferReport::new(reports)?,
        })
    }

    /// Returns whether an event at this time is counted.
    pub fn counts(&self, at: Nanos) -> bool {
        at >= self.buffers.begin_ns && self.buffers.end_ns.is_none_or(|end_ns| at < end_ns)
    }

    fn layer(&mut self, node: usize) -> &mut LayerReport {
        &mut self.report.layers[self.layer_of[node]]
    }

    /// Reads the counters of all switches at the begin of the time that is counted.
    fn begin(&mut self, switches: &mut [Instance]) {
        self.begin = switches.iter_mut().map(Instance::snapshot).collect();
    }

    /// Adds what the switches have counted since the begin. Has no effect after the first call.
    pub fn end(&mut self, switches: &mut [Instance]) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        for (node, switch) in switches.iter_mut().enumerate() {
            let (now, then) = (switch.snapshot(), std::mem::take(&mut self.begin[node]));
            let layer = self.layer(node);
            layer.received += now.totals.received - then.totals.received;
            layer.misses.add(&now.misses.since(&then.misses));
        }
    }

    /// Notes that a copy leaves a switch. The packets of a flow must leave in order.
    fn leaves(&mut self, node: usize, flow: usize, packet: u64, passage: &Passage, now: Nanos) {
        let (hops, last) = (passage.copy.hops as usize, &mut self.last[flow]);
        if last.len() <= hops {
            last.resize(hops + 1, 0);
        }
        self.report.overtaken += u64::from(packet < last[hops]);
        last[hops] = last[hops].max(packet);
        if self.counts(passage.arrived_ns) {
            let layer = self.layer(node);
            layer.forwarded += 1;
            layer.express += u64::from(passage.is_express);
            layer.delay.add((now - passage.arrived_ns).0 as f64);
        }
    }

    /// Counts the loss of a copy in a switch, or on the link to which the switch has sent it. `at` is the
    /// time of its arrival, or of the loss on the link.
    pub fn drops(&mut self, node: usize, reason: &'static str, at: Nanos) {
        if self.counts(at) {
            *self.layer(node).dropped.entry(reason).or_default() += 1;
        }
    }
}

impl Running<'_> {
    /// Plans the begin and the end of the time that is counted.
    pub(super) fn plan_counting(&mut self) {
        let Some(SwitchBuffers { begin_ns, end_ns, .. }) = self.network.buffers else { return };
        self.plan(begin_ns, Event::Count { begins: true });
        if let Some(end_ns) = end_ns {
            self.plan(end_ns, Event::Count { begins: false });
        }
    }

    pub(super) fn count(&mut self, begins: bool) {
        match &mut self.buffered {
            Some(buffered) if begins => buffered.begin(&mut self.switches),
            Some(buffered) => buffered.end(&mut self.switches),
            None => {}
        }
    }

    /// Sends a copy over the link of a host, in direction `from`: from end 0, which is the host, or from end
    /// 1. Returns the time of its arrival and the copy, or `None` if the copy is lost.
    fn cross_host_link(&mut self, host: usize, from: usize, copy: Copy) -> Option<(Nanos, Copy)> {
        let link = self.buffered.as_mut().and_then(|buffered| buffered.host_links.get_mut(host));
        match link.map_or(Ok(self.now), |link| link.send(self.now, from, copy.bytes.len())) {
            Ok(at) => Some((at, copy)),
            Err(reason) => {
                let node = self.network.hosts[host].at.node;
                if let Some(buffered) = self.buffered.as_mut().filter(|_| from == 1) {
                    buffered.drops(node, reason, self.now);
                }
                self.lose(&copy, reason, NetworkPlace::Host(host), self.now);
                None
            }
        }
    }

    /// Sends a copy from a host to its switch.
    pub(super) fn enter(&mut self, host: usize, copy: Copy) {
        if let Some((at, copy)) = self.cross_host_link(host, 0, copy) {
            self.plan(at, Event::Enter { host, copy });
        }
    }

    /// Sends a copy from a switch to a host.
    pub(super) fn reach(&mut self, host: usize, copy: Copy) {
        if let Some((at, copy)) = self.cross_host_link(host, 1, copy) {
            self.plan(at, Event::Reach { host, copy });
        }
    }

    /// Puts a copy into the receive ring of a port, and lets the switch forward.
    pub(super) fn receive(&mut self, at: End, mut copy: Copy) {
        let Some(buffered) = &mut self.buffered else { return };
        let (packet, bytes) = (copy.packet, std::mem::take(&mut copy.bytes));
        let counts = buffered.counts(self.now);
        buffered.layer(at.node).offered += u64::from(counts);
        if !self.switches[at.node].offer(at.port, packet, bytes, buffered.buffers.ring) {
            buffered.drops(at.node, RING_FULL, self.now);
            return self.lose(&copy, RING_FULL, NetworkPlace::Node(at.node), self.now);
        }
        buffered.inside[at.node].insert(packet, Passage { copy, arrived_ns: self.now, is_express: false });
        self.serve(at.node);
    }

    /// Lets a switch forward what it can at this time, because a search may have been answered.
    pub(super) fn wake(&mut self, node: usize) {
        let Some(buffered) = &mut self.buffered else { return };
        // A wake-up that was planned before an earlier one is out of date.
        if buffered.wakes[node] == Some(self.now) {
            buffered.wakes[node] = None;
            self.serve(node);
        }
    }

    fn serve(&mut self, node: usize) {
        let mut sent = std::mem::take(&mut self.sent);
        let Some(buffered) = &mut self.buffered else { return };
        let mut fates = std::mem::take(&mut buffered.fates);
        let answers_ns = self.switches[node].serve(self.now + START_NS, &mut sent, &mut fates);
        // Time advances before the next poll iteration.
        let wakes_ns = answers_ns.map(|at| at.saturating_sub(START_NS).max(self.now + Nanos(1)));
        let planned_ns = buffered.wakes[node];
        if let Some(at) = wakes_ns.filter(|at| planned_ns.is_none_or(|planned| *at < planned)) {
            buffered.wakes[node] = Some(at);
            self.plan(at, Event::Wake(node));
        }
        for (packet, fate) in fates.drain(..) {
            self.note(node, packet, fate);
        }
        for Sent { port, packet, bytes } in sent.drain(..) {
            self.leave_switch(End { node, port }, packet, bytes);
        }
        self.sent = sent;
        if let Some(buffered) = &mut self.buffered {
            buffered.fates = fates;
        }
    }

    fn note(&mut self, node: usize, packet: u64, fate: Fate) {
        let Some(buffered) = &mut self.buffered else { return };
        let reason = match fate {
            Fate::Lost(reason) => reason,
            Fate::Express => {
                let passage = buffered.inside[node].get_mut(&packet);
                return passage.into_iter().for_each(|passage| passage.is_express = true);
            }
        };
        let Some(Passage { copy, arrived_ns, .. }) = buffered.inside[node].remove(&packet) else { return };
        buffered.drops(node, reason, arrived_ns);
        self.lose(&copy, reason, NetworkPlace::Node(node), self.now);
    }

    fn leave_switch(&mut self, by: End, packet: u64, bytes: Vec<u8>) {
        let Some(buffered) = &mut self.buffered else { return };
        let Some(passage) = buffered.inside[by.node].remove(&packet) else { return };
        let flow = self.packets.get(packet as usize).map_or(0, |packet| packet.flow as usize);
        buffered.leaves(by.node, flow, packet, &passage, self.now);
        self.report.forwarded += 1;
        let Passage { copy, .. } = passage;
        self.leave(by, copy.leaving(by, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{Flow, Node};

    #[test]
    fn a_packet_that_leaves_after_a_later_one_at_the_same_distance_has_been_overtaken() {
        let flow = Flow {
            from: 0,
            to: 0,
            template: [].into(),
            payload_at: 0,
            first_ns: Nanos(0),
            interval_ns: Nanos(1),
            packets: 9,
            times: None,
            hops_max: 2,
            routes: Vec::new(),
        };
        let flows = vec![flow.clone(), flow];
        let network = Network { nodes: vec![Node::default()], flows, ..Network::default() };
        let buffers = SwitchBuffers {
            port_cache: None,
            records: 0,
            ring: 1,
            host_link: None,
            begin_ns: Nanos(0),
            end_ns: None,
        };
        let mut buffered = Buffered::new(&network, buffers).unwrap();
        let mut overtaken = |flow, packet, hops| {
            let mut copy = Copy::default();
            copy.hops = hops;
            let passage = Passage { copy, arrived_ns: Nanos(0), is_express: false };
            buffered.leaves(0, flow, packet, &passage, Nanos(1));
            buffered.report.overtaken
        };
        assert_eq!(overtaken(0, 2, 1), 0);
        // Another switch on the path, and another flow.
        assert_eq!([overtaken(0, 1, 0), overtaken(0, 1, 2), overtaken(1, 1, 1)], [0; 3]);
        assert_eq!(overtaken(0, 1, 1), 1);
        // The later packet is still the one to compare with.
        assert_eq!([overtaken(0, 1, 1), overtaken(0, 3, 1), overtaken(0, 3, 1)], [2; 3]);
    }
}
