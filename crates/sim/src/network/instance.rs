// SPDX-License-Identifier: Apache-2.0
//! One switch of a network: a model that controls one worker. Thousands of switches fit into a process.

use crate::network::port::{NetworkQueue, Sent, Side};
use crate::network::spec::{Node, Setup, SwitchBuffers};
use dataplane::{BurstCounters, DataPlane, DropCounts, Totals};
use flow::stateless::StatelessChange;
use flow::{Nanos, Outcome, PortNo};
use frame::Frame;
use model::{AsyncMessage, Change, Model, ModelError, PortDesc};
use pipeline::{BypassLimits, LaneLimits, PacketSlot, Probe, Via};
use port::Queue;
use port_cache::MissFigures;
use std::sync::Arc;
use worker::Sleeper as _;
use worker::{Clock, Consistency, PortQueues, Quanta, Worker, WorkerSet, WorkerSetConfig};

/// Small sizes, because a network has many switches and each processes one frame at a time.
const SIZES: WorkerSetConfig = WorkerSetConfig {
    lanes: LaneLimits::NONE,
    quanta: Quanta::DEFAULT,
    workers: 1,
    small_frames: 16,
    large_frames: 0,
    controller_frames: 4,
    operations: 64,
    events: 64,
    lut_entries: 0,
    express_records: 0,
    express_bypass: BypassLimits::USUAL,
    port_cache: None,
    packet_in_rates: worker::PacketInRates::NONE,
    stopwatch: None,
    consistency: Consistency::Auto,
    timed_bursts: 1_024,
    handovers: 1,
    outbox_frames: 512,
    clock: Clock::stopped(),
};

/// Number of small frames of a switch with receive rings, beside those of waiting packets. A poll iteration
/// receives a burst from each port.
const BUFFERED_FRAMES: usize = 256;
/// Interval between two polls of the model of a switch with receive rings, in nanoseconds.
const CONTROL_NS: Nanos = Nanos(1_000_000);

/// Outcome of a packet that was sent to the controller only.
pub(super) const CONSUMED: &str = "consumed";
/// Outcome of a packet without a known reason.
const UNKNOWN: &str = "unknown";

/// Maximum number of poll iterations to receive, forward and send a frame.
const TURNS: usize = 16;

pub(super) struct Instance {
    model: Model<WorkerSet>,
    worker: Worker<Fates>,
    side: Arc<Side>,
    /// Counters at the last check: packets to the controller, and drops by reason.
    counted: (u64, DropCounts),
    /// Time of the last poll of the model.
    polled_ns: Nanos,
}

/// Way of a packet through a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A path record forwarded the packet.
    Express,
    /// No copy was sent, for this reason.
    Lost(&'static str),
}

/// Probe that collects the fates of packets. Other packets were forwarded without a path record.
#[derive(Debug, Default)]
struct Fates {
    /// Packet in each slot of the worker.
    places: Vec<u64>,
    fates: Vec<(u64, Fate)>,
}

impl Probe for Fates {
    #[inline]
    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        if self.places.len() <= slot.index() {
            self.places.resize(slot.index() + 1, u64::MAX);
        }
        self.places[slot.index()] = frame.meta.sequence;
    }

    #[inline]
    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, _: &BurstCounters) {
        let fate = match outcome {
            Outcome::Forwarded if via == Via::Express => Fate::Express,
            Outcome::Forwarded => return,
            Outcome::Consumed => Fate::Lost(CONSUMED),
            Outcome::Dropped(reason) => Fate::Lost(reason.name()),
        };
        self.fates.extend(self.places.get(slot.index()).map(|packet| (*packet, fate)));
    }
}

/// Counters of a switch with a port cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub totals: Totals,
    pub misses: MissFigures,
}

/// Returns the sizes of a switch with receive rings and path records.
fn buffered(buffers: &SwitchBuffers) -> WorkerSetConfig {
    WorkerSetConfig {
        small_frames: BUFFERED_FRAMES,
        express_records: buffers.records,
        port_cache: buffers.port_cache,
        ..SIZES
    }
}

/// Size of the state of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceState {
    /// Number of flow entries.
    pub entries: usize,
    /// Number of groups.
    pub groups: usize,
    /// Number of labels in all banks.
    pub labels: usize,
    /// Number of gates.
    pub gates: usize,
}

