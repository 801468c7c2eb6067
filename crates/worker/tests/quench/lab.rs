// SPDX-License-Identifier: Apache-2.0
//! A switch with quenched packet-ins and a controller on an OpenFlow channel, in virtual time.

use dataplane::{DataPlane, Totals};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{Action, DropReason, FlowModCommand, Nanos, PortNo, TableId};
use frame::Frame;
use model::agent::{Agent, ChannelId, Context};
use model::{FlowCursor, FlowFilter, Model, ModelConfig, ModelLimits, PortDesc};
use openflow::flow_mod::FlowModMessage;
use openflow::packet::{PacketInMessage, PacketOutMessage};
use openflow::{ErrorCode, Hello, Message, SessionConfig, decode, encode};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use port_cache::{MissFigures, MissLimits, PortCacheConfig, QuenchConfig, QuenchedTables};
use wire::PacketBuilder;
use worker::{PortQueues, Quanta, SearchWorker, Worker, WorkerSet, WorkerSetConfig, build};

pub const PORTS: u32 = 3;

/// Time for which packets wait for the controller.
pub const TIMEOUT_NS: Nanos = Nanos(1_000_000_000);

/// Time by which packets wait longer.
pub const LATE_NS: Nanos = Nanos(10_000_000);

/// Time between two poll iterations.
pub const TURN_NS: Nanos = Nanos(1_000);

/// Packets of a burst.
pub const BURST: usize = 32;

pub const LIMITS: MissLimits = MissLimits { bytes: MissLimits::BYTES_MAX, ..MissLimits::USUAL };

/// The table-miss entry of the controller: it gets the first bytes of a packet.
pub const MISS: &str = "priority=0,actions=controller:64";

pub struct Lab {
    pub model: Model<WorkerSet>,
    agent: Agent,
    channel: ChannelId,
    is_connected: bool,
    pub workers: Vec<Worker>,
    /// The search worker, if there is one.
    search: Option<SearchWorker>,
    pub handles: Vec<MemHandle>,
    pub now: Nanos,
    pub errors: Vec<ErrorCode>,
}

pub fn quench(table: u8) -> WorkerSetConfig {
    let tables = QuenchedTables::of([TableId(table)]);
    let quench = QuenchConfig { tables, timeout_ns: TIMEOUT_NS };
    let cache = PortCacheConfig { limits: LIMITS, quench: Some(quench), ..PortCacheConfig::default() };
    WorkerSetConfig {
        express_records: 1_024,
        small_frames: 256,
        port_cache: Some(cache),
        lanes: LaneLimits::NONE,
        quanta: Quanta { small: 1, large: 1, quiet_ns: Nanos(0) },
        ..WorkerSetConfig::default()
    }
}

impl Lab {
    /// Creates a switch with these rules whose controller is connected. Queue 1 of each port belongs to the
    /// second worker, if there is one.
    pub fn new(config: &WorkerSetConfig, rules: &[&str]) -> Self {
        Self::with_limits(config, ModelLimits::default(), rules)
    }

    /// As [`Self::new`], with limits of the model.
    pub fn with_limits(config: &WorkerSetConfig, limits: ModelLimits, rules: &[&str]) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (made, handle) = mem::pair(number, config.workers, 10_000);
            handles.push(handle);
            let queues =
                made.into_iter().enumerate().map(|(at, queue)| (at, Box::new(queue) as Box<dyn Queue>));
            let queues = queues.collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let (mut plane, workers) = build(config, ports);
        let search = plane.take_search_worker();
        let mut model =
            Model::new(ModelConfig { limits, quenches: true, ..ModelConfig::default() }, plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let mut agent = Agent::default();
        let channel = agent.open(Nanos(0), SessionConfig::default());
        let mut lab = Self {
            model,
            agent,
            channel,
            workers,
            search,
            handles,
            now: Nanos(1),
            is_connected: true,
            errors: Vec::new(),
        };
        lab.send(&Message::Hello(Hello::supported()));
        rules.iter().for_each(|rule| lab.flow(rule));
        (0..20).for_each(|_| lab.turn());
        lab.packet_ins();
        lab
    }

    /// Returns a switch that knows host 2, and asks the controller about others.
    pub fn usual() -> Self {
        Self::new(&quench(0), &["dl_dst=02:00:00:00:00:02,actions=output:2", MISS])
    }

