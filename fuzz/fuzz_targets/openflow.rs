// SPDX-License-Identifier: Apache-2.0
//! Processes random bytes from a peer in pieces of any size. The output of the session must stay bounded, and
//! no event may follow the end of the session. The encoding of an accepted message must be stable: decoding
//! and encoding it again gives the same bytes.
#![no_main]

use flow::Nanos;
use libfuzzer_sys::fuzz_target;
use openflow::{Header, Message, Session, SessionConfig, SessionEvent, decode, encode};

const OUTPUT_LIMIT: usize = 4_096;
/// Maximum output in response to one message: an echo reply of the message's length, or an ERROR.
const ANSWER_MAX: usize = openflow::MESSAGE_BYTES_MAX;

fuzz_target!(|data: &[u8]| {
    // The first byte selects the size of the pieces. The others follow the peer's HELLO.
    let Some((&size, stream)) = data.split_first() else { return };
    let mut session =
        Session::new(SessionConfig { output_limit: OUTPUT_LIMIT, ..SessionConfig::default() }, Nanos(0));
    session.receive(&[4, 0, 0, 8, 0, 0, 0, 0], Nanos(0));
    let mut closed = false;
    for (piece, now) in stream.chunks(usize::from(size) + 1).zip((0..).map(Nanos)) {
        session.receive(piece, now);
        while let Some(event) = session.next_event() {
            assert!(!closed, "an event follows the end of the session");
            match event {
                SessionEvent::Request(request) => there_and_back(&request.message, request.xid),
                SessionEvent::Undecodable(request) => {
                    session.send_error(request.xid, request.error.code, &request.head);
                }
                SessionEvent::Closed { .. } => closed = true,
                SessionEvent::Opened | SessionEvent::Refused { .. } => {}
            }
        }
        assert!(session.output().len() <= OUTPUT_LIMIT + ANSWER_MAX);
        session.consume(usize::from(size));
        session.tick(now);
    }
});

fn there_and_back(message: &Message, xid: u32) {
    let mut ours = Vec::new();
    if encode(message, xid, &mut ours).is_err() {
        return;
    }
    assert_eq!(Header::read(&ours).map(|h| usize::from(h.length)), Some(ours.len()));
    match decode(&ours) {
        Ok(again) => {
            let mut bytes = Vec::new();
            assert_eq!(encode(&again, xid, &mut bytes), Ok(()));
            assert_eq!(bytes, ours, "{message:?}");
        }
        Err(error) => panic!("{error}: {message:?}"),
    }
}
