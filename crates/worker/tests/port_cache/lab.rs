// SPDX-License-Identifier: Apache-2.0
//! A switch of one worker with a port cache, in virtual time.

use dataplane::{DataPlane, Totals};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{DropReason, FlowModCommand, Nanos, PortNo};
use frame::Frame;
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use port_cache::{MissFigures, MissLimits, PortCacheConfig};
use wire::PacketBuilder;
use worker::{PortQueues, Quanta, SearchTurn, SearchWorker, Turn, Worker, WorkerSet, WorkerSetConfig, build};

pub const PORTS: u32 = 3;

/// Time that the searcher takes for a search.
pub const SERVICE_NS: Nanos = Nanos(1_000_000_000);

/// Time between two poll iterations.
pub const TURN_NS: Nanos = Nanos(1_000);

/// Packets of a burst.
pub const BURST: usize = 32;

pub const LIMITS: MissLimits =
    MissLimits { timeout_ns: Nanos(10_000_000_000), bytes: MissLimits::BYTES_MAX, ..MissLimits::USUAL };

pub struct Lab {
    pub model: Model<WorkerSet>,
    pub worker: Worker,
    /// The search worker, if there is one.
    pub search: Option<SearchWorker>,
    handles: Vec<MemHandle>,
    pub now: Nanos,
}

impl Lab {
    /// Creates a switch that sends the packets for host `n` through port `n`, and takes one packet per
    /// quantum from the backlog.
    pub fn new(cache: PortCacheConfig, lanes: LaneLimits) -> Self {
        Self::with_quanta(cache, lanes, Quanta { small: 1, large: 1, quiet_ns: Nanos(0) })
    }

    /// Creates a switch as [`Self::new`] does, with quanta of these sizes.
    pub fn with_quanta(cache: PortCacheConfig, lanes: LaneLimits, quanta: Quanta) -> Self {
        Self::with_config(&WorkerSetConfig {
            express_records: 1_024,
            small_frames: 256,
            port_cache: Some(cache),
            lanes,
            quanta,
            ..WorkerSetConfig::default()
        })
    }

    /// Creates a switch as [`Self::new`] does, with this configuration.
    pub fn with_config(config: &WorkerSetConfig) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (made, handle) = mem::pair(number, 1, 10_000);
            handles.push(handle);
            let queues = made.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let (mut plane, mut workers) = build(config, ports);
        let search = plane.take_search_worker();
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let mut lab = Self { model, worker: workers.remove(0), search, handles, now: Nanos(1) };
        (1..=PORTS).for_each(|n| lab.flow(&format!("dl_dst=02:00:00:00:00:0{n},actions=output:{n}")));
        lab.flow("priority=1,dl_type=0x0800,nw_src=10.0.0.0/8,actions=output:2");
        // Packets join the backlog only if some entry is low-latency.
        lab.flow("low_latency,dl_dst=02:00:00:00:00:77,actions=output:2");
        while lab.worker.apply() + lab.search.as_mut().map_or(0, SearchWorker::apply) > 0 {}
        lab
    }

    pub fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
    }

    pub fn push(&mut self, port: usize, packet: &[u8]) {
        assert!(self.handles[port - 1].push_frame(0, &Frame::from_bytes(packet)));
    }

    pub fn turn(&mut self) {
        self.poll();
    }

    /// Runs a poll iteration and returns its result.
    pub fn poll(&mut self) -> Turn {
        self.now += TURN_NS;
        let turn = self.worker.turn(self.now);
        self.search();
        let Totals { received, forwarded, consumed, held, dropped, .. } = self.totals();
        let all = DropReason::ALL.iter().map(|reason| dropped.of(*reason)).sum::<u64>();
        assert_eq!(received, forwarded + consumed + all + held, "every packet is counted once");
        turn
    }

    /// Runs a poll iteration of the search worker, if there is one.
    pub fn search(&mut self) -> SearchTurn {
        self.search.as_mut().map(|search| search.turn(self.now)).unwrap_or_default()
    }

    pub fn totals(&mut self) -> Totals {
        self.model.plane_mut().totals()
    }

    pub fn figures(&mut self) -> MissFigures {
        self.model.plane_mut().miss_figures()
    }

    /// Returns the number of pending flows of all ports.
    pub fn pending(&mut self) -> u64 {
        self.model.plane_mut().port_caches().map(|(.., usage)| usage.pending).sum()
    }

    /// Returns the numbers of the packets that port `port` has sent.
    pub fn sent(&mut self, port: usize) -> Vec<u32> {
        let number = |bytes: Vec<u8>| u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        std::iter::from_fn(|| self.handles[port - 1].pop(0)).map(number).collect()
    }

    /// Lets the searcher answer, and runs until nothing waits.
    pub fn answer(&mut self) {
        self.now += SERVICE_NS;
        (0..200).for_each(|_| self.turn());
    }

    /// Lets the searcher answer, and runs until no packet waits.
    pub fn drain(&mut self) {
        self.answer();
        let mut turns = 0;
        while self.totals().held > 0 {
            assert!(turns < 10_000, "packets still wait: {:?}", self.totals());
            self.turn();
            turns += 1;
        }
    }

    /// Returns a switch in which the packets of flow 1 from ports 1 and 3 have records.
    pub fn warm(cache: PortCacheConfig) -> Self {
        Self::new(cache, LaneLimits::NONE).warmed(2)
    }

    /// Sends packets of flow 1 to `host` from ports 1 and 3, until they have records.
    pub fn warmed(mut self, host: u8) -> Self {
        let before = self.figures().searched;
        [1, 3].into_iter().for_each(|port| self.push(port, &packet(1, host, 0)));
        self.turn();
        self.answer();
        self.answer();
        assert_eq!((self.sent(2).len(), self.figures().searched - before), (2, 2));
        self
    }
}

pub fn slow() -> PortCacheConfig {
    PortCacheConfig { limits: LIMITS, service_ns: SERVICE_NS, ..PortCacheConfig::default() }
}

/// Returns packet `number` of flow `flow` to host `host`.
pub fn packet(flow: u16, host: u8, number: u32) -> Vec<u8> {
    let [high, low] = flow.to_be_bytes();
    PacketBuilder::ethernet([2, 0, 0, 0, 0, host], [4; 6])
        .ipv4([10; 4], [11, 0, high, low])
        .udp(53, flow)
        .payload(&number.to_be_bytes())
        .build()
}
