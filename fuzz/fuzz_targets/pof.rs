// SPDX-License-Identifier: Apache-2.0
//! Processes messages of a POF controller in pieces of any size. The input describes messages: a type, and
//! bytes to change in a body of the right length, so that most messages pass the check of their length. The
//! output of the session must stay bounded, no event may follow the end of the session, the handshake must
//! keep its order, and an accepted message must survive encoding and decoding.
#![no_main]

use flow::Nanos;
use libfuzzer_sys::fuzz_target;
use openflow::SessionConfig;
use pof::session::{PofEvent, PofIdentity, PofSession, default_timers};
use pof::{PofDialect, PofMessage, decode, encode};

const OUTPUT_LIMIT: usize = 4_096;
/// Maximum output in response to one message: an ERROR.
const ANSWER_MAX: usize = 280;

/// Length of the stream in bytes after which no message is added.
const STREAM_BYTES: usize = 32 * 1_024;

/// Types, and the lengths of their bodies in dialects 1.2 and 1.4.0.015.
const SHAPES: &[(u8, usize, usize)] = &[
    (0, 0, 0),
    (5, 0, 0),
    (9, 4, 8),
    (7, 0, 0),
    (2, 0, 0),
    (3, 0, 0),
    (1, 264, 272),
    (6, 208, 208),
    (8, 4, 8),
    (10, 40, 40),
    (12, 128, 128),
    (13, 80, 80),
    (14, 320, 320),
    (15, 1192, 2184),
    (16, 208, 1840),
    (16, 208, 208),
    (17, 128, 128),
    (18, 144, 144),
    (30, 8, 16),
    (31, 16, 24),
    (32, 16, 24),
    (33, 16, 24),
    (34, 8, 8),
    (35, 0, 0),
    (101, 8, 8),
    (102, 8, 8),
    (9, 4, 4),
];

fuzz_target!(|data: &[u8]| {
    let Some((&[first, size], rest)) = data.split_first_chunk::<2>() else { return };
    let dialect = PofDialect::ALL[usize::from(first & 1)];
    let mut stream = Vec::new();
    // In half of the inputs, the handshake is complete.
    if first & 2 != 0 {
        for shape in &SHAPES[..4] {
            append(*shape, dialect, &[], &mut stream);
        }
    }
    messages(rest, dialect, &mut stream);
    run(dialect, &stream, usize::from(size) + 1);
});

/// Appends a message with changed bytes: an offset in the body (2 bytes) and a value each.
fn append(shape: (u8, usize, usize), dialect: PofDialect, changes: &[u8], stream: &mut Vec<u8>) {
    let (kind, old, new) = shape;
    let length = 8 + if dialect == PofDialect::V1_2 { old } else { new };
    let start = stream.len();
    stream.extend([4, kind, (length >> 8) as u8, length as u8, 0, 0, 0, 1]);
    stream.resize(start + length, 0);
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]]));
        if let Some(byte) = stream[start + 8..].get_mut(at) {
            *byte = change[2];
        }
    }
}

/// Appends the messages that the input describes: a type, a number of changes, and the changes. A type that
/// does not exist is followed by raw bytes.
fn messages(mut rest: &[u8], dialect: PofDialect, stream: &mut Vec<u8>) {
    while let Some((&[kind, count], more)) = rest.split_first_chunk::<2>() {
        if stream.len() > STREAM_BYTES {
            return;
        }
        let (changes, after) = more.split_at(more.len().min(usize::from(count) * 3));
        match SHAPES.get(usize::from(kind)) {
            Some(shape) => append(*shape, dialect, changes, stream),
            None => stream.extend_from_slice(changes),
        }
        rest = after;
    }
}

fn run(dialect: PofDialect, stream: &[u8], size: usize) {
    let config = SessionConfig { output_limit: OUTPUT_LIMIT, ..default_timers() };
    let identity = PofIdentity { device_id: 1, slot: 2 };
    let mut session = PofSession::new(dialect, identity, config, Nanos(0));
    let mut closed = false;
    let mut steps = 0;
    for (piece, now) in stream.chunks(size).zip((0..).map(Nanos)) {
        session.receive(piece, now);
        while let Some(event) = session.next_event() {
            assert!(!closed, "an event follows the end of the session");
            match event {
                PofEvent::Opened => assert_eq!(steps, 0),
                PofEvent::Request(request) => {
                    steps += 1;
                    let ordered = match steps {
                        1 => request.message == PofMessage::FeaturesRequest,
                        2 => matches!(request.message, PofMessage::SetConfig(_)),
                        3 => request.message == PofMessage::GetConfigRequest,
                        _ => session.is_running(),
                    };
                    assert!(ordered, "step {steps} of the handshake was {:?}", request.message);
                    there_and_back(&request.message, request.xid, dialect);
                }
                PofEvent::Refused { error, .. } => assert!(!error.reason.is_empty() && steps >= 3),
                PofEvent::Closed { .. } => closed = true,
            }
        }
        assert_eq!(session.is_closed(), closed);
        assert!(session.output().len() <= OUTPUT_LIMIT + ANSWER_MAX);
        session.consume(size);
        session.tick(now);
    }
}

fn there_and_back(message: &PofMessage, xid: u32, dialect: PofDialect) {
    let mut bytes = Vec::new();
    assert_eq!(encode(message, xid, dialect, &mut bytes), Ok(()), "{message:?}");
    assert_eq!(decode(&bytes, dialect).as_ref(), Ok(message));
}
