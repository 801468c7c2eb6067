// SPDX-License-Identifier: Apache-2.0
//! Processes random bytes as a packet, by a worker and by the reference, with every kind of match and action.
//! Both must send the same frames to the same ports, report the same packet-ins, and count the same outcome.
#![no_main]

use dataplane::{DataPlane, Event};
use flow::operation::{EntryChange, Operation, PortState};
use flow::syntax::{ParseOptions, parse_flows};
use flow::{EntryId, FlowEntry, FlowModCommand, Nanos, Outcome, PortNo};
use libfuzzer_sys::fuzz_target;
use port::Queue;
use port::mem::{self, MemHandle};
use reference::Reference;
use std::cell::RefCell;
use std::sync::Arc;
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig, build};

const PORTS: u32 = 8;
const FLOWS: &str = include_str!("../../crates/sim/tests/data/replay.flows");

struct Pair {
    set: WorkerSet,
    worker: Worker,
    handles: Vec<MemHandle>,
    reference: Reference,
}

thread_local! {
    static PAIR: RefCell<Pair> = RefCell::new(pair());
}

fn pair() -> Pair {
    let mut handles = Vec::new();
    let mut queues = Vec::new();
    for number in 1..=PORTS {
        let (made, handle) = mem::pair(number, 1, 256);
        handles.push(handle);
        let boxed = made.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>));
        queues.push(PortQueues { number: PortNo(number), queues: boxed.collect(), egress: Vec::new() });
    }
    let (mut set, mut workers) =
        build(&WorkerSetConfig { large_frames: 16, ..WorkerSetConfig::default() }, queues);
    let mut reference = Reference::new();
    let mut operations: Vec<Operation> =
        (1..=PORTS).map(|n| Operation::Port(PortState::up(PortNo(n)))).collect();
    let entries = parse_flows(FLOWS, ParseOptions::default()).enumerate().map(|(id, parsed)| {
        let m = parsed.expect("the committed flow file parses");
        assert_eq!(m.command, FlowModCommand::Add);
        EntryChange::Add(Arc::new(FlowEntry {
            id: EntryId(id as u32),
            table: m.table.unwrap_or_default(),
            priority: m.priority,
            matching: m.matching,
            instructions: Arc::new(m.instructions),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: m.cookie,
            flags: m.flags,
            low_latency: false,
        }))
    });
    operations.push(Operation::Entries(entries.collect()));
    let mut worker = workers.remove(0);
    for operation in operations {
        reference.apply(&operation).expect("a valid operation");
        set.submit(operation);
        worker.apply();
    }
    Pair { set, worker, handles, reference }
}

fuzz_target!(|data: &[u8]| {
    // The first byte selects the port, the others are the packet.
    let Some((port, frame)) = data.split_first() else { return };
    // Device drivers drop frames that are shorter than an Ethernet header or too long for a buffer.
    if !(port::MIN_FRAME_BYTES..2_000).contains(&frame.len()) {
        return;
    }
    PAIR.with_borrow_mut(|pair| pair.hold(PortNo(1 + u32::from(*port) % PORTS), frame));
});

impl Pair {
    fn hold(&mut self, in_port: PortNo, frame: &[u8]) {
        let before = self.set.totals();
        assert!(self.handles[in_port.0 as usize - 1].push(0, frame));
        let turn = self.worker.turn(Nanos(1));
        assert_eq!(turn.received, 1);
        let expected = self.reference.process(in_port, frame);
        for port in 1..=PORTS {
            for copy in expected.sent.iter().filter(|copy| copy.port.0 == port) {
                let sent = self.handles[port as usize - 1].pop(0);
                assert_eq!(sent.as_deref(), Some(&copy.bytes[..]), "the frame sent by port {port}");
            }
            assert_eq!(self.handles[port as usize - 1].pop(0), None, "port {port} sent an unexpected frame");
        }
        let mut reports = expected.packet_ins.iter();
        while let Some(event) = self.set.next_event() {
            let Event::PacketIn(report) = event else { continue };
            let wanted = reports.next().expect("the reference also sends a packet-in");
            assert_eq!((report.frame.bytes(), report.entry), (&wanted.bytes[..], wanted.entry));
            self.set.recycle(report.frame);
        }
        assert!(reports.next().is_none(), "a packet-in is missing");
        let after = self.set.totals();
        let outcome = match expected.outcome {
            Outcome::Forwarded => after.forwarded - before.forwarded,
            Outcome::Consumed => after.consumed - before.consumed,
            Outcome::Dropped(reason) => after.dropped.of(reason) - before.dropped.of(reason),
        };
        assert_eq!(outcome, 1, "{:?}", expected.outcome);
    }
}
