// SPDX-License-Identifier: Apache-2.0
//! Newer generations of a port take over the packets of older ones, in full traffic and for odd packets.

use crate::lab::{Lab, drain, in_lab, open_one, run, send, spec, veth};
use crate::raw::{await_link, packet, udp};
use frame::{Frame, Stamp};
use port::{Fanout, Handover, Inherited, Pools, PortHandle, Queue, Queues, Spec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FLOWS: u32 = 64;

/// Opens the first generation of a port.
fn open_first(queues: usize) -> Queues {
    port::open(&Spec { handover: Handover::Possible, ..spec(1, "va", queues) }).unwrap()
}

/// Opens the next generation of a port.
fn next_of(queues: &Queues, number: usize) -> Queues {
    let group = fanout(&*queues[0]).group().unwrap();
    port::open_held(&Spec { handover: Handover::From(Inherited::Group(group)), ..spec(1, "va", number) })
        .unwrap()
}

fn fanout(queue: &dyn Queue) -> Fanout {
    let PortHandle::Fanout(fanout) = queue.handle().unwrap() else { unreachable!("another driver") };
    fanout
}

/// Returns the packet with this sequence number, of one of [`FLOWS`] flows.
pub fn numbered(sequence: u32) -> Vec<u8> {
    let mut bytes = udp((sequence % FLOWS) as u16, 0);
    bytes[42..46].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

fn sequence_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[42..46].try_into().unwrap())
}

/// A thread that sends numbered packets until it is stopped. It never sends more than a part of a ring ahead
/// of the receiver, so that no ring overflows however busy the machine is.
pub struct Sender {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU32>,
    thread: JoinHandle<u32>,
}

impl Sender {
    const AHEAD: u32 = 512;

    pub fn start(device: &str) -> Self {
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (reported, seen) = (Arc::clone(&stop), Arc::clone(&received));
        let mut queue = open_one(9, device);
        let thread = std::thread::spawn(move || {
            let (mut sent, mut done) = (0, Vec::new());
            while !reported.load(Ordering::Relaxed) {
                if sent >= seen.load(Ordering::Relaxed) + Self::AHEAD {
                    std::thread::yield_now();
                    continue;
                }
                let mut frames: Vec<_> = (0..16).map(|n| Frame::from_bytes(&numbered(sent + n))).collect();
                while !frames.is_empty() {
                    queue.transmit(&mut frames, &mut done);
                }
                sent += 16;
            }
            sent
        });
        Self { stop, received, thread }
    }

    pub fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Received sequence numbers, with the generation that received them.
pub struct Log {
    pools: Pools,
    received: Arc<AtomicU32>,
    /// The generation that received each number.
    by: Vec<Option<u32>>,
    /// The last number of each flow.
    last_of: [Option<u32>; FLOWS as usize],
    duplicates: u32,
}

impl Log {
    pub fn new(sender: &Sender) -> Self {
        let received = Arc::clone(&sender.received);
        Self {
            pools: Pools::new(0, 1024, 0),
            received,
            by: Vec::new(),
            last_of: [None; FLOWS as usize],
            duplicates: 0,
        }
    }

    /// Receives what waits in the queues. Returns the number of packets, whose order must be right in each
    /// flow.
    pub fn take(&mut self, queues: &mut [Box<dyn Queue>], generation: u32) -> u32 {
        let mut count = 0;
        for queue in queues {
            let mut burst = Vec::new();
            queue.receive(&mut self.pools, &mut burst, 256, Stamp::NONE);
            for frame in burst {
                let sequence = sequence_of(frame.bytes());
                let last = self.last_of[(sequence % FLOWS) as usize].replace(sequence);
                assert!(last < Some(sequence), "{sequence} after {last:?}");
                let at = sequence as usize;
                if self.by.len() <= at {
                    self.by.resize(at + 1, None);
                }
                self.duplicates += u32::from(self.by[at].replace(generation).is_some());
                self.pools.put(frame).unwrap();
                count += 1;
            }
        }
        self.received.fetch_add(count, Ordering::Relaxed);
        count
    }

    /// Receives until this many packets have arrived.
    pub fn take_some(&mut self, queues: &mut [Box<dyn Queue>], generation: u32, mut count: u32) {
        let mut end = Instant::now() + Duration::from_secs(5);
        while count > 0 {
            let taken = self.take(queues, generation);
            if taken > 0 {
                end = Instant::now() + Duration::from_secs(5);
            }
            assert!(Instant::now() < end, "packets are lost: the sender waits for them");
            count = count.saturating_sub(taken);
        }
    }

    pub fn assert_complete(&self, sent: u32) {
        let missing: Vec<_> =
            (0..sent).filter(|n| self.by.get(*n as usize).is_none_or(Option::is_none)).collect();
        assert!(missing.is_empty(), "{} of {sent} are lost, first {:?}", missing.len(), missing.first());
        assert_eq!((self.duplicates, self.by.len()), (0, sent as usize));
    }