impl Instance {
    /// Creates a switch whose ports are up.
    pub fn new(node: &Node, buffers: Option<&SwitchBuffers>, now: Nanos) -> Result<Self, ModelError> {
        let side = Arc::new(Side::new(&node.ports));
        let queues = node.ports.iter().enumerate().map(|(at, number)| {
            let queue = Box::new(NetworkQueue::new(at, Arc::clone(&side))) as Box<dyn Queue>;
            PortQueues { number: *number, queues: vec![(0, queue)], egress: Vec::new() }
        });
        let config = buffers.map_or(SIZES, buffered);
        let (set, mut workers) = worker::build_with(&config, queues.collect(), Fates::default);
        let mut model = Model::new(model::ModelConfig::default(), set, now);
        let worker = workers.remove(0);
        for &number in &node.ports {
            model.add_port(now, PortDesc { number, ..PortDesc::default() }, true)?;
        }
        let mut made = Self { model, worker, side, counted: (0, DropCounts::default()), polled_ns: now };
        made.settle(now);
        Ok(made)
    }

    /// Configures the switch. The configuration is active when the function returns.
    pub fn configure(&mut self, now: Nanos, setup: &Setup) -> Result<(), ModelError> {
        let stateless =
            setup.stateless.iter().map(|config| Change::Stateless(StatelessChange::Set(config.sections())));
        let done = self.model.bundle(now, setup.changes.iter().cloned().chain(stateless));
        done.map_err(|(_, error)| error)?;
        self.settle(now);
        Ok(())
    }

    /// Reports to the switch that a port's link is up or down.
    pub fn set_link(&mut self, now: Nanos, port: PortNo, up: bool) -> Result<(), ModelError> {
        self.model.set_link(now, port, up)?;
        self.settle(now);
        Ok(())
    }

