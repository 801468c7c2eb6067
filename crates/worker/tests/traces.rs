// SPDX-License-Identifier: Apache-2.0
//! Traces of real packets. The records of a worker are compared with the rules, and a worker that deviates
//! must be detected.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]

mod traffic;

use dataplane::{DataPlane, FoundBy};
use flow::syntax::{ParseOptions, parse_flow, parse_match};
use flow::{
    EntryChange, EntryId, FlowMod, FlowModCommand, Instructions, Match, Nanos, Operation, PortNo, TableId,
};
use model::trace::TraceComparison;
use model::{FlowCursor, FlowFilter, Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig, build};

const PORTS: u32 = 5;

struct Lab {
    model: Model<WorkerSet>,
    worker: Worker,
    handles: Vec<MemHandle>,
    now: Nanos,
}

fn parse(text: &str) -> FlowMod {
    parse_flow(text, FlowModCommand::Add, ParseOptions::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn small(lanes: LaneLimits) -> WorkerSetConfig {
    WorkerSetConfig { small_frames: 2_048, large_frames: 64, lanes, ..WorkerSetConfig::default() }
}

impl Lab {
    fn new(lanes: LaneLimits, flows: impl IntoIterator<Item = String>) -> Self {
        Self::with(&small(lanes), flows)
    }

    fn with(config: &WorkerSetConfig, flows: impl IntoIterator<Item = String>) -> Self {
        let (mut ports, mut handles) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (queues, handle) = mem::pair(number, 1, 512);
            handles.push(handle);
            let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let (plane, mut workers) = build(config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        model.bundle(Nanos(0), flows.into_iter().map(|line| parse(&line)).collect::<Vec<_>>()).unwrap();
        let mut lab = Self { model, worker: workers.remove(0), handles, now: Nanos(1) };
        lab.turn();
        lab
    }

    /// Runs worker and model until both are idle, and discards the output.
    fn turn(&mut self) {
        loop {
            self.now += Nanos(1);
            let idle = self.worker.turn(self.now).is_idle();
            let more = self.model.poll(self.now);
            while let Some(message) = self.model.next_async_message() {
                if let model::AsyncMessage::PacketIn(packet_in) = message {
                    self.model.recycle(packet_in.frame);
                }
            }
            for handle in &mut self.handles {
                while handle.pop(0).is_some() {}
            }
            if idle && !more {
                return;
            }
        }
    }

    /// Sends a packet and compares its record with the rules.
    fn compare(&mut self, port: u32, bytes: &[u8]) -> TraceComparison {
        assert!(self.handles[port as usize - 1].push(0, bytes));
        self.worker.turn(self.now);
        let record = self.model.plane_mut().next_record().unwrap();
        let comparison = self.model.compare(&record).1;
        self.turn();
        comparison
    }

    fn entry(&mut self, table: TableId) -> EntryId {
        let filter = FlowFilter { table: Some(table), ..FlowFilter::default() };
        self.model.flows(Nanos(0), &filter, &mut FlowCursor::default(), 1)[0].entry.id
    }
}

#[test]
fn every_kind_of_packet_is_processed_as_its_trace_says() {
    [LaneLimits::NONE, LaneLimits::USUAL].map(small).iter().for_each(every_kind_of_packet);
    every_kind_of_packet(&WorkerSetConfig { express_records: 64, ..small(LaneLimits::NONE) });
}

fn every_kind_of_packet(config: &WorkerSetConfig) {
    let mut lab = Lab::with(config, traffic::rules().into_iter().chain(traffic::hashed_rules(2)));
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    let mut agreed = 0;
    // Addresses learned by NORMAL change the rules at first; in later rounds the rules are stable.
    for round in 0..4 {
        for port in 1..=PORTS {
            for frame in traffic::frames(port).into_iter().chain((0..8).map(traffic::wanderer)) {
                lab.handles[port as usize - 1].push_frame(0, &frame);
                lab.worker.turn(lab.now);
                let record = lab.model.plane_mut().next_record().unwrap();
                match lab.model.compare(&record).1 {
                    TraceComparison::Agrees => agreed += 1,
                    TraceComparison::Changed { .. } => assert_eq!(round, 0, "{record:?}"),
                    other => panic!("{other:?} for {record:?}"),
                }
                lab.turn();
            }
        }
    }
    assert!(agreed > 1_000, "{agreed} packets agreed");
    assert_eq!(lab.model.trace_counts().faults, 0);
    assert_eq!(lab.model.trace_counts().compared, agreed);
}

/// The records of the fast-forwarding path determine the result of a worker. A packet that completes on the
/// path must be traced with the entries of its records.
#[test]
fn records_of_the_fast_forwarding_path_are_traced() {
    [LaneLimits::NONE, LaneLimits::USUAL].into_iter().for_each(records_are_traced);
}

fn records_are_traced(lanes: LaneLimits) {
    let flow =
        |n: u32| format!("priority={n},ip,nw_dst=10.{n}.0.0/{},low_latency,actions=output:2", 16 + n % 8);
    let mut lab = Lab::new(lanes, (1..60).map(flow));
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    let frame = wire::PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([1; 4], [10, 5, 0, 9]).udp(1, 2).build();
    let mut ways = Vec::new();
    for _ in 0..2 {
        assert!(lab.handles[0].push(0, &frame));
        lab.worker.turn(lab.now);
        let record = lab.model.plane_mut().next_record().unwrap();
        assert_eq!(lab.model.compare(&record).1, TraceComparison::Agrees);
        ways.push((record.fast, record.missed, record.hits[0].by));
    }
    assert_eq!(ways, [(false, Some(TableId(0)), FoundBy::Table), (true, None, FoundBy::Lut)]);
}

/// A packet that a path record forwards must be traced with the entries that the record names.
#[test]
fn path_records_are_traced() {
    let config = WorkerSetConfig { express_records: 64, ..small(LaneLimits::NONE) };
    let flows = [
        "table=0,priority=5,dl_dst=02:02:02:02:02:02,actions=set_field:02:00:00:00:00:09->eth_dst,goto_table:3",
        "table=3,ip,nw_dst=10.0.0.0/8,actions=output:2",
        "table=3,priority=1,arp,actions=output:2,output:3",
    ];
    let mut lab = Lab::with(&config, flows.map(String::from));
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    let to = |address| wire::PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([1; 4], address).udp(1, 2).build();
    let arp = wire::PacketBuilder::ethernet([2; 6], [4; 6]).arp(1, [4; 6], [1; 4], [0; 6], [2; 4]).build();
    // The cases are a record with a direct output, a record that runs the entries' instructions, and a miss.
    for (frame, hits) in [(to([10; 4]), true), (arp, true), (to([11; 4]), false)] {
        for round in 0..2 {
            assert!(lab.handles[0].push(0, &frame));
            lab.worker.turn(lab.now);
            let record = lab.model.plane_mut().next_record().unwrap();
            assert_eq!(lab.model.compare(&record).1, TraceComparison::Agrees);
            let by = if round == 0 { FoundBy::Table } else { FoundBy::Express };
            let found: Vec<_> =
                record.hits.iter().map(|hit| (hit.table.0, hit.by, hit.entry.is_some())).collect();
            assert_eq!(found, [(0, by, true), (3, by, hits)]);
            assert_eq!((record.express, record.fast), (round == 1, false));
        }
    }
}

/// Plants a fault: some rule changes are given to the worker only, so that worker and model have different
/// rules.
#[test]
fn a_worker_that_deviates_from_the_rules_is_detected() {
    [LaneLimits::NONE, LaneLimits::USUAL].into_iter().for_each(is_found_out);
}

fn is_found_out(lanes: LaneLimits) {
    let mut lab =
        Lab::new(lanes, ["priority=5,arp,actions=output:2", "priority=0,actions=output:3"].map(String::from));
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    let arp = wire::PacketBuilder::ethernet([255; 6], [2; 6]).arp(1, [2; 6], [1; 4], [0; 6], [2; 4]).build();
    assert_eq!(lab.compare(1, &arp), TraceComparison::Agrees);
    let id = lab.entry(TableId(0));
    let plant = |lab: &mut Lab, change: EntryChange| {
        lab.model.plane_mut().submit(Operation::Entries(vec![change]));
        // This change goes through the model, so that worker and model have the same rule version.
        lab.model.set_link(Nanos(0), PortNo(5), false).unwrap();
        lab.model.set_link(Nanos(0), PortNo(5), true).unwrap();
        lab.turn();
    };
    let instructions = |text: &str| std::sync::Arc::new(parse(&format!("actions={text}")).instructions);
    for (actions, says) in [
        ("output:4", "copies for ports 4"),
        ("output:2,output:4", "ports 2, 4"),
        ("drop", "dropped (no_output), by the rules: forwarded"),
        ("CONTROLLER:65535,output:2", "and 1 for the controller"),
        ("set_field:02:00:00:00:00:77->eth_dst,output:2", "the copy for port 2 has other bytes"),
        ("goto_table:1", "missed table 1, by the rules it had no further lookup"),
    ] {
        let change = EntryChange::Modify {
            id,
            table: TableId(0),
            instructions: instructions(actions),
            low_latency: false,
            reset_counts: false,
        };
        plant(&mut lab, change);
        let faults = lab.model.trace_counts().faults;
        match lab.compare(1, &arp) {
            TraceComparison::Disagrees(reported) => {
                assert!(reported.iter().any(|one| one.contains(says)), "{actions}: {reported:?}")
            }
            other => panic!("{actions}: {other:?}"),
        }
        assert_eq!(lab.model.trace_counts().faults, faults + 1);
    }
    plant(&mut lab, EntryChange::Remove { id, table: TableId(0) });
    assert!(
        matches!(lab.compare(1, &arp), TraceComparison::Disagrees(reported) if reported[0].starts_with("lookup 1:"))
    );
}

#[test]
fn packets_of_changed_rules_are_not_compared() {
    [LaneLimits::NONE, LaneLimits::USUAL].into_iter().for_each(changed_rules);
}

fn changed_rules(lanes: LaneLimits) {
    let mut lab = Lab::new(lanes, ["actions=output:2".to_owned()]);
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    assert!(lab.handles[0].push(0, &[2; 60]));
    lab.worker.turn(lab.now);
    lab.model
        .flow_mod(Nanos(0), FlowMod { instructions: Instructions::default(), ..parse("actions=drop") })
        .unwrap();
    let record = lab.model.plane_mut().next_record().unwrap();
    assert!(matches!(lab.model.compare(&record).1, TraceComparison::Changed { then, now } if now > then));
    assert_eq!(lab.model.trace_counts().compared, 0);
}

#[test]
fn a_filter_a_count_and_a_full_ring_limit_a_recording() {
    let mut lab = Lab::new(LaneLimits::NONE, ["actions=output:2".to_owned()]);
    let matching = parse_match("in_port=3", ParseOptions::default()).unwrap();
    assert!(lab.model.plane_mut().record(&matching, 3));
    assert!(!lab.model.plane_mut().record(&matching, 3), "only one recording at a time");
    for _ in 0..5 {
        for port in [1, 3] {
            assert!(lab.handles[port - 1].push(0, &[2; 60]));
        }
    }
    lab.turn();
    let mut ports = Vec::new();
    while let Some(record) = lab.model.plane_mut().next_record() {
        ports.push(record.in_port);
    }
    assert_eq!(ports, [3, 3, 3].map(PortNo));
    lab.model.plane_mut().stop_recording();
    assert!(lab.model.plane_mut().record(&Match::any(), 1_000));
    for _ in 0..3 {
        (0..200).for_each(|_| assert!(lab.handles[0].push(0, &[2; 60])));
        lab.turn();
    }
    assert_eq!(lab.model.plane_mut().records_lost(), 600 - 256);
    // Lost records do not count towards the 1,000 packets: 1,000 records are still taken.
    let mut taken = 0;
    for _ in 0..20 {
        while lab.model.plane_mut().next_record().is_some() {
            taken += 1;
        }
        (0..100).for_each(|_| assert!(lab.handles[0].push(0, &[2; 60])));
        lab.turn();
    }
    assert_eq!((taken, lab.model.plane_mut().records_lost()), (1_000, 600 - 256));
    lab.model.plane_mut().stop_recording();
    assert!(lab.model.plane_mut().next_record().is_none());
}
