// SPDX-License-Identifier: Apache-2.0
//! Raw frames between two interfaces of the af_xdp driver.

use crate::lab::{Lab, drain, fill, in_lab, open_one, open_xdp, receive, run, send, spec_of, veth};
use crate::raw::{await_link, descriptors, packet, pause, udp};
use frame::{Frame, Stamp};
use port::{Pools, PortDrop, Queue};
use std::time::{Duration, Instant};

#[test]
fn frames_pass_both_ways_with_their_tags() {
    in_lab("xdp::frames_pass_both_ways_with_their_tags", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_xdp(1, "va"), open_xdp(2, "vb"));
        let packets = [
            packet(&[], 60, 1),
            packet(&[0x81, 0, 0x60, 5], 64, 2),
            packet(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5], 68, 4),
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
        assert_eq!((statistics.tx_packets, statistics.rx_packets), (6, 6));
        assert_eq!(statistics.rx_bytes, packets.iter().map(|p| p.len() as u64).sum::<u64>());
        assert_eq!(statistics.named_drops().map(|(_, n)| n).sum::<u64>(), 0);
        // Frames sent by one driver are received by the other.
        let mut c = {
            drop(b);
            open_one(3, "vb")
        };
        send(&mut *a, &packets);
        assert_eq!(receive(&mut *c, packets.len()), packets);
        send(&mut *c, &packets);
        assert_eq!(receive(&mut *a, packets.len()), packets);
    });
}

#[test]
fn many_rounds_of_the_rings_keep_order_and_bytes() {
    in_lab("xdp::many_rounds_of_the_rings_keep_order_and_bytes", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_xdp(1, "va"), open_xdp(2, "vb"));
        for round in 0..200_u16 {
            let burst: Vec<_> = (0..50).map(|n| udp(round, n)).collect();
            send(&mut *a, &burst);
            assert_eq!(receive(&mut *b, burst.len()), burst, "round {round}");
        }
        assert_eq!(a.outstanding().bytes, 0);
    });
}

#[test]
fn unsendable_frames_are_named_drops_and_do_not_delay_others() {
    in_lab("xdp::unsendable_frames_are_named_drops_and_do_not_delay_others", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_xdp(1, "va"), open_xdp(2, "vb"));
        await_link(&mut *a, true);
        let good = packet(&[], 60, 1);
        send(&mut *a, &[good.clone(), packet(&[], 1600, 2), vec![1; 13], packet(&[], 1515, 3), good.clone()]);
        assert_eq!(receive(&mut *b, 2), [good.clone(), good.clone()]);
        assert_eq!(
            (a.statistics().drops(PortDrop::TxOversized), a.statistics().drops(PortDrop::TxRunt)),
            (2, 1)
        );
        assert_eq!(a.statistics().tx_packets, 2);
        run("ip link set va down");
        // Send more frames than the ring holds. None of them may leave when the link is up again.
        for _ in 0..100 {
            send(&mut *a, &vec![packet(&[], 60, 9); 20]);
        }
        assert_eq!(a.statistics().drops(PortDrop::TxLinkDown), 2000);
        await_link(&mut *a, false);
        run("ip link set va up");
        await_link(&mut *a, true);
        let burst: Vec<_> = (0..40).map(|n| packet(&[], 60, n)).collect();
        send(&mut *a, &burst);
        assert_eq!(receive(&mut *b, burst.len()), burst);
        assert!(drain(&mut *b).is_empty());
    });
}