    /// Asserts that each flow was received by one generation after the other.
    pub fn assert_in_order(&self) {
        for flow in 0..FLOWS as usize {
            let by: Vec<_> = self.by.iter().skip(flow).step_by(FLOWS as usize).flatten().collect();
            assert!(by.is_sorted(), "flow {flow} goes back to an older generation");
        }
    }
}

/// Moves the traffic through three generations with these numbers of queues, in full flow.
fn take_over_in_traffic(sizes: [usize; 3]) {
    veth("va", "vb");
    let mut older = open_first(sizes[0]);
    let sender = Sender::start("vb");
    let mut log = Log::new(&sender);
    log.take_some(&mut older, 0, 2_000);
    for (generation, size) in (1..).zip(sizes[1..].iter()) {
        let mut newer = next_of(&older, *size);
        assert_eq!(fanout(&*newer[0]).group(), None, "an older process has members");
        log.take_some(&mut older, generation - 1, 2_000);
        let early = newer.iter_mut().map(|queue| drain(&mut **queue).len()).sum::<usize>();
        assert_eq!(early, 0, "nothing is received before the switch-over");
        fanout(&*newer[0]).take_over().unwrap();
        // All packets for the older generation are in its rings now.
        while log.take(&mut older, generation - 1) > 0 {}
        log.take_some(&mut newer, generation, 2_000);
        assert_eq!(log.take(&mut older, generation - 1), 0);
        // The older process closes its queues in any order, here from the first one on or from the last one
        // on.
        while let Some(last) = older.len().checked_sub(1) {
            drop(older.remove(if generation == 1 { 0 } else { last }));
            log.take_some(&mut newer, generation, 1_000);
        }
        fanout(&*newer[0]).settle().unwrap();
        log.take_some(&mut newer, generation, 1_000);
        older = newer;
        assert!(fanout(&*older[0]).group().is_some(), "the next process can join");
    }
    let sent = sender.stop();
    while log.take(&mut older, 2) > 0 {}
    log.assert_complete(sent);
    log.assert_in_order();
}

#[test]
fn one_queue_takes_over_without_loss() {
    in_lab("takeover::one_queue_takes_over_without_loss", 0, |_| take_over_in_traffic([1, 1, 1]));
}

#[test]
fn two_queues_take_over_without_loss() {
    in_lab("takeover::two_queues_take_over_without_loss", 0, |_| take_over_in_traffic([2, 2, 2]));
}

#[test]
fn three_queues_take_over_without_loss() {
    in_lab("takeover::three_queues_take_over_without_loss", 0, |_| take_over_in_traffic([3, 3, 3]));
}

#[test]
fn other_numbers_of_queues_take_over_without_loss() {
    in_lab("takeover::other_numbers_of_queues_take_over_without_loss", 0, |_| {
        take_over_in_traffic([1, 4, 2]);
    });
}

/// Returns the number of packets in each queue after `packets` were sent.
fn spread(queues: &mut Queues, sender: &mut dyn Queue, packets: &[Vec<u8>]) -> Vec<usize> {
    packets.chunks(64).for_each(|packets| send(sender, packets));
    queues.iter_mut().map(|queue| drain(&mut **queue).len()).collect()
}

#[test]
fn an_abandoned_takeover_changes_nothing() {
    in_lab("takeover::an_abandoned_takeover_changes_nothing", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(2);
        let mut sender = open_one(2, "vb");
        let packets: Vec<_> = (0..200).map(numbered).collect();
        let before = spread(&mut older, &mut *sender, &packets);
        let mut newer = next_of(&older, 3);
        fanout(&*newer[0]).take_over().unwrap();
        assert_eq!(spread(&mut newer, &mut *sender, &packets).iter().sum::<usize>(), 200);
        // The older process takes its packets back.
        fanout(&*older[0]).take_over().unwrap();
        assert_eq!(spread(&mut older, &mut *sender, &packets), before);
        while !newer.is_empty() {
            drop(newer.swap_remove(0));
            assert_eq!(spread(&mut older, &mut *sender, &packets), before);
        }
        // Before a link that was down comes up again, all members leave the group.
        let mut newer = next_of(&older, 2);
        run("ip link set va down");
        run("ip link set va up");
        await_link(&mut *older[0], true);
        await_link(&mut *sender, true);
        assert_eq!(spread(&mut older, &mut *sender, &packets), before);
        fanout(&*newer[1]).take_over().unwrap();
        assert_eq!(spread(&mut newer, &mut *sender, &packets).iter().sum::<usize>(), 200);
    });
}

