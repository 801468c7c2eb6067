// SPDX-License-Identifier: Apache-2.0
//! Packets that an action does not fit, checksums at the ends of their range, short frames, and bad input:
//! the RTL and the software device agree, and do what the definition of the actions says.
#![cfg(feature = "datapath")]
#![allow(clippy::unwrap_used, clippy::panic)]

use device::emulator::{Emulator, Fate};
use device::register::COUNTERS;
use device::{ActionWord, EditBase, OutputKind, PpuCommand, TernaryKey};
use device_sim::{ENTRIES, PPUS, RtlDatapath, SentFrame, beats};

/// An action that sends to port 1.
const OUT: ActionWord = ActionWord {
    data: [0; 12],
    base: EditBase::Frame,
    offset: 0,
    insert: 0,
    remove: 0,
    fix_ip: false,
    fix_l4: false,
    dec_ttl: false,
    metadata: None,
    output: OutputKind::Port,
    port: 1,
    last: false,
    to_ingress: false,
};

fn data(bytes: &[u8]) -> [u8; 12] {
    let mut data = [0; 12];
    data[..bytes.len()].copy_from_slice(bytes);
    data
}

/// An edit in front of an output, at an offset from L3.
fn at_l3(offset: u8, remove: u8, bytes: &[u8]) -> ActionWord {
    ActionWord { base: EditBase::L3, offset, insert: bytes.len() as u8, remove, data: data(bytes), ..OUT }
}

/// Sum of 16-bit words in one's complement; 0xffff if the checksum is right.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An IPv4 packet in a frame.
fn ipv4(ttl: u8, proto: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u8;
    let mut header = vec![0x45, 0, 0, length, 0, 0, 0x40, 0, ttl, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], header.as_slice(), payload].concat()
}

/// A TCP segment with this checksum and no data.
fn tcp(checksum: u16) -> Vec<u8> {
    let mut segment = vec![0; 26];
    segment[12] = 0x50;
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    segment
}

/// Result of a frame: what leaves, or the counter of the drop.
type Result = std::result::Result<Vec<u8>, &'static str>;

/// What left, or the name of the counter of drops that is not 0.
fn result(sent: &[SentFrame], counters: &[u64]) -> Result {
    if let [sent] = sent {
        return Ok(sent.frame.clone());
    }
    assert!(sent.is_empty());
    let drops = COUNTERS.iter().zip(counters).skip(3);
    Err(drops.filter(|(_, count)| **count > 0).map(|((name, _), _)| *name).next().unwrap())
}

/// Passes a frame through PPUs with one action each, in the RTL and in the software device.
fn pass(actions: &[ActionWord], frame: &[u8]) -> Result {
    let mut rtl = RtlDatapath::new().unwrap();
    let mut model = Emulator::new(PPUS as u8, ENTRIES);
    let mut sent = Vec::new();
    for (ppu, action) in (0..).zip(actions) {
        let write = PpuCommand::Write { index: 0, key: TernaryKey::default(), action: *action };
        rtl.execute(ppu, &write, &mut sent).unwrap();
        assert!(model.execute(ppu, &write));
    }
    rtl.receive(9, frame, &mut sent);
    rtl.drain(200, &mut sent);
    let got = result(&sent, &rtl.counters());
    let expected = match model.process(9, frame) {
        Fate::Port { frame, .. } | Fate::Controller { frame, .. } => Ok(frame),
        Fate::Dropped(counter) => Err(counter),
    };
    assert_eq!(got, expected, "RTL, software device: {actions:?}");
    got
}

#[test]
fn a_checksum_changes_only_if_its_data_do() {
    let same = ActionWord { fix_ip: true, fix_l4: true, ..at_l3(16, 4, &[10, 0, 0, 2]) };
    for action in [same, ActionWord { fix_ip: true, fix_l4: true, ..OUT }] {
        for checksum in [0, 1, 0xfffe, 0xffff] {
            let frame = ipv4(64, 6, &tcp(checksum));
            assert_eq!(pass(&[action, action], &frame), Ok(frame), "{checksum:04x}");
        }
    }
    let other = ActionWord { data: data(&[10, 0, 0, 3]), ..same };
    let left = pass(&[other], &ipv4(64, 6, &tcp(0xffff))).unwrap();
    assert_eq!(left[50..52], [0xff, 0xfe]);
    assert_eq!(sum(&left[14..34]), 0xffff);
}