#[test]
fn a_removed_and_recreated_device_is_reopened() {
    in_lab("xdp::a_removed_and_recreated_device_is_reopened", 0, |_: &Lab| {
        let make = || {
            run(
                "ip link add name va index 77 numtxqueues 2 numrxqueues 2 type veth peer name vb numtxqueues 2 numrxqueues 2",
            );
            run("ethtool -L va rx 2 tx 2");
            run("ethtool -L vb rx 2 tx 2");
            run("ip link set va up");
            run("ip link set vb up");
        };
        make();
        let mut queues = port::open(&spec_of("af_xdp", 1, "va", 2)).unwrap();
        let numbers: Vec<_> = queues.iter().map(|queue| queue.descriptor()).collect();
        let mut open = descriptors();
        for round in 1..=3 {
            run("ip link del va");
            for queue in &mut queues {
                await_link(&mut **queue, false);
                send(&mut **queue, &[packet(&[], 60, 1)]);
                assert_eq!(queue.statistics().drops(PortDrop::TxLinkDown), round);
                assert_eq!(queue.receive(&mut Pools::new(0, 8, 0), &mut Vec::new(), 8, Stamp::NONE), 0);
            }
            // The new interface has the index of the old one.
            make();
            for queue in &mut queues {
                await_link(&mut **queue, true);
                assert_eq!(queue.generation(), round);
            }
            if round == 1 {
                open = descriptors();
            }
            assert_eq!(descriptors(), open, "old sockets are closed");
            let mut b = open_one(2, "vb");
            for queue in &mut queues {
                send(&mut **queue, &[packet(&[], 60, 2)]);
                assert_eq!(receive(&mut *b, 1), [packet(&[], 60, 2)]);
            }
            let burst: Vec<_> = (0..100).map(|flow| udp(flow, 0)).collect();
            send(&mut *b, &burst);
            let counts: Vec<_> = queues.iter_mut().map(|queue| drain(&mut **queue).len()).collect();
            assert_eq!(counts.iter().sum::<usize>(), 100, "{counts:?}");
            assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        }
        assert_eq!(queues.iter().map(|queue| queue.descriptor()).collect::<Vec<_>>(), numbers);
    });
}

#[test]
fn an_interface_is_free_immediately_after_close() {
    in_lab("xdp::an_interface_is_free_immediately_after_close", 0, |_: &Lab| {
        veth("va", "vb");
        let mut b = open_one(2, "vb");
        for round in 0..10 {
            let mut a = open_xdp(1, "va");
            send(&mut *b, &[packet(&[], 60, round)]);
            assert_eq!(receive(&mut *a, 1), [packet(&[], 60, round)]);
        }
        let show = std::process::Command::new("ip").args(["-d", "link", "show", "va"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&show.stdout).contains("xdp"), "the program is gone");
    });
}

#[test]
fn errors_name_a_remedy() {
    in_lab("xdp::errors_name_a_remedy", 0, |lab: &Lab| {
        let message = |device: &str, queues| {
            port::open(&spec_of("af_xdp", 3, device, queues)).err().unwrap().to_string()
        };
        let missing = message("nosuch0", 1);
        assert!(missing.contains("port3") && missing.contains("\"nosuch0\"") && missing.contains("ip link"));
        veth("va", "vb");
        let queues = message("va", 2);
        assert!(queues.contains("1 receive and 1 transmit") && queues.contains("ethtool -L"), "{queues}");
        run("ip link set va mtu 9000");
        let mtu = message("va", 1);
        assert!(mtu.contains("its MTU is 9000") && mtu.contains("3500"), "{mtu}");
        run("ip link set va mtu 1500");
        run("ip link set vb mtu 9000");
        let mtu = message("va", 1);
        assert!(mtu.contains("MTU") && mtu.contains("3500"), "{mtu}");
        run("ip link set vb mtu 1500");
        let _first = open_xdp(1, "va");
        let taken = message("va", 1);
        assert!(taken.contains("another program's XDP program"), "{taken}");
        for lacking in ["net_raw", "net_admin,-sys_admin", "bpf,-sys_admin"] {
            let caps = format!("-{lacking}");
            lab.start_with(&["setpriv", "--bounding-set", &caps, "--inh-caps", &caps], "unprivileged xdp")
                .join();
        }
    });
}

#[test]
fn without_buffers_packets_wait_and_ring_overflows_are_counted() {
    in_lab("xdp::without_buffers_packets_wait_and_ring_overflows_are_counted", 0, |_: &Lab| {
        veth("va", "vb");
        let (mut a, mut b) = (open_xdp(1, "va"), open_xdp(2, "vb"));
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
        assert!(received >= 2000, "{received}");
        let (lost, unsent) =
            (b.statistics().drops(PortDrop::RxKernel), a.statistics().drops(PortDrop::TxNoBuffer));
        assert_eq!(received + lost + unsent, SENT, "{received} {lost} {unsent}");
    });
}

