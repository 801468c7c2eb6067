// SPDX-License-Identifier: Apache-2.0
//! The sockets of an af_xdp port move to a newer port on the same interface, with the packets in them.

use crate::lab::{Lab, drain, in_lab, open_one, receive, run, send, spec_of, veth};
use crate::raw::{await_link, packet};
use crate::takeover::{Log, Sender, numbered};
use frame::{Frame, Stamp};
use port::{Handover, Inherited, Pools, PortDrop, PortHandle, Queue, Queues, Spec, XdpRings, XdpSockets};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Number of entries of a receive ring.
const RING: usize = 2048;

fn open_first(queues: usize) -> Queues {
    port::open(&Spec { handover: Handover::Possible, ..spec_of("af_xdp", 1, "va", queues) }).unwrap()
}

fn rings_of(queues: &Queues) -> XdpRings {
    let PortHandle::Rings(rings) = queues[0].handle().unwrap() else { unreachable!("another driver") };
    rings
}

/// Makes a port stop using its rings.
fn stop(queues: &Queues) {
    rings_of(queues).hold();
    rings_of(queues).release();
}

/// Makes a queue notice how it may use its rings, without receiving or sending a packet.
fn call(queues: &mut Queues) {
    assert_eq!(queues[0].transmit(&mut Vec::new(), &mut Vec::new()), 0);
}

/// Opens the next generation of a port. It gets copies of all descriptors, like another process.
fn next_of(queues: &Queues) -> Queues {
    let sockets = rings_of(queues).sockets().unwrap();
    let copies = sockets.descriptors().iter().map(|fd| fd.as_fd().try_clone_to_owned().unwrap()).collect();
    assert_eq!(sockets.queues(), queues.len());
    let sockets = Arc::new(XdpSockets::new(copies, queues.len()).unwrap());
    let handover = Handover::From(Inherited::Sockets(sockets));
    port::open(&Spec { handover, ..spec_of("af_xdp", 1, "va", queues.len()) }).unwrap()
}

/// Moves the sockets of a port to a newer one, and closes the older port.
fn move_on(mut older: Queues, log: &mut Log, generation: u32, newer: &mut Queues) {
    let rings = rings_of(&older);
    rings.hold();
    assert!(!rings.have_noticed(), "a queue may receive until its next call");
    assert_eq!(log.take(&mut older, generation - 1), 0, "a port that is held receives nothing");
    rings.release();
    assert!(!rings.have_noticed(), "a queue may send until its next call");
    assert_eq!(log.take(&mut older, generation - 1), 0);
    assert!(rings.have_noticed());
    log.take_some(newer, generation, 1_000);
    let (mut frames, mut done) = (vec![Frame::from_bytes(&packet(&[], 60, 1))], Vec::new());
    assert_eq!(older[0].transmit(&mut frames, &mut done), 0, "frames wait, because the upgrade may fail");
    rings.abandon();
    assert_eq!(older[0].transmit(&mut frames, &mut done), 1);
    assert_eq!((done.len(), older[0].statistics().drops(PortDrop::TxLinkDown)), (1, 1));
    drop(older);
    log.take_some(newer, generation, 5_000);
}

fn move_in_traffic(queues: usize) {
    run(&format!(
        "ip link add va numtxqueues {queues} numrxqueues {queues} type veth peer name vb numtxqueues {queues} \
         numrxqueues {queues}"
    ));
    run("ip link set va up");
    run("ip link set vb up");
    let mut older = open_first(queues);
    let sender = Sender::start("vb");
    let mut log = Log::new(&sender);
    log.take_some(&mut older, 0, 5_000);
    for generation in 1..4 {
        let mut newer = next_of(&older);
        log.take_some(&mut older, generation - 1, 5_000);
        move_on(older, &mut log, generation, &mut newer);
        older = newer;
    }
    let sent = sender.stop();
    while log.take(&mut older, 3) > 0 {}
    log.assert_complete(sent);
    log.assert_in_order();
    assert_eq!(older[0].statistics().named_drops().map(|(_, n)| n).sum::<u64>(), 0);
}

