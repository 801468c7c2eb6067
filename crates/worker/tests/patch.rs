// SPDX-License-Identifier: Apache-2.0
//! Patch ports between two datapaths with random rules. Each datapath must do with a frame what its rules
//! require, and no frame may pass more than 64 patch ports.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use fastrand::Rng;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};
use frame::Frame;
use model::{Model, ModelConfig, PortDesc};
use port::mem::{self, MemHandle};
use port::patch::HOPS_MAX;
use port::{Queue, Spec};
use std::collections::{BTreeMap, VecDeque};
use wire::PacketBuilder;
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig, build};

/// Ports with hosts, and ports with cables to the other datapath.
const HOSTS: [u32; 2] = [1, 2];
const CABLES: [u32; 2] = [8, 9];

/// Sorted frames by datapath and host.
type Sent = BTreeMap<(usize, u32), Vec<Vec<u8>>>;

struct Datapath {
    model: Model<WorkerSet>,
    worker: Worker,
    hosts: Vec<MemHandle>,
}

impl Datapath {
    fn new(flows: &[String], cable: &str) -> Self {
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for number in HOSTS {
            let (queues, host) = mem::pair(number, 1, 10_000);
            hosts.push(host);
            let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        for number in CABLES {
            let spec = Spec {
                number,
                name: format!("p{number}"),
                driver: port::patch::NAME.into(),
                device: format!("{cable}-{number}"),
                queues: 1,
                outstanding_bytes: usize::MAX,
                receive_ring: None,
                handover: port::Handover::Never,
            };
            let queues = port::open(&spec).unwrap().into_iter().map(|queue| (0, queue)).collect();
            ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        }
        let config = WorkerSetConfig { express_records: 1_024, ..WorkerSetConfig::default() };
        let (plane, mut workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in HOSTS.into_iter().chain(CABLES) {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        for text in flows {
            let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
            model.flow_mod(Nanos(0), flow).unwrap();
        }
        let mut worker = workers.remove(0);
        while worker.apply() > 0 {}
        Self { model, worker, hosts }
    }

    /// Returns the number of frames that the patch ports have dropped because of their hops.
    fn dropped(&mut self) -> u64 {
        self.worker.housekeeping();
        let plane = self.model.plane_mut();
        let of_port = |port| plane.port_counters(PortNo(port)).unwrap().by_name;
        let named = CABLES.into_iter().flat_map(of_port);
        named.filter(|(name, _)| *name == "tx_hop_limit").map(|(_, count)| count).sum()
    }
}

/// Returns flows for both datapaths. A frame goes to at most one cable, so it is never multiplied, and to any
/// host before or after that.
fn random_flows(rng: &mut Rng) -> Vec<String> {
    let mut flows = Vec::new();
    for port in HOSTS.into_iter().chain(CABLES) {
        let onward: &[&str] = match port {
            8 => &["in_port", "in_port", "output:9"],
            9 => &["in_port", "in_port", "output:8"],
            _ => &["output:8", "output:9"],
        };
        let host = ["output:1", "output:2"][rng.usize(0..2)];
        let mut actions = vec![onward[rng.usize(0..onward.len())]];
        if rng.bool() {
            actions.insert(rng.usize(0..2), "set_field:02:00:00:00:00:77->eth_dst");
        }
        // A packet of a host does not return to the host.
        if port > 2 && rng.bool() {
            actions.insert(rng.usize(0..actions.len() + 1), host);
        }
        flows.push(format!("in_port={port},actions={}", actions.join(",")));
    }
    flows
}

/// Returns what the hosts must get by the rules of both datapaths, and the number of frames dropped because
/// of their hops.
fn expected(datapaths: &[Datapath; 2], packets: &[(usize, u32, Vec<u8>)]) -> (Sent, u64) {
    let (mut sent, mut dropped) = (Sent::new(), 0);
    let mut waiting: VecDeque<_> = packets.iter().cloned().map(|packet| (packet, 0)).collect();
    while let Some(((at, port, bytes), hops)) = waiting.pop_front() {
        for copy in datapaths[at].model.trace(PortNo(port), &bytes).processed.sent {
            if HOSTS.contains(&copy.port.0) {
                sent.entry((at, copy.port.0)).or_default().push(copy.bytes);
            } else if hops < HOPS_MAX {
                waiting.push_back(((1 - at, copy.port.0, copy.bytes), hops + 1));
            } else {
                dropped += 1;
            }
        }
    }
    sent.values_mut().for_each(|frames| frames.sort());
    (sent, dropped)
}

#[test]
fn both_datapaths_obey_their_rules_and_loops_end() {
    let (mut all_sent, mut all_dropped, mut by_record) = (0, 0, 0);
    for seed in 0..30 {
        let mut rng = Rng::with_seed(seed);
        let cable = format!("test-{}-{seed}", std::process::id());
        let mut datapaths = [(); 2].map(|()| Datapath::new(&random_flows(&mut rng), &cable));
        datapaths.iter_mut().for_each(|datapath| datapath.worker.housekeeping());
        let packet = |n: u8| {
            let (to, from) = ([2, 0, 0, 0, 0, n % 3], [2, 0, 0, 0, 1, 1]);
            PacketBuilder::ethernet(to, from).ethertype(0x88b5).payload(&[n]).pad_to(64).build()
        };
        let packets: Vec<_> = (0..24).map(|n| (rng.usize(0..2), HOSTS[rng.usize(0..2)], packet(n))).collect();
        let wanted = expected(&datapaths, &packets);
        for (n, (at, port, bytes)) in packets.iter().enumerate() {
            assert!(datapaths[*at].hosts[*port as usize - 1].push_frame(0, &Frame::from_bytes(bytes)));
            if n % 4 < 3 {
                continue;
            }
            let now = Nanos(1 + n as u64);
            let ended = (0..10_000).any(|_| {
                let turns = datapaths.each_mut().map(|datapath| datapath.worker.turn(now));
                turns.iter().all(worker::Turn::is_idle)
            });
            assert!(ended, "frames circulate, seed {seed}");
        }
        let mut sent = Sent::new();
        for (at, datapath) in datapaths.iter_mut().enumerate() {
            for (host, port) in datapath.hosts.iter_mut().zip(HOSTS) {
                let mut frames: Vec<_> = std::iter::from_fn(|| host.pop(0)).collect();
                frames.sort();
                if !frames.is_empty() {
                    sent.insert((at, port), frames);
                }
            }
            by_record += datapath.model.plane_mut().totals().express;
        }
        let dropped: u64 = datapaths.iter_mut().map(Datapath::dropped).sum();
        all_sent += sent.values().map(Vec::len).sum::<usize>();
        all_dropped += dropped;
        assert_eq!((sent, dropped), wanted, "seed {seed}");
    }
    assert!(all_sent > 5_000 && all_dropped > 150 && by_record > 500, "{all_sent} {all_dropped} {by_record}");
}
