// SPDX-License-Identifier: Apache-2.0
//! A switch with one worker, and controllers that send it random messages. These properties must hold for any
//! messages:
//!
//! - The bytes that leave a channel are messages that decode, and the output stays within its bounds.
//! - Each operation is valid for the reference implementation, which also executes it.
//! - If all operations are applied, a received packet leaves as the reference requires. This is not checked
//!   with meters, which the reference does not implement.
//! - At the end a new controller is served, sees all entries and can remove everything, and no packet is
//!   lost.

use crate::common::{message, mutate};
use crate::tame::{PORTS, does, tame};
use crate::watched::Watched;
use dataplane::DataPlane;
use fastrand::Rng;
use flow::group::{Group, GroupType};
use flow::meter::Meter;
use flow::stateless::StatelessChange;
use flow::{FlowMod, FlowModCommand, Nanos, Outcome, PortNo, RuleVersion};
use model::agent::{Agent, ChannelEvent, ChannelId, Context};
use model::{Model, ModelConfig, PortDesc};
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{Answer, MultipartRequest, Query};
use openflow::{Header, Hello, Message, SessionConfig, decode, encode};
use port::Queue;
use port::mem::{self, MemHandle};
use reference::Reference;
use std::collections::BTreeMap;
use wire::PacketBuilder;
use worker::{PortQueues, Worker, build};

/// Number of concurrent controllers.
const CHANNELS: usize = 3;
/// Maximum number of rounds within which a request must be answered.
const PATIENCE: usize = 10_000;
/// Maximum output of a channel in bytes: the limit of asynchronous messages plus two messages.
const OUTPUT_MAX: usize = 1_024 * 1_024 + 2 * openflow::MESSAGE_BYTES_MAX;
/// Capacity of a port's queue in frames.
const PORT_FRAMES: usize = 512;
const SECOND_NS: Nanos = Nanos(1_000_000_000);

/// Number of requests for the statistics of all entries that are sent at once.
const DUMPS: usize = 200;

/// Numbers of events in a storm.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Messages sent by controllers.
    pub messages: u64,
    /// Messages that were mutated.
    pub mutated: u64,
    /// Messages refused, by the session or the model.
    pub refused: u64,
    /// Channels closed because of their messages or a timeout.
    pub closed: u64,
    /// Operations submitted to the data plane.
    pub operations: u64,
    /// Barriers answered.
    pub barriers: u64,
    /// Packets sent to ports.
    pub packets: u64,
    /// Packets compared with the reference.
    pub compared: u64,
    /// Copies of the compared packets.
    pub sent: u64,
    /// Number of errors by code.
    pub codes: BTreeMap<String, u64>,
}

struct Controller {
    channel: ChannelId,
    /// Bytes sent by the controller that the channel has not read yet.
    outbox: Vec<u8>,
    /// Bytes received by the controller that do not form a complete message yet.
    inbox: Vec<u8>,
    reads: bool,
    /// Received messages, while they are collected.
    kept: Option<Vec<(u32, Message)>>,
}

pub struct Storm {
    agent: Agent,
    model: Model<Watched>,
    worker: Worker,
    ports: Vec<MemHandle>,
    controllers: Vec<Controller>,
    now: Nanos,
    xid: u32,
    meters: bool,
    /// The previous message. The next one may contain parts of it.
    last: Vec<u8>,
    pub counts: Counts,
}

