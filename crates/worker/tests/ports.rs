// SPDX-License-Identifier: Apache-2.0
//! Changes of ports while complete workers forward: random ports come, go and change their queues under
//! traffic between two ports that stay.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{DropReason, EgressQueue, FlowModCommand, Nanos, PortNo, QueueId};
use model::{Aggregate, FlowCursor, FlowFilter, Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use std::collections::BTreeMap;
use worker::{PortQueues, PortsChanged, PortsUpdate, Worker, WorkerSet, build};

/// Numbers of the ports that change; the ports 1 and 2 stay.
const CHANGING: std::ops::RangeInclusive<u32> = 3..=6;
const DEVICE_FRAMES: usize = 256;
/// There are more frames than can wait for slow ports, so that the others are never short of frames.
const SMALL_FRAMES: usize = 8_192;

/// A port that changes.
struct Changing {
    handle: MemHandle,
    workers: Vec<usize>,
    queues: usize,
}

struct Lab {
    model: Model<WorkerSet>,
    workers: Vec<Worker>,
    /// The other ends of ports 1 and 2.
    kept: [MemHandle; 2],
    changing: BTreeMap<u32, Changing>,
    now: Nanos,
    /// Number of the next packet into each of the ports 1 and 2, and of the next one expected out of the
    /// other.
    numbers: [(u32, u32); 2],
    pushed: u64,
}

fn desc(number: u32) -> PortDesc {
    PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() }
}

/// Creates a port with a queue for each of these workers.
fn port(number: u32, workers: &[usize], egress: Vec<EgressQueue>) -> (PortQueues, MemHandle) {
    let (made, handle) = mem::pair(number, workers.len(), DEVICE_FRAMES);
    let queues = made.into_iter().map(|queue| Box::new(queue) as Box<dyn Queue>);
    let queues = workers.iter().copied().zip(queues).collect();
    (PortQueues { number: PortNo(number), queues, egress }, handle)
}

fn egress(count: usize) -> Vec<EgressQueue> {
    let queue = |id: usize| EgressQueue {
        limit_frames: 8,
        priority: id as u8,
        ..EgressQueue::new(QueueId(id as u32))
    };
    (0..count).map(queue).collect()
}

impl Lab {
    /// Port 1 belongs to the first worker and port 2 to the last.
    fn new(workers: usize, lanes: bool, express: bool) -> Self {
        let config = worker::WorkerSetConfig {
            workers,
            small_frames: SMALL_FRAMES,
            large_frames: 0,
            handovers: 64,
            outbox_frames: 128,
            lanes: if lanes { LaneLimits::USUAL } else { LaneLimits::default() },
            express_records: if express { 64 } else { 0 },
            ..worker::WorkerSetConfig::default()
        };
        let (one, first) = port(1, &[0], Vec::new());
        let (two, second) = port(2, &[workers - 1], Vec::new());
        let (plane, workers) = build(&config, vec![one, two]);
        let mut lab = Self {
            model: Model::new(ModelConfig::default(), plane, Nanos(0)),
            workers,
            kept: [first, second],
            changing: BTreeMap::new(),
            now: Nanos(1),
            numbers: [(0, 0); 2],
            pushed: 0,
        };
        for number in [1, 2] {
            lab.model.add_port(Nanos(0), desc(number), true).unwrap();
        }
        lab.flow("priority=5,cookie=1,low_latency,in_port=1,dl_type=0x88b5,actions=output:2");
        lab.flow("priority=5,cookie=2,in_port=2,dl_type=0x88b5,actions=output:1");
        // Copies to all changing ports, in several queues.
        lab.flow(
            "priority=5,dl_type=0x88b6,actions=output:3,set_queue:1,output:4,set_queue:2,output:5,set_queue:3,output:6",
        );
        for number in CHANGING {
            lab.flow(&format!("priority=4,in_port={number},actions=output:1"));
        }
        lab
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
        for worker in &mut self.workers {
            while worker.apply() > 0 {}
        }
    }

    /// Sends a packet with the next number to port 1 or 2, or one whose copies go to the changing ports.
    fn push(&mut self, random: &mut fastrand::Rng) {
        let at = random.usize(..2);
        let mut bytes = [0; 64];
        let is_copied = random.u8(..4) == 0;
        bytes[12..14].copy_from_slice(&if is_copied { [0x88, 0xb6] } else { [0x88, 0xb5] });
        bytes[14..18].copy_from_slice(&self.numbers[at].0.to_be_bytes());
        if self.kept[at].push(0, &bytes) {
            self.pushed += 1;
            self.numbers[at].0 += u32::from(!is_copied);
        }
    }

