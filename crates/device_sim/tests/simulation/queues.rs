// SPDX-License-Identifier: Apache-2.0
//! Queues that fail, refuse frames, or give frames with offloads.

use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use device_sim::{DeviceChannel, Simulation, SimulationSettings};
use frame::{Frame, PartialChecksum, Stamp};
use port::mem::{MemQueue, pair};
use port::wait::Wake;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use wire::PacketBuilder;

use crate::rig::{CAPACITY, Daemon, Rig, frame, socket, wait_until};

/// What a test does to a queue.
#[derive(Default)]
struct Switches {
    /// The interface is gone: nothing arrives, frames are taken and lost, and the descriptor has an error.
    gone: AtomicBool,
    /// The ring for transmission is full.
    full: AtomicBool,
    calls: AtomicU64,
}

struct Unsteady {
    inner: MemQueue,
    switches: Arc<Switches>,
    /// Readable as long as the interface is gone.
    broken: Arc<Wake>,
}

impl Queue for Unsteady {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.switches.calls.fetch_add(1, Ordering::Relaxed);
        if self.switches.gone.load(Ordering::Relaxed) {
            return 0;
        }
        self.inner.receive(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        if self.switches.full.load(Ordering::Relaxed) {
            return 0;
        }
        if self.switches.gone.load(Ordering::Relaxed) {
            // As `af_packet` does, the queue accepts frames that can never be sent.
            let count = frames.len();
            done.append(frames);
            return count;
        }
        self.inner.transmit(frames, done)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.broken.descriptor())
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn poll_link(&mut self) -> Link {
        Link { up: !self.switches.gone.load(Ordering::Relaxed), ..Link::default() }
    }
}

/// A device whose port 2 is unsteady.
fn rig() -> (Rig, Arc<Switches>, Arc<Wake>) {
    let (switches, broken) = (Arc::new(Switches::default()), Arc::new(Wake::new().unwrap()));
    let (mut channels, mut handles) = (Vec::new(), Vec::new());
    for port in 1..=3 {
        let (mut queues, handle) = pair(port.into(), 1, 4 * CAPACITY);
        let inner = queues.remove(0);
        let queue: Box<dyn Queue> = match port {
            2 => Box::new(Unsteady { inner, switches: Arc::clone(&switches), broken: Arc::clone(&broken) }),
            _ => Box::new(inner),
        };
        channels.push(DeviceChannel { port, queue });
        handles.push(handle);
    }
    (Rig { handles, ..Rig::with_channels(channels) }, switches, broken)
}

fn programmed(rig: &Rig) -> Daemon<crate::rig::UdpLink> {
    let mut daemon = Daemon::new(rig.address, 5);
    daemon.change("dl_dst=02:00:00:00:00:02,actions=output:2");
    daemon.change("dl_dst=02:00:00:00:00:03,actions=output:3");
    daemon.settle();
    daemon
}

