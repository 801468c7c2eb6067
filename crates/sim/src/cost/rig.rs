// SPDX-License-Identifier: Apache-2.0
//! The measured system: one worker that a model controls, with an endless supply of packets.

use crate::clock::VirtualClock;
use crate::cost::{CostProbe, Workload};
use flow::stateless::StatelessChange;
use flow::syntax::{ParseOptions, SyntaxError, parse_flows};
use flow::{FlowMod, MatchError, Nanos, PortNo, StatelessConfig};
use frame::Frame;
use model::{Change, Changed, Model, ModelConfig, ModelError, ModelLimits, PortDesc};
use pipeline::Probe;
use port::Queue;
use port::mem::LoopQueue;
use tables::compile::Maker;
use wire::PacketBuilder;
use worker::{PortQueues, SearchWorker, Turn, Worker, WorkerSet};

/// Reason why a switch could not be set up for a simulation or a measurement.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// A flow has a syntax error.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The model refused a flow or port.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A match is invalid.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// A histogram could not be created.
    #[error(transparent)]
    Times(#[from] hdrhistogram::CreationError),
}

/// Number of flows in table 0 of the mixed workload.
const FLOWS: u16 = 100;
/// Poll iterations between operations while costs are measured.
const OPERATION_TURNS: u64 = 16;

/// A worker and the model that controls it, in one thread. Packets arrive on port 1. Frames sent by other
/// ports are counted and discarded.
pub struct Rig<P: Probe = CostProbe> {
    /// Model of the switch.
    pub model: Model<WorkerSet>,
    /// The worker.
    pub worker: Worker<P>,
    /// The search worker of the port cache, if there is one.
    pub search: Option<SearchWorker>,
    /// Clock whose time is passed to the worker and the model.
    pub clock: VirtualClock,
}

impl Rig {
    /// Creates a switch with this many ports, no entries, and packets that repeat endlessly.
    ///
    /// # Errors
    /// Returns an error if there are more ports than a switch may have.
    pub fn new(ports: u32, frames: Vec<Frame>) -> Result<Self, CostError> {
        let mut frames = Some(frames);
        let queues = (1..=ports).map(|number| {
            Box::new(LoopQueue::new(number, frames.take().unwrap_or_default())) as Box<dyn Queue>
        });
        Self::over(&worker::WorkerSetConfig::default(), queues.collect(), None, ModelConfig::default())
    }

    /// Creates a switch for a mixed workload: a hundred flows in an exact table, header changes, and
    /// prefixes.
    ///
    /// # Errors
    /// Returns an error only if the mix itself is invalid.
    pub fn mix() -> Result<Self, CostError> {
        let frames = (0..1_024_u16).map(|n| {
            let flow = n.wrapping_mul(37) % FLOWS;
            udp_frame([10, 0, 0, 1], [172, 16, (flow % 8) as u8, 9], 1_000 + flow)
        });
        let mut rig = Self::new(2, frames.collect())?;
        let exact = |flow: u16| {
            let (net, port) = (flow % 8, 1_000 + flow);
            format!(
                "udp,nw_src=10.0.0.1,nw_dst=172.16.{net}.9,tp_src={port},tp_dst=53 \
                 actions=set_field:02:00:00:00:00:03->eth_dst,goto_table:1"
            )
        };
        let mut text: Vec<String> = (0..FLOWS).map(exact).collect();
        // The flows have two masks, so that no hash engine serves the table.
        text.extend(
            (0..8).map(|net| format!("table=1,ip,nw_dst=172.16.{net}.0/24 actions=dec_ttl,output:2")),
        );
        text.push("table=1,priority=1,ip,nw_dst=172.16.0.0/16 actions=output:2".into());
        rig.load(&text.join("\n"))?;
        Ok(rig)
    }

    /// Submits flows. Does not wait until workers have applied them.
    fn submit(&mut self, flows: &str) {
        let now = self.clock.now();
        for flow in parse_flows(flows, ParseOptions::default()).flatten() {
            let done = self.model.flow_mod(now, flow);
            debug_assert!(done.is_ok(), "{done:?}");
        }
    }
}

impl<P: Probe + Default> Rig<P> {
    /// Creates a switch without entries. Its ports are numbered from 1 and have these queues. The maker, if
    /// given, creates the engines. The rig sets its own limit of removals per poll in `model`.
    ///
    /// # Errors
    /// Returns an error if there are more ports than a switch may have.
    pub(crate) fn over(
        config: &worker::WorkerSetConfig,
        queues: Vec<Box<dyn Queue>>,
        maker: Option<Maker>,
        model: ModelConfig,
    ) -> Result<Self, CostError> {
        let ports = queues.len() as u32;
        let queues = (1..=ports).map(PortNo).zip(queues).map(|(number, queue)| PortQueues {
            number,
            queues: vec![(0, queue)],
            egress: Vec::new(),
        });
        let (mut set, mut workers) = worker::build_with(config, queues.collect(), P::default);
        let search = set.take_search_worker();
        maker.into_iter().for_each(|maker| set.set_maker(maker));
        let limits = ModelLimits { removals_per_poll: 65_536, ..model.limits };
        let mut model = Model::new(ModelConfig { limits, ..model }, set, Nanos(0));
        for number in (1..=ports).map(PortNo) {
            model.add_port(Nanos(0), PortDesc { number, ..PortDesc::default() }, true)?;
        }
        let worker = workers.remove(0);
        let mut rig = Self { model, worker, search, clock: VirtualClock::default() };
        rig.settle();
        Ok(rig)
    }

