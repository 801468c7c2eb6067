// SPDX-License-Identifier: Apache-2.0
//! A datapath that forwards in a device, which is the software model behind a UDP socket.

use crate::lab::{Lab, frame, until};
use crate::peer::add;
use device::emulator::{DeviceAgent, Emulator};
use device::message::MESSAGE_BYTES_MAX;
use flow::{Action, PortNo, port_no};
use openflow::Message;
use openflow::packet::{PacketInCode, PacketOutMessage};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

const PPUS: u8 = 4;
const ENTRIES: u16 = 32;
const SETTINGS: &str = "entries = 32\ntables = [1, 1, 2]";

/// A device with a thread that executes datagrams.
struct Device {
    agent: Arc<Mutex<DeviceAgent>>,
    address: SocketAddr,
    socket: UdpSocket,
    /// Address of the daemon that sent last.
    daemon: Arc<Mutex<Option<SocketAddr>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn agent() -> DeviceAgent {
    DeviceAgent::new(Emulator::new(PPUS, ENTRIES))
}

impl Device {
    fn start(agent: DeviceAgent) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), agent)
    }

    fn at(address: SocketAddr, agent: DeviceAgent) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let agent = Arc::new(Mutex::new(agent));
        let (daemon, stop) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (its_agent, its_daemon, its_stop) = (Arc::clone(&agent), Arc::clone(&daemon), Arc::clone(&stop));
        let its_socket = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; MESSAGE_BYTES_MAX];
            while !its_stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = its_socket.recv_from(&mut buffer) else { continue };
                *its_daemon.lock().unwrap() = Some(from);
                let mut agent = its_agent.lock().unwrap();
                agent.receive(true, &buffer[..length]);
                while let Some(reply) = agent.next_datagram() {
                    its_socket.send_to(&reply, from).unwrap();
                }
            }
        });
        Self { agent, address, socket, daemon, stop, thread: Some(thread) }
    }

    fn agent(&self) -> MutexGuard<'_, DeviceAgent> {
        self.agent.lock().unwrap()
    }

    /// Forwards a frame, and returns what leaves.
    fn forward(&self, port: u8, frame: &[u8]) -> Option<(u8, Vec<u8>)> {
        let mut agent = self.agent();
        agent.receive_frame(port, frame);
        while let Some(datagram) = agent.next_datagram() {
            let daemon = self.daemon.lock().unwrap().unwrap();
            self.socket.send_to(&datagram, daemon).unwrap();
        }
        agent.next_frame()
    }

    /// Waits for a frame that leaves.
    fn pop(&self) -> (u8, Vec<u8>) {
        let mut got = None;
        until("a frame leaves the device", || {
            got = self.agent().next_frame();
            got.is_some()
        });
        got.unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn ovs_ofctl_drives_a_device_and_reads_its_features_and_counters() {
    let device = Device::start(agent());
    let lab = Lab::start_at_device(device.address, SETTINGS, 3, "");
    let mut peer = lab.peer();
    lab.ofctl(&["add-flow", "priority=5,in_port=1,dl_dst=02:00:00:00:00:02,actions=output:2"]);
    lab.ofctl(&["add-flow", "in_port=2,actions=goto_table:1"]);
    lab.ofctl(&["add-flow", "table=1,actions=set_field:02:00:00:00:00:09->eth_dst,output:3"]);
    peer.barrier();
    for _ in 0..7 {
        assert_eq!(device.forward(1, &frame(2, 1)), Some((2, frame(2, 1))));
    }
    assert_eq!(device.forward(2, &frame(2, 1)), Some((3, frame(9, 1))));
    assert_eq!(device.forward(3, &frame(2, 1)), None);
    // Counters are read every half a second.
    let counted = || lab.ofctl(&["dump-flows"]).contains("n_packets=7");
    until("the hits are counted", counted);
    let flows = lab.ofctl(&["dump-flows"]);
    assert_eq!(flows.matches("n_packets=1,").count(), 2, "{flows}");
    assert!(flows.contains("n_bytes=?"), "the device counts no bytes of entries: {flows}");
    let ports = lab.ofctl(&["dump-ports"]);
    assert!(ports.contains("rx pkts=7, bytes=420"), "{ports}");
    assert!(ports.contains("tx pkts=7, bytes=420") && ports.contains("tx pkts=1, bytes=60"), "{ports}");

    let shown = lab.ofctl(&["show"]);
    assert!(shown.contains("n_tables:3") && !shown.contains("GROUP_STATS"), "{shown}");
    assert!(lab.ofctl(&["dump-desc"]).contains("Hardware: Shunt RTL device"));
    let features = lab.ofctl(&["dump-table-features"]);
    assert!(features.contains("max_entries=31"), "{features}");
    assert!(!features.contains("tun_id") && !features.contains("meter"), "{features}");
    assert!(features.contains("dec_ttl") && features.contains("push_vlan"), "{features}");
    let refused = |flow: &str| {
        let (good, text) = lab.try_ofctl(&["add-flow", flow]);
        assert!(!good, "{flow} was accepted");
        text
    };
    assert!(refused("table=3,actions=drop").contains("BAD_TABLE"));
    assert!(refused("actions=output:1,output:2").contains("TOO_MANY"));
    assert!(refused("actions=NORMAL").contains("BAD_OUT_PORT"));
    assert!(!lab.try_ofctl(&["add-group", "group_id=1,type=all"]).0);
    assert_eq!(lab.flows().len(), 3, "refused entries change nothing");
    lab.ofctl(&["del-flows"]);
    peer.barrier();
    assert_eq!(device.forward(1, &frame(2, 1)), None);
}

#[test]
fn packets_pass_between_a_controller_and_a_device() {
    let device = Device::start(agent());
    let lab = Lab::start_at_device(device.address, SETTINGS, 3, "");
    let mut peer = lab.peer();
    peer.send(&add("priority=0,actions=CONTROLLER:65535"));
    peer.barrier();
    assert_eq!(device.forward(3, &frame(8, 3)), None);
    let packet = loop {
        if let (0, Message::PacketIn(packet)) = peer.receive() {
            break packet;
        }
    };
    assert_eq!((packet.data, packet.reason), (frame(8, 3), PacketInCode::NoMatch));
    let out = |actions: Vec<Action>| {
        let (in_port, data) = (PortNo(3), frame(8, 3));
        Message::PacketOut(PacketOutMessage { buffer_id: None, in_port, actions, data })
    };
    peer.send(&out(vec![Action::output(port_no::FLOOD)]));
    assert_eq!((device.pop(), device.pop()), ((1, frame(8, 3)), (2, frame(8, 3))));
    peer.send(&out(vec![Action::output(PortNo(1))]));
    assert_eq!(device.pop(), (1, frame(8, 3)));
}

/// The device starts after the daemon, vanishes, and returns without its entries.
#[test]
fn a_device_that_returns_gets_all_entries() {
    let reserved = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let lab = Lab::start_at_device(address, SETTINGS, 2, "in_port=1,actions=output:2\n");
    // The entry is accepted. A barrier would be answered when the device has it.
    let mut peer = lab.peer();
    peer.send(&add("in_port=2,actions=output:1"));
    for _ in 0..2 {
        let device = Device::at(address, agent());
        let forwards = |from, to| device.forward(from, &frame(to, from)) == Some((to, frame(to, from)));
        until("the device has both entries", || {
            device.daemon.lock().unwrap().is_some() && forwards(2, 1) && forwards(1, 2)
        });
    }
    until("the loss is logged", || !lab.log.lines(&["the device does not answer"]).is_empty());
}

/// A daemon that starts again with the same rules reads the entries of the device and changes none of them.
#[test]
fn a_device_forwards_while_its_daemon_restarts() {
    const FLOWS: &str = "priority=3,in_port=1,actions=output:2\npriority=2,actions=output:1\n";
    let device = Device::start(agent());
    for _ in 0..3 {
        let lab = Lab::start_at_device(device.address, SETTINGS, 2, FLOWS);
        assert_eq!(device.forward(1, &frame(2, 1)), Some((2, frame(2, 1))));
        assert_eq!(lab.flows().len(), 2);
        drop(lab);
        assert_eq!(device.forward(1, &frame(2, 1)), Some((2, frame(2, 1))));
    }
    let hits = |index| device.agent().device.entry(0, index).unwrap().packets;
    let hits: Vec<u64> = (0..ENTRIES).map(hits).filter(|hits| *hits > 0).collect();
    assert_eq!(hits, [6], "the entry was not written again, because writing clears its counter");
}
