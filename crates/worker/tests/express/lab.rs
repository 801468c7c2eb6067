// SPDX-License-Identifier: Apache-2.0
//! One worker between in-memory ports, with or without the express path.

use dataplane::{DataPlane, DropCounts};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo, TableId};
use frame::Frame;
use model::{FlowCursor, FlowFilter, Model, ModelConfig, PortDesc};
use port::Queue;
use port::mem::{self, MemHandle};
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig, build};

/// Number of ports. Packets arrive on ports 1 and 2.
const PORTS: u32 = 4;

pub struct Lab {
    pub model: Model<WorkerSet>,
    pub worker: Worker,
    pub handles: Vec<MemHandle>,
    pub now: Nanos,
}

/// The frames that a switch sent through each port, and its counters.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub sent: Vec<Vec<Vec<u8>>>,
    /// Lookups and matches of each table.
    pub tables: Vec<(u64, u64)>,
    /// Packets and bytes of each flow entry.
    pub entries: Vec<(u64, u64)>,
    pub forwarded: u64,
    pub dropped: DropCounts,
}

impl Lab {
    pub fn new(express_records: usize, flows: &[&str]) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (made, handle) = mem::pair(number, 1, 10_000);
            handles.push(handle);
            let queues = made.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let config = WorkerSetConfig { express_records, ..WorkerSetConfig::default() };
        let (plane, mut workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let mut lab = Self { model, worker: workers.remove(0), handles, now: Nanos(1) };
        flows.iter().for_each(|text| lab.flow(text, FlowModCommand::Add));
        lab
    }

    pub fn flow(&mut self, text: &str, command: FlowModCommand) {
        let flow = parse_flow(text, command, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
        while self.worker.apply() > 0 {}
    }

    /// Puts a burst of packets into this port, and runs one poll iteration.
    pub fn burst(&mut self, port: usize, packets: &[Vec<u8>]) {
        for bytes in packets {
            assert!(self.handles[port - 1].push_frame(0, &Frame::from_bytes(bytes)));
        }
        self.now += Nanos(1_000);
        self.worker.turn(self.now);
    }

    /// Runs poll iterations until all hits of path records are counted.
    pub fn rest(&mut self) {
        while !self.worker.turn(self.now).is_idle() {}
    }

    pub fn seen(&mut self) -> Seen {
        self.rest();
        let pop = |handle: &mut MemHandle| std::iter::from_fn(|| handle.pop(0)).collect();
        let sent = self.handles.iter_mut().map(pop).collect();
        let all = FlowFilter::default();
        let flows = self.model.flows(self.now, &all, &mut FlowCursor::default(), usize::MAX);
        let plane = self.model.plane_mut();
        let table = |number| plane.table_counters(TableId(number));
        let tables = (0..80).map(table).map(|counts| (counts.lookups, counts.matches)).collect();
        let totals = plane.totals();
        Seen {
            sent,
            tables,
            entries: flows.iter().map(|flow| (flow.packets, flow.bytes)).collect(),
            forwarded: totals.forwarded,
            dropped: totals.dropped,
        }
    }

    pub fn express(&mut self) -> u64 {
        self.model.plane_mut().totals().express
    }
}

/// Sends the same packets through a switch with the express path and one without it, and compares the
/// results. Returns the number of packets that a record forwarded.
pub fn compare(flows: &[&str], drive: impl Fn(&mut Lab)) -> u64 {
    let (mut with, mut without) = (Lab::new(1_024, flows), Lab::new(0, flows));
    drive(&mut with);
    drive(&mut without);
    assert_eq!(with.seen(), without.seen());
    assert_eq!(without.express(), 0);
    with.express()
}
