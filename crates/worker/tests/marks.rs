// SPDX-License-Identifier: Apache-2.0
//! Tests the marks of a poll iteration: the steps that a worker reports to its probe, each with its number of
//! units. Virtual time is computed from these marks.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::syntax::{ParseOptions, parse_flow};
use flow::{EgressQueue, FlowModCommand, Nanos, PortNo, QueueId, TableId};
use model::{Model, ModelConfig, PortDesc};
use pipeline::{Probe, ProbeStep};
use port::Queue;
use port::mem::{self, MemHandle};
use worker::{PortQueues, Worker, WorkerSet, build_with};

/// A probe that records all marks.
#[derive(Default)]
struct Marks(Vec<(ProbeStep, u32)>);

impl Probe for Marks {
    fn mark(&mut self, step: ProbeStep, units: u32) {
        self.0.push((step, units));
    }
}

struct Lab {
    model: Model<WorkerSet>,
    worker: Worker<Marks>,
    handles: Vec<MemHandle>,
}

impl Lab {
    /// Creates ports 1 and 2. `egress` lists the egress queues of port 2.
    fn new(egress: Vec<EgressQueue>) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            let (queues, handle) = mem::pair(number, 1, 64);
            handles.push(handle);
            let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            let egress = if number == 2 { egress.clone() } else { Vec::new() };
            ports.push(PortQueues { number: PortNo(number), queues, egress });
        }
        let config = worker::WorkerSetConfig {
            small_frames: 256,
            large_frames: 0,
            ..worker::WorkerSetConfig::default()
        };
        let (plane, mut workers) = build_with(&config, ports, Marks::default);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=2 {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let mut lab = Self { model, worker: workers.remove(0), handles };
        lab.rule("in_port=1,actions=output:2");
        lab.marks(Nanos(1));
        lab
    }

    fn rule(&mut self, rule: &str) {
        let flow = parse_flow(rule, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(Nanos(0), flow).unwrap();
    }

    /// Runs one poll iteration and returns its marks.
    fn marks(&mut self, now: Nanos) -> Vec<(ProbeStep, u32)> {
        self.worker.turn(now);
        std::mem::take(&mut self.worker.probe().0)
    }
}

#[test]
fn each_step_of_a_turn_is_marked_with_its_packets() {
    for egress in [Vec::new(), vec![EgressQueue::new(QueueId(1))]] {
        let mut lab = Lab::new(egress);
        assert_eq!(lab.marks(Nanos(2)), [(ProbeStep::Turn, 1)], "a poll iteration without packets");
        for packets in [1, 32, 5] {
            (0..packets).for_each(|_| assert!(lab.handles[0].push(0, &[1; 60])));
            let marks = [
                (ProbeStep::Turn, 1),
                (ProbeStep::Receive, packets),
                (ProbeStep::Admit, packets),
                (ProbeStep::Extract(TableId(0)), packets),
                (ProbeStep::Lookup(TableId(0)), packets),
                (ProbeStep::Execute(TableId(0)), packets),
                (ProbeStep::Finish, packets),
                (ProbeStep::Transmit, packets),
            ];
            assert_eq!(lab.marks(Nanos(3)), marks);
        }
    }
}

#[test]
fn packets_of_several_ports_leave_by_one_transmission() {
    let mut lab = Lab::new(Vec::new());
    lab.rule("in_port=2,actions=output:1");
    lab.marks(Nanos(2));
    (0..3).for_each(|_| assert!(lab.handles[0].push(0, &[1; 60])));
    (0..4).for_each(|_| assert!(lab.handles[1].push(0, &[1; 60])));
    let marks = lab.marks(Nanos(3));
    let received: Vec<_> = marks.iter().filter(|(step, _)| *step == ProbeStep::Receive).collect();
    assert_eq!(received, [&(ProbeStep::Receive, 3), &(ProbeStep::Receive, 4)]);
    let sent: Vec<_> = marks.iter().filter(|(step, _)| *step == ProbeStep::Transmit).collect();
    assert_eq!(sent, [&(ProbeStep::Transmit, 7)]);
}