    /// Forwards a frame, and appends the resulting frames to `sent`. Returns the reason if there are none.
    pub fn forward(
        &mut self,
        now: Nanos,
        port: PortNo,
        packet: u64,
        bytes: Vec<u8>,
        sent: &mut Vec<Sent>,
    ) -> Option<&'static str> {
        let before = sent.len();
        self.side.arrive(port, packet, bytes, 1);
        for _ in 0..TURNS {
            let turn = self.worker.turn(now);
            if !self.side.waits() && !turn.waiting && !self.worker.has_pending() {
                break;
            }
        }
        self.side.take_sent(sent);
        self.worker.probe().fates.clear();
        // Some copies may be dropped although others are sent, so the counters are read after every frame.
        let reason = self.what_was_counted();
        if sent.len() > before {
            return None;
        }
        self.settle(now);
        Some(reason)
    }

    /// Puts a frame into the receive ring of a port. Returns false if the ring has `ring` frames already.
    pub fn offer(&self, port: PortNo, packet: u64, bytes: Vec<u8>, ring: usize) -> bool {
        self.side.arrive(port, packet, bytes, ring)
    }

    /// Runs poll iterations at this time until nothing is left to do. Appends the sent frames to `sent`, and
    /// packets that had a path record or were lost to `fates`. Returns the time of the next answer of a
    /// search, if packets wait for one.
    pub fn serve(&mut self, now: Nanos, sent: &mut Vec<Sent>, fates: &mut Vec<(u64, Fate)>) -> Option<Nanos> {
        let last = loop {
            let turn = self.worker.turn(now);
            if turn.received + turn.sent + turn.worked + turn.released + turn.applied == 0 {
                break turn;
            }
        };
        self.side.take_sent(sent);
        fates.append(&mut self.worker.probe().fates);
        if now >= self.polled_ns.saturating_add(CONTROL_NS) {
            self.polled_ns = now;
            self.poll(now);
        }
        last.answers_ns
    }

    /// Returns the counters of the switch.
    pub fn snapshot(&mut self) -> Snapshot {
        let plane = self.model.plane_mut();
        Snapshot { totals: plane.totals(), misses: plane.miss_figures() }
    }

    /// Returns the name of the counter that has increased since the last call.
    fn what_was_counted(&mut self) -> &'static str {
        let totals = self.model.totals();
        let mut drops = totals.dropped;
        drops += totals.copies_dropped;
        let (consumed, before) = std::mem::replace(&mut self.counted, (totals.consumed, drops));
        let grown = drops.by_reason().find(|(reason, count)| *count > before.of(*reason));
        match grown {
            Some((reason, _)) => reason.name(),
            None if totals.consumed > consumed => CONSUMED,
            None => UNKNOWN,
        }
    }

    /// Returns the size of the switch's state.
    pub fn state(&self) -> InstanceState {
        let (mut labels, mut gates) = (0, 0);
        if let Some(config) = self.model.stateless() {
            labels = config.banks.iter().flatten().chain(&config.polka).map(|bank| bank.labels.len()).sum();
            gates = config.gates.as_ref().map_or(0, |gates| gates.ports.len());
        }
        let groups = self.model.group_ids().len();
        InstanceState { entries: self.model.flow_count(), groups, labels, gates }
    }

    /// Polls the model once. Returns whether it has more to do.
    fn poll(&mut self, now: Nanos) -> bool {
        let more = self.model.poll(now);
        while let Some(message) = self.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet_in) = message {
                self.model.recycle(packet_in.frame);
            }
        }
        more
    }

    /// Applies the submitted operations, and lets the model release removed entries.
    fn settle(&mut self, now: Nanos) {
        loop {
            self.worker.apply();
            let more = self.poll(now);
            if !more && self.model.is_applied(self.model.barrier()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::syntax::{ParseOptions, parse_flows};

    fn node(flows: &str) -> Node {
        let flows = parse_flows(flows, ParseOptions::default()).map(|flow| flow.unwrap().into());
        let setup = Setup { changes: flows.collect(), stateless: None };
        Node { name: "s".into(), ports: vec![PortNo(1), PortNo(2), PortNo(3)], layer: None, setup }
    }

    #[test]
    fn a_frame_is_forwarded_or_a_reason_is_reported() {
        let node = node(
            "in_port=1,actions=output:2,output:3\nin_port=2,actions=CONTROLLER\nin_port=3,actions=output:1",
        );
        let mut switch = Instance::new(&node, None, Nanos(1)).unwrap();
        switch.configure(Nanos(1), &node.setup).unwrap();
        assert_eq!(switch.state(), InstanceState { entries: 3, ..InstanceState::default() });
        let mut sent = Vec::new();
        let mut reported = Vec::new();
        for port in [1, 2, 3, 2] {
            reported.push(switch.forward(Nanos(2), PortNo(port), 7, vec![port as u8; 60], &mut sent));
        }
        switch.set_link(Nanos(3), PortNo(1), false).unwrap();
        reported.push(switch.forward(Nanos(3), PortNo(3), 8, vec![3; 60], &mut sent));
        assert_eq!(reported, [None, Some("consumed"), None, Some("consumed"), Some("port_down")]);
        let ports: Vec<_> = sent.iter().map(|sent| (sent.port, sent.packet, sent.bytes[0])).collect();
        assert_eq!(ports, [(PortNo(2), 7, 1), (PortNo(3), 7, 1), (PortNo(1), 7, 3)]);
    }

    #[test]
    fn the_reported_reason_belongs_to_the_last_packet() {
        let node = node("in_port=1,actions=output:2,output:9\nin_port=3,actions=output:2");
        let mut switch = Instance::new(&node, None, Nanos(1)).unwrap();
        switch.configure(Nanos(1), &node.setup).unwrap();
        let mut sent = Vec::new();
        // One copy of this packet is dropped.
        assert_eq!(switch.forward(Nanos(2), PortNo(1), 7, vec![0; 60], &mut sent), None);
        switch.set_link(Nanos(3), PortNo(2), false).unwrap();
        assert_eq!(switch.forward(Nanos(3), PortNo(3), 8, vec![0; 60], &mut sent), Some("port_down"));
    }

    #[test]
    fn a_small_pool_suffices_for_any_number_of_packets() {
        let node = node("actions=all");
        let mut switch = Instance::new(&node, None, Nanos(1)).unwrap();
        switch.configure(Nanos(1), &node.setup).unwrap();
        for packet in 0..1_000 {
            let mut sent = Vec::new();
            assert_eq!(switch.forward(Nanos(2), PortNo(1), packet, vec![0; 1_500], &mut sent), None);
            assert_eq!(sent.len(), 2);
        }
    }
}
