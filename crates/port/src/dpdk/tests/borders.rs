// SPDX-License-Identifier: Apache-2.0
//! Edge cases of the driver: unusual mbufs, pools without free mbufs, ports of other drivers, and devices
//! that are removed with packets in their rings. Each test counts the free mbufs before and after.

use super::*;
use crate::{mem, pcap};
use frame::{FillLevel, Stamp};
use shim::odd::{self, OddKind};
use shim::{Pool, Port};

/// Sends a packet through a looped port. Returns the pool of the port.
fn pool_of(queue: &mut dyn Queue, pools: &mut Pools) -> Pool {
    assert_eq!(send(queue, pools, vec![Frame::from_bytes(&[1; 60])]), 1);
    let frames = receive(queue, pools, 1);
    let pool = odd::pool_of(&frames[0]).unwrap();
    free(pools, frames);
    pool
}

#[test]
fn only_an_unshared_single_mbuf_of_the_ports_pool_becomes_a_frame() {
    let _alone = alone();
    let (mut queue, mut pools) = (open_one("net_ring_odd"), pools());
    let (own, foreign) = (pool_of(&mut *queue, &mut pools), Pool::new("odd", 256, 0).unwrap());
    let port = Port::attach("net_ring_odd").unwrap();
    let before = [own.level(), foreign.level()];
    let cases = [
        (own, OddKind::ODD_PLAIN, true),
        (own, OddKind::ODD_FIRST, true),
        (own, OddKind::ODD_LAST_WITH_TAIL, true),
        (own, OddKind::ODD_LAST, false),
        (own, OddKind::ODD_SHARED, false),
        (own, OddKind::ODD_INDIRECT, false),
        (own, OddKind::ODD_EXTERNAL, false),
        (own, OddKind::ODD_CHAIN, false),
        (foreign, OddKind::ODD_PLAIN, false),
    ];
    let sent = packets([200; 9].into_iter());
    // Tests each kind alone, then all kinds in one burst.
    let singly = (0..cases.len()).map(|case| case..case + 1);
    for burst in singly.chain(std::iter::once(0..cases.len())).cycle().take(1_000) {
        let send = |at: usize| odd::send(&port, cases[at].0, cases[at].1, &sent[at]).unwrap();
        let held: Vec<_> = burst.clone().map(send).collect();
        let mut frames = receive(&mut *queue, &mut pools, burst.len());
        assert_eq!(frames.len(), burst.len());
        for (at, frame) in burst.clone().zip(&mut frames) {
            let (_, kind, stays) = cases[at];
            assert_eq!((frame.bytes(), is_mbuf(frame)), (&*sent[at], stays), "{kind:?}");
            frame.bytes_mut().fill(0xff);
        }
        // Changes of the frame do not affect other references to the packet.
        for (at, held) in burst.zip(held) {
            let mut copy = Frame::with_capacity(200, 0);
            assert!(held.is_none_or(|held| held.read(&mut copy) && copy.bytes() == sent[at]));
        }
        free(&mut pools, frames);
        assert_eq!([own.level(), foreign.level()], before);
    }
    port.forget();
}

#[test]
fn frames_wait_while_no_mbuf_is_free_for_their_copies() {
    let _alone = alone();
    let folder = Folder::new("empty");
    let (input, output) = (folder.write("in", &packets([60; 10].into_iter())), folder.file("out"));
    let mut queue = open_one(&format!("net_pcap_empty,rx_pcap={input},infinite_rx=1,tx_pcap={output}"));
    let (mut pools, mut held) = (pools(), Vec::new());
    // The device allocates mbufs for a whole burst or for none, so packets are received one by one.
    for _ in 0..MBUFS {
        queue.receive(&mut pools, &mut held, 1, Stamp::NONE);
    }
    assert_eq!(queue.buffers().free, 0);
    let sent = [vec![2; 60], vec![3; 8_000], vec![4; 60]];
    let mut frames: Vec<Frame> = sent.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
    let mut done = Vec::new();
    // Each pair is the number of mbufs freed, and the number of frames then sent. One mbuf is enough for the
    // first frame, but not for the jumbo frame.
    for (freed, taken) in [(0, 0), (1, 1), (1, 0), (10, 2)] {
        free(&mut pools, held.drain(..freed));
        let before = queue.buffers().free;
        assert_eq!(queue.transmit(&mut frames, &mut done), taken, "{freed} mbufs freed");
        assert_eq!(queue.buffers().free, before, "the device has sent them");
    }
    assert_eq!((frames.len(), done.len(), queue.statistics().tx_packets), (0, 3, 3));
    drop(queue);
    assert_eq!(read(&output), sent);
}

