// SPDX-License-Identifier: Apache-2.0
//! A daemon programs the device over UDP, and the device forwards as its software model.

use dataplane::{DataPlane, Event};
use device::emulator::{DeviceAgent, Emulator};
use device::plane::DeviceLink;
use device_sim::{ENTRIES, PPUS};
use fastrand::Rng;
use flow::operation::{PacketOut, Releases};
use flow::syntax::{ParseOptions, parse_actions, parse_flow};
use flow::{Action, FlowModCommand, Match, PortNo, TableId, port_no};
use model::AsyncMessage;

use crate::rig::{Daemon, Rig, frame};

/// A link to the software model.
struct Inside(DeviceAgent);

impl DeviceLink for Inside {
    fn send(&mut self, datagram: &[u8]) {
        self.0.receive(true, datagram);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.next_datagram()
    }
}

fn software() -> Daemon<Inside> {
    Daemon::with_link(Inside(DeviceAgent::new(Emulator::new(PPUS as u8, ENTRIES))), 5)
}

const FLOWS: [&str; 8] = [
    "priority=9,dl_dst=02:00:00:00:00:01,actions=output:2",
    "priority=9,dl_dst=02:00:00:00:00:02,actions=output:3",
    "priority=9,dl_dst=02:00:00:00:00:03,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4101->vlan_vid,output:4",
    "priority=9,dl_dst=02:00:00:00:00:04,actions=set_field:02:00:00:00:00:77->eth_dst,IN_PORT",
    "priority=9,dl_dst=02:00:00:00:00:05,actions=goto_table:2",
    "priority=9,dl_dst=02:00:00:00:00:06,actions=output:9",
    "table=2,in_port=1,actions=set_field:02:00:00:00:00:55->eth_src,output:4",
    "table=2,in_port=4,actions=output:1",
];

#[test]
fn frames_of_all_lengths_leave_as_from_the_software_model() {
    let mut rig = Rig::new(4);
    let (mut daemon, mut model) = (Daemon::new(rig.address, 5), software());
    for flow in FLOWS {
        daemon.change(flow);
        model.change(flow);
    }
    daemon.settle();
    model.settle();
    let mut rng = Rng::with_seed(1);
    let mut wanted = [const { Vec::new() }; 4];
    let mut got = wanted.clone();
    let lengths = (60..=130).chain([191, 192, 193, 500, 1_000, 1_499, 1_500, 1_514, 1_517, 1_518]);
    let all: Vec<(u8, Vec<u8>)> = lengths
        .enumerate()
        .flat_map(|(at, len)| [(at, len), (at + 1_000, len)])
        .map(|(number, len)| (rng.u8(1..=4), frame(rng.u8(0..8), len, number as u32)))
        .collect();
    for (port, frame) in &all {
        rig.push(*port, frame);
        model.model.plane_mut().link_mut().0.receive_frame(*port, frame);
        while let Some((egress, frame)) = model.model.plane_mut().link_mut().0.next_frame() {
            if egress <= 4 {
                wanted[usize::from(egress) - 1].push((*port, frame));
            }
        }
    }
    for (at, frames) in wanted.iter().enumerate() {
        assert!(frames.len() > 5, "port {}: {} frames", at + 1, frames.len());
        got[at] = rig.take(at as u8 + 1, frames.len()).into_iter().map(|frame| (0, frame)).collect();
    }
    rig.settle();
    // Frames of one ingress port leave in order; frames of two ports may overtake each other.
    for (at, wanted) in wanted.iter().enumerate() {
        assert_eq!(rig.pop(at as u8 + 1), None, "more frames left port {} than expected", at + 1);
        let mut rest: Vec<&Vec<u8>> = got[at].iter().map(|(_, frame)| frame).collect();
        for port in 1..=4 {
            let of_port: Vec<&Vec<u8>> =
                wanted.iter().filter(|(from, _)| *from == port).map(|(_, frame)| frame).collect();
            let (matching, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|frame| of_port.contains(frame));
            assert_eq!(matching, of_port, "from port {port} to port {}", at + 1);
            rest = others;
        }
        assert!(rest.is_empty(), "{} unknown frames", rest.len());
    }
    let counters = rig.counters();
    let received: u64 = counters.channels.iter().map(|channel| channel.received).sum();
    let sent: u64 = counters.channels.iter().map(|channel| channel.sent).sum();
    assert_eq!(received, all.len() as u64);
    assert_eq!(sent, wanted.iter().map(|frames| frames.len() as u64).sum());
    assert!(counters.channels.iter().all(|channel| (channel.lost, channel.failures) == (0, 0)));
    assert_eq!((counters.control.malformed, counters.control.lost), (0, 0));
}

