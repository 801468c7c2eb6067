// SPDX-License-Identifier: Apache-2.0
//! Mirrors of complete workers: random packets through random rules, with mirrors to a port and to rings. The
//! copies must be the frames that the ports received and sent, as `reference` selects them.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, MirrorSelection, Nanos, Passage, PortNo};
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use reference::is_mirrored;
use worker::{
    CaptureOutlet, MirrorId, MirrorSetup, MirrorTarget, PortQueues, PortsUpdate, Worker, WorkerSet, build,
    capture_rings,
};

/// The port to which the first mirror copies. The ports before it forward.
const OUTPUT: u32 = 5;
const DEVICE_FRAMES: usize = 1_024;

struct Lab {
    model: Model<WorkerSet>,
    workers: Vec<Worker>,
    handles: Vec<MemHandle>,
    now: Nanos,
    /// Frames that passed each port since the mirrors were set, in order for each port and direction.
    passed: Vec<(PortNo, Passage, Vec<u8>)>,
    /// Frames that the output port sent.
    copied: Vec<Vec<u8>>,
}

impl Lab {
    fn new(workers: usize, lanes: bool, small_frames: usize) -> Self {
        let config = worker::WorkerSetConfig {
            workers,
            small_frames,
            large_frames: 0,
            lanes: if lanes { LaneLimits::USUAL } else { LaneLimits::default() },
            express_records: 64,
            ..worker::WorkerSetConfig::default()
        };
        let port = |number: u32| {
            // The device of port 2 often refuses frames, which are then offered again.
            let (mut queues, handle) = mem::pair(number, 1, if number == 2 { 8 } else { DEVICE_FRAMES });
            let queue = Box::new(queues.remove(0)) as Box<dyn Queue>;
            let queues = vec![(number as usize % workers, queue)];
            (PortQueues { number: PortNo(number), queues, egress: Vec::new() }, handle)
        };
        let (ports, handles): (Vec<_>, Vec<_>) = (1..=OUTPUT).map(port).unzip();
        let (plane, workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=OUTPUT {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let (passed, copied) = (Vec::new(), Vec::new());
        let mut lab = Self { model, workers, handles, now: Nanos(1), passed, copied };
        for flow in [
            "priority=9,in_port=1,low_latency,actions=output:2",
            "priority=9,in_port=2,dl_vlan=10,actions=pop_vlan,output:1",
            "priority=9,in_port=2,actions=output:1,output:3",
            "priority=9,in_port=3,actions=push_vlan:0x8100,set_field:10->vlan_vid,output:4",
            "priority=8,actions=ALL",
        ] {
            lab.flow(flow);
        }
        lab
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
        self.settle();
    }

    fn set(&mut self, removed: Vec<MirrorId>, added: Vec<MirrorSetup>) {
        let update = PortsUpdate { mirrors_removed: removed, mirrors_added: added, ..PortsUpdate::default() };
        let changed = self.model.plane_mut().change_ports(update);
        self.settle();
        let barrier = self.model.barrier();
        self.settle();
        assert!(self.model.is_applied(barrier) && changed.is_complete());
    }

    fn settle(&mut self) {
        for worker in &mut self.workers {
            while worker.apply() > 0 {}
        }
        let _ = self.model.poll(self.now);
    }

    fn reserve(&mut self) {
        self.model.reserve_port(self.now, PortNo(OUTPUT), true).unwrap();
        self.settle();
    }

    /// Sends a random frame to a random port.
    fn push(&mut self, random: &mut fastrand::Rng) {
        let number = random.u32(1..=OUTPUT);
        let mut bytes = vec![0; random.usize(60..200)];
        random.fill(&mut bytes);
        bytes[0] = 2;
        bytes[12..14].copy_from_slice(&[[0x81, 0x00], [0x88, 0xa8], [0x08, 0x00]][random.usize(..3)]);
        bytes[14..18].copy_from_slice(&[[0x20, 10, 0x88, 0xb5], [0, 11, 0x88, 0xb5]][random.usize(..2)]);
        if self.handles[number as usize - 1].push(0, &bytes) && number != OUTPUT {
            self.passed.push((PortNo(number), Passage::Ingress, bytes));
        }
    }

    fn turn(&mut self) {
        self.now += Nanos(1_000);
        for worker in &mut self.workers {
            worker.turn(self.now);
        }
        for (number, handle) in (1..).zip(&mut self.handles) {
            while let Some(bytes) = handle.pop(0) {
                if number == OUTPUT {
                    self.copied.push(bytes);
                } else {
                    self.passed.push((PortNo(number), Passage::Egress, bytes));
                }
            }
        }
    }

    /// Runs poll iterations until nothing is left to do.
    fn finish(&mut self) {
        for _ in 0..64 {
            self.turn();
        }
    }

    /// Returns the frames that a mirror must have copied.
    fn expected(&self, selection: &MirrorSelection) -> Vec<(PortNo, Passage, Vec<u8>)> {
        let is_wanted = |(port, passage, bytes): &&(PortNo, Passage, Vec<u8>)| {
            is_mirrored(selection, *port, *passage, bytes)
        };
        self.passed.iter().filter(is_wanted).cloned().collect()
    }
}

fn selection(ingress: &[u32], egress: &[u32], vlans: &[u16]) -> MirrorSelection {
    let ports = |list: &[u32]| list.iter().copied().map(PortNo).collect();
    MirrorSelection { ingress: ports(ingress), egress: ports(egress), vlans: vlans.to_vec() }
}

fn to_port(id: u64, selection: &MirrorSelection) -> MirrorSetup {
    let target = MirrorTarget::Port(PortNo(OUTPUT));
    MirrorSetup { id: MirrorId(id), selection: selection.clone(), target }
}

fn to_rings(id: u64, selection: &MirrorSelection, workers: usize) -> (MirrorSetup, CaptureOutlet) {
    let (inlets, outlet) = capture_rings(workers, 1 << 20, 9_000);
    let target = MirrorTarget::Capture(inlets);
    (MirrorSetup { id: MirrorId(id), selection: selection.clone(), target }, outlet)
}

fn taken(outlet: &mut CaptureOutlet) -> Vec<(PortNo, Passage, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(frame) = outlet.next_frame() {
        assert_eq!(frame.original_len as usize, frame.bytes.len());
        all.push((frame.port, frame.passage, frame.bytes.to_vec()));
    }
    all
}

/// The frames in an order that does not depend on the order of ports and workers, but keeps the order of each
/// port and direction.
fn by_place(mut all: Vec<(PortNo, Passage, Vec<u8>)>) -> Vec<(PortNo, Passage, Vec<u8>)> {
    all.sort_by_key(|(port, passage, _)| (*port, *passage));
    all
}

fn sorted(mut all: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    all.sort();
    all
}

#[test]
fn mirrors_copy_what_the_ports_receive_and_send() {
    for (workers, lanes, seed) in [(1, false, 1), (1, true, 2), (2, false, 3), (3, true, 4)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lab = Lab::new(workers, lanes, 4_096);
        let first = selection(&[1, 2], &[1, 4], &[]);
        let second = selection(&[3], &[1, 2, 3, 4], &[0, 10]);
        let (setup, mut outlet) = to_rings(2, &second, workers);
        lab.reserve();
        lab.set(Vec::new(), vec![to_port(1, &first), setup]);
        for _ in 0..400 {
            lab.push(&mut random);
            if random.u8(..8) == 0 {
                lab.turn();
            }
        }
        lab.finish();
        assert!(lab.passed.len() > 500, "{}", lab.passed.len());
        let expected = lab.expected(&first).into_iter().map(|(_, _, bytes)| bytes).collect();
        assert_eq!(sorted(lab.copied.clone()), sorted(expected), "{workers} workers: copies to a port");
        let in_file = taken(&mut outlet);
        assert_eq!(by_place(in_file.clone()), by_place(lab.expected(&second)), "{workers} workers: a file");
        let counts = |lab: &mut Lab, id| lab.model.plane_mut().mirror_counts(MirrorId(id)).unwrap();
        let (one, two) = (counts(&mut lab, 1), counts(&mut lab, 2));
        assert_eq!((one.mirrored, two.mirrored), (lab.copied.len() as u64, in_file.len() as u64));
        let bytes: usize = lab.copied.iter().map(Vec::len).sum();
        assert_eq!((one.mirrored_bytes, one.drops().map(|(_, count)| count)), (bytes as u64, [0; 3]));
        // The second mirror stays, with its counters, when the first one is replaced.
        lab.set(vec![MirrorId(1)], vec![to_port(3, &first)]);
        assert!(lab.model.plane_mut().mirror_counts(MirrorId(1)).is_none());
        assert_eq!((counts(&mut lab, 2), counts(&mut lab, 3).mirrored), (two, 0));
        lab.set(vec![MirrorId(2), MirrorId(3)], Vec::new());
        assert!(outlet.is_over());
        lab.push(&mut random);
        let before = lab.copied.len();
        lab.finish();
        assert_eq!(lab.copied.len(), before, "a removed mirror copies");
    }
}

#[test]
fn only_copies_leave_by_a_reserved_port_and_nothing_enters_by_it() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut lab = Lab::new(2, false, 4_096);
    for _ in 0..50 {
        lab.push(&mut random);
    }
    lab.finish();
    assert!(!lab.copied.is_empty(), "the last rule sends packets to all ports");
    lab.reserve();
    lab.copied.clear();
    lab.passed.clear();
    assert!(lab.handles[OUTPUT as usize - 1].push(0, &[0xff; 60]));
    lab.finish();
    assert!(lab.passed.is_empty(), "a packet entered by the reserved port");
    for _ in 0..50 {
        lab.push(&mut random);
    }
    lab.finish();
    assert!(lab.copied.is_empty(), "other traffic left by the reserved port");
}

#[test]
fn a_mirror_without_frames_or_space_loses_copies_and_disturbs_no_packet() {
    let mut lab = Lab::new(1, false, 64);
    let all = selection(&[1], &[2], &[]);
    lab.reserve();
    let (inlets, _outlet) = capture_rings(1, 1_000, 9_000);
    let target = MirrorTarget::Capture(inlets);
    let to_ring = MirrorSetup { id: MirrorId(2), selection: all.clone(), target };
    lab.set(Vec::new(), vec![to_port(1, &all), to_ring]);
    // Nothing is taken from the output port's device, so it is soon full and copies stay in the switch.
    let mut forwarded = 0;
    for _ in 0..400 {
        for _ in 0..8 {
            assert!(lab.handles[0].push(0, &[2; 60]));
        }
        lab.now += Nanos(1_000);
        lab.workers[0].turn(lab.now);
        while lab.handles[1].pop(0).is_some() {
            forwarded += 1;
        }
    }
    assert_eq!(forwarded, 3_200, "a stuck mirror disturbs forwarding");
    let counts = |lab: &mut Lab, id| lab.model.plane_mut().mirror_counts(MirrorId(id)).unwrap();
    let (to_port, to_ring) = (counts(&mut lab, 1), counts(&mut lab, 2));
    assert!(to_port.no_buffer + to_port.output_full > 1_000, "{to_port:?}");
    assert_eq!(to_port.mirrored + to_port.no_buffer + to_port.output_full, 2 * 3_200);
    assert!(to_ring.ring_full + to_ring.no_buffer > 1_000 && to_ring.mirrored > 0, "{to_ring:?}");
}
