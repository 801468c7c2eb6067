// SPDX-License-Identifier: Apache-2.0
//! Model of two workers, and of the rings from one to the other.

use crate::epochs::{Receiver, Sender, channel};
use crate::explore;
use frame::Lane;
use frame::Lane::{LowLatency, Normal};
use loom::thread;

/// A frame that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    number: usize,
    lane: Lane,
    epoch: u32,
}

/// Sends frames one after another, and yields while a ring is full.
fn send(mut peer: Sender<Sent>, script: &[(Lane, u32)]) {
    for (number, &(lane, epoch)) in script.iter().enumerate() {
        let mut sent = Sent { number, lane, epoch };
        while let Err(back) = peer.push(sent, lane, epoch) {
            sent = back;
            thread::yield_now();
        }
    }
}

/// Receives the given number of frames, and checks the ordering guarantees of epochs.
fn receive(arrivals: &mut Receiver<Sent>, count: usize) {
    let mut taken: Vec<Sent> = Vec::new();
    let mut epoch = 0;
    while taken.len() < count {
        let Some((sent, begins)) = arrivals.next() else {
            thread::yield_now();
            continue;
        };
        assert!(sent.epoch >= epoch, "{sent:?} comes after frames of epoch {epoch}");
        assert_eq!(begins, sent.epoch > epoch, "{sent:?}: the mark of a new epoch is wrong");
        epoch = sent.epoch;
        let same_lane = taken.iter().filter(|earlier| earlier.lane == sent.lane);
        let before = same_lane.map(|earlier| earlier.number).max();
        assert!(before.is_none_or(|before| before < sent.number), "{sent:?} was overtaken in its ring");
        taken.push(sent);
    }
    // Comparing sequence numbers detects duplicates.
    let mut numbers: Vec<_> = taken.iter().map(|sent| sent.number).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..count));
    assert!(arrivals.next().is_none() && arrivals.is_empty());
}

fn check(room: usize, script: &'static [(Lane, u32)]) {
    explore(move || {
        let (peer, mut arrivals) = channel(room);
        let sender = thread::spawn(move || send(peer, script));
        receive(&mut arrivals, script.len());
        sender.join().unwrap();
    });
}

#[test]
fn a_frame_waits_for_all_frames_of_the_previous_epoch() {
    check(2, &[(Normal, 0), (LowLatency, 1)]);
    check(2, &[(LowLatency, 0), (Normal, 1)]);
    check(2, &[(LowLatency, 3), (Normal, 4)]);
    check(2, &[(Normal, 0), (LowLatency, 1), (Normal, 2)]);
}

#[test]
fn every_frame_may_begin_an_epoch_and_epochs_may_be_skipped() {
    check(3, &[(Normal, 0), (LowLatency, 0), (LowLatency, 2), (Normal, 5)]);
    check(3, &[(LowLatency, 1), (Normal, 2), (LowLatency, 3)]);
}

#[test]
fn full_rings_keep_the_order() {
    check(1, &[(Normal, 0), (Normal, 1), (LowLatency, 2)]);
    check(1, &[(LowLatency, 0), (LowLatency, 1), (Normal, 2)]);
}