#[test]
fn frames_wait_for_a_device_without_room_and_keep_their_order() {
    in_lab("xdp::frames_wait_for_a_device_without_room_and_keep_their_order", 0, |_: &Lab| {
        const FRAMES: usize = 900;
        stay_on_one_cpu();
        // The interface vd is slow, so frames from va wait there. The kernel limits the unsent bytes of a
        // socket.
        let (mut a, mut c) = bridge();
        run("tc qdisc add dev vd root handle 1: htb default 1");
        run("tc class add dev vd parent 1: classid 1:1 htb rate 8kbit burst 1600 cburst 1600");
        let before = a.statistics().tx_packets;
        let descriptor = a.descriptor();
        let frame = |n: usize| packet(&[], 60 + n / 256, n as u8);
        let mut frames: Vec<_> = (0..FRAMES).map(|n| Frame::from_bytes(&frame(n))).collect();
        let mut done = Vec::new();
        while a.transmit(&mut frames, &mut done) > 0 {}
        let taken = done.len();
        assert!(taken + frames.len() == FRAMES && (128..FRAMES).contains(&taken), "{taken}");
        assert!(a.outstanding().bytes > (taken - 64) * 60, "{}", a.outstanding().bytes);
        assert_eq!((descriptor.is_some(), a.descriptor()), (true, None), "no descriptor reports free space");
        run("tc class change dev vd parent 1: classid 1:1 htb rate 1gbit");
        let mut got = Vec::new();
        while got.len() < FRAMES {
            a.transmit(&mut frames, &mut done);
            a.receive(&mut Pools::new(0, 1, 0), &mut Vec::new(), 1, Stamp::NONE);
            let came = receive(&mut *c, 1);
            if came.is_empty() {
                break;
            }
            got.extend(sent_after(came));
        }
        got.extend(sent_after(drain(&mut *c)));
        assert!(got == (0..FRAMES).map(frame).collect::<Vec<_>>(), "{}", got.len());
        a.transmit(&mut frames, &mut done);
        assert_eq!((a.outstanding().bytes, a.descriptor()), (0, descriptor));
        assert_eq!((a.statistics().tx_packets - before, a.statistics().tx_dropped()), (FRAMES as u64, 0));
    });
}

/// Binds this process to one CPU. Frames that pass a virtual link wait in a backlog per CPU, so frames sent
/// from another CPU may overtake earlier frames.
fn stay_on_one_cpu() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = allowed.trim().split([',', '-']).next().unwrap();
    run(&format!("taskset --all-tasks --cpu-list --pid {first} {}", std::process::id()));
}

/// Returns the frame that shows that the bridge forwards. Further copies may arrive later.
fn first() -> Vec<u8> {
    packet(&[], 1000, 255)
}

/// Returns the frames sent after `first`. The bridge's own multicast frames are removed.
fn sent_after(came: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let is_sent = |frame: &Vec<u8>| frame[..6] == first()[..6] && *frame != first();
    came.into_iter().filter(is_sent).collect()
}

/// Opens interfaces va (af_xdp) and vc (af_packet). A bridge connects their peers vb and vd and forwards
/// frames.
fn bridge() -> (Box<dyn Queue>, Box<dyn Queue>) {
    veth("va", "vb");
    veth("vc", "vd");
    run("ip link add br0 type bridge");
    run("ip link set vb master br0");
    run("ip link set vd master br0");
    run("ip link set br0 up");
    let (mut a, mut c) = (open_xdp(1, "va"), open_one(2, "vc"));
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        send(&mut *a, &[first()]);
        send(&mut *c, &[first()]);
        if !drain(&mut *c).is_empty() && !drain(&mut *a).is_empty() {
            return (a, c);
        }
        assert!(Instant::now() < end, "the bridge does not forward");
    }
}

/// A bridge removes VLAN tags and passes them as metadata, which XDP does not see.
#[test]
fn tags_arrive_when_the_sender_does_not_leave_them_to_its_device() {
    in_lab("xdp::tags_arrive_when_the_sender_does_not_leave_them_to_its_device", 0, |_: &Lab| {
        let (mut a, mut c) = bridge();
        run("ethtool -K vb txvlan off");
        let tagged = packet(&[0x81, 0, 0, 5], 64, 1);
        send(&mut *c, std::slice::from_ref(&tagged));
        assert_eq!(sent_after(drain(&mut *a)), [tagged]);
    });
}
