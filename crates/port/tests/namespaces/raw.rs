// SPDX-License-Identifier: Apache-2.0
//! Raw frames between two interfaces.

use crate::lab::{Lab, drain, fill, in_lab, open_one, receive, run, send, spec, veth};
use frame::{Frame, Gso, GsoKind, PartialChecksum, Stamp};
use port::{Pools, PortDrop, Queue, Spec};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Waits until a link is up or down. The kernel takes up to a second to report it.
pub fn await_link(queue: &mut dyn Queue, up: bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while queue.poll_link().up != up {
        assert!(Instant::now() < end, "the link does not go {}", if up { "up" } else { "down" });
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Gives the kernel time to empty the receiving side's backlog, which is bounded and shared.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Returns an Ethernet frame of `len` bytes with `tags` after the MAC addresses and the local experimental
/// EtherType.
pub fn packet(tags: &[u8], len: usize, fill: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    bytes.extend(tags);
    bytes.extend([0x88, 0xb7]);
    bytes.resize(len, fill);
    bytes
}

#[test]
fn frames_pass_both_ways_with_their_tags() {
    in_lab("raw::frames_pass_both_ways_with_their_tags", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
        let packets = [
            packet(&[], 60, 1),
            packet(&[0x81, 0, 0x60, 5], 64, 2),
            packet(&[0x81, 0, 0xe0, 0], 60, 3),
            packet(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5], 68, 4),
            packet(&[0x81, 0, 0, 7, 0x81, 0, 0, 8], 68, 5),
            packet(&[], 1514, 6),
            packet(&[0x81, 0, 0, 5], 1518, 7),
            packet(&[], 14, 8),
        ];
        for _ in 0..2 {
            send(&mut *a, &packets);
            assert_eq!(receive(&mut *b, packets.len()), packets);
            std::mem::swap(&mut a, &mut b);
        }
        assert!(drain(&mut *a).is_empty() && drain(&mut *b).is_empty(), "sent frames are not received");
        let statistics = b.statistics();
        assert_eq!((statistics.tx_packets, statistics.rx_packets), (8, 8));
        assert_eq!(statistics.rx_bytes, packets.iter().map(|p| p.len() as u64).sum::<u64>());
        assert_eq!(statistics.named_drops().map(|(_, n)| n).sum::<u64>(), 0);
    });
}

#[test]
fn unsendable_frames_are_named_drops_and_do_not_delay_others() {
    in_lab("raw::unsendable_frames_are_named_drops_and_do_not_delay_others", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
        let good = packet(&[], 60, 1);
        send(&mut *a, &[good.clone(), packet(&[], 1600, 2), vec![1; 13], packet(&[], 1515, 3), good.clone()]);
        assert_eq!(receive(&mut *b, 2), [good.clone(), good.clone()]);
        assert_eq!(
            (a.statistics().drops(PortDrop::TxOversized), a.statistics().drops(PortDrop::TxRunt)),
            (2, 1)
        );
        assert_eq!(a.statistics().tx_packets, 2);

        await_link(&mut *a, true);
        run("ip link set va down");
        await_link(&mut *a, false);
        await_link(&mut *b, false);
        send(&mut *a, &[good.clone(), good.clone()]);
        assert_eq!(a.statistics().drops(PortDrop::TxLinkDown), 2);
        run("ip link set va up");
        await_link(&mut *a, true);
        send(&mut *a, std::slice::from_ref(&good));
        assert_eq!(receive(&mut *b, 1), [good]);
    });
}

#[test]
fn the_link_reports_mac_mtu_and_speed() {
    in_lab("raw::the_link_reports_mac_mtu_and_speed", 0, |_: &Lab| {
        veth("va", "vb");
        run("ip link set va address 02:00:00:00:12:34 mtu 1400");
        let mut a = open_one(1, "va");
        await_link(&mut *a, true);
        let link = a.poll_link();
        assert_eq!((link.up, link.mac, link.mtu), (true, Some([2, 0, 0, 0, 0x12, 0x34]), Some(1400)));
        assert_eq!(link.speed_mbps, Some(10_000));
        // The kernel reports changes, so they are visible before the next periodic query.
        run("ip link set va address 02:00:00:00:12:35");
        run("ip link set va mtu 1300");
        let link = a.poll_link();
        assert_eq!((link.up, link.mac, link.mtu), (true, Some([2, 0, 0, 0, 0x12, 0x35]), Some(1300)));
        run("ip link set va down");
        assert!(!a.poll_link().up);
        run("ip link set va name vc");
        assert_eq!(a.poll_link().mac, None);
        run("ip link add name va type veth peer name vd");
        assert_eq!(a.generation(), 0);
        a.poll_link();
        assert_eq!(a.generation(), 1, "the port uses the interface that has the name now");
    });
}