#[test]
fn mbufs_leave_through_other_drivers_and_return_to_their_pool() {
    let _alone = alone();
    let folder = Folder::new("others");
    let sent = packets([60, 600, 2_048, 2_100].into_iter());
    let input = folder.write("in", &sent);
    let mut queue =
        open_one(&format!("net_pcap_others,rx_pcap={input},infinite_rx=1,tx_pcap={}", folder.file("back")));
    let mut pools = Pools::new(0, 64, 32);
    let before = (queue.buffers(), pools.available(), pools.large.available());
    let file = folder.file("out");
    let spec = Spec { driver: pcap::NAME.into(), device: format!("out={file}"), ..spec("", 1) };
    let (mut pairs, mut peer) = mem::pair(7, 1, 64);
    let mut others = [pcap::open(&spec).unwrap().remove(0), Box::new(pairs.remove(0))];
    for _ in 0..200 {
        for other in &mut others {
            let frames = receive(&mut *queue, &mut pools, 32);
            assert!(frames.iter().any(is_mbuf) && frames.iter().any(|frame| !is_mbuf(frame)));
            let count = frames.len();
            assert_eq!(send(&mut **other, &mut pools, frames), count);
        }
        // The peer of the memory port sends the packets back, and they leave through the DPDK port.
        let mut count = 0;
        while let Some(bytes) = peer.pop(0) {
            assert!(sent.contains(&bytes));
            assert!(peer.push(0, &bytes));
            count += 1;
        }
        let frames = receive(&mut *others[1], &mut pools, count);
        assert_eq!(frames.len(), count);
        assert_eq!(send(&mut *queue, &mut pools, frames), count);
    }
    assert_eq!((queue.buffers(), pools.available(), pools.large.available()), before);
    drop(others);
    let written = read(&file);
    assert!(written.len() > 200 && written.iter().all(|bytes| sent.contains(bytes)));
}

#[test]
fn a_removed_device_keeps_no_packets() {
    let _alone = alone();
    let folder = Folder::new("rings");
    let input = folder.write("in", &packets([60; 40].into_iter()));
    let device = format!("net_pcap_rings,rx_pcap={input},infinite_rx=1,tx_pcap={}", folder.file("out"));
    let (mut queue, mut pools, mut held) = (open_one(&device), pools(), Vec::new());
    let all = queue.buffers().total;
    for round in 1..=2 {
        let burst = receive(&mut *queue, &mut pools, 32);
        // The device holds the 40 packets of the input in a ring.
        assert_eq!(queue.buffers(), FillLevel { free: all - 40 - burst.len() - held.len(), total: all });
        held.extend(burst);
        drop(Port::attach(&device).unwrap());
        assert!(!queue.poll_link().up);
        // Frames that were received before outlive the device, and no other mbuf is in use.
        assert_eq!(queue.buffers().free, all - held.len());
        assert!(held.iter().all(|frame| frame.len() == 60));
        free(&mut pools, held.drain(16..));
        let start = Instant::now();
        while !queue.poll_link().up {
            assert!(start.elapsed() < PATIENCE, "round {round}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let own = odd::pool_of(&held[0]).unwrap();
    drop(queue);
    free(&mut pools, held);
    assert_eq!(own.level().free, all);
}

#[test]
fn copies_that_a_full_device_does_not_take_are_freed() {
    let _alone = alone();
    let (mut queue, mut pools, mut done) = (open_one("net_ring_full"), pools(), Vec::new());
    let (own, filler) = (pool_of(&mut *queue, &mut pools), Pool::new("filler", 2_047, 0).unwrap());
    let port = Port::attach("net_ring_full").unwrap();
    let before = own.level();
    while odd::send(&port, filler, OddKind::ODD_PLAIN, &[5; 60]).is_some() {}
    let mut frames: Vec<Frame> = (0..3).map(|_| Frame::from_bytes(&[6; 60])).collect();
    assert_eq!((queue.transmit(&mut frames, &mut done), frames.len(), done.len()), (0, 3, 0));
    assert_eq!(own.level(), before);
    // The device has space for one packet.
    let mut received = Vec::new();
    assert_eq!(queue.receive(&mut pools, &mut received, 1, Stamp::NONE), 1);
    assert_eq!((queue.transmit(&mut frames, &mut done), frames.len(), done.len()), (1, 2, 1));
    assert_eq!(own.level().free, before.free - 1);
    // All packets leave the device, the copy last.
    let mut last = Vec::new();
    while !received.is_empty() {
        last = received[received.len() - 1].bytes().to_vec();
        free(&mut pools, received.drain(..));
        queue.receive(&mut pools, &mut received, 32, Stamp::NONE);
    }
    assert_eq!(last, [6; 60]);
    assert_eq!([own.level(), filler.level()], [before, FillLevel { free: 2_047, total: 2_047 }]);
    port.forget();
}