#[test]
fn short_frames_are_padded() {
    let mut tagged = vec![7; 60];
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    tagged[16..18].copy_from_slice(&[0x88, 0xb5]);
    let pop = ActionWord { offset: 12, remove: 4, ..OUT };
    let padded = [&tagged[..12], &tagged[16..], &[0; 4]].concat();
    assert_eq!(pass(&[pop], &tagged), Ok(padded));
    for length in [14, 59, 60, 61] {
        let mut frame = vec![9; length];
        let left = pass(&[OUT], &frame);
        frame.resize(length.max(60), 0);
        assert_eq!(left, Ok(frame), "{length}");
    }
    // The payload behind the copied part belongs to the frame that is padded.
    let remove = ActionWord { remove: 16, ..OUT };
    let frame: Vec<u8> = (0..133).collect();
    let left = pass(&[remove; 5], &frame).unwrap();
    assert_eq!(left, [&frame[80..], &[0; 7]].concat());
    // A header without a byte is not sent.
    assert_eq!(pass(&[ActionWord { remove: 14, ..OUT }], &[9; 14]), Err("discarded"));
}

#[test]
fn an_edit_does_not_cut_the_first_byte_of_a_header() {
    let frame = ipv4(64, 17, &[0; 46]);
    let edit = |offset, remove| ActionWord { offset, remove, ..OUT };
    let ttl = ActionWord { dec_ttl: true, ..OUT };
    // L3 is at 14, L4 at 34.
    for (offset, remove, fits) in [
        (0, 14, true),
        (0, 15, false),
        (13, 2, false),
        (14, 1, true),
        (20, 14, true),
        (20, 15, false),
        (34, 9, true),
    ] {
        let left = pass(&[edit(offset, remove)], &frame);
        assert_eq!(left == Err("bad_edit"), !fits, "{offset} {remove}");
    }
    assert_eq!(pass(&[edit(0, 16), ttl], &frame), Err("bad_edit"));
    // What is not IP has no header behind the EtherType.
    let mut other = frame;
    other[12..14].copy_from_slice(&[0x88, 0xb5]);
    assert_eq!(pass(&[edit(0, 16)], &other).unwrap(), [&other[16..], &[0; 0]].concat());
    assert!(pass(&[edit(0, 16), at_l3(2, 4, &[1, 2]), edit(8, 8)], &other).is_err());
}

#[test]
fn an_edit_does_not_touch_a_ttl_that_is_decremented() {
    let frame = ipv4(64, 17, &[0; 26]);
    for (offset, remove, bytes, fits) in [
        (8, 1, &[5][..], false),
        (4, 8, &[0, 0, 0x40, 0, 5, 17, 0, 0], false),
        (8, 0, &[1, 2, 3, 4], false),
        (7, 1, &[0], true),
        (7, 2, &[0, 5], false),
        (9, 1, &[6], true),
    ] {
        let edit = ActionWord { fix_ip: true, ..at_l3(offset, remove, bytes) };
        let left = pass(&[ActionWord { dec_ttl: true, ..edit }], &frame);
        assert_eq!(left == Err("bad_edit"), !fits, "{offset} {remove}");
        if let Ok(left) = left {
            assert_eq!((left[22], sum(&left[14..34])), (63, 0xffff));
        }
        // Without `dec_ttl`, the edit is executed.
        assert!(pass(&[edit], &frame).is_ok());
    }
}

#[test]
fn a_ttl_is_decremented_only_in_ip() {
    let ttl = ActionWord { dec_ttl: true, ..OUT };
    let arp = [vec![2; 12], vec![8, 6], vec![1; 46]].concat();
    assert_eq!(pass(&[ttl], &arp), Err("bad_edit"));
    let left = pass(&[ttl], &ipv4(2, 17, &[0; 26])).unwrap();
    assert_eq!((left[22], sum(&left[14..34])), (1, 0xffff));
    for old in [0, 1] {
        assert_eq!(pass(&[ttl], &ipv4(old, 17, &[0; 26])), Err("ttl_expired"));
    }
}

