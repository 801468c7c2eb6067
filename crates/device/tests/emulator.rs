// SPDX-License-Identifier: Apache-2.0
//! The software device against the model of the RTL's test benches, by vectors of `rtl/sim/vectors.py`, and
//! cases in which that model is coarser than the RTL.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::{env, fs};

use device::command::PpuCommand;
use device::emulator::{Emulator, Fate};
use device::{ActionWord, EditBase, KeySlice, OutputKind, SelectorBase, TernaryKey};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

fn select(words: &[&str]) -> PpuCommand {
    let mut slices = [KeySlice::default(); 4];
    for (slice, word) in slices.iter_mut().zip(words) {
        let numbers: Vec<u8> = word.split(',').map(|number| number.parse().unwrap()).collect();
        let base = SelectorBase::ALL[usize::from(numbers[0])];
        *slice = KeySlice { base, offset: numbers[1], bytes: numbers[2] };
    }
    PpuCommand::Select { slices }
}

/// Plays vectors. Returns the number of frames by fate.
fn play(text: &str) -> BTreeMap<String, usize> {
    let mut device = Emulator::new(3, 16);
    let mut fates = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "program" => device = Emulator::new(3, 16),
            "select" => assert!(device.execute(words[1].parse().unwrap(), &select(&words[2..]))),
            "write" => {
                let key = TernaryKey { value: array(words[3]), mask: array(words[4]) };
                let action = ActionWord::from_bytes(&array(words[5])).unwrap();
                let index = words[2].parse().unwrap();
                let command = PpuCommand::Write { index, key, action };
                assert!(device.execute(words[1].parse().unwrap(), &command));
            }
            _ => {
                let fate = device.process(words[1].parse().unwrap(), &bytes(words[2]));
                let wanted = match words[3] {
                    "dropped" => {
                        let reasons = ["discarded", "bad_edit", "ttl_expired"];
                        Fate::Dropped(reasons.into_iter().find(|reason| *reason == words[4]).unwrap())
                    }
                    "port" => Fate::Port { port: words[4].parse().unwrap(), frame: bytes(words[6]) },
                    _ => Fate::Controller {
                        ppu: words[5].parse().unwrap(),
                        code: words[4].parse().unwrap(),
                        frame: bytes(words[6]),
                    },
                };
                assert_eq!(fate, wanted, "line {}", number + 1);
                let kind = if words[3] == "dropped" { words[4] } else { words[3] };
                *fates.entry(kind.to_owned()).or_default() += 1;
            }
        }
    }
    fates
}

#[test]
fn the_device_forwards_as_the_model_of_the_test_benches() {
    let path = env::var("DEVICE_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/emulator.txt").into());
    let fates = play(&fs::read_to_string(path).unwrap());
    for kind in ["port", "controller", "discarded", "bad_edit", "ttl_expired"] {
        assert!(fates.get(kind).is_some_and(|count| *count >= 3), "{fates:?}");
    }
}

fn one(action: ActionWord) -> Emulator {
    let mut device = Emulator::new(1, 16);
    let key = TernaryKey::default();
    assert!(device.execute(0, &PpuCommand::Write { index: 15, key, action }));
    device
}

#[test]
fn a_packet_leaves_by_its_ingress_port_only_if_the_action_says_so() {
    let to =
        |port, to_ingress| ActionWord { output: OutputKind::Port, port, to_ingress, ..Default::default() };
    let frame = vec![7; 60];
    for (action, wanted) in
        [(to(2, false), Some(2)), (to(5, false), None), (to(5, true), Some(5)), (to(2, true), Some(5))]
    {
        let mut device = one(action);
        let left = match device.process(5, &frame) {
            Fate::Port { port, .. } => Some(port),
            _ => None,
        };
        assert_eq!(left, wanted, "{action:?}");
    }
}

#[test]
fn frames_of_wrong_length_are_counted() {
    let mut device = one(ActionWord { output: OutputKind::Controller, ..Default::default() });
    for (length, wanted) in [(13, "runt"), (1519, "bad_frame")] {
        assert_eq!(device.process(1, &vec![0; length]), Fate::Dropped(wanted));
    }
    for length in [14, 1518] {
        assert!(matches!(device.process(1, &vec![0; length]), Fate::Controller { ppu: 0, .. }));
    }
    assert_eq!(device.counters(), [4, 0, 2, 0, 0, 0, 1, 1, 0]);
    assert_eq!(device.entry(0, 15).map(|state| (state.valid, state.packets)), Some((true, 2)));
    assert_eq!((device.entry(1, 0), device.entry(0, 16)), (None, None));
}

#[test]
fn an_edit_outside_of_the_frame_drops_the_packet() {
    let edit = |base, offset| ActionWord {
        base,
        offset,
        insert: 1,
        remove: 1,
        output: OutputKind::Port,
        ..Default::default()
    };
    for (action, fits) in [
        (edit(EditBase::Frame, 59), true),
        (edit(EditBase::Frame, 60), false),
        (edit(EditBase::L3, 45), true),
        (edit(EditBase::L3, 46), false),
        (edit(EditBase::L4, 0), false),
    ] {
        let fate = one(action).process(1, &[7; 60]);
        assert_eq!(fate != Fate::Dropped("bad_edit"), fits, "{action:?}");
    }
}