#[test]
fn a_takeover_needs_the_older_ports_interface() {
    in_lab("takeover::a_takeover_needs_the_older_ports_interface", 0, |_: &Lab| {
        veth("va", "vb");
        let alone = open_one(3, "vb");
        assert_eq!(fanout(&*alone).group(), None, "a port that is never handed over has no group");
        let mut older = open_first(2);
        let group = fanout(&*older[0]).group();
        let open = |number| {
            port::open(&Spec {
                handover: Handover::From(Inherited::Group(group.unwrap())),
                ..spec(1, "va", number)
            })
        };
        assert!(open(255).err().unwrap().to_string().contains("1 to 256"));
        let newer = open(2).unwrap();
        let old_fanout = fanout(&*older[0]);
        run("ip link del va");
        assert_eq!(old_fanout.group(), None);
        assert!(fanout(&*newer[0]).take_over().is_err());
        veth("va", "vb");
        let message = open(2).err().unwrap().to_string();
        assert!(message.contains("fan-out group"), "{message}");
        // The reopened port has a new group.
        for queue in &mut older {
            await_link(&mut **queue, true);
        }
        let renewed = old_fanout.group().unwrap();
        assert_eq!(renewed.members, 2);
        assert_ne!(Some(renewed), group);
        let mut newer = next_of(&older, 2);
        fanout(&*newer[0]).take_over().unwrap();
        drop(older);
        let mut sender = open_one(2, "vb");
        let packets: Vec<_> = (0..100).map(numbered).collect();
        assert_eq!(spread(&mut newer, &mut *sender, &packets).iter().sum::<usize>(), 100);
        assert_eq!(old_fanout.group(), None, "the port is closed");
    });
}

/// Returns an Ethernet frame with `tags` and an IP header of this version between hosts a and b.
fn flow(tags: &[u8], version: u8, protocol: u8, [a, b]: [u16; 2], ports: [u16; 2]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    bytes.extend(tags);
    let ([a_high, a_low], [b_high, b_low]) = (a.to_be_bytes(), b.to_be_bytes());
    if version == 4 {
        bytes.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, a_high, a_low, 10, 0, b_high, b_low]);
    } else {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
        for [high, low] in [[a_high, a_low], [b_high, b_low]] {
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low]);
        }
    }
    ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
    bytes.resize(bytes.len() + 16, 0);
    bytes
}

#[test]
fn both_directions_of_a_flow_reach_one_queue_and_flows_spread() {
    in_lab("takeover::both_directions_of_a_flow_reach_one_queue_and_flows_spread", 0, |_: &Lab| {
        veth("va", "vb");
        let mut queues = port::open(&spec(1, "va", 3)).unwrap();
        let mut sender = open_one(2, "vb");
        let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5]];
        for (version, protocol, tags) in [(4, 6), (4, 17), (4, 1), (6, 6), (6, 17), (6, 58)]
            .into_iter()
            .flat_map(|(v, p)| tags.map(|t| (v, p, t)))
        {
            // Flows that differ in the last bits of one address, or also in a port.
            for by_port in [false, true] {
                let has_ports = matches!(protocol, 6 | 17);
                let packets: Vec<_> = (0..192)
                    .flat_map(|n| {
                        let (a, ports) = if by_port { (1, [1024 + n, 80]) } else { (n + 2, [5, 5]) };
                        let there = flow(tags, version, protocol, [a, 1], ports);
                        let back = flow(tags, version, protocol, [1, a], [ports[1], ports[0]]);
                        [there, back]
                    })
                    .collect();
                packets.chunks(64).for_each(|packets| send(&mut *sender, packets));
                let mut counts = Vec::new();
                for queue in &mut queues {
                    let got = drain(&mut **queue);
                    assert!(got.len().is_multiple_of(2), "a flow is on two queues: {version} {protocol}");
                    let pairs = got.iter().zip(got.iter().skip(1)).step_by(2);
                    for (there, back) in pairs {
                        let at = packets.iter().position(|sent| sent == there).unwrap();
                        assert!(
                            by_port && !has_ports || &packets[at ^ 1] == back,
                            "{version} {protocol} {at}"
                        );
                    }
                    counts.push(got.len());
                }
                assert_eq!(counts.iter().sum::<usize>(), packets.len());
                let most = if by_port && !has_ports { packets.len() } else { packets.len() / 2 };
                let is_spread = counts.iter().all(|count| *count <= most);
                assert!(is_spread, "version {version}, protocol {protocol}, {tags:?}: {counts:?}");
            }
        }
    });
}

/// Packets that are too short for a header must not reach the older generation.
#[test]
fn short_and_odd_packets_reach_the_newer_generation() {
    in_lab("takeover::short_and_odd_packets_reach_the_newer_generation", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(2);
        let mut sender = open_one(2, "vb");
        let mut newer = next_of(&older, 2);
        fanout(&*newer[0]).take_over().unwrap();
        let mut packets = vec![packet(&[], 60, 1), packet(&[0x81, 0, 0, 5, 0x81, 0, 0, 6], 60, 2)];
        for tags in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5]] {
            for (version, protocol) in [(4, 6), (6, 17)] {
                let whole = flow(tags, version, protocol, [1, 2], [3, 4]);
                // The kernel drops packets with less than two bytes after a tag.
                packets.extend((16 + tags.len()..whole.len()).map(|len| whole[..len].to_vec()));
                let mut odd = whole.clone();
                odd[14 + tags.len()] |= 0x0f;
                packets.push(odd);
            }
        }
        assert_eq!(spread(&mut newer, &mut *sender, &packets).iter().sum::<usize>(), packets.len());
        assert!(older.iter_mut().all(|queue| drain(&mut **queue).is_empty()));
    });
}