impl Storm {
    pub fn new(rng: &mut Rng) -> Self {
        let (mut ports, mut served) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (queues, handle) = mem::pair(number, 1, PORT_FRAMES);
            ports.push(handle);
            let boxed = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>));
            served.push(PortQueues { number: PortNo(number), queues: boxed.collect(), egress: Vec::new() });
        }
        let frames = worker::WorkerSetConfig {
            small_frames: 1_024,
            large_frames: 0,
            controller_frames: 64,
            ..worker::WorkerSetConfig::default()
        };
        let (set, mut workers) = build(&frames, served);
        let plane = Watched { set, reference: Reference::new(), version: RuleVersion(0) };
        let config = ModelConfig { standalone: rng.bool(), ..ModelConfig::default() };
        let mut model = Model::new(config, plane, Nanos(1));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(1), desc, true).unwrap();
        }
        let mut storm = Self {
            agent: Agent::default(),
            model,
            worker: workers.remove(0),
            ports,
            controllers: Vec::new(),
            now: Nanos(1),
            xid: 0,
            meters: rng.bool(),
            last: vec![4, 0, 0, 8, 0, 0, 0, 0],
            counts: Counts::default(),
        };
        for _ in 0..CHANNELS {
            storm.connect();
        }
        storm
    }

    fn connect(&mut self) {
        let channel = self.agent.open(self.now, SessionConfig::default());
        let mut outbox = Vec::new();
        encode(&Message::Hello(Hello::supported()), 0, &mut outbox).unwrap();
        self.counts.messages += 1;
        self.controllers.push(Controller { channel, outbox, inbox: Vec::new(), reads: true, kept: None });
    }

    /// Executes one step. `number` selects the action.
    pub fn step(&mut self, number: u64) {
        let rng = &mut Rng::with_seed(number);
        let at = rng.usize(..self.controllers.len());
        match rng.u8(..64) {
            0 => {
                let gone = self.controllers.swap_remove(at);
                self.agent.close(gone.channel);
                self.connect();
            }
            1 => self.now += SECOND_NS * rng.u64(..20),
            2 => self.controllers[at].reads ^= true,
            3 if rng.u8(..8) == 0 => self.ask_for_much(at),
            3..=9 => self.packet(rng),
            _ => self.say(rng, at),
        }
        self.turn();
    }

    /// Requests more answers than the controller reads. The requests are equal and are not counted.
    fn ask_for_much(&mut self, at: usize) {
        let controller = &mut self.controllers[at];
        controller.reads = false;
        for _ in 0..DUMPS {
            encode(&dump(), self.xid, &mut controller.outbox).unwrap();
        }
    }

    fn say(&mut self, rng: &mut Rng, at: usize) {
        let mut said = message(rng);
        if rng.bool() {
            while !does(&said) {
                said = message(rng);
            }
        } else if rng.u8(..8) != 0 {
            while said.is_from_switch() {
                said = message(rng);
            }
        }
        // The reference has no meters. Half of the storms therefore use no meters, so that their packets can
        // be compared.
        if matches!(said, Message::MeterMod(_)) && !self.meters {
            return;
        }
        if rng.u8(..8) != 0 {
            tame(rng, &mut said);
        }
        self.xid += 1;
        let mut bytes = Vec::new();
        if encode(&said, self.xid, &mut bytes).is_err() {
            return;
        }
        if rng.u8(..8) < 3 {
            let other = std::mem::replace(&mut self.last, bytes.clone());
            mutate(rng, &mut bytes, &other);
            self.counts.mutated += 1;
        }
        self.counts.messages += 1;
        let controller = &mut self.controllers[at];
        // Usually the whole message is sent at once. Sometimes its end is sent with the next message.
        let late = if rng.u8(..4) == 0 { rng.usize(..bytes.len()) } else { 0 };
        controller.outbox.extend_from_slice(&bytes[..bytes.len() - late]);
        if late > 0 {
            self.turn();
            if let Some(controller) = self.controllers.get_mut(at) {
                controller.outbox.extend_from_slice(&bytes[bytes.len() - late..]);
            }
        }
    }

    /// Runs every part of the switch once.
    fn turn(&mut self) {
        self.now += Nanos(1_000);
        for at in (0..self.controllers.len()).rev() {
            if self.serve(at) {
                let gone = self.controllers.swap_remove(at);
                self.agent.close(gone.channel);
                self.counts.closed += 1;
                self.connect();
            }
        }
        while self.model.poll(self.now) {}
        while let Some(message) = self.model.next_async_message() {
            self.agent.report(&mut self.model, self.now, message);
        }
        self.work();
        // The output of packet-outs is not checked here.
        for port in &mut self.ports {
            while port.pop(0).is_some() {}
        }
    }

    fn work(&mut self) {
        for _ in 0..PATIENCE {
            self.worker.turn(self.now);
            if self.is_applied() {
                return;
            }
        }
        panic!("an operation was not applied");
    }

    fn is_applied(&mut self) -> bool {
        let version = self.model.plane_mut().version;
        self.model.plane_mut().applied() == version
    }

    /// Passes bytes to a channel and reads its answers. Returns true when the channel is closed.
    fn serve(&mut self, at: usize) -> bool {
        let controller = &mut self.controllers[at];
        for _ in 0..64 {
            let channel = self.agent.channel(controller.channel).unwrap();
            if !controller.outbox.is_empty() && channel.wants_read() {
                let taken = channel.receive(&controller.outbox, self.now);
                controller.outbox.drain(..taken);
            }
            let before = self.model.plane_mut().version.0;
            let mut refresh = || {};
            let mut context = Context { model: &mut self.model, now: self.now, refresh: &mut refresh };
            let progress = self.agent.step(controller.channel, &mut context);
            self.counts.operations += self.model.plane_mut().version.0 - before;
            for event in &progress.events {
                match event {
                    ChannelEvent::Refused(_) => self.counts.refused += 1,
                    ChannelEvent::Closed(_) => return true,
                    ChannelEvent::Opened | ChannelEvent::Error(_) | ChannelEvent::Lost(_) => {}
                }
            }
            let channel = self.agent.channel(controller.channel).unwrap();
            // A closed session has no deadline.
            assert!(channel.next_deadline().is_some(), "a closed channel reported no `Closed` event");
            let length = channel.output().len();
            assert!(length <= OUTPUT_MAX, "{length} bytes of output");
            if controller.reads {
                controller.inbox.extend_from_slice(channel.output());
                channel.consume(length);
                controller.listen(&mut self.counts);
            }
            if !progress.more {
                break;
            }
        }
        // If the switch has stopped reading from the controller, the controller reads its answers again.
        // Otherwise neither side would make progress.
        let blocked = controller.outbox.len() > 4 * openflow::MESSAGE_BYTES_MAX;
        controller.reads |= blocked;
        false
    }

    fn packet(&mut self, rng: &mut Rng) {
        let mac = |rng: &mut Rng| [2, 0, 0, 0, 0, rng.u8(..4)];
        let mut builder = PacketBuilder::ethernet(mac(rng), mac(rng));
        if rng.u8(..4) == 0 {
            builder = builder.vlan(wire::vlan::C_TAG, rng.u16(..4));
        }
        let builder = builder.ipv4([10, 0, 0, rng.u8(..4)], [10, 0, 0, rng.u8(..4)]);
        let frame = match rng.u8(..3) {
            0 => builder.udp(rng.u16(..), rng.u16(..4)),
            1 => builder.tcp(rng.u16(..), rng.u16(..4)),
            _ => builder,
        };
        let mut bytes = frame.payload(&[7; 30]).build();
        if rng.u8(..4) == 0 {
            push_key(rng, &mut bytes);
        }
        // Makes sure that all earlier messages have been processed.
        self.turn();
        let in_port = rng.u32(1..=PORTS);
        assert!(self.ports[in_port as usize - 1].push(0, &bytes));
        self.counts.packets += 1;
        let before = self.model.plane_mut().totals();
        self.worker.turn(self.now);
        let after = self.model.plane_mut().totals();
        assert_eq!(after.received, before.received + 1);
        let expected = self.model.plane_mut().reference.process(PortNo(in_port), &bytes);
        if !self.model.meter_ids().is_empty() {
            return;
        }
        self.counts.compared += 1;
        for port in 1..=PORTS {
            for copy in expected.sent.iter().filter(|copy| copy.port == PortNo(port)) {
                let sent = self.ports[port as usize - 1].pop(0);
                assert_eq!(sent.as_deref(), Some(&copy.bytes[..]), "a copy sent to port {port}");
                self.counts.sent += 1;
            }
            assert_eq!(
                self.ports[port as usize - 1].pop(0),
                None,
                "port {port} sent more frames than expected"
            );
        }
        let became = match expected.outcome {
            Outcome::Forwarded => after.forwarded - before.forwarded,
            Outcome::Consumed => after.consumed - before.consumed,
            Outcome::Dropped(reason) => after.dropped.of(reason) - before.dropped.of(reason),
        };
        assert_eq!(became, 1, "{:?}", expected.outcome);
    }

    /// Sends messages as a correct controller does. Returns the answers until the barrier reply.
    fn ask(&mut self, messages: &[Message]) -> Vec<(u32, Message)> {
        let controller = self.controllers.last_mut().unwrap();
        controller.kept = Some(Vec::new());
        for message in messages.iter().chain([&Message::BarrierRequest]) {
            encode(message, self.xid, &mut controller.outbox).unwrap();
            self.counts.messages += 1;
            self.xid += 1;
        }
        let barrier = self.xid - 1;
        for _ in 0..PATIENCE {
            self.turn();
            let kept = self.controllers.last_mut().unwrap().kept.as_mut().expect("the connection is open");
            if kept.last().is_some_and(|(xid, m)| (*xid, m) == (barrier, &Message::BarrierReply)) {
                return std::mem::take(kept);
            }
        }
        panic!("a barrier was not answered");
    }

    /// Checks that a new controller finds the switch in order and can remove everything.
    pub fn finish(mut self) -> Counts {
        for gone in self.controllers.drain(..) {
            self.agent.close(gone.channel);
        }
        self.connect();
        let mut dumped = 0;
        for (_, answer) in self.ask(&[dump()]) {
            if let Message::MultipartReply(reply) = answer {
                let Answer::Flow(entries) = reply.answer else { panic!("another answer: {reply:?}") };
                dumped += entries.len();
            }
        }
        assert_eq!(dumped, self.model.flow_count());
        let flow = FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() };
        let flows = Message::FlowMod(openflow::flow_mod::FlowModMessage { flow, buffer_id: None });
        let group = Group { id: openflow::group::ALL, kind: GroupType::All, buckets: Vec::new() };
        let groups = Message::GroupMod(GroupMod { command: GroupChange::Delete, group });
        let meter =
            Meter { id: openflow::meter::ALL, packets: false, stats: false, burst: false, bands: Vec::new() };
        let meters = Message::MeterMod(MeterMod { command: GroupChange::Delete, meter });
        let stateless = Message::StatelessMod(StatelessChange::Off);
        for (_, answer) in self.ask(&[flows, groups, meters, stateless]) {
            assert!(!matches!(answer, Message::Error(_)), "{answer:?}");
        }
        self.turn();
        self.turn();
        assert_eq!(self.model.flow_count(), 0);
        assert_eq!(self.model.pending_removals(), 0);
        assert_eq!(self.model.stateless(), None);
        assert!(self.model.group_ids().is_empty() && self.model.meter_ids().is_empty());
        let totals = self.model.plane_mut().totals();
        assert_eq!(totals.held, 0);
        assert!(totals.received >= self.counts.packets);
        assert_eq!(totals.received, totals.forwarded + totals.consumed + totals.dropped.sum());
        self.counts
    }
}