#[test]
fn errors_name_a_remedy() {
    in_lab("raw::errors_name_a_remedy", 0, |lab: &Lab| {
        let message = |device: &str, queues| port::open(&spec(3, device, queues)).err().unwrap().to_string();
        let missing = message("nosuch0", 1);
        assert!(missing.contains("port3") && missing.contains("\"nosuch0\"") && missing.contains("ip link"));
        assert!(message("a-name-that-is-too-long", 1).contains("1 to 15 bytes"));
        assert!(message("lo", 0).contains("1 to 256"));
        if std::path::Path::new("/dev/net/tun").exists() {
            run("ip tuntap add dev tun7 mode tun");
            assert!(message("tun7", 1).contains("not an Ethernet interface"));
        }
        let helper = lab
            .start_with(&["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"], "unprivileged");
        helper.join();
    });
}

#[test]
fn fanout_gives_each_packet_to_exactly_one_queue() {
    in_lab("raw::fanout_gives_each_packet_to_exactly_one_queue", 0, |_: &Lab| {
        veth("va", "vb");
        let mut queues = port::open(&spec(1, "va", 2)).unwrap();
        let mut sender = open_one(2, "vb");
        const FLOWS: u16 = 100;
        const ROUNDS: u8 = 20;
        for round in 0..ROUNDS {
            let burst: Vec<_> = (0..FLOWS).map(|flow| udp(flow, round)).collect();
            send(&mut *sender, &burst);
            pause();
        }
        let mut queue_of = HashMap::new();
        let mut next_of = HashMap::new();
        let mut total = 0;
        for (number, queue) in queues.iter_mut().enumerate() {
            let packets = drain(&mut **queue);
            assert!(packets.len() > 200, "queue {number} got {}", packets.len());
            assert_eq!(queue.statistics().rx_packets, packets.len() as u64);
            total += packets.len();
            for packet in packets {
                let flow = u16::from_be_bytes([packet[34], packet[35]]);
                assert_eq!(*queue_of.entry(flow).or_insert(number), number, "flow {flow} is on two queues");
                let next = next_of.entry(flow).or_insert(0);
                assert_eq!(packet[42], *next, "flow {flow} is out of order");
                *next += 1;
            }
        }
        assert_eq!(total, usize::from(FLOWS) * usize::from(ROUNDS));
        let mut other = open_one(3, "va");
        send(&mut *queues[0], &[udp(1, 99)]);
        send(&mut *other, &[udp(1, 98)]);
        assert_eq!(receive(&mut *sender, 2), [udp(1, 99), udp(1, 98)]);
        queues.push(other);
        for queue in &mut queues {
            assert!(
                drain(&mut **queue).is_empty(),
                "frames that other programs send through the interface are not received"
            );
        }
    });
}

#[test]
fn unsent_bytes_of_a_slow_device_are_outstanding() {
    in_lab("raw::unsent_bytes_of_a_slow_device_are_outstanding", 0, |_: &Lab| {
        const PACKETS: usize = 40;
        veth("va", "vb");
        let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
        let packets = vec![packet(&[], 1_000, 1); PACKETS];
        send(&mut *a, &packets);
        assert_eq!(receive(&mut *b, PACKETS), packets);
        assert_eq!(a.outstanding().bytes, 0, "this device sends immediately");
        // The rate is 1,000 bytes per second.
        run("tc qdisc add dev va root handle 1: htb default 1");
        run("tc class add dev va parent 1: classid 1:1 htb rate 8kbit burst 1600 cburst 1600");
        send(&mut *a, &packets);
        let bytes = a.outstanding().bytes;
        assert!((PACKETS - 4) * 1_000 < bytes && bytes < PACKETS * 2_304, "{bytes}");
        run("tc qdisc del dev va root");
        assert_eq!(a.outstanding().bytes, 0, "frames that will not be sent do not count");
    });
}

