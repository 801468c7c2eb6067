// SPDX-License-Identifier: Apache-2.0
//! TCP between virtual hosts with default offloads, through ports that a small forwarder connects.

use crate::lab::{Helper, Lab, in_lab, open_one, open_xdp, role, run, spec, spec_of, veth};
use frame::{Frame, Stamp};
use port::{Pools, Queue, Statistics};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TRANSFER_BYTES: usize = 32 * 1024 * 1024;
const TCP_PORT: u16 = 5001;

/// Returns the content of the transfer: pseudo-random bytes, so that lost or reordered parts are detected.
fn content() -> Vec<u8> {
    (0..TRANSFER_BYTES as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Code of a helper process in a host's namespace, not a test. "receive" accepts one connection, checks the
/// content and returns one byte. "send <address>" connects to that process, sends the content and waits for
/// the byte. "unprivileged" checks that raw sockets are refused.
#[test]
fn helper() {
    let Some(role) = role() else { return };
    std::thread::spawn(watch);
    if role == "unprivileged" {
        let message = port::open(&spec(3, "lo", 1)).err().unwrap().to_string();
        assert!(message.contains("port3") && message.contains("CAP_NET_RAW"), "{message}");
    } else if role == "unprivileged xdp" {
        let message = port::open(&spec_of("af_xdp", 3, "vb", 1)).err().unwrap().to_string();
        assert!(message.contains("no permission to") && message.contains("CAP_NET_ADMIN"), "{message}");
    } else if role == "receive" {
        let (mut stream, _) = TcpListener::bind(("0.0.0.0", TCP_PORT)).unwrap().accept().unwrap();
        let mut got = vec![0; TRANSFER_BYTES];
        stream.read_exact(&mut got).unwrap();
        assert!(got == content());
        stream.write_all(&[1]).unwrap();
    } else {
        let address = role.strip_prefix("send ").unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        let mut stream = loop {
            match TcpStream::connect((address, TCP_PORT)) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        stream.write_all(&content()).unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

/// Ends a helper that takes too long or whose test has ended.
fn watch() {
    let parent = std::os::unix::process::parent_id();
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end && std::os::unix::process::parent_id() == parent {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::process::exit(3);
}

/// Counts of the frames that a forwarder has received.
#[derive(Default)]
struct Seen {
    /// Number of super-frames, and length of the longest one in bytes.
    gso: u64,
    longest: usize,
    partial_checksums: u64,
    ports: [Statistics; 2],
}

/// A thread that forwards between two ports until it is stopped.
struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// Modifies a frame on its way from the first port to the second (`false`) or back (`true`).
type Change = fn(&mut Frame, bool);

impl Forwarder {
    fn start(mut ports: [Box<dyn Queue>; 2], change: Change) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let fds: Vec<RawFd> = ports.iter().filter_map(|port| port.descriptor()).collect();
            let mut pools = Pools::new(0, 4096, 256);
            let (mut burst, mut done) = (Vec::new(), Vec::new());
            let mut out = [Vec::new(), Vec::new()];
            let mut seen = Seen::default();
            while !reported.load(Ordering::Relaxed) {
                let mut moved = 0;
                for (from, to) in [(0, 1), (1, 0)] {
                    ports[from].receive(&mut pools, &mut burst, 32, Stamp::NONE);
                    for mut frame in burst.drain(..) {
                        seen.partial_checksums += u64::from(frame.meta.checksum.is_some());
                        if frame.meta.gso.is_some() {
                            seen.gso += 1;
                            seen.longest = seen.longest.max(frame.len());
                        }
                        change(&mut frame, from == 1);
                        out[to].push(frame);
                    }
                    moved += ports[to].transmit(&mut out[to], &mut done);
                    done.drain(..).for_each(|frame| pools.put(frame).unwrap());
                }
                if moved == 0 {
                    port::wait::wait(&fds, Some(Duration::from_millis(20))).unwrap();
                }
            }
            seen.ports = [ports[0].statistics(), ports[1].statistics()];
            seen
        });
        Self { stop, thread }
    }

    fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Transfers the content from host 1 to `address` on host 2 and waits until both helpers succeed.
fn transfer(lab: &Lab, address: &str) {
    let receiver: Helper = lab.start(2, "receive");
    lab.start(1, &format!("send {address}")).join();
    receiver.join();
}

/// Checks that the ports dropped nothing. Some losses in a full ring of the kernel are permitted, because
/// they depend on the load of the machine. TCP sends these packets again.
fn assert_nothing_lost(seen: &Seen) {
    for port in &seen.ports {
        let in_kernel: u64 =
            port.named_drops().filter(|(name, _)| *name == "rx_kernel").map(|(_, count)| count).sum();
        assert!(in_kernel <= 20 + port.rx_packets / 100, "{in_kernel} of {} packets", port.rx_packets);
        let drops = port.named_drops().filter(|(name, _)| *name != "rx_kernel");
        let lost: Vec<_> = drops.filter(|(_, count)| *count > 0).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

fn assert_super_frames(seen: &Seen) {
    assert!(seen.gso > 0 && seen.longest > 10_000, "{} super-frames up to {}", seen.gso, seen.longest);
    assert!(seen.partial_checksums >= seen.gso);
}

#[test]
fn tcp_passes_as_super_frames() {
    in_lab("hosts::tcp_passes_as_super_frames", 2, |lab| {
        lab.connect(1);
        lab.connect(2);
        let forwarder = Forwarder::start([open_one(1, "p1"), open_one(2, "p2")], |_, _| {});
        transfer(lab, "10.0.0.2");
        let seen = forwarder.finish();
        assert_super_frames(&seen);
        assert_nothing_lost(&seen);
    });
}

/// Connects host 1 and host 2 by two forwarders with a pair of interfaces between them. The pair's MTU has
/// space for the headers that forwarders push. `change` modifies each frame that enters the pair (`false`) or
/// leaves it (`true`).
fn chain(lab: &Lab, change: Change) -> (Seen, Seen) {
    lab.connect(1);
    lab.connect(2);
    veth("va", "vb");
    run("ip link set va mtu 1504");
    run("ip link set vb mtu 1504");
    let first = Forwarder::start([open_one(1, "p1"), open_one(2, "va")], change);
    let second = Forwarder::start([open_one(3, "p2"), open_one(4, "vb")], change);
    transfer(lab, "10.0.0.2");
    let (first, second) = (first.finish(), second.finish());
    assert_super_frames(&first);
    assert_nothing_lost(&first);
    assert_nothing_lost(&second);
    (first, second)
}

#[test]
fn super_frames_pass_with_vlan_tags_pushed_and_popped() {
    in_lab("hosts::super_frames_pass_with_vlan_tags_pushed_and_popped", 2, |lab| {
        let (_, second) = chain(lab, |frame, out| {
            if out {
                assert_eq!(frame.bytes()[12..16], [0x81, 0, 0, 5]);
                assert!(frame.remove(12, 4));
            } else {
                assert!(frame.insert(12, 4));
                frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
            }
        });
        assert_super_frames(&second);
    });
}

/// Transfers over TCP through a VXLAN between the hosts, created with these options. Inner addresses are
/// 10.1.0.<host>.
fn transfer_in_vxlan(lab: &Lab, options: &str) {
    lab.connect(1);
    lab.connect(2);
    for (host, other) in [(1, 2), (2, 1)] {
        let ip = format!("ip -n h{host}");
        let kind = format!("vxlan id 7 remote 10.0.0.{other} dstport 4789 dev eth0 {options}");
        run(&format!("{ip} link add vx0 type {kind}"));
        run(&format!("{ip} addr add 10.1.0.{host}/24 dev vx0"));
        run(&format!("{ip} link set vx0 up"));
    }
    let forwarder = Forwarder::start([open_one(1, "p1"), open_one(2, "p2")], |_, _| {});
    let start = Instant::now();
    transfer(lab, "10.1.0.2");
    let took = start.elapsed();
    let seen = forwarder.finish();
    assert_super_frames(&seen);
    assert_nothing_lost(&seen);
    // With wrong outer headers, only retransmitted segments would arrive, one at a time.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn super_frames_in_vxlan_are_cut_into_segments() {
    in_lab("hosts::super_frames_in_vxlan_are_cut_into_segments", 2, |lab| {
        transfer_in_vxlan(lab, "noudpcsum");
    });
}

#[test]
fn super_frames_in_vxlan_keep_an_outer_checksum() {
    in_lab("hosts::super_frames_in_vxlan_keep_an_outer_checksum", 2, |lab| {
        transfer_in_vxlan(lab, "udpcsum");
    });
}

#[test]
fn super_frames_behind_mpls_are_cut_into_segments() {
    in_lab("hosts::super_frames_behind_mpls_are_cut_into_segments", 2, |lab| {
        let (_, second) = chain(lab, |frame, out| {
            if out {
                assert_eq!(frame.bytes()[12..18], [0x88, 0x47, 0, 1, 1, 64]);
                assert!(frame.len() <= 1518 && frame.remove(14, 4));
                frame.bytes_mut()[12..14].copy_from_slice(&[8, 0]);
            } else {
                assert!(frame.insert(14, 4));
                frame.bytes_mut()[12..18].copy_from_slice(&[0x88, 0x47, 0, 1, 1, 64]);
            }
        });
        let segments = second.ports[1].rx_packets;
        assert!(segments > (TRANSFER_BYTES / 1460) as u64, "{segments} packets behind the label");
    });
}

/// The hosts' offloads are on: their packets have partial checksums, but the kernel has segmented them.
#[test]
fn tcp_passes_between_xdp_ports() {
    in_lab("hosts::tcp_passes_between_xdp_ports", 2, |lab| {
        lab.connect(1);
        lab.connect(2);
        let forwarder = Forwarder::start([open_xdp(1, "p1"), open_xdp(2, "p2")], |_, _| {});
        transfer(lab, "10.0.0.2");
        let seen = forwarder.finish();
        assert_nothing_lost(&seen);
        assert_eq!(seen.gso, 0);
        assert!(seen.partial_checksums > (TRANSFER_BYTES / 1460) as u64, "{}", seen.partial_checksums);
    });
}

#[test]
fn tcp_passes_between_drivers_both_ways() {
    in_lab("hosts::tcp_passes_between_drivers_both_ways", 2, |lab| {
        lab.connect(1);
        lab.connect(2);
        for from_xdp in [true, false] {
            let ports = if from_xdp {
                [open_xdp(1, "p1"), open_one(2, "p2")]
            } else {
                [open_one(1, "p1"), open_xdp(2, "p2")]
            };
            let forwarder = Forwarder::start(ports, |_, _| {});
            transfer(lab, "10.0.0.2");
            let seen = forwarder.finish();
            assert_nothing_lost(&seen);
            assert!(seen.partial_checksums > 0);
            // Super-frames received by af_packet are sent by af_xdp in segments.
            assert!(from_xdp || seen.gso > 0 && seen.longest > 10_000, "{}", seen.gso);
        }
    });
}
