// SPDX-License-Identifier: Apache-2.0
//! One worker under a model, with packets that never end: what is measured.

use crate::clock::VirtualClock;
use crate::cost::{CostProbe, Workload};
use flow::syntax::{ParseOptions, SyntaxError, parse_flows};
use flow::{FlowMod, MatchError, Nanos, PortNo};
use frame::Frame;
use model::{Changed, Config, Limits, Model, ModelError, PortDesc};
use pipeline::Probe;
use port::Queue;
use port::mem::LoopQueue;
use tables::base::Maker;
use wire::PacketBuilder;
use worker::{PortQueues, Worker, WorkerSet};

/// Why a rig could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// A flow is not written as it must be.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A flow or port is refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A match is none.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// Times cannot be kept.
    #[error(transparent)]
    Times(#[from] hdrhistogram::CreationError),
}

/// Flows of table 0 in the mix.
const FLOWS: u16 = 100;
/// Turns from one operation to the next while costs are measured.
const OPERATION_TURNS: u64 = 16;

/// A worker under a model, in one thread. Packets come in by port 1; what is sent by the others is counted and
/// forgotten.
pub struct Rig<P: Probe = CostProbe> {
    /// The model.
    pub model: Model<WorkerSet>,
    /// The worker.
    pub worker: Worker<P>,
    /// What the worker and the model are told.
    pub clock: VirtualClock,
}

impl Rig {
    /// A switch with this many ports and no entries, and packets that come round again and again.
    ///
    /// # Errors
    /// More ports than a switch has.
    pub fn new(ports: PortNo, frames: Vec<Frame>) -> Result<Self, CostError> {
        let mut frames = Some(frames);
        let queues = (1..=ports).map(|number| {
            Box::new(LoopQueue::new(number, frames.take().unwrap_or_default())) as Box<dyn Queue>
        });
        Self::over(&worker::Config::default(), queues.collect(), None, Config::default())
    }

    /// A switch with a mix of all that a worker does: a hundred flows in an exact table, header changes, prefixes.
    ///
    /// # Errors
    /// Not unless the mix itself is wrong.
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
        // Two masks: not for a hash.
        text.extend(
            (0..8).map(|net| format!("table=1,ip,nw_dst=172.16.{net}.0/24 actions=dec_ttl,output:2")),
        );
        text.push("table=1,priority=1,ip,nw_dst=172.16.0.0/16 actions=output:2".into());
        rig.load(&text.join("\n"))?;
        Ok(rig)
    }

    /// Does flows without waiting until they are in force.
    fn submit(&mut self, flows: &str) {
        let now = self.clock.now();
        for flow in parse_flows(flows, ParseOptions::default()).flatten() {
            let done = self.model.flow_mod(now, flow);
            debug_assert!(done.is_ok(), "{done:?}");
        }
    }
}

impl<P: Probe + Default> Rig<P> {
    /// A switch with no entries whose ports have these queues, from port 1. With a maker, engines are its. Of the model's
    /// settings the limit of removals is the rig's.
    ///
    /// # Errors
    /// More ports than a switch has.
    pub(crate) fn over(
        config: &worker::Config,
        queues: Vec<Box<dyn Queue>>,
        maker: Option<Maker>,
        model: Config,
    ) -> Result<Self, CostError> {
        let ports = queues.len() as PortNo;
        let queues = (1..=ports).zip(queues).map(|(number, queue)| PortQueues {
            number,
            queues: vec![(0, queue)],
            egress: Vec::new(),
        });
        let (mut set, mut workers) = worker::build_with(config, queues.collect(), P::default);
        maker.into_iter().for_each(|maker| set.set_maker(maker));
        let limits = Limits { removals_per_poll: 65_536, ..model.limits };
        let mut model = Model::new(Config { limits, ..model }, set, 0);
        for number in 1..=ports {
            model.add_port(0, PortDesc { number, ..PortDesc::default() }, true)?;
        }
        let worker = workers.remove(0);
        let mut rig = Self { model, worker, clock: VirtualClock::default() };
        rig.settle();
        Ok(rig)
    }

    /// Does flows as they stand in a file, all at once, and puts them in force.
    ///
    /// # Errors
    /// The first flow that is refused.
    pub fn load(&mut self, text: &str) -> Result<Changed, CostError> {
        let mods: Vec<FlowMod> = parse_flows(text, ParseOptions::default()).collect::<Result<_, _>>()?;
        let changed = self.model.bundle(self.clock.now(), mods).map_err(|(_, error)| error)?;
        self.settle();
        Ok(changed)
    }

    /// Does flows as they stand in a file, one by one, and puts each in force.
    ///
    /// # Errors
    /// The first flow that is refused.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), CostError> {
        for flow_mod in parse_flows(text, ParseOptions::default()) {
            self.model.flow_mod(self.clock.now(), flow_mod?)?;
            self.settle();
        }
        Ok(())
    }

    /// Puts in force what was submitted, and lets the model forget what is gone. No packet is received.
    pub fn settle(&mut self) {
        let now = self.clock.now();
        loop {
            self.worker.apply();
            let more = self.model.poll(now);
            while self.model.next_notice().is_some() {}
            if !more && self.model.is_applied(self.model.barrier()) {
                return;
            }
        }
    }
}

/// A UDP packet to port 53, as short as Ethernet allows.
pub(super) fn udp_frame(src: [u8; 4], dst: [u8; 4], src_port: u16) -> Frame {
    let mac = |last| [2, 0, 0, 0, 0, last];
    let packet = PacketBuilder::ethernet(mac(2), mac(1)).ipv4(src, dst).udp(src_port, 53).pad_to(60);
    Frame::from_bytes(&packet.build())
}

/// Entries that come, change and go while costs are measured; no packet hits them.
const SINGLE: &str = "udp,nw_src=10.255.255.254,nw_dst=172.16.0.9,tp_src=9,tp_dst=9";
/// More entries than come singly: the table is swapped.
const SWAPPED: u16 = 80;

/// Packets, and from time to time an operation of each sort.
impl Workload for Rig {
    fn prepare(&mut self, turn: u64) -> u8 {
        let now = self.clock.advance_by(1_000);
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