/// Returns a UDP packet from port `flow` that carries `mark`.
pub fn udp(flow: u16, mark: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17];
    bytes.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(flow.to_be_bytes());
    bytes.extend([0, 80, 0, 26, 0, 0]);
    bytes.resize(60, mark);
    bytes
}

#[test]
fn a_removed_and_recreated_device_is_reopened() {
    in_lab("raw::a_removed_and_recreated_device_is_reopened", 0, |_: &Lab| {
        veth("va", "vb");
        let mut queues = port::open(&spec(1, "va", 2)).unwrap();
        // In the second round the new interface has the index of the old one.
        for round in 1..=2 {
            run("ip link del va");
            for queue in &mut queues {
                assert_survives_without_device(&mut **queue, round);
            }
            run("ip link add name va index 77 type veth peer name vb");
            run("ip link set va up");
            run("ip link set vb up");
            let mut b = open_one(2, "vb");
            for queue in &mut queues {
                await_link(&mut **queue, true);
                send(&mut **queue, &[packet(&[], 60, 2)]);
                assert_eq!(receive(&mut *b, 1), [packet(&[], 60, 2)]);
            }
            let burst: Vec<_> = (0..100).map(|flow| udp(flow, 0)).collect();
            send(&mut *b, &burst);
            let counts: Vec<_> = queues.iter_mut().map(|queue| drain(&mut **queue).len()).collect();
            assert_eq!(counts.iter().sum::<usize>(), 100, "{counts:?}");
            assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        }
    });
}

#[test]
fn a_reopened_device_keeps_its_descriptor_and_advances_its_generation() {
    in_lab("raw::a_reopened_device_keeps_its_descriptor_and_advances_its_generation", 0, |_: &Lab| {
        veth("va", "vb");
        let mut a = open_one(1, "va");
        let descriptor = a.descriptor().unwrap();
        run("ip link del va");
        // The socket error that reports the loss of the device ends a sleep. Only the queue may clear the
        // error.
        let wait = |limit_ms| port::wait::wait(&[descriptor], Some(Duration::from_millis(limit_ms))).unwrap();
        assert_eq!((wait(1000), wait(1000)), (1, 1));
        assert_eq!(a.descriptor(), Some(descriptor));
        assert_eq!((wait(10), a.generation()), (0, 0));
        await_link(&mut *a, false);
        veth("va", "vb");
        let before = descriptors();
        await_link(&mut *a, true);
        assert_eq!((a.generation(), a.descriptor()), (1, Some(descriptor)));
        assert_eq!(descriptors(), before, "the old socket is closed");
        let mut b = open_one(2, "vb");
        send(&mut *b, &[packet(&[], 60, 5)]);
        assert_eq!(wait(1000), 1, "the descriptor's number refers to the new socket");
        assert_eq!(receive(&mut *a, 1), [packet(&[], 60, 5)]);
        a.poll_link();
        assert_eq!(a.generation(), 1);
    });
}

/// Returns the number of descriptors that this process has open.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn assert_survives_without_device(queue: &mut dyn Queue, drops: u64) {
    await_link(queue, false);
    send(queue, &[packet(&[], 60, 1)]);
    assert_eq!(queue.statistics().drops(PortDrop::TxLinkDown), drops);
    let ready = port::wait::wait(&[queue.descriptor().unwrap()], Some(Duration::from_millis(10))).unwrap();
    assert_eq!(ready, 0, "a missing device does not wake the thread again");
    assert_eq!(queue.receive(&mut Pools::new(0, 8, 0), &mut Vec::new(), 8, Stamp::NONE), 0);
}

