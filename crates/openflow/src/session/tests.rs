// SPDX-License-Identifier: Apache-2.0
//! Tests of sessions: version negotiation, echoes, refusals, framing errors, memory limits and timeouts.

use super::*;
use crate::experimenter;
use crate::header::MESSAGE_BYTES_MAX;
use crate::multipart::flow_stats::FlowStatsEntry;
use crate::multipart::parts::Parts;
use crate::multipart::{Answer, MultipartReply};

const SECOND: Nanos = Nanos(1_000_000_000);

/// Returns the bytes of a message, with the correct length in its header.
fn message(version: u8, kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { version, kind, length: (8 + body.len()) as u16, xid }.write(&mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn hello(version: u8, bitmap: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::Hello(Hello { version, bitmap }).encode_one(1, &mut bytes);
    bytes
}

/// Returns the session's output, message by message.
fn said(session: &mut Session) -> Vec<Message> {
    let bytes = session.output().to_vec();
    session.consume(bytes.len());
    let mut rest = &bytes[..];
    let mut messages = Vec::new();
    while let Some(header) = Header::read(rest) {
        let (one, next) = rest.split_at(usize::from(header.length));
        // The ERROR that refuses a HELLO may have another version.
        let mut one = one.to_vec();
        one[0] = VERSION;
        messages.push(crate::decode(&one).unwrap());
        rest = next;
    }
    messages
}

fn open() -> Session {
    let mut session = Session::new(SessionConfig::default(), Nanos(0));
    assert_eq!(session.receive(&hello(4, None), Nanos(0)), 8);
    assert_eq!(session.next_event(), Some(SessionEvent::Opened));
    assert_eq!(said(&mut session), [Message::Hello(Hello::supported())]);
    session
}

fn events(session: &mut Session) -> Vec<SessionEvent> {
    std::iter::from_fn(|| session.next_event()).collect()
}

#[test]
fn versions_are_negotiated_by_bitmap_or_by_the_lower_version() {
    for (version, bitmap, agreed) in [
        (4, None, true),
        (6, None, true),
        (6, Some(1 << 1 | 1 << 4), true),
        (1, Some(1 << 4), true),
        (1, None, false),
        (3, None, false),
        (6, Some(1 << 6 | 1 << 1), false),
        (4, Some(0), false),
    ] {
        let mut session = Session::new(SessionConfig::default(), Nanos(0));
        session.receive(&hello(version, bitmap), Nanos(0));
        let events = events(&mut session);
        assert_eq!(events == [SessionEvent::Opened], agreed, "{version} {bitmap:?} {events:?}");
        assert_eq!(session.is_open(), agreed);
    }
}

#[test]
fn a_peer_of_version_1_0_is_advised_to_use_1_3() {
    let mut session = Session::new(SessionConfig::default(), Nanos(0));
    session.receive(&message(1, 0, 9, &[]), Nanos(0));
    let events = events(&mut session);
    let [SessionEvent::Closed { reason }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        reason.to_string(),
        "the peer speaks OpenFlow 1.0 at most, this switch only 1.3; enable 1.3 in the peer (ovs-ofctl: \
         use -O OpenFlow13)"
    );
    let answer = session.output()[16..].to_vec();
    assert_eq!(answer[..2], [1, 1], "an ERROR in the peer's own version");
    assert_eq!(answer[4..12], [0, 0, 0, 9, 0, 0, 0, 0], "transaction number, HELLO_FAILED, INCOMPATIBLE");
    assert!(answer.ends_with(b"use -O OpenFlow13"));
    assert!(!session.wants_read() && session.next_event().is_none());
    session.send(1, &Message::BarrierReply).unwrap();
    assert_eq!(session.output()[16..], answer, "nothing follows");
}

#[test]
fn a_peer_that_does_not_begin_with_hello_is_refused_at_once() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], &message(4, 5, 1, &[])] {
        let mut session = Session::new(SessionConfig::default(), Nanos(0));
        session.receive(bytes, Nanos(0));
        let reason = CloseReason::NoHello(bytes[1]);
        assert_eq!(events(&mut session), [SessionEvent::Closed { reason }]);
    }
}