    /// Runs a poll iteration of each worker, in random order, and takes what the ports have sent.
    fn turn(&mut self, random: &mut fastrand::Rng) {
        self.now += Nanos(1_000);
        let mut order: Vec<usize> = (0..self.workers.len()).collect();
        random.shuffle(&mut order);
        for worker in order {
            self.workers[worker].turn(self.now);
        }
        for (out, into) in [(1, 0), (0, 1)] {
            while let Some(bytes) = self.kept[out].pop(0) {
                if bytes[12..14] == [0x88, 0xb7] {
                    continue;
                }
                let number = u32::from_be_bytes([bytes[14], bytes[15], bytes[16], bytes[17]]);
                assert_eq!(number, self.numbers[into].1, "lost, repeated or out of order");
                self.numbers[into].1 += 1;
            }
        }
        // The changing ports are sometimes slow.
        for port in self.changing.values_mut().filter(|_| random.bool()) {
            for queue in 0..port.workers.len() {
                while port.handle.pop(queue).is_some() {}
            }
        }
    }

    /// Sends packets into the changing ports. They go to port 1.
    fn push_changing(&mut self, random: &mut fastrand::Rng) {
        for port in self.changing.values_mut() {
            let mut bytes = [0; 60];
            bytes[12..14].copy_from_slice(&[0x88, 0xb7]);
            let queue = random.usize(..port.workers.len());
            self.pushed += u64::from(port.handle.push(queue, &bytes));
        }
    }

    /// Makes a random change of the changing ports. Returns the handles of removed ports.
    fn change(&mut self, random: &mut fastrand::Rng) -> (PortsChanged, Vec<MemHandle>) {
        let mut update = PortsUpdate::default();
        let (mut gone, mut added) = (Vec::new(), Vec::new());
        for number in CHANGING {
            match (random.u8(..4), self.changing.contains_key(&number)) {
                (0, true) => {
                    gone.push(number);
                    // It may be opened again with other workers.
                    if random.bool() {
                        added.push(number);
                    }
                }
                (0 | 1, false) => added.push(number),
                (1, true) => {
                    let queues = random.usize(..4);
                    update.egress.push((PortNo(number), egress(queues)));
                    self.changing.get_mut(&number).unwrap().queues = queues;
                }
                (2, true) => {
                    let bytes = if random.bool() { 0 } else { usize::MAX };
                    update.outstanding.push((PortNo(number), bytes));
                }
                _ => {}
            }
        }
        let mut handles = Vec::new();
        for number in gone {
            self.model.remove_port(self.now, PortNo(number)).unwrap();
            update.removed.push(PortNo(number));
            handles.push(self.changing.remove(&number).unwrap().handle);
        }
        for number in &added {
            let mut workers: Vec<usize> = (0..self.workers.len()).collect();
            random.shuffle(&mut workers);
            workers.truncate(random.usize(1..=workers.len()));
            let queues = random.usize(..3);
            let (made, handle) = port(*number, &workers, egress(queues));
            update.added.push(made);
            self.changing.insert(*number, Changing { handle, workers, queues });
        }
        let changed = self.model.plane_mut().change_ports(update);
        for number in added {
            self.model.add_port(self.now, desc(number), true).unwrap();
        }
        (changed, handles)
    }

    /// Checks that the packets and frames of the workers are accounted for once nothing moves any more.
    fn check_accounts(&mut self) {
        for worker in &mut self.workers {
            worker.housekeeping();
        }
        let totals = self.model.totals();
        assert_eq!(totals.received, totals.forwarded + totals.consumed + totals.dropped.sum() + totals.held);
        // Packets in the devices of removed ports were never received.
        assert!(totals.received <= self.pushed && totals.held == 0, "{totals:?}");
        let usages = self.model.plane_mut().usages();
        for (place, usage) in usages.iter().filter(|(_, usage)| usage.name == "small_frames") {
            assert_eq!(usage.used, 0, "{place}: frames are not returned");
        }
    }
}