fn packets(daemon: &mut Daemon<crate::rig::UdpLink>, text: &str) -> u64 {
    let wanted = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
    let found = daemon.model.find(wanted.table.unwrap(), wanted.priority, &wanted.matching).unwrap();
    let now = daemon.now();
    daemon.model.entry_stats(now, found).unwrap().packets
}

#[test]
fn hits_and_drops_are_counted() {
    let mut rig = Rig::new(2);
    let mut daemon = Daemon::new(rig.address, 5);
    daemon.change("dl_dst=02:00:00:00:00:01,actions=output:2");
    daemon.change("dl_dst=02:00:00:00:00:03,actions=output:3");
    daemon.settle();
    for number in 0..20 {
        rig.push(1, &frame(1, 60 + number as usize, number));
        rig.push(1, &frame(2, 60, number));
    }
    // Port 3 is not connected, and frames of more than 1,518 bytes are dropped.
    rig.push(1, &frame(3, 60, 0));
    for len in [1_519, 4_000, 9_000, 65_000] {
        rig.push(1, &frame(1, len, 0));
    }
    rig.push(1, &frame(1, 1_518, 20));
    assert_eq!(rig.take(2, 21).len(), 21);
    daemon.run_until("the hits are read", |daemon| {
        packets(daemon, "dl_dst=02:00:00:00:00:01,actions=") == 21
            && daemon.model.plane_mut().table_counters(TableId(0)).lookups == 42
    });
    daemon.run_until("the counters are read", |daemon| daemon.model.totals().received == 46);
    let totals = daemon.model.totals();
    assert_eq!((totals.forwarded, totals.dropped.of(flow::DropReason::OverMtu)), (22, 4));
    assert_eq!(rig.settle().unconnected, 1);
}

#[test]
fn packets_reach_the_controller_and_come_back() {
    let mut rig = Rig::new(4);
    let mut daemon = Daemon::new(rig.address, 5);
    daemon.change("priority=0,actions=CONTROLLER:128");
    daemon.change("priority=5,dl_dst=02:00:00:00:00:01,actions=goto_table:1");
    daemon.change("table=1,cookie=0x77,in_port=1,actions=set_field:02:00:00:00:00:06->eth_dst,CONTROLLER");
    daemon.settle();
    rig.push(2, &frame(3, 60, 1));
    rig.settle();
    rig.push(1, &frame(1, 1_518, 2));
    let mut seen = Vec::new();
    daemon.run_until("two packets for the controller", |daemon| {
        while let Some(message) = daemon.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet) = message {
                let port = packet.frame.meta.in_port;
                seen.push((port, packet.table, packet.cookie, packet.frame.bytes().to_vec()));
                daemon.model.recycle(packet.frame);
            }
        }
        seen.len() == 2
    });
    assert_eq!(seen, [(2, TableId(0), 0, frame(3, 60, 1)), (1, TableId(1), 0x77, frame(6, 1_518, 2))]);

    let mut out = |rig: &mut Rig, actions: &str, in_port: PortNo| {
        let actions = match actions {
            "TABLE" => vec![Action::output(port_no::TABLE)],
            text => parse_actions(text, &Match::any(), ParseOptions::default()).unwrap().apply,
        };
        let packet = PacketOut { in_port, actions, bytes: frame(1, 300, 3), releases: Releases::Nothing };
        daemon.model.packet_out(packet).unwrap();
        daemon.poll();
        rig.settle();
        (1..=4).flat_map(|port| rig.pop(port).map(|frame| (port, frame))).collect::<Vec<_>>()
    };
    let sent = frame(1, 300, 3);
    assert_eq!(out(&mut rig, "output:2", port_no::CONTROLLER), [(2, sent.clone())]);
    assert_eq!(out(&mut rig, "output:1", PortNo(1)), [], "not to the ingress port");
    assert_eq!(out(&mut rig, "FLOOD", PortNo(3)), [(1, sent.clone()), (2, sent.clone()), (4, sent.clone())]);
    assert_eq!(out(&mut rig, "TABLE", PortNo(1)), [], "the tables send it to the controller");
    let mut cookie = None;
    daemon.run_until("the packet of the tables", |daemon| {
        if let Some(AsyncMessage::PacketIn(packet)) = daemon.model.next_async_message() {
            cookie = Some(packet.cookie);
        }
        cookie.is_some()
    });
    assert_eq!(cookie, Some(0x77));
    assert!(!matches!(daemon.model.plane_mut().next_event(), Some(Event::Learn(_))));
}