    pub fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
    }

    /// Sends a message of the controller.
    pub fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        encode(message, 7, &mut bytes).unwrap();
        let Self { agent, model, channel, now, .. } = self;
        assert_eq!(agent.channel(*channel).unwrap().receive(&bytes, *now), bytes.len());
        while agent.step(*channel, &mut Context { model, now: *now, refresh: &mut || {} }).more {}
    }

    /// Closes the controller's connection.
    pub fn disconnect(&mut self) {
        self.agent.close(self.channel);
        self.agent.update_settings(&mut self.model);
        self.is_connected = false;
    }

    /// Sends a flow-mod that names a buffered packet.
    pub fn add(&mut self, text: &str, buffer_id: Option<u32>) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.send(&Message::FlowMod(FlowModMessage { flow, buffer_id }));
    }

    /// Sends a buffered packet, or these bytes, by `port`.
    pub fn packet_out(&mut self, buffer_id: Option<u32>, data: &[u8], port: PortNo) {
        let (actions, data) = (vec![Action::output(port)], data.to_vec());
        self.send(&Message::PacketOut(PacketOutMessage { buffer_id, in_port: PortNo(1), actions, data }));
    }

    /// Sends packet-ins to the controller, which does not read them.
    pub fn report(&mut self) {
        while self.model.poll(self.now) {}
        while let Some(message) = self.model.next_async_message() {
            self.agent.report(&mut self.model, self.now, message);
        }
    }

    /// Returns the packet-ins that the controller has got since the last call. Notes error messages.
    pub fn packet_ins(&mut self) -> Vec<PacketInMessage> {
        self.report();
        if !self.is_connected {
            return Vec::new();
        }
        let channel = self.agent.channel(self.channel).unwrap();
        let output = channel.output().to_vec();
        channel.consume(output.len());
        let (mut rest, mut found) = (&output[..], Vec::new());
        while rest.len() >= 8 {
            let (message, later) = rest.split_at(usize::from(u16::from_be_bytes([rest[2], rest[3]])));
            rest = later;
            match decode(message).unwrap() {
                Message::PacketIn(packet_in) => found.push(packet_in),
                Message::Error(error) => self.errors.push(error.code),
                _ => {}
            }
        }
        found
    }

    pub fn push(&mut self, port: usize, packet: &[u8]) {
        assert!(self.handles[port - 1].push_frame(0, &Frame::from_bytes(packet)));
    }

    /// Returns the number of packet-ins lost because the controller did not read.
    pub fn lost(&self) -> u64 {
        self.agent.lost().packet_in
    }

    pub fn turn(&mut self) {
        self.now += TURN_NS;
        for worker in &mut self.workers {
            worker.turn(self.now);
        }
        self.search.iter_mut().for_each(|search| _ = search.turn(self.now));
        let Totals { received, forwarded, consumed, held, dropped, .. } = self.totals();
        let all = DropReason::ALL.iter().map(|reason| dropped.of(*reason)).sum::<u64>();
        assert_eq!(received, forwarded + consumed + all + held, "every packet is counted once");
    }

    pub fn turns(&mut self) {
        (0..300).for_each(|_| self.turn());
    }

    pub fn totals(&mut self) -> Totals {
        self.model.plane_mut().totals()
    }

    pub fn dropped(&mut self, reason: DropReason) -> u64 {
        self.totals().dropped.of(reason)
    }

    pub fn figures(&mut self) -> MissFigures {
        self.model.plane_mut().miss_figures()
    }

    /// Returns the number of flows that wait, on all ports.
    pub fn pending(&mut self) -> u64 {
        self.model.plane_mut().port_caches().map(|(.., usage)| usage.pending).sum()
    }

    /// Returns the packets and bytes that have hit the entry with this cookie.
    pub fn entry_counts(&mut self, cookie: u64) -> (u64, u64) {
        let (filter, mut cursor) = (FlowFilter::default(), FlowCursor::default());
        let flows = self.model.flows(self.now, &filter, &mut cursor, usize::MAX);
        let flow = flows.iter().find(|flow| flow.entry.cookie == cookie).unwrap();
        (flow.packets, flow.bytes)
    }

    /// Returns the lookups in a table, and those that found an entry.
    pub fn table_counts(&mut self, table: u8) -> (u64, u64) {
        let stats = self.model.table(TableId(table));
        (stats.lookups, stats.matches)
    }

    /// Returns the numbers of the packets that port `port` has sent.
    pub fn sent(&mut self, port: usize) -> Vec<u32> {
        let handle = &mut self.handles[port - 1];
        (0..self.workers.len())
            .flat_map(|queue| std::iter::from_fn(|| handle.pop(queue)).collect::<Vec<_>>())
            .map(|bytes| number(&bytes))
            .collect()
    }
}

/// Returns packet `number` with UDP port `flow` to host `host`. Its payload begins and ends with the number.
pub fn packet(flow: u16, host: u8, number: u32) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, host], [4; 6])
        .ipv4([10; 4], [11, 0, 0, 1])
        .udp(53, flow)
        .payload(&number.to_be_bytes())
        .payload(&[0; 56])
        .payload(&number.to_be_bytes())
        .build()
}

pub fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap())
}