#[test]
fn a_queue_that_fails_does_not_stop_the_others() {
    let (mut rig, switches, broken) = rig();
    let _daemon = programmed(&rig);
    assert_eq!(rig.simulation.links().iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(rig.simulation.links().iter().all(|(_, link)| link.up));
    switches.gone.store(true, Ordering::Relaxed);
    broken.wake();
    wait_until("the link is down", || !rig.simulation.links()[1].1.up);
    for number in 0..50 {
        rig.push(1, &frame(2 + number as u8 % 2, 100, number));
    }
    let odd: Vec<_> = (0..50).filter(|number| number % 2 == 1).map(|at| frame(3, 100, at)).collect();
    assert_eq!(rig.take(3, 25), odd);
    let counters = rig.settle();
    assert_eq!((counters.channels[1].failures, counters.channels[0].failures), (1, 0));
    assert!(rig.pop(2).is_none());
    // A descriptor that stays readable does not keep the thread busy.
    let before = switches.calls.load(Ordering::Relaxed);
    thread::sleep(Duration::from_millis(500));
    let calls = switches.calls.load(Ordering::Relaxed) - before;
    assert!((1..=550).contains(&calls), "{calls} looks in 500 ms");
    // The interface comes back.
    assert!(broken.clear());
    switches.gone.store(false, Ordering::Relaxed);
    wait_until("the link is up", || rig.simulation.links()[1].1.up);
    rig.push(1, &frame(2, 200, 1));
    assert_eq!(rig.take(2, 1), [frame(2, 200, 1)]);
    assert_eq!(rig.settle().channels[1].failures, 1);
}

#[test]
fn a_full_queue_makes_the_device_drop_and_keeps_order() {
    let (mut rig, switches, _) = rig();
    let _daemon = programmed(&rig);
    switches.full.store(true, Ordering::Relaxed);
    // More than fits into the egress FIFO (512 beats) and in front of the queue.
    for number in 0..900 {
        rig.push(1, &frame(2, 100, number));
        if number % 10 == 0 {
            rig.push(1, &frame(3, 100, number));
        }
    }
    assert_eq!(rig.take(3, 90).len(), 90, "the other port is not delayed");
    assert_eq!(rig.settle().channels[1].sent, 0);
    switches.full.store(false, Ordering::Relaxed);
    wait_until("frames leave", || rig.counters().channels[1].sent > 0);
    let sent = rig.settle().channels[1];
    let mut left = Vec::new();
    while let Some(frame) = rig.pop(2) {
        left.push(u32::from_be_bytes(frame[14..18].try_into().unwrap()));
    }
    assert_eq!((left.len() as u64, sent.lost), (sent.sent, 0));
    assert!(left.len() >= 256 && left.len() < 600, "{} frames left", left.len());
    assert_eq!(left, (0..left.len() as u32).collect::<Vec<_>>(), "the first frames, in order");
    // What did not leave is counted once, as dropped by the channel of the device.
    let mut session = crate::rig::Session::new(rig.address, 100_000);
    let stats = session.stats();
    let channel = &stats[stats.len() - 3 * 6..][..6];
    assert_eq!((channel[3], channel[5]), (left.len() as u64, 900 - left.len() as u64));
}

#[test]
fn four_ports_at_full_rate_lose_nothing() {
    let mut rig = Rig::new(4);
    let mut daemon = Daemon::new(rig.address, 5);
    for port in 1..=4 {
        // A frame of 24 beats leaves with 25, one of 1 beat with 2.
        let vlan = "push_vlan:0x8100,set_field:4101->vlan_vid";
        let out = port % 4 + 1;
        daemon.change(&format!("in_port={port},vlan_tci=0x0000/0x1fff,actions={vlan},output:{out}"));
    }
    daemon.settle();
    let (count, mut left) = (1_000, [const { Vec::new() }; 4]);
    let sent = |port, number| frame(port, if number % 20 == 0 { 1_518 } else { 64 }, number);
    let take = |rig: &mut Rig, left: &mut [Vec<Vec<u8>>; 4]| {
        for port in 1..=4 {
            left[usize::from(port) - 1].extend(std::iter::from_fn(|| rig.pop(port % 4 + 1)));
        }
    };
    for number in 0..count {
        for port in 1..=4 {
            rig.push(port, &sent(port, number));
        }
        take(&mut rig, &mut left);
    }
    let received = |rig: &Rig| rig.counters().channels.iter().map(|channel| channel.received).sum::<u64>();
    wait_until("all frames enter", || {
        take(&mut rig, &mut left);
        received(&rig) == 4 * u64::from(count)
    });
    // A port in memory holds fewer frames than may be left.
    for _ in 0..2 {
        rig.settle();
        take(&mut rig, &mut left);
    }
    for (port, left) in (1..=4).zip(left) {
        let untagged: Vec<_> = left.iter().map(|frame| [&frame[..12], &frame[16..]].concat()).collect();
        let wanted: Vec<_> = (0..count).map(|number| sent(port, number)).collect();
        let equal = untagged.iter().zip(&wanted).take_while(|(left, wanted)| left == wanted).count();
        assert!(untagged == wanted, "port {port}: {} frames left, {equal} as expected", left.len());
    }
}

#[test]
fn frames_with_offloads_are_completed() {
    let mut rig = Rig::new(3);
    let _daemon = programmed(&rig);
    let whole = PacketBuilder::ethernet([2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 9])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
        .udp(1_000, 2_000)
        .payload(&[7; 333])
        .build();
    let mut partial = Frame::from_bytes(&whole);
    // The sum of the pseudo header is there; the rest is left to the device.
    let pseudo = wire::checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 17, 341);
    partial.bytes_mut()[40..42].copy_from_slice(&pseudo.to_be_bytes());
    partial.meta.checksum = Some(PartialChecksum { start: 34, offset: 6 });
    assert!(rig.handles[0].push_frame(0, &partial));
    assert_eq!(rig.take(3, 1), [whole]);
    partial.meta.checksum = Some(PartialChecksum { start: 60_000, offset: 6 });
    assert!(rig.handles[0].push_frame(0, &partial));
    wait_until("the frame is counted", || rig.counters().channels[0].lost == 1);
    assert_eq!(rig.counters().channels[0].received, 1);
}

#[test]
fn ports_that_do_not_exist_are_refused() {
    for (ports, text) in [(&[0_u8][..], "port 0"), (&[5], "port 5"), (&[3, 1, 3], "given twice")] {
        let channel = |port: &u8| DeviceChannel { port: *port, queue: Box::new(pair(1, 1, 4).0.remove(0)) };
        let channels = ports.iter().map(channel).collect();
        let error = Simulation::start(channels, socket(), SimulationSettings::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(text), "{error}");
    }
}
