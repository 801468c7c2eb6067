// SPDX-License-Identifier: Apache-2.0
//! Outputs of packets, tested with complete workers. Each output must be transmitted or counted as lost, with
//! its own egress queue and offload metadata. Groups and meters apply in their latest version. Table counters
//! use the full table number.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{Action, EgressQueue, FlowModCommand, GroupId, MeterId, Nanos, PortNo, QueueId};
use frame::{Frame, Gso, GsoKind, PartialChecksum};
use model::{GroupCommand, MeterCommand, Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use wire::PacketBuilder;
use worker::{PortQueues, Worker, WorkerSet, build};

/// Number of ports; packets arrive on port 1.
const PORTS: u32 = 4;
/// The port with egress queues 0 to 2.
const QUEUED: u32 = 4;

struct Lab {
    model: Model<WorkerSet>,
    worker: Worker,
    handles: Vec<MemHandle>,
    now: Nanos,
}

impl Lab {
    /// Creates the switch. `room` is the number of frames that each port's device accepts before they must be
    /// taken.
    fn new(room: [usize; PORTS as usize]) -> Self {
        let (mut handles, mut ports) = (Vec::new(), Vec::new());
        for (number, room) in (1..).zip(room) {
            let (made, handle) = mem::pair(number, 1, room);
            handles.push(handle);
            let queues = made.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
            let egress = [EgressQueue::new(QueueId(1)), EgressQueue::new(QueueId(2))];
            let egress = if number == QUEUED { egress.to_vec() } else { Vec::new() };
            ports.push(PortQueues { number: PortNo(number), queues, egress });
        }
        let config = worker::WorkerSetConfig {
            small_frames: 8_192,
            large_frames: 64,
            lanes: LaneLimits::NONE,
            ..worker::WorkerSetConfig::default()
        };
        let (plane, mut workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=PORTS {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        Self { model, worker: workers.remove(0), handles, now: Nanos(1) }
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
    }

    fn group(&mut self, command: GroupCommand, kind: GroupType, buckets: &[Bucket]) {
        let group = Group { id: GroupId(1), kind, buckets: buckets.to_vec() };
        self.model.group_mod(self.now, command, group).unwrap();
    }

    fn apply(&mut self) {
        while self.worker.apply() > 0 {}
    }

    fn push(&mut self, frame: &Frame) {
        assert!(self.handles[0].push_frame(0, frame));
    }

    fn turn(&mut self) {
        self.now += Nanos(1_000);
        self.worker.turn(self.now);
    }

    fn popped(&mut self, port: u32) -> usize {
        let handle = &mut self.handles[port as usize - 1];
        std::iter::from_fn(|| handle.pop(0)).count()
    }

    /// Returns how many packets leave through each of the ports 2 to 4 if `flows` flows send one packet each.
    fn shares(&mut self, flows: u16) -> [usize; 3] {
        for source in 0..flows {
            self.push(&packet(source));
            self.turn();
        }
        [2, 3, 4].map(|port| self.popped(port))
    }
}

/// Returns a packet of the flow with this source port.
fn packet(source: u16) -> Frame {
    let packet = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    Frame::from_bytes(&packet.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(source, 2_000).pad_to(60).build())
}

fn bucket(weight: u16, watch_port: Option<u32>, actions: Vec<Action>) -> Bucket {
    Bucket { weight, watch_port: watch_port.map(PortNo), watch_group: None, actions }
}

#[test]
fn each_output_is_transmitted_or_counted_as_lost() {
    for (actions, outputs, open) in [
        ("output:2,output:3,output:4", 3, true),
        ("output:3,output:4,output:2", 3, true),
        ("output:3,output:2,output:4,output:3", 4, true),
        ("output:3,output:4", 2, false),
        ("output:4,output:3,output:4", 3, false),
        ("ALL", 3, true),
        ("group:1", 3, true),
    ] {
        let mut lab = Lab::new([64, 2_048, 8, 8]);
        let buckets = [3, 2, 4].map(|port| bucket(0, None, vec![Action::output(PortNo(port))]));
        lab.group(GroupCommand::Add, GroupType::All, &buckets);
        lab.flow(&format!("actions={actions}"));
        lab.apply();
        let packets = 1_200;
        for at in 0..packets {
            lab.push(&packet(at));
            if at % 32 == 31 {
                lab.turn();
            }
        }
        lab.turn();
        let totals = lab.model.totals();
        let (dropped, copies_dropped) = (totals.dropped.sum(), totals.copies_dropped.sum());
        let packets = u64::from(packets);
        assert_eq!(totals.received, packets);
        assert!(copies_dropped > 600, "{actions}: the ports are not full");
        assert_eq!(totals.copies + dropped + copies_dropped, packets * outputs, "{actions}: {totals:?}");
        assert_eq!(totals.forwarded + dropped, packets, "{actions}");
        if open {
            assert_eq!((totals.forwarded, lab.popped(2)), (packets, packets as usize), "{actions}");
        } else {
            assert!(dropped > 300, "{actions}: {totals:?}");
        }
    }
}

#[test]
fn a_bucket_chooses_the_egress_queue_of_its_own_copy_only() {
    let to_queue = |queue| vec![Action::SetQueue(queue), Action::output(PortNo(QUEUED))];
    for kind in [GroupType::All, GroupType::Indirect, GroupType::Select, GroupType::FastFailover] {
        // Actions after the group use the packet's queue. The last group works on the packet itself instead
        // of a copy.
        for (actions, expected) in [
            ("group:1,output:4", [1, 1, 0]),
            ("set_queue:2,group:1,output:4", [0, 1, 1]),
            ("group:1,group:1,output:4,output:4", [2, 2, 0]),
            ("group:1", [0, 1, 0]),
        ] {
            let mut lab = Lab::new([64; PORTS as usize]);
            lab.group(
                GroupCommand::Add,
                kind,
                &[bucket(u16::from(kind == GroupType::Select), None, to_queue(QueueId(1)))],
            );
            lab.flow(&format!("actions={actions}"));
            lab.apply();
            lab.push(&packet(1));
            lab.turn();
            lab.worker.housekeeping();
            let sent: Vec<u64> =
                lab.model.plane_mut().queues(PortNo(QUEUED)).iter().map(|queue| queue.tx_packets).collect();
            assert_eq!(sent, expected, "{kind:?}, {actions}");
        }
    }
}

/// A packet may grow by 128 bytes, and so may the copy to which a bucket is applied.
#[test]
fn every_bucket_can_push_up_to_the_remaining_headroom() {
    // A VLAN tag has 4 bytes, and a PBB header has 18.
    for (tags, sent) in [(27, [1, 1, 1]), (28, [0, 0, 0])] {
        let mut lab = Lab::new([64; PORTS as usize]);
        let actions = |port| vec![Action::PushPbb(0x88e7), Action::output(port)];
        lab.group(
            GroupCommand::Add,
            GroupType::All,
            &[2, 3, 4].map(|port| bucket(0, None, actions(PortNo(port)))),
        );
        lab.flow(&format!("actions={}group:1", "push_vlan:0x8100,".repeat(tags)));
        lab.apply();
        assert_eq!(lab.shares(1), sent, "{tags} tags");
    }
}

#[test]
fn a_meter_that_is_added_changed_or_removed_limits_accordingly() {
    let meter = |rate| Meter {
        id: MeterId(1),
        packets: true,
        stats: true,
        burst: true,
        bands: vec![MeterBand { band: Band::Drop, rate, burst: rate }],
    };
    let mut lab = Lab::new([512; PORTS as usize]);
    let passed = |lab: &mut Lab| {
        // The bucket is full again after one second, so two seconds suffice.
        lab.now += Nanos(2_000_000_000);
        lab.apply();
        lab.shares(100)[0]
    };
    lab.model.meter_mod(Nanos(1), MeterCommand::Add, meter(10)).unwrap();
    lab.flow("priority=2,actions=meter:1,output:2");
    lab.flow("priority=1,actions=output:2");
    assert_eq!(passed(&mut lab), 10);
    lab.model.meter_mod(Nanos(1), MeterCommand::Modify, meter(30)).unwrap();
    assert_eq!(passed(&mut lab), 30);
    assert_eq!(lab.model.plane_mut().meter_counters(MeterId(1)).unwrap().bands[0].packets, 70);
    // The entry that uses the meter is removed with it.
    lab.model.meter_mod(Nanos(1), MeterCommand::Delete, meter(30)).unwrap();
    assert_eq!(passed(&mut lab), 100);
}

#[test]
fn a_group_follows_a_change_of_a_weight() {
    let mut lab = Lab::new([512; PORTS as usize]);
    let mut buckets = [2, 3].map(|port| bucket(1, None, vec![Action::output(PortNo(port))]));
    lab.group(GroupCommand::Add, GroupType::Select, &buckets);
    lab.flow("actions=group:1");
    lab.apply();
    let [second, third, _] = lab.shares(400);
    assert!(second > 150 && third > 150, "{second} and {third}");
    buckets[0].weight = 19;
    lab.group(GroupCommand::Modify, GroupType::Select, &buckets);
    lab.apply();
    let [second, third, _] = lab.shares(400);
    assert!(second > 350 && third > 0, "{second} and {third} with weights of 19 and 1");
    assert_eq!(second + third, 400);
}

#[test]
fn a_group_follows_a_change_of_its_watched_port_or_group() {
    let mut lab = Lab::new([64; PORTS as usize]);
    lab.model.set_link(Nanos(1), PortNo(4), false).unwrap();
    let mut buckets =
        [(2, 2), (3, 3)].map(|(watched, port)| bucket(0, Some(watched), vec![Action::output(PortNo(port))]));
    lab.group(GroupCommand::Add, GroupType::FastFailover, &buckets);
    lab.flow("actions=group:1");
    lab.apply();
    assert_eq!(lab.shares(1), [1, 0, 0]);
    buckets[0].watch_port = Some(PortNo(4));
    lab.group(GroupCommand::Modify, GroupType::FastFailover, &buckets);
    lab.apply();
    assert_eq!(lab.shares(1), [0, 1, 0], "the first bucket watches a port that is down");
    buckets[0].watch_port = None;
    buckets[0].watch_group = Some(GroupId(2));
    let live = Group { id: GroupId(2), kind: GroupType::Indirect, buckets: vec![Bucket::default()] };
    lab.model.group_mod(Nanos(1), GroupCommand::Add, live).unwrap();
    lab.group(GroupCommand::Modify, GroupType::FastFailover, &buckets);
    lab.apply();
    assert_eq!(lab.shares(1), [1, 0, 0], "the first bucket watches a live group");
}

#[test]
fn tables_are_counted_by_their_full_number_on_every_path() {
    let tables = [0u8, 1, 15, 16, 17, 31, 100, 128, 254];
    for low_latency in ["", "low_latency,"] {
        // The first match examines headers of the packet, the second only the ingress port.
        for matching in ["udp,tp_dst=2000,", "in_port=1,"] {
            let mut lab = Lab::new([64; PORTS as usize]);
            for pair in tables.windows(2) {
                let [from, to] = pair else { continue };
                lab.flow(&format!("{low_latency}table={from},{matching}actions=goto_table:{to}"));
            }
            lab.flow(&format!("{low_latency}table=254,{matching}actions=output:2"));
            lab.apply();
            let packets = 5;
            for _ in 0..packets {
                lab.push(&packet(1));
                lab.turn();
            }
            assert_eq!(lab.popped(2), packets);
            assert_eq!(lab.model.totals().fast > 2, !low_latency.is_empty());
            for stats in lab.model.tables() {
                let expected = if tables.contains(&stats.table.0) { packets as u64 } else { 0 };
                let counted = (stats.lookups, stats.matches);
                assert_eq!(counted, (expected, expected), "table {}, {matching}", stats.table);
            }
        }
    }
}

#[test]
fn copies_of_a_super_frame_are_super_frames() {
    let bytes = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
        .tcp(4_000, 23)
        .payload(&[3; 9_000])
        .build();
    let mut frame = Frame::from_bytes(&bytes);
    frame.meta.checksum = Some(PartialChecksum { start: 34, offset: 16 });
    frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: true, size: 1_448, header_len: 54 });
    let everywhere = [2, 3, 4].map(|port| bucket(0, None, vec![Action::output(PortNo(port))]));
    for actions in ["output:2,output:3,output:4", "ALL", "group:1"] {
        let mut lab = Lab::new([64; PORTS as usize]);
        lab.group(GroupCommand::Add, GroupType::All, &everywhere);
        lab.flow(&format!("actions={actions}"));
        lab.apply();
        lab.push(&frame);
        lab.turn();
        for port in [2, 3, 4] {
            let handle = &mut lab.handles[port - 1];
            let sent = handle.pop_with(0, |bytes, meta| (bytes.to_vec(), meta.checksum, meta.gso));
            let sent = sent.unwrap_or_else(|| panic!("{actions}: nothing was sent to port {port}"));
            assert_eq!(sent, (bytes.clone(), frame.meta.checksum, frame.meta.gso), "{actions}, port {port}");
        }
    }
}
