// SPDX-License-Identifier: Apache-2.0
//! Tests of patch ports: connections, links, losses and the order in which rings are read.

use super::*;

fn spec(number: u32, cable: &str, queues: usize) -> Spec {
    Spec {
        number,
        name: format!("p{number}"),
        driver: NAME.into(),
        device: format!("{cable}-{}", std::process::id()),
        queues,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: crate::Handover::Never,
    }
}

fn port(number: u32, cable: &str, queues: usize) -> Queues {
    open(&spec(number, cable, queues)).unwrap()
}

/// Sends a frame with this name. Returns whether the queue took it.
fn send(queue: &mut Box<dyn Queue>, name: u8) -> bool {
    let mut frames = vec![Frame::from_bytes(&[name; 60])];
    queue.transmit(&mut frames, &mut Vec::new()) == 1
}

/// Returns the names of the received frames, and the port at which they arrived.
fn names(queue: &mut Box<dyn Queue>) -> Vec<(u32, u8)> {
    let (mut pools, mut burst) = (Pools::new(0, 64, 0), Vec::new());
    queue.receive(&mut pools, &mut burst, 32, Stamp::NONE);
    burst.iter().map(|frame| (frame.meta.in_port, frame.bytes()[0])).collect()
}

#[test]
fn all_queues_of_both_ports_are_connected() {
    let mut one = port(1, "all", 3);
    assert!(!one[0].poll_link().up, "there is no other port");
    let mut other = port(2, "all", 2);
    for queue in one.iter_mut().chain(&mut other) {
        assert!(queue.poll_link().up);
    }
    assert!((0..3).all(|n| send(&mut one[n], n as u8)) && (0..2).all(|n| send(&mut other[n], 10 + n as u8)));
    let mut came: Vec<_> = other.iter_mut().flat_map(names).collect();
    came.sort_unstable();
    assert_eq!(came, [(2, 0), (2, 1), (2, 2)]);
    let mut came: Vec<_> = one.iter_mut().flat_map(names).collect();
    came.sort_unstable();
    assert_eq!(came, [(1, 10), (1, 11)]);
}

#[test]
fn a_full_ring_refuses_frames_and_metadata_passes() {
    let (mut one, mut other) = (port(1, "full", 1), port(2, "full", 1));
    assert!(one[0].poll_link().up && other[0].poll_link().up);
    let sent = (0..1_000).take_while(|_| send(&mut one[0], 7)).count();
    assert_eq!(sent, RING_FRAMES);
    let mut frame = Frame::from_bytes(&[1; 60]);
    frame.meta.lane = frame::Lane::LowLatency;
    frame.meta.checksum = Some(frame::PartialChecksum { start: 34, offset: 16 });
    let mut frames = vec![frame];
    assert_eq!(other[0].transmit(&mut frames, &mut Vec::new()), 1);
    let (mut pools, mut burst) = (Pools::new(0, 64, 0), Vec::new());
    assert_eq!(one[0].receive(&mut pools, &mut burst, 32, Stamp::NONE), 1);
    let meta = burst[0].meta;
    assert!(meta.checksum.is_some() && meta.lane == frame::Lane::Normal, "{meta:?}");
    assert_eq!(meta.hops, 1);
}

#[test]
fn a_port_that_is_set_down_takes_the_link_of_the_other_port_down() {
    let (mut one, mut other) = (port(1, "carrier", 2), port(2, "carrier", 1));
    let far = port(3, "another", 1)[0].patch_end().unwrap();
    let near = other[0].patch_end().unwrap();
    let mut links = || [one[0].poll_link().up, one[1].poll_link().up, other[0].poll_link().up];
    assert_eq!(links(), [true; 3]);
    far.set_peer_carrier(false);
    assert_eq!(links(), [true; 3]);
    near.set_peer_carrier(false);
    assert_eq!(links(), [false, false, true]);
    near.set_peer_carrier(true);
    assert_eq!(links(), [true; 3]);
}

#[test]
fn a_frame_passes_at_most_64_patch_ports() {
    let (mut one, mut other) = (port(1, "hops", 1), port(2, "hops", 1));
    assert!(one[0].poll_link().up && other[0].poll_link().up);
    let mut frames = vec![Frame::from_bytes(&[1; 60])];
    let mut pools = Pools::new(0, 4, 0);
    let mut passed = 0;
    let (mut from, mut to) = (&mut one[0], &mut other[0]);
    while !frames.is_empty() && passed < 1_000 {
        let mut done = Vec::new();
        assert_eq!(from.transmit(&mut frames, &mut done), 1);
        for frame in done {
            drop(pools.put(frame));
        }
        passed += to.receive(&mut pools, &mut frames, 32, Stamp::NONE);
        (from, to) = (to, from);
    }
    assert_eq!(passed, 64);
    let dropped = [&one[0], &other[0]].map(|queue| queue.statistics().drops(PortDrop::TxHopLimit));
    assert_eq!(dropped, [1, 0]);
}