/// Runs random changes under traffic. Returns the number of copies for removed ports that were dropped.
fn run(seed: u64) -> u64 {
    let random = &mut fastrand::Rng::with_seed(seed);
    let mut lab = Lab::new(1 + random.usize(..3), random.bool(), random.bool());
    for _ in 0..40 {
        for _ in 0..random.usize(..8) {
            (0..random.usize(..40)).for_each(|_| lab.push(random));
            lab.push_changing(random);
            lab.turn(random);
        }
        let (changed, handles) = lab.change(random);
        assert!(!changed.is_complete(), "no worker has applied the change yet");
        let mut turns = 0;
        while !changed.is_complete() {
            (0..random.usize(..20)).for_each(|_| lab.push(random));
            lab.turn(random);
            lab.model.plane_mut().applied();
            turns += 1;
            assert!(turns < 100, "the change is not applied");
        }
        // The devices are closed by the control thread.
        drop(handles);
        let queues: Vec<(u32, usize)> =
            lab.changing.iter().map(|(number, port)| (*number, port.queues)).collect();
        for (number, count) in queues {
            let shown = lab.model.plane_mut().queues(PortNo(number)).len();
            assert_eq!(shown, count, "port {number}");
        }
    }
    for _ in 0..200 {
        lab.turn(random);
    }
    assert_eq!(
        lab.numbers.map(|(next, _)| next),
        lab.numbers.map(|(_, expected)| expected),
        "packets are lost"
    );
    // Frames that wait for slow devices are taken.
    for _ in 0..200 {
        for port in lab.changing.values_mut() {
            for queue in 0..port.workers.len() {
                while port.handle.pop(queue).is_some() {}
            }
        }
        lab.turn(random);
    }
    lab.check_accounts();
    let flows: Vec<u64> = [1, 2].map(|cookie| packets(&mut lab.model, cookie)).to_vec();
    assert_eq!(flows, lab.numbers.map(|(next, _)| u64::from(next)), "the flows did not count all packets");
    lab.model.totals().dropped_in_all(DropReason::NoSuchPort)
}

/// Returns the packets of the flow with this cookie.
fn packets(model: &mut Model<WorkerSet>, cookie: u64) -> u64 {
    let filter = FlowFilter { cookie, cookie_mask: u64::MAX, ..FlowFilter::default() };
    let mut sum = Aggregate::default();
    model.aggregate(&filter, &mut FlowCursor::default(), usize::MAX, &mut sum);
    sum.packets
}

#[test]
fn random_changes_of_ports_do_not_affect_the_ports_that_stay() {
    let runs = std::env::var("PORT_CHANGE_RUNS").map_or(60, |runs| runs.parse().unwrap());
    let dropped: u64 = (0..runs).map(run).sum();
    assert!(dropped > 0, "no frame waited for a removed port");
}

/// Frames that wait for a slow device when its egress queues change are sent afterwards, in their order.
#[test]
fn frames_in_front_of_a_device_survive_a_change_of_its_queues() {
    for (before, after) in [(0, 3), (3, 0), (3, 2), (2, 4)] {
        let random = &mut fastrand::Rng::with_seed(7);
        let mut lab = Lab::new(1, false, false);
        let (mut made, mut handle) = port(3, &[0], egress(before));
        made.queues[0].1.set_outstanding(0);
        let update = PortsUpdate { added: vec![made], ..PortsUpdate::default() };
        lab.model.plane_mut().change_ports(update);
        lab.model.add_port(lab.now, desc(3), true).unwrap();
        lab.flow("priority=9,in_port=1,actions=set_queue:1,output:3");
        for number in 0..6 {
            let mut bytes = [number; 60];
            bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
            assert!(lab.kept[0].push(0, &bytes));
        }
        lab.turn(random);
        let update = PortsUpdate { egress: vec![(PortNo(3), egress(after))], ..PortsUpdate::default() };
        let changed = lab.model.plane_mut().change_ports(update);
        lab.turn(random);
        lab.model.plane_mut().applied();
        assert!(changed.is_complete());
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.extend(handle.pop(0).map(|bytes| bytes[0]));
            lab.turn(random);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5], "{before} to {after} queues");
    }
}

/// The watermark of a device changes without opening the device again.
#[test]
fn a_new_watermark_applies_to_the_next_frame() {
    let random = &mut fastrand::Rng::with_seed(7);
    let mut lab = Lab::new(1, false, false);
    let mut push = |lab: &mut Lab, count: u32| {
        for _ in 0..count {
            let mut bytes = [0; 64];
            bytes[12..14].copy_from_slice(&[0x88, 0xb6]);
            assert!(lab.kept[0].push(0, &bytes));
        }
        lab.turn(random);
    };
    let (made, mut handle) = port(3, &[0], Vec::new());
    lab.model.plane_mut().change_ports(PortsUpdate { added: vec![made], ..PortsUpdate::default() });
    lab.model.add_port(lab.now, desc(3), true).unwrap();
    let set = |lab: &mut Lab, bytes| {
        let outstanding = vec![(PortNo(3), bytes)];
        lab.model.plane_mut().change_ports(PortsUpdate { outstanding, ..PortsUpdate::default() });
    };
    push(&mut lab, 4);
    let taken = |handle: &mut MemHandle| std::iter::from_fn(|| handle.pop(0)).count();
    // Without a limit, the device gets all frames at once.
    assert_eq!(taken(&mut handle), 4);
    set(&mut lab, 0);
    push(&mut lab, 4);
    assert_eq!(taken(&mut handle), 1);
    set(&mut lab, usize::MAX);
    push(&mut lab, 0);
    push(&mut lab, 0);
    assert_eq!(taken(&mut handle), 3);
}