#[test]
fn without_buffers_packets_wait_and_ring_overflows_are_counted() {
    in_lab("raw::without_buffers_packets_wait_and_ring_overflows_are_counted", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
        let mut pools = Pools::new(0, 2, 0);
        let mut burst = Vec::new();
        send(&mut *a, &[packet(&[], 60, 1), packet(&[], 60, 2), packet(&[], 60, 3)]);
        fill(&mut *b, &mut pools, &mut burst, 2);
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(b.receive(&mut pools, &mut burst, 8, Stamp::NONE), 0);
        burst.drain(..).for_each(|frame| pools.put(frame).unwrap());
        fill(&mut *b, &mut pools, &mut burst, 1);
        assert_eq!((burst[0].bytes()[59], burst[0].meta.sequence, burst[0].meta.in_port), (3, 2, 2));

        const SENT: u64 = 10_000;
        let flood: Vec<_> = (0..50).map(|_| packet(&[], 60, 9)).collect();
        for _ in 0..SENT / 50 {
            send(&mut *a, &flood);
            pause();
        }
        let received = drain(&mut *b).len() as u64;
        assert!(received >= 4000, "{received}");
        assert_eq!(received + b.statistics().drops(PortDrop::RxKernel), SENT);
    });
}

#[test]
fn a_receive_ring_has_space_for_its_number_of_packets() {
    in_lab("raw::a_receive_ring_has_space_for_its_number_of_packets", 0, |_: &Lab| {
        veth("va", "vb");
        let mut a = open_one(1, "va");
        let flood: Vec<_> = (0..50).map(|_| packet(&[], 60, 9)).collect();
        for (packets, space) in [(Some(256), 256), (Some(300), 512), (None, 4096), (Some(8192), 8192)] {
            let spec = Spec { receive_ring: packets, ..spec(2, "vb", 1) };
            let mut b = port::open(&spec).unwrap().remove(0);
            let sent = (space / 50 + 2) * 50;
            for _ in 0..sent / 50 {
                send(&mut *a, &flood);
                pause();
            }
            let received = drain(&mut *b).len();
            let lost = b.statistics().drops(PortDrop::RxKernel) as usize;
            assert_eq!((received, lost), (space, sent - space), "{packets:?}");
        }
    });
}

#[test]
fn long_frames_are_received_complete_if_there_is_space() {
    in_lab("raw::long_frames_are_received_complete_if_there_is_space", 0, |_: &Lab| {
        veth("va", "vb");
        let mut b = open_one(2, "vb");
        // The slots of the ring have the size for the old MTU.
        run("ip link set va mtu 9000");
        run("ip link set vb mtu 9000");
        let mut a = open_one(1, "va");
        let packets = [packet(&[0x81, 0, 0, 5], 9018, 1), packet(&[], 60, 2), packet(&[], 2047, 3)];
        send(&mut *a, &packets);
        assert_eq!(receive(&mut *b, 3), packets);
        send(&mut *a, &packets);
        let mut burst = Vec::new();
        fill(&mut *b, &mut Pools::new(0, 8, 0), &mut burst, 2);
        assert_eq!(b.statistics().drops(PortDrop::RxOversized), 1);
        let mut frames = burst;
        b.transmit(&mut frames, &mut Vec::new());
        assert_eq!(receive(&mut *a, 2), packets[1..]);
    });
}

#[test]
fn long_frames_without_room_do_not_hold_short_ones() {
    in_lab("raw::long_frames_without_room_do_not_hold_short_ones", 0, |_: &Lab| {
        veth("va", "vb");
        run("ip link set va mtu 9000");
        run("ip link set vb mtu 9000");
        for resized in [false, true] {
            // Long packets arrive in slots or, if the slots were sized for another MTU, in the socket's
            // queue.
            let mtu = if resized { 1500 } else { 9000 };
            run(&format!("ip link set vb mtu {mtu}"));
            let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
            run("ip link set vb mtu 9000");
            let mut pools = Pools::new(0, 8, 1);
            let mut burst = Vec::new();
            let packets = [(9000, 1), (5000, 2), (60, 3), (6000, 4), (60, 5)];
            let packets = packets.map(|(len, fill)| packet(&[], len, fill));
            send(&mut *a, &packets);
            fill(&mut *b, &mut pools, &mut burst, 3);
            assert_eq!(b.statistics().drops(PortDrop::RxNoLargeFrame), 2);
            burst.drain(..).zip([0, 2, 4]).for_each(|(frame, at)| {
                assert!(frame.bytes() == packets[at], "packet {at}");
                pools.put(frame).unwrap();
            });
            // Without any free frame, small or large, all packets wait.
            let mut held: Vec<_> = std::iter::from_fn(|| pools.get(60)).collect();
            held.extend(std::iter::from_fn(|| pools.get(9000)));
            assert_eq!(held.len(), 9);
            send(&mut *a, &packets[..1]);
            pause();
            assert_eq!(b.receive(&mut pools, &mut burst, 8, Stamp::NONE), 0);
            held.into_iter().for_each(|frame| pools.put(frame).unwrap());
            fill(&mut *b, &mut pools, &mut burst, 1);
            assert!(burst[0].bytes() == packets[0]);
            assert_eq!(b.statistics().drops(PortDrop::RxNoLargeFrame), 2);
        }
    });
}

