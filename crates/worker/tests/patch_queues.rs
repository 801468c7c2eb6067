// SPDX-License-Identifier: Apache-2.0
//! A cable between a datapath with two workers and one with three. One end is closed and opened, and the
//! rules change, while packets pass. Each flow keeps its order, and no packet is lost without being counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::{DataPlane, PortCounters};
use fastrand::Rng;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use port::mem::{self, MemHandle};
use port::{Queue, Spec};
use std::collections::BTreeMap;
use worker::{PortQueues, PortsChanged, PortsUpdate, Worker, WorkerSet, WorkerSetConfig, build};

const HOST: PortNo = PortNo(1);
const PATCH: PortNo = PortNo(9);
/// Number of workers of each datapath, which is also the number of queues of its ports.
const WORKERS: [usize; 2] = [2, 3];

struct Datapath {
    model: Model<WorkerSet>,
    workers: Vec<Worker>,
    host: MemHandle,
    cable: String,
    /// The last removal of the patch port.
    removal: Option<PortsChanged>,
    now: Nanos,
}

fn desc(number: PortNo) -> PortDesc {
    PortDesc { number, name: format!("p{}", number.0), ..PortDesc::default() }
}

impl Datapath {
    fn new(workers: usize, cable: &str) -> Self {
        let (queues, host) = mem::pair(HOST.0, workers, 1_000);
        let queues = queues.into_iter().map(|queue| Box::new(queue) as Box<dyn Queue>).enumerate().collect();
        let ports = vec![PortQueues { number: HOST, queues, egress: Vec::new() }];
        let config = WorkerSetConfig {
            workers,
            small_frames: 2_048,
            large_frames: 0,
            outbox_frames: 64,
            express_records: 64,
            ..WorkerSetConfig::default()
        };
        let (plane, workers) = build(&config, ports);
        let model = Model::new(ModelConfig::default(), plane, Nanos(0));
        let mut datapath = Self { model, workers, host, cable: cable.into(), removal: None, now: Nanos(1) };
        datapath.model.add_port(Nanos(0), desc(HOST), true).unwrap();
        datapath.open_patch();
        datapath.flow("in_port=9,actions=output:1");
        datapath
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
        for worker in &mut self.workers {
            while worker.apply() > 0 {}
        }
    }

    /// Adds the patch port as a reload does, after an earlier one has been closed. Its queues are connected
    /// at once, because the other end of the cable is always open.
    fn open_patch(&mut self) {
        if self.removal.as_ref().is_some_and(|removal| !removal.is_complete()) {
            return;
        }
        let spec = Spec {
            number: PATCH.0,
            name: "p9".into(),
            driver: port::patch::NAME.into(),
            device: self.cable.clone(),
            queues: self.workers.len(),
            outstanding_bytes: usize::MAX,
            receive_ring: None,
            handover: port::Handover::Never,
        };
        let queues = port::open_held(&spec).unwrap();
        queues[0].patch_end().unwrap().start();
        let added = vec![PortQueues {
            number: PATCH,
            queues: queues.into_iter().enumerate().collect(),
            egress: Vec::new(),
        }];
        self.model.plane_mut().change_ports(PortsUpdate { added, ..PortsUpdate::default() });
        self.model.add_port(self.now, desc(PATCH), true).unwrap();
    }

    fn close_patch(&mut self) {
        self.model.remove_port(self.now, PATCH).unwrap();
        let update = PortsUpdate { removed: vec![PATCH], ..PortsUpdate::default() };
        self.removal = Some(self.model.plane_mut().change_ports(update));
    }

    /// Polls the links, and reports the link of the patch port to the model.
    fn poll_links(&mut self) {
        self.workers.iter_mut().for_each(Worker::housekeeping);
        let up = self.model.plane_mut().port_links().get(&PATCH).is_some_and(|link| link.up);
        if self.model.port(PATCH).is_some() {
            self.model.set_link(self.now, PATCH, up).unwrap();
        }
    }

    fn turn(&mut self, random: &mut Rng) {
        self.now += Nanos(1_000);
        let mut order: Vec<usize> = (0..self.workers.len()).collect();
        random.shuffle(&mut order);
        for worker in order {
            self.workers[worker].turn(self.now);
        }
        // The control thread frees what the workers gave back, which closes removed ports.
        self.model.plane_mut().applied();
    }

    fn counters(&mut self) -> PortCounters {
        self.workers.iter_mut().for_each(Worker::housekeeping);
        self.model.plane_mut().port_counters(PATCH).unwrap()
    }

    /// Returns the packets and copies that the workers have dropped.
    fn dropped(&mut self) -> u64 {
        let totals = self.model.totals();
        assert_eq!(totals.held, 0);
        totals.dropped.sum() + totals.copies_dropped.sum()
    }
}

/// Both datapaths, and the numbers of the packets between their hosts.
struct Lab {
    datapaths: [Datapath; 2],
    /// The next number that is sent by a datapath's host in a queue.
    next: BTreeMap<(usize, usize), u32>,
    /// The last number and rule that arrived at a datapath's host from a queue of the other host.
    last: BTreeMap<(usize, usize), (u32, u8)>,
    pushed: u64,
    arrived: u64,
    /// Number of the last rule of each datapath.
    rules: [u8; 2],
}

