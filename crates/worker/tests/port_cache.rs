// SPDX-License-Identifier: Apache-2.0
//! The port cache with complete workers, in virtual time: one search per flow, packets of other flows do not
//! wait, operations do not wait for held packets, and every packet is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

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
use worker::{PortQueues, Quanta, Worker, WorkerSet, WorkerSetConfig, build};

const PORTS: u32 = 3;

/// Time that the searcher takes for a search.
const SERVICE_NS: Nanos = Nanos(1_000_000_000);

/// Time between two poll iterations.
const TURN_NS: Nanos = Nanos(1_000);

/// Packets of a burst.
const BURST: usize = 32;

const LIMITS: MissLimits =
    MissLimits { timeout_ns: Nanos(10_000_000_000), bytes: MissLimits::BYTES_MAX, ..MissLimits::USUAL };

struct Lab {
    model: Model<WorkerSet>,
    worker: Worker,
    handles: Vec<MemHandle>,
    now: Nanos,
}

impl Lab {
    /// Creates a switch that sends the packets for host `n` through port `n`.
    fn new(cache: PortCacheConfig, lanes: LaneLimits) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            let (made, handle) = mem::pair(number, 1, 10_000);
            handles.push(handle);
            let queues = made.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let config = WorkerSetConfig {
            express_records: 1_024,
            small_frames: 256,
            port_cache: Some(cache),
            lanes,
            quanta: Quanta { small: 1, large: 1, quiet_ns: Nanos(0) },
            ..WorkerSetConfig::default()
        };
        let (plane, mut workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let mut lab = Self { model, worker: workers.remove(0), handles, now: Nanos(1) };
        (1..=PORTS).for_each(|n| lab.flow(&format!("dl_dst=02:00:00:00:00:0{n},actions=output:{n}")));
        lab.flow("priority=1,dl_type=0x0800,nw_src=10.0.0.0/8,actions=output:2");
        // Packets join the backlog only if some entry is low-latency.
        lab.flow("low_latency,dl_dst=02:00:00:00:00:77,actions=output:2");
        while lab.worker.apply() > 0 {}
        lab
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
    }

    fn push(&mut self, port: usize, packet: &[u8]) {
        assert!(self.handles[port - 1].push_frame(0, &Frame::from_bytes(packet)));
    }

    fn turn(&mut self) {
        self.now += TURN_NS;
        self.worker.turn(self.now);
        let Totals { received, forwarded, consumed, held, dropped, .. } = self.totals();
        let all = DropReason::ALL.iter().map(|reason| dropped.of(*reason)).sum::<u64>();
        assert_eq!(received, forwarded + consumed + all + held, "every packet is counted once");
    }

    fn totals(&mut self) -> Totals {
        self.model.plane_mut().totals()
    }

    fn figures(&mut self) -> MissFigures {
        self.model.plane_mut().miss_figures()
    }

    /// Returns the numbers of the packets that port `port` has sent.
    fn sent(&mut self, port: usize) -> Vec<u32> {
        let number = |bytes: Vec<u8>| u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        std::iter::from_fn(|| self.handles[port - 1].pop(0)).map(number).collect()
    }

    /// Lets the searcher answer, and runs until nothing waits.
    fn answer(&mut self) {
        self.now += SERVICE_NS;
        (0..200).for_each(|_| self.turn());
    }

    /// Returns a switch in which the packets of flow 1 from ports 1 and 3 have records.
    fn warm(cache: PortCacheConfig) -> Self {
        let mut lab = Self::new(cache, LaneLimits::NONE);
        [1, 3].into_iter().for_each(|port| lab.push(port, &packet(1, 2, 0)));
        lab.turn();
        lab.answer();
        lab.answer();
        assert_eq!((lab.sent(2).len(), lab.figures().searched), (2, 2));
        lab
    }
}

fn slow() -> PortCacheConfig {
    PortCacheConfig { limits: LIMITS, service_ns: SERVICE_NS, faults: None }
}

/// Returns packet `number` of flow `flow` to host `host`.
fn packet(flow: u16, host: u8, number: u32) -> Vec<u8> {
    let [high, low] = flow.to_be_bytes();
    PacketBuilder::ethernet([2, 0, 0, 0, 0, host], [4; 6])
        .ipv4([10; 4], [11, 0, high, low])
        .udp(53, flow)
        .payload(&number.to_be_bytes())
        .build()
}

#[test]
fn a_million_packets_of_an_unknown_flow_cause_one_search_and_hold_up_no_other_flow() {
    let mut lab = Lab::warm(slow());
    let before = lab.figures();
    let mut known = 0;
    for burst in 0..1_000_000 / BURST as u32 {
        for at in 0..BURST as u32 {
            // Host 3 is unknown. Every 32nd packet is one of the known flow.
            let number = burst * BURST as u32 + at;
            lab.push(1, &if at == 7 { packet(1, 2, number) } else { packet(1, 3, number) });
        }
        lab.turn();
        known += 1;
        // The search takes longer than all these packets.
        assert_eq!((lab.sent(2).len(), lab.sent(3).len()), (1, 0), "known packets leave at once");
    }
    let figures = lab.figures();
    let dropped = figures.dropped;
    assert_eq!((figures.searched - before.searched, figures.merged), (1, LIMITS.queue.into()));
    assert_eq!(lab.totals().dropped.of(DropReason::MissQueueFull), dropped);
    assert_eq!(lab.totals().held, 1 + u64::from(LIMITS.queue));
    lab.answer();
    let expected: Vec<u32> = (0..).filter(|n| n % 32 != 7).take(1 + usize::from(LIMITS.queue)).collect();
    assert_eq!(lab.sent(3), expected, "what fits the queue leaves in order");
    assert_eq!((lab.totals().held, known), (0, 31_250));
    lab.push(1, &packet(1, 3, 9));
    lab.turn();
    assert_eq!((lab.sent(3), lab.figures().searched), (vec![9], figures.searched), "the flow has a record");
}