/// Returns a super-frame with 5,000 bytes of payload and a partial checksum after `front`: Ethernet header,
/// tags and IP header.
pub fn super_frame(front: &[u8], kind: GsoKind, size: u16) -> Frame {
    let (l4_len, offset) = if kind == GsoKind::Udp { (8, 6) } else { (20, 16) };
    let mut bytes = front.to_vec();
    bytes.resize(front.len() + l4_len, 0);
    if kind == GsoKind::Udp {
        bytes[front.len() + 4..front.len() + 6].copy_from_slice(&5008_u16.to_be_bytes());
    } else {
        bytes[front.len() + 12] = 0x50;
    }
    bytes.resize(bytes.len() + 5000, 0xa5);
    let mut frame = Frame::from_bytes(&bytes);
    let start = front.len() as u16;
    frame.meta.checksum = Some(PartialChecksum { start, offset });
    frame.meta.gso = Some(Gso { kind, ecn: false, size, header_len: start + l4_len as u16 });
    frame
}

#[test]
fn super_frames_of_every_kind_keep_bytes_and_metadata() {
    in_lab("raw::super_frames_of_every_kind_keep_bytes_and_metadata", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_one(1, "va"), open_one(2, "vb"));
        let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let tag = [0x81, 0, 0x60, 5];
        let v4 = |protocol: u8, len: u16| {
            let [high, low] = len.to_be_bytes();
            [&[8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0][..], &[2]]
                .concat()
        };
        let v6 = |protocol: u8, len: u16| {
            let [high, low] = len.to_be_bytes();
            [&[0x86, 0xdd, 0x60, 0, 0, 0, high, low, protocol, 64][..], &[0xfd; 32]].concat()
        };
        let tcp4 = v4(6, 5040);
        let mut frames = vec![
            super_frame(&[&macs[..], &tcp4].concat(), GsoKind::Tcp4, 1460),
            super_frame(&[&macs[..], &tag, &tcp4].concat(), GsoKind::Tcp4, 1460),
            super_frame(&[&macs[..], &tag, &tag, &tcp4].concat(), GsoKind::Tcp4, 1400),
            super_frame(&[&macs[..], &v6(6, 5020)].concat(), GsoKind::Tcp6, 1440),
        ];
        if knows_udp_super_frames() {
            frames.push(super_frame(&[&macs[..], &v4(17, 5028)].concat(), GsoKind::Udp, 1000));
            frames.push(super_frame(&[&macs[..], &tag, &v6(17, 5008)].concat(), GsoKind::Udp, 1200));
        }
        let mut out: Vec<_> = frames.iter().map(copy).collect();
        out.insert(0, super_frame(&[&macs[..], &tcp4].concat(), GsoKind::Tcp4, 1461));
        assert_eq!(a.transmit(&mut out, &mut Vec::new()), frames.len() + 1);
        assert_eq!(a.statistics().drops(PortDrop::TxOversized), 1);
        assert_eq!(a.statistics().tx_packets, frames.len() as u64);
        let mut burst = Vec::new();
        fill(&mut *b, &mut Pools::new(0, 64, 8), &mut burst, frames.len());
        for (sent, got) in frames.iter().zip(&burst) {
            assert_eq!((got.meta.checksum, got.meta.gso), (sent.meta.checksum, sent.meta.gso));
            assert!(got.bytes() == sent.bytes(), "{:?}", sent.meta);
        }
    });
}

/// Returns whether the kernel supports UDP super-frames (Linux 6.2 or later).
fn knows_udp_super_frames() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0_u32));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 2)
}

fn copy(frame: &Frame) -> Frame {
    let mut copy = Frame::from_bytes(frame.bytes());
    copy.meta = frame.meta;
    copy
}