#[test]
fn an_error_before_hello_closes_without_an_error() {
    let mut session = Session::new(SessionConfig::default(), Nanos(0));
    let hello = session.output().to_vec();
    session.receive(&message(4, 1, 1, &[0, 0, 0, 0]), Nanos(0));
    assert_eq!(events(&mut session), [SessionEvent::Closed { reason: CloseReason::NoHello(1) }]);
    assert_eq!(session.output(), hello, "only the HELLO of the switch is sent");
    let mut session = Session::new(SessionConfig::default(), Nanos(0));
    session.receive(&message(4, 5, 1, &[]), Nanos(0));
    events(&mut session);
    assert_eq!(session.output()[hello.len()..][..2], [4, 1], "any other message is answered");
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let mut session = open();
    let two = [message(4, 5, 7, &[]), message(4, 20, 8, &[])].concat();
    let mut got = Vec::new();
    for byte in two {
        assert_eq!(session.receive(&[byte], Nanos(0)), 1);
        got.extend(events(&mut session));
    }
    let requests: Vec<_> = got
        .into_iter()
        .map(|event| match event {
            SessionEvent::Request(r) => (r.xid, r.message, r.head.bytes().len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(requests, [(7, Message::FeaturesRequest, 8), (8, Message::BarrierRequest, 8)]);
}

#[test]
fn echoes_are_answered_and_refusals_carry_the_message() {
    let mut session = open();
    let long = message(4, 99, 5, &[7; 100]);
    session.receive(&[message(4, 2, 3, b"ping"), long.clone(), message(4, 21, 6, &[])].concat(), Nanos(0));
    let events = events(&mut session);
    let codes: Vec<_> = events
        .iter()
        .map(|event| match event {
            SessionEvent::Refused { xid, error } => (*xid, error.code),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, [(5, error::BAD_TYPE), (6, error::BAD_TYPE)]);
    let error = |data: &[u8]| Message::Error(ErrorMessage { code: error::BAD_TYPE, data: data.to_vec() });
    assert_eq!(
        said(&mut session),
        [Message::EchoReply(b"ping".to_vec()), error(&long[..64]), error(&message(4, 21, 6, &[]))]
    );
    assert!(session.is_open());
}

#[test]
fn lengths_and_versions_that_hide_the_next_message_close_the_session() {
    for (bytes, code) in
        [(&[4, 5, 0, 7, 0, 0, 0, 1], error::BAD_LEN), (&[5, 5, 0, 8, 0, 0, 0, 1], error::BAD_VERSION)]
    {
        let mut session = open();
        session.receive(bytes, Nanos(0));
        let events = events(&mut session);
        let [SessionEvent::Closed { reason: CloseReason::Framing(error) }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(error.code, code);
        assert_eq!(said(&mut session), [Message::Error(ErrorMessage { code, data: bytes.to_vec() })]);
        assert_eq!((session.is_open(), session.wants_read(), session.next_deadline()), (false, false, None));
    }
}

/// A repeated HELLO with a version before 1.3 closes the session, as in Open vSwitch. A later version is
/// accepted.
#[test]
fn a_later_hello_is_accepted_unless_its_version_is_earlier() {
    for (version, bitmap, stays) in [
        (4, None, true),
        (4, Some(1 << 4), true),
        (6, None, true),
        (6, Some(1 << 6), true),
        (0, None, false),
        (0, Some(1 << 4), false),
        (1, None, false),
        (1, Some(1 << 4), false),
        (3, None, false),
    ] {
        let mut session = open();
        session.receive(&hello(version, bitmap), Nanos(0));
        let events = events(&mut session);
        let codes: Vec<_> = events
            .iter()
            .map(|event| match event {
                SessionEvent::Closed { reason: CloseReason::Framing(error) } => error.code,
                other => panic!("{other:?}"),
            })
            .collect();
        let (closed, answers) = if stays { (vec![], 0) } else { (vec![error::BAD_VERSION], 1) };
        assert_eq!((codes, said(&mut session).len()), (closed, answers), "{version} {bitmap:?}");
    }
}

#[test]
fn an_error_of_another_version_closes_and_is_not_answered() {
    let mut session = open();
    session.receive(&message(1, kind::ERROR, 3, &[0; 4]), Nanos(0));
    assert!(matches!(events(&mut session)[..], [SessionEvent::Closed { .. }]));
    assert_eq!(said(&mut session), []);
}

/// The caller decides whether the ERROR reports the sender's role or the malformed message.
#[test]
fn undecodable_messages_barred_for_slaves_are_left_to_the_caller() {
    let bundle_add = [&experimenter::ONF.to_be_bytes()[..], &2301_u32.to_be_bytes(), &[9]].concat();
    let stateless_mod = [&experimenter::EXPERIMENTER.to_be_bytes()[..], &1_u32.to_be_bytes(), &[9]].concat();
    let mut table_features = vec![0, 12, 0, 0, 0, 0, 0, 0, 1];
    for (kind, body) in [
        (kind::PACKET_OUT, &[9][..]),
        (kind::FLOW_MOD, &[9]),
        (kind::GROUP_MOD, &[9]),
        (kind::PORT_MOD, &[9]),
        (kind::TABLE_MOD, &[9]),
        (kind::METER_MOD, &[9]),
        (kind::MULTIPART_REQUEST, &table_features),
        (kind::EXPERIMENTER, &bundle_add),
        (kind::EXPERIMENTER, &stateless_mod),
    ] {
        let mut session = open();
        session.receive(&message(4, kind, 8, body), Nanos(0));
        let events = events(&mut session);
        let [SessionEvent::Undecodable(request)] = &events[..] else { panic!("{kind}: {events:?}") };
        assert_eq!((request.xid, said(&mut session).len()), (8, 0));
    }
    table_features[1] = 1;
    for (kind, body) in [(kind::ROLE_REQUEST, &[9][..]), (kind::MULTIPART_REQUEST, &table_features)] {
        let mut session = open();
        session.receive(&message(4, kind, 8, body), Nanos(0));
        assert!(matches!(events(&mut session)[..], [SessionEvent::Refused { .. }]), "{kind}");
    }
}

#[test]
fn input_holds_one_message_and_refuses_the_rest() {
    let mut session = open();
    let longest = message(4, 2, 1, &vec![1; MESSAGE_BYTES_MAX - 8]);
    let mut flood = longest.clone();
    flood.extend_from_slice(&longest);
    let taken = session.receive(&flood, Nanos(0));
    assert_eq!(taken, MESSAGE_BYTES_MAX);
    assert!(!session.wants_read() && session.receive(&flood[taken..], Nanos(0)) == 0);
    assert_eq!(session.next_event(), None);
    assert_eq!(session.output().len(), MESSAGE_BYTES_MAX);
    assert_eq!(session.receive(&flood[taken..], Nanos(0)), MESSAGE_BYTES_MAX);
}

#[test]
fn output_is_limited_if_a_peer_never_reads() {
    let config = SessionConfig { output_limit: 10_000, ..SessionConfig::default() };
    let mut session = Session::new(config, Nanos(0));
    session.receive(&hello(4, None), Nanos(0));
    assert_eq!(session.next_event(), Some(SessionEvent::Opened));
    let echo = message(4, 2, 1, &[0; 992]);
    let mut most = 0;
    for _ in 0..1_000 {
        session.receive(&echo, Nanos(0));
        assert_eq!(session.next_event(), None);
        most = most.max(session.output().len());
    }
    assert!(most <= 10_000 + 1_000, "{most} bytes of output");
    assert!(session.is_output_full() && !session.wants_read());
    // Requests that were already accepted are answered as soon as the output has space.
    session.consume(most);
    assert_eq!(session.next_event(), None);
    assert!(session.output().len() > 10_000);
}

#[test]
fn a_silent_peer_gets_an_echo_request_and_is_then_closed() {
    let mut session = open();
    assert_eq!(session.next_deadline(), Some(15 * SECOND));
    session.tick(15 * SECOND - Nanos(1));
    assert_eq!(said(&mut session), []);
    session.tick(15 * SECOND);
    session.tick(16 * SECOND);
    assert_eq!(said(&mut session), [Message::EchoRequest(Vec::new())]);
    session.receive(&message(4, 3, 0, &[]), 20 * SECOND);
    assert_eq!(session.next_event(), None);
    assert_eq!(session.next_deadline(), Some(35 * SECOND));
    session.tick(35 * SECOND);
    assert_eq!(session.next_deadline(), Some(50 * SECOND));
    session.tick(50 * SECOND);
    assert_eq!(events(&mut session), [SessionEvent::Closed { reason: CloseReason::EchoTimeout }]);
}

#[test]
fn a_slow_hello_does_not_extend_the_timeout() {
    let mut session = Session::new(SessionConfig::default(), Nanos(0));
    // A HELLO of 256 bytes arrives at one byte per second.
    for (byte, second) in [4, 0, 1, 0, 0, 0, 0, 0, 0].into_iter().zip(1..) {
        session.receive(&[byte], second * SECOND);
        session.tick(second * SECOND);
        assert_eq!(session.next_event(), None);
    }
    session.tick(10 * SECOND);
    assert_eq!(session.next_event(), Some(SessionEvent::Closed { reason: CloseReason::HelloTimeout }));
}

#[test]
fn a_slow_peer_stays_connected_while_it_reads() {
    let config = SessionConfig { output_limit: 100, ..SessionConfig::default() };
    let mut session = Session::new(config, Nanos(0));
    session.receive(&hello(4, None), Nanos(0));
    session.next_event();
    session.send(1, &Message::EchoReply(vec![0; 5_000])).unwrap();
    for second in 1..100 {
        session.consume(10);
        session.tick(second * SECOND);
    }
    assert!(session.is_open());
    for second in 100..140 {
        session.tick(second * SECOND);
    }
    assert_eq!(events(&mut session), [SessionEvent::Closed { reason: CloseReason::EchoTimeout }]);
}

#[test]
fn long_replies_are_split_between_items() {
    let mut session = open();
    let entry = |n: u64| FlowStatsEntry { cookie: n, ..FlowStatsEntry::default() };
    let mut parts = Parts::new(77);
    let out = session.output_mut().unwrap();
    for n in 0..5_000 {
        parts.push(&entry(n), out).unwrap();
    }
    parts.finish(out);
    let mut by_hand = Vec::new();
    let all = Answer::Flow((0..5_000).map(entry).collect());
    encode(&Message::MultipartReply(MultipartReply::from(all)), 77, &mut by_hand).unwrap();
    assert_eq!(session.output(), by_hand);
    let mut cookies = Vec::new();
    let mut more_flags = Vec::new();
    for message in said(&mut session) {
        let Message::MultipartReply(MultipartReply { more, answer: Answer::Flow(list) }) = message else {
            panic!("{message:?}")
        };
        cookies.extend(list.iter().map(|e| e.cookie));
        more_flags.push(more);
    }
    assert!(cookies.iter().copied().eq(0..5_000));
    assert_eq!(more_flags.len(), 5, "items of 56 bytes, 1170 per part");
    assert!(more_flags[..4].iter().all(|more| *more) && !more_flags[4]);
    // A reply without items is one empty part.
    let mut empty = Vec::new();
    Parts::<FlowStatsEntry>::new(1).finish(&mut empty);
    assert_eq!(empty, message(4, 19, 1, &[0, 1, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let mut session = open();
    let echo = Message::EchoReply(vec![0; MESSAGE_BYTES_MAX]);
    assert_eq!(session.send(1, &echo), Err(TooLong(MESSAGE_BYTES_MAX + 8)));
    assert_eq!(session.output(), []);
}

/// Bytes that the caller offers again do not show that the peer is alive.
#[test]
fn bytes_that_do_not_fit_are_no_sign_of_life() {
    let config = SessionConfig { output_limit: 100, ..SessionConfig::default() };
    let mut session = Session::new(config, Nanos(0));
    session.receive(&hello(4, None), Nanos(0));
    session.next_event();
    session.send(1, &Message::EchoReply(vec![0; 5_000])).unwrap();
    let waiting = vec![4; MESSAGE_BYTES_MAX];
    assert_eq!(session.receive(&waiting, SECOND), waiting.len());
    for second in 2..=31 {
        assert_eq!(session.receive(&[4], second * SECOND), 0);
        session.tick(second * SECOND);
    }
    assert_eq!(events(&mut session), [SessionEvent::Closed { reason: CloseReason::EchoTimeout }]);
}

/// Messages of a POF controller, with the same version number, are refused with a hint.
#[test]
fn a_pof_controller_is_recognised() {
    for (kind, length, name) in
        [(9, 16, "SET_CONFIG"), (18, 152, "TABLE_MOD"), (15, 1200, "FLOW_MOD"), (15, 2192, "FLOW_MOD")]
    {
        let mut session = open();
        session.receive(&message(4, kind, 7, &vec![0; length - 8]), Nanos(0));
        let events = events(&mut session);
        // The sender's role decides about the answer to some of them.
        let error = match &events[..] {
            [SessionEvent::Refused { error, .. }] => error,
            [SessionEvent::Undecodable(request)] => &request.error,
            _ => panic!("{events:?}"),
        };
        let hint = format!(
            "POF's {name} has this type and length ({length} bytes): if the controller speaks POF, move its \
             address in the configuration from [datapath.openflow] to [datapath.pof]"
        );
        assert!(error.problem.contains(&hint), "{error}");
        assert!(session.is_open());
    }
    let mut session = open();
    session.receive(&message(4, 18, 7, &[0; 2]), Nanos(0));
    let events = events(&mut session);
    let [SessionEvent::Refused { error, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(!error.problem.contains("POF"), "{error}");
}