#[test]
fn one_queue_moves_without_loss() {
    in_lab("xdp_takeover::one_queue_moves_without_loss", 0, |_: &Lab| move_in_traffic(1));
}

#[test]
fn two_queues_move_without_loss() {
    in_lab("xdp_takeover::two_queues_move_without_loss", 0, |_: &Lab| move_in_traffic(2));
}

/// Each generation leaves send chunks in the rings. None of them may get lost or be used twice.
#[test]
fn each_generation_sends_its_own_frames_whole() {
    in_lab("xdp_takeover::each_generation_sends_its_own_frames_whole", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(1);
        let mut receiver = open_one(2, "vb");
        // If each generation lost the chunks that it leaves in the rings, no send chunk would be left.
        for generation in 0..48 {
            for round in 0..4 {
                let burst: Vec<_> = (0..24).map(|n| numbered(generation * 1_000 + round * 32 + n)).collect();
                send(&mut *older[0], &burst);
                assert_eq!(receive(&mut *receiver, burst.len()), burst, "{generation}, {round}");
            }
            let newer = next_of(&older);
            let rings = rings_of(&older);
            rings.hold();
            // A held port still sends what it has received.
            send(&mut *older[0], &[packet(&[], 1514, 7)]);
            rings.release();
            assert_eq!(receive(&mut *receiver, 1), [packet(&[], 1514, 7)]);
            older = newer;
        }
        call(&mut older);
        assert_eq!(older[0].outstanding().bytes, 0);
    });
}

#[test]
fn an_abandoned_move_changes_nothing() {
    in_lab("xdp_takeover::an_abandoned_move_changes_nothing", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(1);
        let sender = Sender::start("vb");
        let mut log = Log::new(&sender);
        log.take_some(&mut older, 0, 2_000);
        let rings = rings_of(&older);
        // The newer process ends before it uses the rings.
        let unused = next_of(&older);
        stop(&older);
        assert_eq!(log.take(&mut older, 0), 0);
        drop(unused);
        rings.resume();
        log.take_some(&mut older, 0, 2_000);
        // It ends after it has used the rings.
        let mut newer = next_of(&older);
        stop(&older);
        log.take_some(&mut newer, 0, 2_000);
        drop(newer);
        rings.resume();
        log.take_some(&mut older, 0, 5_000);
        let sent = sender.stop();
        while log.take(&mut older, 0) > 0 {}
        log.assert_complete(sent);
        let mut receiver = open_one(2, "vb");
        send(&mut *older[0], &[packet(&[], 60, 3)]);
        assert_eq!(receive(&mut *receiver, 1), [packet(&[], 60, 3)]);
    });
}

fn drops(queues: &Queues) -> u64 {
    queues[0].statistics().drops(PortDrop::RxKernel)
}

/// Sends packets faster than the receiver takes them.
fn flood(sender: &mut dyn Queue, count: usize) {
    for _ in 0..count / 32 {
        send(sender, &vec![packet(&[], 60, 9); 32]);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn drops_of_the_kernel_are_counted_once() {
    in_lab("xdp_takeover::drops_of_the_kernel_are_counted_once", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(1);
        let mut sender = open_one(2, "vb");
        flood(&mut *sender, RING);
        // The numbers of drops before the move, before the newer port uses the rings, and afterwards.
        for (before, between, after) in [(0, 0, 64), (0, 96, 0), (320, 64, 32)] {
            let counted = drops(&older);
            flood(&mut *sender, before);
            assert_eq!(drops(&older), counted + before as u64);
            let mut newer = next_of(&older);
            stop(&older);
            flood(&mut *sender, between);
            call(&mut newer);
            flood(&mut *sender, after);
            let counts = (drops(&older) - counted, drops(&newer));
            assert_eq!(counts, ((before + between) as u64, after as u64));
            older = newer;
        }
        assert_eq!(drain(&mut *older[0]).len(), RING);
    });
}

#[test]
fn a_failed_upgrade_changes_no_counter() {
    in_lab("xdp_takeover::a_failed_upgrade_changes_no_counter", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(1);
        let mut sender = open_one(2, "vb");
        flood(&mut *sender, RING + 64);
        let rings = rings_of(&older);
        rings.resume();
        call(&mut older);
        assert_eq!(drops(&older), 64, "nothing was limited");
        let mut newer = next_of(&older);
        stop(&older);
        call(&mut newer);
        flood(&mut *sender, 32);
        drop(newer);
        rings.resume();
        call(&mut older);
        assert_eq!(drops(&older), 96);
        assert_eq!(drain(&mut *older[0]).len(), RING);
    });
}

