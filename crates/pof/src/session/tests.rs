// SPDX-License-Identifier: Apache-2.0
//! Tests of sessions: order of the handshake, versions, OpenFlow peers, refusals, timeouts and limits.

use super::*;
use crate::message::packet::{PofPacketIn, PofPacketInReason};

const OLD: PofDialect = PofDialect::V1_2;
const NEW: PofDialect = PofDialect::V1_4;

fn message(version: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut bytes = Vec::new();
    Header { version, kind, length, xid: 0x77 }.write(&mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn new_session(dialect: PofDialect) -> PofSession {
    let identity = PofIdentity { device_id: 5, slot: 6 };
    let mut session = PofSession::new(dialect, identity, default_timers(), Nanos(0));
    assert_eq!(session.output(), [4, 0, 0, 8, 0, 0, 0, 0]);
    session.consume(8);
    session
}

fn events(session: &mut PofSession, bytes: &[u8]) -> Vec<PofEvent> {
    assert_eq!(session.receive(bytes, Nanos(0)), bytes.len());
    std::iter::from_fn(|| session.next_event()).collect()
}

/// The messages of the handshake in dialect 1.4.0.015.
fn steps() -> [(PofStep, Vec<u8>); 4] {
    [
        (PofStep::Hello, message(4, 0, &[])),
        (PofStep::FeaturesRequest, message(4, 5, &[])),
        (PofStep::SetConfig, message(4, 9, &[0; 8])),
        (PofStep::GetConfigRequest, message(4, 7, &[])),
    ]
}

fn running() -> PofSession {
    let mut session = new_session(NEW);
    for (_, bytes) in steps() {
        assert_eq!(events(&mut session, &bytes).len(), 1);
    }
    assert!(session.is_running());
    session
}

/// Returns the only ERROR in the output: type, code, device, slot and text.
fn sent_error(session: &mut PofSession, dialect: PofDialect) -> PofErrorMessage {
    let bytes = session.output().to_vec();
    session.consume(bytes.len());
    assert_eq!(Header::read(&bytes).unwrap().xid, 0x77);
    match decode(&bytes, dialect) {
        Ok(PofMessage::Error(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn closed(events: &[PofEvent]) -> &PofCloseReason {
    match events {
        [PofEvent::Closed { reason }] => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_other_message_ends_the_handshake() {
    let others = [
        message(4, 5, &[]),
        message(4, 9, &[0; 8]),
        message(4, 7, &[]),
        message(4, 34, &[0; 8]),
        message(4, 15, &[0; 2184]),
        message(4, 200, &[]),
        message(4, 6, &[0; 208]),
    ];
    for reached in 0..4 {
        for other in &others {
            let mut session = new_session(NEW);
            for (_, bytes) in &steps()[..reached] {
                events(&mut session, bytes);
            }
            let (expected, next) = &steps()[reached];
            if next == other {
                continue;
            }
            let seen = events(&mut session, other);
            let got = name(Header::read(other).unwrap());
            assert_eq!(*closed(&seen), PofCloseReason::OutOfOrder { expected: *expected, got });
            let error = sent_error(&mut session, NEW);
            assert_eq!((error.kind, error.code, error.device_id, error.slot), (1, 1, 5, 6));
            assert!(error.text.text().contains(expected.message()), "{error:?}");
            // Nothing follows the end.
            assert!(events(&mut session, next).is_empty());
            session.send(1, &PofMessage::EchoReply).unwrap();
            session.send_error(1, error::BAD_TYPE, "late");
            assert_eq!(session.output(), []);
            assert!(session.is_closed() && !session.wants_read() && session.next_deadline().is_none());
        }
    }
}

#[test]
fn a_malformed_message_of_the_handshake_ends_it() {
    let mut session = new_session(NEW);
    events(&mut session, &steps()[0].1);
    events(&mut session, &steps()[1].1);
    let seen = events(&mut session, &message(4, 9, &[0; 7]));
    assert_eq!(
        closed(&seen).to_string(),
        "the handshake failed: SET_CONFIG, byte 2: the message has 15 bytes; in dialect 1.4.0.015 it has 16 \
         (POFBRC_BAD_LEN)"
    );
    assert_eq!(sent_error(&mut session, NEW).error_code(), error::BAD_LEN);
}

#[test]
fn echoes_are_answered_from_the_first_hello_on() {
    let mut session = new_session(OLD);
    events(&mut session, &message(4, 0, &[]));
    assert!(events(&mut session, &message(4, 2, &[])).is_empty());
    assert!(events(&mut session, &message(4, 3, &[])).is_empty());
    assert_eq!(session.output(), message(4, 3, &[]));
}

#[test]
fn an_error_of_the_controller_is_never_answered() {
    let mut session = new_session(OLD);
    let mut body = [0; 264];
    body[1] = 1;
    body[8..10].copy_from_slice(b"no");
    events(&mut session, &message(4, 0, &[]));
    let seen = events(&mut session, &message(4, 1, &body));
    assert_eq!(
        closed(&seen).to_string(),
        "the controller ended the handshake with an error: no (POFBRC_BAD_VERSION)"
    );
    assert_eq!(session.output(), []);
    let mut session = new_session(OLD);
    assert!(matches!(
        closed(&events(&mut session, &message(4, 1, &body))),
        PofCloseReason::OutOfOrder { .. }
    ));
    assert_eq!(session.output(), []);
    let mut session = running();
    let seen = events(&mut session, &message(4, 1, &[0; 3]));
    assert!(matches!(seen[..], [PofEvent::Refused { .. }]), "{seen:?}");
    assert_eq!(session.output(), []);
}

#[test]
fn other_versions_are_refused() {
    for version in [0, 1, 3, 5, 6] {
        let mut session = new_session(OLD);
        let seen = events(&mut session, &message(version, 0, &[]));
        assert_eq!(*closed(&seen), PofCloseReason::Version(version));
        let error = sent_error(&mut session, OLD);
        assert_eq!((error.error_code(), error.slot), (error::HELLO_INCOMPATIBLE, 0));
        assert!(error.text.text().contains("from [datapath.pof] to [datapath.openflow]"), "{error:?}");
    }
    let mut session = running();
    let seen = events(&mut session, &message(1, 2, &[]));
    assert!(matches!(closed(&seen), PofCloseReason::Framing(error) if error.code == error::BAD_VERSION));
    assert_eq!(sent_error(&mut session, NEW).error_code(), error::BAD_VERSION);
}

#[test]
fn a_message_shorter_than_its_header_ends_the_session() {
    for mut session in [running(), new_session(NEW)] {
        let seen = events(&mut session, &[4, 0, 0, 7, 0, 0, 0, 0x77]);
        assert!(matches!(closed(&seen), PofCloseReason::Framing(error) if error.code == error::BAD_LEN));
        assert_eq!(sent_error(&mut session, NEW).error_code(), error::BAD_LEN);
    }
}

#[test]
fn an_openflow_controller_is_recognised() {
    let advice = "from [datapath.pof] to [datapath.openflow]";
    // A HELLO with a bitmap of versions.
    let mut session = new_session(OLD);
    let seen = events(&mut session, &message(4, 0, &[0, 1, 0, 8, 0, 0, 0, 0x10]));
    assert!(closed(&seen).to_string().contains(advice));
    assert_eq!(sent_error(&mut session, OLD).error_code(), error::HELLO_INCOMPATIBLE);
    // MULTIPART_REQUEST for port descriptions, after a HELLO without a bitmap.
    let mut session = new_session(OLD);
    events(&mut session, &message(4, 0, &[]));
    events(&mut session, &message(4, 5, &[]));
    let seen = events(&mut session, &message(4, 18, &[0, 13, 0, 0, 0, 0, 0, 0]));
    assert_eq!(*closed(&seen), PofCloseReason::OpenFlow("MULTIPART_REQUEST".into()));
    assert_eq!(sent_error(&mut session, OLD).error_code(), error::BAD_TYPE);
    // A barrier, after the handshake.
    let mut session = running();
    let seen = events(&mut session, &message(4, 20, &[]));
    let [PofEvent::Refused { error, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert!(error.to_string().contains("as BARRIER_REQUEST of OpenFlow it would be valid"), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
    assert!(session.is_running());
}

#[test]
fn requests_are_refused_without_ending_a_running_session() {
    for (bytes, code) in [
        (message(4, 0, &[]), error::BAD_TYPE),
        (message(4, 10, &[0; 24]), error::BAD_TYPE),
        (message(4, 33, &[0; 24]), error::BAD_TYPE),
        (message(4, 11, &[0; 40]), error::BAD_TYPE),
        (message(4, 31, &[0; 16]), error::BAD_LEN),
        (message(4, 31, &[9; 24]), error::COUNTER_BAD_COMMAND),
    ] {
        let mut session = running();
        let seen = events(&mut session, &bytes);
        let [PofEvent::Refused { xid: 0x77, error }] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!(error.code, code, "{error}");
        let sent = sent_error(&mut session, NEW);
        assert_eq!(sent.error_code(), code);
        assert_eq!(sent.text.text(), error.to_string().chars().take(255).collect::<String>());
        assert!(matches!(events(&mut session, &message(4, 7, &[]))[..], [PofEvent::Request(_)]));
    }
}

#[test]
fn asynchronous_messages_wait_for_the_end_of_the_handshake() {
    let packet = PofPacketIn { reason: PofPacketInReason::Action, ..PofPacketIn::default() };
    let packet_in = PofMessage::PacketIn(packet);
    let mut session = new_session(NEW);
    for (_, bytes) in steps() {
        session.send(1, &packet_in).unwrap();
        assert_eq!(session.output(), []);
        events(&mut session, &bytes);
    }
    session.send(1, &packet_in).unwrap();
    assert_eq!(session.output().len(), 32);
    // A message that the dialect cannot express is an error, and nothing is sent.
    session.consume(32);
    let long = PofPacketIn { data: vec![0; 2049], total_length_bytes: 3_000, ..PofPacketIn::default() };
    assert!(session.send(1, &PofMessage::PacketIn(long)).is_err());
    assert_eq!(session.output(), []);
}

#[test]
fn a_silent_controller_gets_echo_requests_and_is_then_closed() {
    let mut session = running();
    assert_eq!(session.next_deadline(), Some(2 * Nanos::SECOND));
    session.tick(2 * Nanos::SECOND);
    assert_eq!(session.output(), [4, 2, 0, 8, 0, 0, 0, 0]);
    session.tick(17 * Nanos::SECOND);
    assert_eq!(session.next_event(), Some(PofEvent::Closed { reason: PofCloseReason::EchoTimeout }));
    let mut session = new_session(OLD);
    session.tick(10 * Nanos::SECOND);
    assert_eq!(session.next_event(), Some(PofEvent::Closed { reason: PofCloseReason::HelloTimeout }));
    assert_eq!(session.next_event(), None);
}

#[test]
fn output_is_limited_if_a_controller_never_reads() {
    let config = SessionConfig { output_limit: 10_000, ..default_timers() };
    let mut session = PofSession::new(NEW, PofIdentity::default(), config, Nanos(0));
    events(&mut session, &message(4, 0, &[]));
    for _ in 0..10_000 {
        session.receive(&message(4, 2, &[]), Nanos(0));
        assert_eq!(session.next_event(), None);
    }
    assert!(session.output().len() <= 10_000 + 8, "{}", session.output().len());
    assert!(session.is_output_full() && !session.wants_read());
    session.consume(10_000);
    assert_eq!(session.next_event(), None);
    assert!(session.output().len() > 8, "accepted requests are answered");
}