impl Lab {
    fn push(&mut self, random: &mut Rng) {
        let at = random.usize(..2);
        let queue = random.usize(..WORKERS[at]);
        let next = self.next.entry((at, queue)).or_default();
        let mut bytes = [0; 64];
        bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        bytes[14] = queue as u8;
        bytes[16..20].copy_from_slice(&next.to_be_bytes());
        if self.datapaths[at].host.push(queue, &bytes) {
            *next += 1;
            self.pushed += 1;
        }
    }

    /// Sets the rule by which a datapath sends packets to the cable. The rule's number is in the packets.
    fn change_rule(&mut self, at: usize) {
        self.rules[at] += 1;
        let rule = self.rules[at];
        self.datapaths[at]
            .flow(&format!("in_port=1,actions=set_field:02:00:00:00:00:{rule:02x}->eth_dst,output:9"));
    }

    /// Takes what has arrived at the hosts, and checks its order.
    fn take(&mut self) {
        for (at, queues) in WORKERS.into_iter().enumerate() {
            for queue in 0..queues {
                while let Some(bytes) = self.datapaths[at].host.pop(queue) {
                    let number = u32::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
                    let (flow, rule) = ((at, usize::from(bytes[14])), bytes[5]);
                    let last = self.last.insert(flow, (number, rule));
                    let in_order = last.is_none_or(|(last, before)| last < number && before <= rule);
                    assert!(in_order, "{flow:?}: {last:?} is followed by {number} of rule {rule}");
                    self.arrived += 1;
                }
            }
        }
    }

    fn turn(&mut self, random: &mut Rng) {
        let first = random.usize(..2);
        for at in [first, 1 - first] {
            if random.u8(..4) > 0 {
                self.datapaths[at].turn(random);
            }
        }
        self.take();
    }
}

/// Sends packets in both directions. The patch port of datapath `closing`, if there is one, is closed and
/// opened again several times. Returns the packets that arrived, and the packets counted as `tx_link_down`.
fn run(seed: u64, closing: Option<usize>) -> (u64, u64) {
    let random = &mut Rng::with_seed(seed);
    let cable = format!("queues-{}-{seed}-{closing:?}", std::process::id()).replace(['(', ')'], ".");
    let datapaths = WORKERS.map(|workers| Datapath::new(workers, &cable));
    let (next, last) = (BTreeMap::new(), BTreeMap::new());
    let mut lab = Lab { datapaths, next, last, pushed: 0, arrived: 0, rules: [0; 2] };
    for at in [0, 1] {
        lab.change_rule(at);
    }
    lab.datapaths.iter_mut().for_each(Datapath::poll_links);
    for _ in 0..60 {
        for _ in 0..random.usize(..6) {
            (0..random.usize(..80)).for_each(|_| lab.push(random));
            lab.turn(random);
        }
        let at = random.usize(..2);
        match random.u8(..3) {
            0 => lab.change_rule(at),
            1 => lab.datapaths[at].poll_links(),
            _ => {
                let Some(closing) = closing else { continue };
                let datapath = &mut lab.datapaths[closing];
                if datapath.model.port(PATCH).is_some() {
                    datapath.close_patch()
                } else {
                    datapath.open_patch()
                }
            }
        }
    }
    // In the end, both ends are open and everything that waits passes.
    for _ in 0..40 {
        lab.turn(random);
    }
    for datapath in &mut lab.datapaths {
        if datapath.model.port(PATCH).is_none() {
            datapath.open_patch();
        }
    }
    // A queue takes one set of rings at each poll, and only after it has received all frames of the set
    // before.
    for _ in 0..10 {
        (0..20).for_each(|_| lab.turn(random));
        lab.datapaths.iter_mut().for_each(Datapath::poll_links);
    }
    let before = lab.arrived;
    (0..50).for_each(|_| lab.push(random));
    for _ in 0..40 {
        lab.turn(random);
    }
    assert!(lab.arrived >= before + 50, "seed {seed}: the cable is not connected again");
    let [one, other] = lab.datapaths.each_mut().map(Datapath::counters);
    let dropped: u64 = lab.datapaths.iter_mut().map(Datapath::dropped).sum();
    // The counters of an end that was closed are gone, but it loses nothing itself.
    let losses = dropped + one.tx_dropped + other.tx_dropped + one.rx_dropped + other.rx_dropped;
    assert_eq!(lab.pushed, lab.arrived + losses, "seed {seed}: {one:?} {other:?} {dropped}");
    if closing.is_none() {
        assert_eq!((one.tx_packets, other.tx_packets), (other.rx_packets, one.rx_packets), "seed {seed}");
        assert_eq!(one.tx_dropped + other.tx_dropped, 0, "seed {seed}: {one:?} {other:?}");
    }
    let link_down = |counters: &PortCounters| {
        counters
            .by_name
            .iter()
            .filter(|(name, _)| *name == "tx_link_down")
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    (lab.arrived, link_down(&one) + link_down(&other))
}

#[test]
fn flows_keep_their_order_and_every_loss_is_counted() {
    let (mut all, mut lost) = (0, 0);
    for seed in 0..8 {
        all += run(seed, None).0;
        for closing in [0, 1] {
            let (arrived, link_down) = run(seed, Some(closing));
            (all, lost) = (all + arrived, lost + link_down);
        }
    }
    assert!(all > 50_000 && lost > 20, "only {all} packets arrived, and {lost} met a closed port");
}