#[test]
fn an_interface_that_vanishes_after_the_move_is_opened_again() {
    in_lab("xdp_takeover::an_interface_that_vanishes_after_the_move_is_opened_again", 0, |_: &Lab| {
        veth("va", "vb");
        let mut older = open_first(1);
        let mut first = open_one(2, "vb");
        let packets = vec![packet(&[], 60, 4); 20];
        send(&mut *first, &packets);
        assert_eq!(receive(&mut *older[0], 20), packets);
        drop(first);
        let rings = rings_of(&older);
        let openings = rings.openings();
        let mut newer = next_of(&older);
        stop(&older);
        assert_eq!(rings.openings(), openings);
        drop(older);
        call(&mut newer);
        run("ip link del va");
        await_link(&mut *newer[0], false);
        veth("va", "vb");
        await_link(&mut *newer[0], true);
        let mut sender = open_one(2, "vb");
        await_link(&mut *sender, true);
        send(&mut *sender, &[packet(&[], 60, 5)]);
        assert_eq!(receive(&mut *newer[0], 1), [packet(&[], 60, 5)]);
        assert_eq!(newer[0].statistics().named_drops().map(|(_, n)| n).sum::<u64>(), 0);
        assert_eq!(rings_of(&newer).openings(), 2, "earlier descriptors are outdated");
        // The new socket can be handed over, too.
        let mut third = next_of(&newer);
        stop(&newer);
        send(&mut *sender, &[packet(&[], 60, 6)]);
        assert_eq!(receive(&mut *third[0], 1), [packet(&[], 60, 6)]);
    });
}

#[test]
fn unsuitable_descriptors_are_refused() {
    in_lab("xdp_takeover::unsuitable_descriptors_are_refused", 0, |_: &Lab| {
        veth("va", "vb");
        let older = open_first(1);
        let sockets = rings_of(&older).sockets().unwrap();
        let copies = || -> Vec<OwnedFd> {
            sockets.descriptors().iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect()
        };
        assert!(XdpSockets::new(copies(), 2).is_none());
        assert!(XdpSockets::new(copies().split_off(1), 1).is_none());
        let open = |sockets, queues| {
            let handover = Handover::From(Inherited::Sockets(Arc::new(sockets)));
            port::open(&Spec { handover, ..spec_of("af_xdp", 1, "va", queues) }).err().unwrap().to_string()
        };
        let other_number = open(XdpSockets::new(copies(), 1).unwrap(), 2);
        assert!(other_number.contains("as many as in the old process"), "{other_number}");
        let mut wrong = copies();
        wrong.swap(0, 3);
        let wrong = open(XdpSockets::new(wrong, 1).unwrap(), 1);
        assert!(wrong.contains("continue the AF_XDP socket"), "{wrong}");
        let mut wrong = copies();
        wrong[4] = std::fs::File::open("/proc/self/exe").unwrap().into();
        let wrong = open(XdpSockets::new(wrong, 1).unwrap(), 1);
        assert!(wrong.contains("continue the AF_XDP socket"), "{wrong}");
        let alone = port::open(&spec_of("af_xdp", 2, "vb", 1)).unwrap();
        assert!(alone[0].handle().is_none(), "a port that is never handed over has private memory");
        let mut pools = Pools::new(0, 4, 0);
        assert_eq!({ older }[0].receive(&mut pools, &mut Vec::new(), 4, Stamp::NONE), 0);
    });
}
