// SPDX-License-Identifier: Apache-2.0
//! Properties of all messages. An accepted message must encode to bytes that decode to the same message.
//! Random bytes must never cause a panic, and each refusal must point to the bytes that cause it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use pof::{PofDialect, PofMessage, decode, encode};

/// Type, and lengths of the body in dialects 1.2 and 1.4.0.015.
const KINDS: &[(u8, Option<usize>, Option<usize>)] = &[
    (0, Some(0), Some(0)),
    (1, Some(264), Some(272)),
    (2, Some(0), Some(0)),
    (3, Some(0), Some(0)),
    (5, Some(0), Some(0)),
    (6, Some(208), Some(208)),
    (7, Some(0), Some(0)),
    (8, Some(4), Some(8)),
    (9, Some(4), Some(8)),
    (10, Some(24), Some(24)),
    (10, Some(90), Some(1_500)),
    (12, Some(128), Some(128)),
    (13, Some(80), Some(80)),
    (14, None, Some(304)),
    (14, None, Some(400)),
    (15, Some(1192), Some(2184)),
    (16, Some(208), Some(208)),
    (16, None, Some(1840)),
    (17, Some(128), Some(128)),
    (18, Some(144), Some(144)),
    (30, Some(8), Some(16)),
    (31, Some(16), Some(24)),
    (32, Some(16), Some(24)),
    (33, Some(16), Some(24)),
    (34, None, Some(8)),
    (35, None, Some(0)),
    (101, None, Some(8)),
    (102, None, Some(8)),
];

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut bytes = vec![4, kind];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 9]);
    bytes.extend_from_slice(body);
    bytes
}

fn encoded(message: &PofMessage, dialect: PofDialect) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, 9, dialect, &mut bytes).unwrap_or_else(|error| panic!("{error}: {message:?}"));
    bytes
}

/// Encodes and decodes an accepted message.
fn there_and_back(message: &PofMessage, dialect: PofDialect) {
    let bytes = encoded(message, dialect);
    let again = decode(&bytes, dialect).unwrap_or_else(|error| panic!("{error}: {message:?}"));
    assert_eq!(again, *message);
    assert_eq!(encoded(&again, dialect), bytes);
}

/// Changes a message at the offset of each refusal until it is accepted. Returns the message and the number
/// of changes.
fn repair(rng: &mut fastrand::Rng, bytes: &mut [u8], dialect: PofDialect) -> (PofMessage, usize) {
    for changes in 0..2_000 {
        let error = match decode(bytes, dialect) {
            Ok(message) => return (message, changes),
            Err(error) => error,
        };
        assert!(error.offset >= 8, "the header is valid: {error}");
        let place = &mut bytes[error.offset..];
        place[0] = rng.u8(..8);
        // Types of instructions and actions, and lengths, have two or four bytes.
        if rng.bool() {
            let wide = if rng.bool() { 2 } else { 4 };
            place[..wide].fill(0);
            place[wide - 1] = rng.u8(..13);
        }
        // The length of the data of PACKET_OUT and PACKET_IN must agree.
        if [10, 14].contains(&bytes[1]) && [12, 20].contains(&error.offset) {
            let length = (bytes.len() - if bytes[1] == 10 { 32 } else { 312 }) as u32;
            let (at, wide) = if bytes[1] == 10 { (12, 2) } else { (20, 4) };
            bytes[at..at + wide].copy_from_slice(&length.to_be_bytes()[4 - wide..]);
        }
    }
    panic!("type {} in {dialect} is refused whatever is changed: {:?}", bytes[1], decode(bytes, dialect));
}

#[test]
fn random_messages_survive_encoding_and_each_refusal_points_to_its_cause() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut repaired = 0;
    let mut names = BTreeSet::new();
    for dialect in PofDialect::ALL {
        for (kind, old, new) in KINDS {
            let Some(size) = (if dialect == PofDialect::V1_2 { *old } else { *new }) else { continue };
            // Entries have many parts.
            for _ in 0..if *kind == 15 { 2_000 } else { 200 } {
                let body: Vec<u8> = (0..size).map(|_| rng.u8(..)).collect();
                let mut bytes = framed(*kind, &body);
                let (message, changes) = repair(&mut rng, &mut bytes, dialect);
                there_and_back(&message, dialect);
                repaired += usize::from(changes > 0);
                names.extend(parts(&message).into_iter().map(|name| (dialect.name(), name)));
            }
        }
    }
    assert!(repaired > 1_000, "only {repaired} messages were refused at first");
    // 6 instructions in 1.2, 9 in 1.4.0.015, and 11 actions in each.
    let expected = 6 + 9 + 11 + 11;
    assert_eq!(names.len(), expected, "{names:?}");
}

/// Returns the names of the instructions and actions in a message.
fn parts(message: &PofMessage) -> Vec<String> {
    let PofMessage::FlowMod(flow) = message else { return Vec::new() };
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}").split('(').next().unwrap().to_owned();
    let mut names = Vec::new();
    for instruction in &flow.instructions {
        names.push(text(instruction));
        if let pof::instruction::PofInstruction::ApplyActions(apply) = instruction {
            names.extend(apply.actions.iter().map(|action| format!("action {}", text(action))));
        }
    }
    names
}

#[test]
fn random_bytes_never_cause_a_panic() {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut refused = BTreeMap::<String, usize>::new();
    for _ in 0..200_000 {
        let dialect = PofDialect::ALL[rng.usize(..2)];
        let (kind, old, new) = KINDS[rng.usize(..KINDS.len())];
        let kind = if rng.u8(..8) == 0 { rng.u8(..) } else { kind };
        let size = match rng.u8(..8) {
            0 => Some(rng.usize(..2_500)),
            1 => old,
            _ => new,
        };
        let small = rng.bool();
        let body: Vec<u8> =
            (0..size.unwrap_or(8)).map(|_| if small { rng.u8(..3) } else { rng.u8(..) }).collect();
        let mut bytes = framed(kind, &body);
        if rng.u8(..16) == 0 {
            let at = rng.usize(..4.min(bytes.len()));
            bytes[at] = rng.u8(..);
        }
        match decode(&bytes, dialect) {
            Ok(message) => there_and_back(&message, dialect),
            Err(error) => {
                assert!(error.offset < bytes.len().max(1), "{error}");
                assert!(!error.reason.is_empty());
                *refused.entry(error.code.to_string()).or_default() += 1;
            }
        }
    }
    assert!(refused.len() >= 15, "{refused:?}");
}

#[test]
fn short_inputs_are_refused() {
    for length in 0..8 {
        let error = decode(&[4, 0, 0, 8, 0, 0, 0, 0][..length], PofDialect::V1_2).unwrap_err();
        assert_eq!((error.code.kind, error.code.code), (1, 6));
    }
}