#[test]
fn no_checksum_is_adjusted_behind_ipv6_extension_headers() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 0, 64];
    frame.extend([0xfe; 32]);
    frame.extend([17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let edit = at_l3(24, 2, &[0x20, 1]);
    let fixing = ActionWord { fix_l4: true, ..edit };
    for next in [0, 43, 44, 51, 60, 135] {
        frame[20] = next;
        assert_eq!(pass(&[fixing], &frame), Err("bad_edit"), "{next}");
        assert!(pass(&[edit], &frame).is_ok());
        assert!(pass(&[ActionWord { fix_l4: true, ..OUT }], &frame).is_ok());
    }
    // The last header, without and with a checksum.
    for next in [59, 17] {
        frame[20] = next;
        assert!(pass(&[fixing], &frame).is_ok());
    }
}

/// A data plane that sends every frame to port 1.
fn sending() -> RtlDatapath {
    let mut rtl = RtlDatapath::new().unwrap();
    let write = PpuCommand::Write { index: 0, key: TernaryKey::default(), action: OUT };
    rtl.execute(0, &write, &mut Vec::new()).unwrap();
    rtl
}

#[test]
fn the_rest_of_a_frame_after_a_reset_is_dropped() {
    let frame: Vec<u8> = (0..=255).cycle().take(384).collect();
    let (beats, mut sent) = (beats(&frame), Vec::new());
    // The reset begins before beat `from`, and ends before beat `to`.
    for (from, to) in [(3, 3), (1, 5), (0, 2), (5, 6), (0, 6), (6, 6)] {
        let mut rtl = sending();
        rtl.set_miss_output(OutputKind::Controller);
        for beat in &beats[..from] {
            rtl.receive_beat(3, beat, &mut sent);
        }
        rtl.reset_with(3, &beats[from..to]);
        for beat in &beats[to..] {
            rtl.receive_beat(3, beat, &mut sent);
        }
        rtl.receive(3, &frame, &mut sent);
        rtl.drain(300, &mut sent);
        let left: Vec<&[u8]> = sent.iter().map(|sent| sent.frame.as_slice()).collect();
        assert_eq!(left, [&frame], "{from} {to}");
        let bad = u64::from(to < 6);
        assert_eq!(rtl.counters(), [1 + bad, 0, 1, 0, 0, 0, 0, bad, 0], "{from} {to}");
        sent.clear();
    }
}

#[test]
fn malformed_frames_damage_no_other() {
    let good: Vec<u8> = (0..200).collect();
    let three = beats(&[7; 192]);
    let with = |at: usize, change: &dyn Fn(&mut device_sim::Beat)| {
        let mut beats = three.clone();
        change(&mut beats[at]);
        beats
    };
    let cases = [
        ("a short beat before the last", with(1, &|beat| beat.keep = 0xff), "bad_frame"),
        ("an empty beat before the last", with(1, &|beat| beat.keep = 0), "bad_frame"),
        ("an empty last beat", with(2, &|beat| beat.keep = 0), "bad_frame"),
        ("a hole", with(2, &|beat| beat.keep = 0xfd), "bad_frame"),
        ("the first byte is missing", with(0, &|beat| beat.keep = u64::MAX << 1), "bad_frame"),
        ("aborted", with(2, &|beat| beat.bad = true), "bad_frame"),
        ("an empty frame", beats(&[]), "bad_frame"),
        ("too short", beats(&[1; 13]), "runt"),
        ("above 65,536 bytes", beats(&[1; 65_600]), "bad_frame"),
        ("above 65,536 bytes, modulo 65,536 a good length", beats(&[1; 65_536 + 100]), "bad_frame"),
        ("`bad` before the last beat does not count", with(1, &|beat| beat.bad = true), "to_port"),
    ];
    let mut rtl = sending();
    for (name, beats, counter) in cases {
        let (before, mut sent) = (rtl.counters(), Vec::new());
        for beat in &beats {
            rtl.receive_beat(9, beat, &mut sent);
        }
        rtl.receive(9, &good, &mut sent);
        rtl.receive(9, &good, &mut sent);
        rtl.drain(150, &mut sent);
        sent.retain(|sent| counter != "to_port" || sent.frame != [7; 192]);
        assert!(sent.len() == 2 && sent.iter().all(|sent| sent.frame == good), "{name}");
        let after = rtl.counters();
        for (at, (counted, _)) in COUNTERS.iter().enumerate() {
            let expected = match *counted {
                "received" => 3,
                "to_port" => 2 + u64::from(counter == "to_port"),
                counted => u64::from(counted == counter),
            };
            assert_eq!(after[at] - before[at], expected, "{name}: {counted}");
        }
    }
}

#[test]
fn a_lost_last_beat_does_not_join_frames_of_two_ports() {
    let (mut rtl, mut sent) = (sending(), Vec::new());
    let good: Vec<u8> = (0..200).collect();
    rtl.receive_beat(4, &beats(&[7; 192])[0], &mut sent);
    rtl.receive(5, &good, &mut sent);
    rtl.receive(5, &good, &mut sent);
    rtl.drain(150, &mut sent);
    assert!(sent.len() == 1 && sent[0].frame == good && sent[0].in_port == 5);
    assert_eq!(rtl.counters(), [2, 1, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_stalled_output_ends_no_wait() {
    let (mut rtl, mut sent) = (sending(), Vec::new());
    rtl.set_ready(false);
    rtl.receive(9, &[1; 300], &mut sent);
    rtl.drain(100, &mut sent);
    assert!(sent.is_empty());
    rtl.set_ready_pattern(1 << 20);
    rtl.drain(100, &mut sent);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].frame, [1; 300]);
}

/// Frames that grow from two beats to three, from one to two, and by no beat, leave in each pattern of ready
/// cycles that begins with their first beat. Each ready cycle takes a beat.
#[test]
fn every_pattern_of_back_pressure_changes_no_frame() {
    const CYCLES: u32 = 10;
    const BEATS: u32 = 8;
    let mut rtl = RtlDatapath::new().unwrap();
    let tag = ActionWord { offset: 12, insert: 4, data: data(&[0x81, 0, 0, 7]), ..OUT };
    let write = PpuCommand::Write { index: 0, key: TernaryKey::default(), action: tag };
    rtl.execute(0, &write, &mut Vec::new()).unwrap();
    let frames: Vec<Vec<u8>> =
        [126, 64, 180].iter().map(|length| (0..=255).cycle().take(*length).collect()).collect();
    let expected: Vec<Vec<u8>> =
        frames.iter().map(|frame| [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat()).collect();
    // The first frame has three beats.
    let mut sent = Vec::new();
    frames.iter().for_each(|frame| rtl.receive(9, frame, &mut sent));
    let mut wait = 0_u32;
    while sent.is_empty() {
        rtl.clock(&mut sent);
        wait += 1;
    }
    wait -= 3;
    rtl.drain(50, &mut sent);
    for pattern in 0..1_u64 << CYCLES {
        sent.clear();
        frames.iter().for_each(|frame| rtl.receive(9, frame, &mut sent));
        (0..wait).for_each(|_| rtl.clock(&mut sent));
        assert_eq!(sent, [], "{pattern:010b}");
        rtl.set_ready_pattern(pattern | u64::MAX << CYCLES);
        let stalled = (0..CYCLES + BEATS).scan(0, |taken, cycle| {
            let ready = cycle >= CYCLES || pattern >> cycle & 1 == 1;
            *taken += u32::from(ready);
            (*taken < BEATS || (ready && *taken == BEATS)).then_some(())
        });
        for _ in 0..stalled.count() {
            assert!(sent.len() < frames.len(), "{pattern:010b}: a beat left in a cycle without ready");
            rtl.clock(&mut sent);
        }
        let left: Vec<&[u8]> = sent.iter().map(|sent| sent.frame.as_slice()).collect();
        assert_eq!(left, expected, "{pattern:010b}");
        rtl.set_ready(true);
    }
    rtl.drain(200, &mut sent);
    assert_eq!(sent.len(), frames.len());
}

#[test]
fn a_slice_command_needs_no_index() {
    let mut rtl = RtlDatapath::new().unwrap();
    let mut sent = Vec::new();
    // The tables are cleared after a reset.
    rtl.drain(300, &mut sent);
    rtl.start_with_index(0, &PpuCommand::Select { slices: Default::default() }, 0xffff);
    rtl.drain(100, &mut sent);
    assert_eq!(rtl.executed(), Some(Ok(())));
    rtl.start_with_index(0, &PpuCommand::Remove { index: 0 }, 0xffff);
    rtl.drain(100, &mut sent);
    assert_eq!(rtl.executed(), Some(Err(device_sim::Refused::Range)));
}
