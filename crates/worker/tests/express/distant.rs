// SPDX-License-Identifier: Apache-2.0
//! Rules that need no header, but examine bits beyond byte 64 of the packet. Frames end before, within and
//! after these bits.

use super::lab::{Lab, Seen};
use super::rest;
use fastrand::Rng;
use flow::FlowModCommand::{Add, DeleteStrict};

/// Rules for slices that end at the bytes 72, 81, 104 and 128. The first match decides.
const DISTANT: [&str; 7] = [
    "table=0,priority=9,slice(packet,800,32)=0x01010101,actions=output:3",
    "table=0,priority=9,slice(packet,800,32)=0,actions=output:4",
    "table=0,priority=8,slice(packet,560,16)=0x0202,actions=set_field:02:00:00:00:00:99->eth_dst,goto_table:1",
    "table=0,priority=7,slice(packet,1003,17)=0x6060,actions=output:2,output:1",
    "table=0,priority=6,slice(packet,560,16)=0,actions=output:3",
    "table=1,priority=5,slice(packet,640,8)=2,actions=output:3",
    "table=1,priority=1,actions=output:4",
];

/// Frame lengths in bytes at the ends of the slices, and at the ends of the bytes that templates read.
const LENGTHS: [usize; 29] = [
    13, 14, 15, 18, 60, 64, 70, 71, 72, 73, 80, 81, 82, 103, 104, 105, 113, 114, 127, 128, 129, 135, 136,
    137, 151, 152, 153, 200, 300,
];

/// Number of frames in a burst.
const FRAMES: usize = 30;

/// Values of all bytes of a frame after its MAC addresses, except those of a VLAN tag.
const VALUES: u8 = 5;

/// Returns a frame of this length whose bytes have one value. Its source address is the number of the frame.
fn frame(rng: &mut Rng, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![rng.u8(0..VALUES); len.max(18)];
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, rng.u8(1..3)]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    if rng.bool() {
        bytes[12..16].copy_from_slice(&[0x81, 0, 0, rng.u8(0..3)]);
    }
    bytes.truncate(len);
    bytes
}

/// Sends bursts of frames to ports 1 and 2 in turns.
struct Sender {
    rng: Rng,
    sent: u32,
}

impl Sender {
    fn bursts(&mut self, lab: &mut Lab, count: usize) {
        for number in 0..count {
            let burst: Vec<_> = (0..FRAMES)
                .map(|_| {
                    self.sent += 1;
                    let len = LENGTHS[self.rng.usize(0..LENGTHS.len())];
                    frame(&mut self.rng, self.sent, len)
                })
                .collect();
            lab.burst(1 + number % 2, &burst);
        }
    }
}

/// Returns the bytes of a frame that rules may examine.
fn examined(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().enumerate().filter(|(at, _)| !(6..12).contains(at)).map(|(_, byte)| *byte).collect()
}

/// Sends equal bursts through a switch with the express path and one without it, and compares the results.
/// Frames with different bytes may overtake each other within a burst. Returns the share of the packets, in
/// percent, that a record forwarded.
fn compare(seed: u64, drive: impl Fn(&mut Lab, &mut Sender)) -> u64 {
    let run = |records: usize| {
        let (mut lab, mut sender) =
            (Lab::new(records, &DISTANT), Sender { rng: Rng::with_seed(seed), sent: 0 });
        drive(&mut lab, &mut sender);
        let mut seen: Seen = lab.seen();
        seen.sent.iter_mut().for_each(|sent| sent.sort_by_key(|bytes| examined(bytes)));
        (seen, lab.express(), u64::from(sender.sent))
    };
    let ((with, hits, sent), (without, none, _)) = (run(1_024), run(0));
    assert_eq!(with.dropped, without.dropped);
    assert!(with == without, "seed {seed}");
    assert_eq!(none, 0);
    hits * 100 / sent
}

#[test]
fn frames_that_end_near_a_distant_slice_are_treated_as_without_records() {
    for seed in 0..5 {
        let hits = compare(seed, |lab, sender| sender.bursts(lab, 40));
        assert!(hits >= 80, "{hits} %");
    }
}

/// The plan of the keys gets more distant bits, then bits that no template reads, then bits of a header. Then
/// it loses them again. The records of the previous plan stay in use for a while.
#[test]
fn plans_with_distant_slices_may_become_wider_and_narrower() {
    let wider = [
        "table=0,priority=10,slice(packet,800,32)=0x02020202,actions=output:3",
        "table=0,priority=10,slice(packet,904,8)=4,actions=output:2,output:1",
        "table=0,priority=10,slice(packet,1200,16)=0x0303,actions=output:3",
        "table=0,priority=11,dl_vlan=1,actions=output:4",
        "table=0,priority=2,slice(packet,320,128)=0x04040404040404040404040404040404,actions=output:3",
    ];
    for seed in 100..104 {
        let hits = compare(seed, |lab, sender| {
            sender.bursts(lab, 8);
            for rule in wider {
                lab.flow(rule, Add);
                sender.bursts(lab, 6);
                rest(lab, 2);
                sender.bursts(lab, 6);
            }
            for rule in wider {
                lab.flow(rule.split_once(",actions").unwrap().0, DeleteStrict);
                sender.bursts(lab, 6);
                rest(lab, 2);
                sender.bursts(lab, 6);
            }
        });
        assert!(hits >= 50, "{hits} %");
    }
}