#[test]
fn the_link_follows_the_other_port_and_a_third_port_waits() {
    let (mut one, mut other) = (port(1, "third", 1), port(2, "third", 1));
    let mut third = port(3, "third", 1);
    assert!(one[0].poll_link().up && other[0].poll_link().up && !third[0].poll_link().up);
    drop(one);
    assert!(other[0].poll_link().up && third[0].poll_link().up);
    assert!(send(&mut other[0], 5));
    assert_eq!(names(&mut third[0]), [(3, 5)]);
    drop(third);
    assert!(!other[0].poll_link().up);
    assert!(send(&mut other[0], 6));
    assert_eq!(other[0].statistics().drops(PortDrop::TxLinkDown), 1);
}

#[test]
fn a_held_port_disturbs_no_other_port_until_it_is_started() {
    let mut one = port(1, "held", 1);
    let held = open_held(&spec(2, "held", 1)).unwrap();
    assert!(!one[0].poll_link().up && send(&mut one[0], 1));
    assert_eq!(one[0].statistics().drops(PortDrop::TxLinkDown), 1);
    drop(held);
    let mut other = port(3, "held", 1);
    assert!(one[0].poll_link().up && other[0].poll_link().up);
    let mut held = open_held(&spec(4, "held", 1)).unwrap();
    drop(one);
    assert!(!other[0].poll_link().up && !held[0].poll_link().up, "the port is not started yet");
    held[0].patch_end().unwrap().start();
    assert!(other[0].poll_link().up && held[0].poll_link().up);
    assert!(send(&mut other[0], 2));
    assert_eq!(names(&mut held[0]), [(4, 2)]);
}

/// Frames that wait at the closed end are lost, and frames that it has sent are not.
#[test]
fn frames_to_a_closed_port_are_counted_and_its_own_frames_arrive() {
    let (mut one, mut other) = (port(1, "closed", 1), port(2, "closed", 1));
    assert!(one[0].poll_link().up && other[0].poll_link().up);
    assert!((0..2).all(|n| send(&mut one[0], n)));
    assert_eq!(names(&mut other[0]), [(2, 0), (2, 1)]);
    assert!((2..5).all(|n| send(&mut one[0], n)) && (10..13).all(|n| send(&mut other[0], n)));
    drop(other);
    // The link has not been polled since.
    assert!((5..7).all(|n| send(&mut one[0], n)));
    let statistics = one[0].statistics();
    assert_eq!((statistics.tx_packets, statistics.drops(PortDrop::TxLinkDown)), (5, 5));
    assert_eq!(one[0].outstanding().bytes, 0);
    let mut other = port(3, "closed", 1);
    assert!(!one[0].poll_link().up, "frames of the closed port wait");
    assert_eq!(names(&mut one[0]), [(1, 10), (1, 11), (1, 12)]);
    assert!(one[0].poll_link().up && other[0].poll_link().up);
    assert!(send(&mut one[0], 7));
    assert_eq!(names(&mut other[0]), [(3, 7)]);
    assert_eq!(one[0].statistics().drops(PortDrop::TxLinkDown), 5);
    // The control thread frees the earlier rings.
    let end = one[0].patch_end().unwrap();
    let has_replaced = || !end.0.upgrade().unwrap().pending[0].lock().replaced.is_empty();
    assert!(has_replaced());
    end.free_replaced();
    assert!(!has_replaced());
}

#[test]
fn no_ring_is_starved_while_the_pools_have_few_buffers() {
    let (mut one, mut other) = (port(1, "turns", 3), port(2, "turns", 1));
    for queue in one.iter_mut().chain(&mut other) {
        assert!(queue.poll_link().up);
    }
    for n in 0..30 {
        assert!(send(&mut one[n % 3], n as u8 % 3));
    }
    let (mut pools, mut burst, mut counts) = (Pools::new(0, 1, 0), Vec::new(), [0; 3]);
    for _ in 0..15 {
        assert_eq!(other[0].receive(&mut pools, &mut burst, 32, Stamp::NONE), 1);
        for frame in burst.drain(..) {
            counts[usize::from(frame.bytes()[0])] += 1;
            assert!(pools.put(frame).is_ok());
        }
    }
    assert_eq!(counts, [5; 3]);
}

/// A port that comes and goes between two polls of the link has sent frames, which are not lost.
#[test]
fn frames_of_a_port_that_was_closed_before_the_rings_were_taken_arrive() {
    let mut one = port(1, "short", 1);
    for n in 0..3 {
        let mut other = port(2, "short", 1);
        assert!(other[0].poll_link().up && send(&mut other[0], n));
    }
    let mut other = port(3, "short", 1);
    let mut came = Vec::new();
    for _ in 0..4 {
        one[0].poll_link();
        came.extend(names(&mut one[0]));
    }
    assert_eq!(came, [(1, 0), (1, 1), (1, 2)]);
    assert!(one[0].poll_link().up && other[0].poll_link().up);
}