impl Controller {
    /// Takes complete messages from the inbox. Each of them must decode.
    fn listen(&mut self, counts: &mut Counts) {
        let mut at = 0;
        while let Some(header) = Header::read(&self.inbox[at..]) {
            let end = at + usize::from(header.length);
            assert!(header.length >= 8);
            let Some(bytes) = self.inbox.get(at..end) else { break };
            at = end;
            // The answer to a HELLO with another version uses that version.
            let mut bytes = bytes.to_vec();
            if bytes[1] == 1 {
                bytes[0] = openflow::VERSION;
            }
            let message = decode(&bytes)
                .unwrap_or_else(|e| panic!("the switch sent an invalid message: {e}: {bytes:x?}"));
            match &message {
                Message::Error(error) => *counts.codes.entry(error.code.to_string()).or_default() += 1,
                Message::BarrierReply => counts.barriers += 1,
                _ => {}
            }
            if let Some(kept) = &mut self.kept {
                kept.push((header.xid, message));
            }
        }
        self.inbox.drain(..at);
    }
}

/// Adds a KeyFlow header to a packet. If stateless forwarding is configured, it handles the packet before any
/// table.
fn push_key(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let [high, low] = wire::keyflow::ETHERTYPE.to_be_bytes();
    let (epoch, hops) = (rng.u8(..2), rng.u8(..4));
    let behind_type = [0, 0, 0, 0, 0, 0, 0, 0, rng.u8(..), rng.u8(..)];
    bytes.splice(14..14, behind_type);
    bytes.splice(12..12, [high, low, 1 << 4 | epoch << 3, hops, 1, 0]);
}

fn dump() -> Message {
    let query = Query::Flow(FlowQuery::default());
    Message::MultipartRequest(MultipartRequest { more: false, query })
}