    /// Loads flows of a flow file as one bundle, and waits until they are applied.
    ///
    /// # Errors
    /// Returns an error if a flow is refused.
    pub fn load(&mut self, text: &str) -> Result<Changed, CostError> {
        let mods: Vec<FlowMod> = parse_flows(text, ParseOptions::default()).collect::<Result<_, _>>()?;
        let changed = self.model.bundle(self.clock.now(), mods).map_err(|(_, error)| error)?;
        self.settle();
        Ok(changed)
    }

    /// Adds flows of a flow file one by one, and waits until each is applied.
    ///
    /// # Errors
    /// Returns an error if a flow is refused.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), CostError> {
        for flow_mod in parse_flows(text, ParseOptions::default()) {
            self.model.flow_mod(self.clock.now(), flow_mod?)?;
            self.settle();
        }
        Ok(())
    }

    /// Configures stateless forwarding, and waits until it is active.
    ///
    /// # Errors
    /// Returns an error if the configuration is refused.
    pub(crate) fn forward_stateless(&mut self, config: &StatelessConfig) -> Result<(), CostError> {
        let change = Change::Stateless(StatelessChange::Set(config.sections()));
        self.model.bundle(self.clock.now(), [change]).map_err(|(_, error)| error)?;
        self.settle();
        Ok(())
    }

    /// Runs a poll iteration of the worker.
    pub fn turn(&mut self) -> Turn {
        self.worker.turn(self.clock.now())
    }

    /// Runs a poll iteration of the search worker, if there is one, at this time after a poll iteration of
    /// the worker. Returns the time of the next answer or timeout.
    pub fn search(&mut self, now: Nanos, turn: &Turn) -> Option<Nanos> {
        let search = self.search.as_mut().map(|search| search.turn(now)).unwrap_or_default();
        let next = search.answers_ns.into_iter().chain((search.answered > 0).then_some(now));
        turn.answers_ns.into_iter().chain(next).min()
    }

    /// Applies the submitted operations, and lets the model release removed entries. No packets are received.
    pub fn settle(&mut self) {
        let now = self.clock.now();
        loop {
            self.worker.apply();
            self.search.iter_mut().for_each(|search| while search.apply() > 0 {});
            let more = self.model.poll(now);
            while self.model.next_async_message().is_some() {}
            if !more && self.model.is_applied(self.model.barrier()) {
                return;
            }
        }
    }
}

/// Returns a UDP packet to port 53 with the minimum length of an Ethernet frame.
pub(super) fn udp_frame(src: [u8; 4], dst: [u8; 4], src_port: u16) -> Frame {
    let mac = |last| [2, 0, 0, 0, 0, last];
    let packet = PacketBuilder::ethernet(mac(2), mac(1)).ipv4(src, dst).udp(src_port, 53).pad_to(60);
    Frame::from_bytes(&packet.build())
}

/// An entry that is added, changed and removed while costs are measured. No packet hits it.
const SINGLE: &str = "udp,nw_src=10.255.255.254,nw_dst=172.16.0.9,tp_src=9,tp_dst=9";
/// Number of entries changed by one operation, large enough for workers to swap the whole table.
const SWAPPED: u16 = 80;

/// Supplies packets, and from time to time an operation of each kind.
impl Workload for Rig {
    fn prepare(&mut self, turn: u64) -> u8 {
        let now = self.clock.advance_by(Nanos(1_000));
        if !turn.is_multiple_of(OPERATION_TURNS) {
            return 0;
        }
        self.model.poll(now);
        let kind = turn / OPERATION_TURNS % 4;
        match kind {
            0 => self.submit(&format!("add {SINGLE} actions=drop")),
            1 => self.submit(&format!("modify_strict {SINGLE} actions=output:2")),
            2 => self.submit(&format!("delete_strict {SINGLE}")),
            _ => {
                let flow = |port: u16| format!("table=2,udp,tp_dst={port} actions=drop");
                let all: Vec<String> = (1..=SWAPPED).map(flow).collect();
                let mods: Vec<_> = parse_flows(&all.join("\n"), ParseOptions::default()).flatten().collect();
                let done = self.model.bundle(now, mods);
                debug_assert!(done.is_ok(), "{done:?}");
            }
        }
        1 + kind as u8
    }

    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos) {
        (&mut self.worker, self.clock.now())
    }
}
