// SPDX-License-Identifier: Apache-2.0
//! The simulated data plane executes commands and forwards frames.
#![cfg(feature = "datapath")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use device::{ActionWord, KeySlice, OutputKind, PpuCommand, SelectorBase, TernaryKey};
use device_sim::{ENTRIES, PPUS, Refused, RtlDatapath, SentFrame};

/// A key whose first slice has this value.
fn key(value: [u8; 4]) -> TernaryKey {
    let mut key = TernaryKey::default();
    key.value[..4].copy_from_slice(&value);
    key.mask[..4].copy_from_slice(&[0xff; 4]);
    // The presence bit of the first slice.
    key.value[16] = 0x80;
    key.mask[16] = 0x80;
    key
}

#[test]
fn entries_forward_by_destination() {
    let mut datapath = RtlDatapath::new().unwrap();
    let mut sent = Vec::new();
    let first = KeySlice { base: SelectorBase::Frame, offset: 2, bytes: 4 };
    let slices = [first, KeySlice::default(), KeySlice::default(), KeySlice::default()];
    datapath.execute(3, &PpuCommand::Select { slices }, &mut sent).unwrap();
    for port in 0..8 {
        let action = ActionWord { output: OutputKind::Port, port, ..ActionWord::default() };
        let write = PpuCommand::Write { index: 20 + u16::from(port), key: key([0, 0, 0, port]), action };
        datapath.execute(3, &write, &mut sent).unwrap();
    }
    let frames: Vec<Vec<u8>> = (0..200_u8)
        .map(|number| {
            let mut frame = vec![number; 60 + usize::from(number) * 7];
            frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, number % 10, 2, 1, 1, 1, 1, 1]);
            frame
        })
        .collect();
    for frame in &frames {
        datapath.receive(9, frame, &mut sent);
    }
    datapath.drain(200, &mut sent);
    let expected: Vec<SentFrame> = frames
        .into_iter()
        .filter(|frame| frame[5] < 8)
        .map(|frame| SentFrame { kind: 2, port: frame[5], in_port: 9, ppu: 3, frame })
        .collect();
    assert_eq!(sent, expected);
    assert_eq!(datapath.counters()[0], 200);
}

#[test]
fn commands_out_of_range_are_refused() {
    let mut datapath = RtlDatapath::new().unwrap();
    let remove = |index| PpuCommand::Remove { index };
    let mut sent = Vec::new();
    assert_eq!(datapath.execute(PPUS as u8, &remove(0), &mut sent), Err(Refused::Range));
    assert_eq!(datapath.execute(0, &remove(ENTRIES), &mut sent), Err(Refused::Range));
    assert_eq!(datapath.execute(0, &remove(ENTRIES - 1), &mut sent), Ok(()));
    assert!(sent.is_empty());
}