/// The bytes of all packets together exceed the receive buffer of the device's socket several times.
#[test]
fn a_burst_of_packets_leaves_the_device_whole_and_in_order() {
    const PACKETS: u32 = 400;
    let mut rig = Rig::new(2);
    let mut daemon = Daemon::new(rig.address, 5);
    daemon.settle();
    let actions = vec![Action::output(PortNo(2))];
    for number in 0..PACKETS {
        let (actions, bytes) = (actions.clone(), frame(1, 1_400, number));
        let packet = PacketOut { in_port: PortNo(1), actions, bytes, releases: Releases::Nothing };
        daemon.model.packet_out(packet).unwrap();
    }
    daemon.change("in_port=1,actions=output:2");
    let mut left = Vec::new();
    daemon.run_until("all packets", |_| {
        left.extend(std::iter::from_fn(|| rig.pop(2)));
        left.len() >= PACKETS as usize
    });
    assert!(left.iter().enumerate().all(|(number, left)| *left == frame(1, 1_400, number as u32)));
    daemon.settle();
}

#[test]
fn the_device_forwards_while_the_daemon_restarts() {
    let mut rig = Rig::new(3);
    let flows = ["dl_dst=02:00:00:00:00:01,actions=output:2", "priority=3,in_port=1,actions=output:3"];
    let mut first = Daemon::new(rig.address, 5);
    flows.iter().for_each(|flow| first.change(flow));
    first.settle();
    assert_eq!(first.model.plane_mut().rewrites(), 1, "the device was empty");
    drop(first);
    rig.push(1, &frame(1, 100, 0));
    assert_eq!(rig.take(2, 1), [frame(1, 100, 0)], "without a daemon");

    // The second daemon has the same rules, and connects while frames pass.
    let mut second = Daemon::new(rig.address, 100_000);
    flows.iter().for_each(|flow| second.change(flow));
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    second.run_until("the second daemon is ready", |second| {
        if sent.len() < 100 {
            let next = frame(1, 60 + sent.len(), sent.len() as u32);
            rig.push(1, &next);
            sent.push(next);
        }
        got.extend(rig.pop(2));
        second.model.plane_mut().is_ready()
    });
    got.extend(rig.take(2, sent.len() - got.len()));
    assert_eq!(got, sent, "no frame is lost or overtaken");
    assert_eq!(second.model.plane_mut().rewrites(), 0);
    drop(second);

    let mut third = Daemon::new(rig.address, 200_000);
    third.change("dl_src=02:00:00:00:00:09,actions=output:1");
    third.settle();
    assert_eq!(third.model.plane_mut().rewrites(), 1);
    rig.push(2, &frame(1, 60, 7));
    assert_eq!(rig.take(1, 1), [frame(1, 60, 7)]);
    rig.settle();
    assert_eq!((rig.pop(2), rig.pop(3)), (None, None));
}

#[test]
fn a_restarted_device_gets_its_entries_again() {
    let mut rig = Rig::new(2);
    let mut daemon = Daemon::impatient(rig.address, 5);
    daemon.change("dl_dst=02:00:00:00:00:01,actions=output:2");
    daemon.settle();
    rig.push(1, &frame(1, 60, 1));
    assert_eq!(rig.take(2, 1), [frame(1, 60, 1)]);
    // The new device does not know the daemon, and must not answer its Echo_requests.
    rig = rig.restart();
    daemon.run_until("the entries are written again", |daemon| {
        daemon.model.plane_mut().rewrites() == 2 && daemon.model.plane_mut().is_ready()
    });
    rig.push(1, &frame(1, 60, 2));
    assert_eq!(rig.take(2, 1), [frame(1, 60, 2)]);
}