#[test]
fn operations_do_not_wait_for_held_packets_which_follow_the_new_rules() {
    let mut lab = Lab::warm(slow());
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    assert_eq!(lab.totals().held, 3);
    lab.flow("priority=50000,dl_dst=02:00:00:00:00:03,actions=output:2");
    let barrier = lab.model.barrier();
    lab.turn();
    assert!(lab.model.is_applied(barrier) && lab.totals().held == 3);
    lab.answer();
    assert_eq!((lab.sent(2), lab.sent(3)), (vec![0, 1, 2], vec![]));
}

#[test]
fn a_new_key_plan_keeps_searches_and_order() {
    let mut lab = Lab::warm(slow());
    // Until the key plan changes, packets with different UDP ports belong to one flow.
    (0..6).for_each(|number| lab.push(1, &packet(number as u16 % 2, 3, number)));
    lab.turn();
    assert_eq!(lab.figures().searched, 3);
    lab.flow("priority=60000,udp,tp_dst=1,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.turn();
    (6..8).for_each(|number| lab.push(1, &packet(number as u16 % 2, 3, number)));
    lab.turn();
    assert_eq!((lab.figures().searched, lab.totals().held), (3, 8), "no packet starts another search");
    lab.answer();
    lab.answer();
    assert_eq!((lab.sent(2), lab.sent(3)), (vec![1, 3, 5, 7], vec![0, 2, 4, 6]));
}

#[test]
fn held_packets_take_no_frames_for_receiving() {
    let mut lab = Lab::warm(slow());
    // More packets wait than there are frames for receiving.
    for number in 0..500 {
        lab.push(1, &packet(1, 3, number));
        lab.push(3, &packet(2, 1, number));
        lab.turn();
    }
    assert!(lab.totals().held > 256 + 128, "{:?}", lab.totals());
    for number in 0..10_000 {
        lab.push(1 + 2 * (number as usize % 2), &packet(1, 2, number));
        lab.turn();
        assert_eq!(lab.sent(2), [number]);
    }
    lab.answer();
    lab.answer();
    assert_eq!((lab.totals().held, lab.totals().dropped.of(DropReason::NoBuffer)), (0, 0));
}

#[test]
fn a_port_that_floods_with_new_flows_leaves_other_ports_their_searches() {
    let mut lab = Lab::warm(slow());
    // The UDP port is part of the keys from now on.
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
    let before = lab.figures();
    for flow in 0..4_000 {
        lab.push(1, &packet(flow, 2, flow.into()));
        lab.turn();
    }
    let flood = lab.figures();
    assert_eq!(flood.searched - before.searched, LIMITS.entries.into());
    assert!(flood.uncached > 3_000, "flows without a slot take the tables: {flood:?}");
    lab.push(3, &packet(5_000, 3, 1));
    lab.turn();
    assert_eq!(lab.figures().searched, flood.searched + 1);
}

#[test]
fn a_searcher_that_answers_at_once_holds_no_packet_longer_than_a_burst() {
    let mut lab = Lab::new(PortCacheConfig::default(), LaneLimits::NONE);
    (0..20).for_each(|number| lab.push(1, &packet(number as u16 % 4, 3, number)));
    lab.turn();
    let figures = lab.figures();
    assert_eq!((figures.searched + figures.merged, figures.released, lab.totals().held), (20, 20, 0));
    assert!(figures.searched <= 4 && lab.sent(3).len() == 20, "{figures:?}");
    let totals = lab.totals();
    assert!(totals.express >= 16, "followers use the record of the first packet: {totals:?}");
}

#[test]
fn a_record_made_by_a_packet_of_the_backlog_is_not_used_before_held_packets_have_left() {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    let limits = MissLimits { entries: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, lanes);
    lab.push(1, &packet(1, 3, 0));
    lab.turn();
    lab.now += Nanos(SERVICE_NS.0 - 5 * TURN_NS.0);
    // The only slot is taken, so these packets join the backlog, which one packet leaves per poll iteration.
    (100..130).for_each(|number| lab.push(1, &packet(1, 8, number)));
    lab.push(1, &packet(1, 9, 0));
    (0..10).for_each(|_| lab.turn());
    let figures = lab.figures();
    assert_eq!((figures.searched, figures.uncached, figures.released), (1, 31, 1), "the slot is free again");
    // The second packet of flow 9 is held while the first one is in the backlog.
    for number in 1..100 {
        lab.push(1, &packet(1, 9, number));
        lab.turn();
    }
    assert_eq!(lab.figures().searched, 2);
    (0..300).for_each(|_| lab.turn());
    let sent: Vec<u32> = lab.sent(2).into_iter().filter(|number| *number < 100).collect();
    assert_eq!((sent, lab.totals().held), ((0..100).collect(), 0));
}

#[test]
fn packets_that_wait_when_a_worker_ends_are_counted() {
    let mut lab = Lab::warm(slow());
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    let lost = lab.worker.end();
    let totals = lab.totals();
    assert_eq!((lost.packets, totals.dropped.of(DropReason::Shutdown), totals.held), (5, 5, 0));
}
