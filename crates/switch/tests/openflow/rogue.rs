// SPDX-License-Identifier: Apache-2.0
//! Tests of peers that send invalid messages, use another protocol or send long messages. Malicious peers are
//! in the test `hostile`.

use crate::lab::Lab;
use crate::peer::{Peer, add};
use openflow::{ErrorCode, Message, decode, encode, error};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Returns an OpenFlow 1.3 message with transaction ID 9.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    [&[4, kind], &length.to_be_bytes()[..], &[0, 0, 0, 9], body].concat()
}

#[test]
fn invalid_messages_are_returned_in_errors_and_the_connection_stays_open() {
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    let before = lab.flows();
    let mut flow = Vec::new();
    encode(&add("tcp,actions=output:2"), 9, &mut flow).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = flow.clone();
        bytes[at] = byte;
        bytes
    };
    let wrong: &[(Vec<u8>, ErrorCode)] = &[
        (message(200, &[]), error::BAD_TYPE),
        (message(21, &[]), error::BAD_TYPE),
        (message(9, &[0]), error::BAD_LEN),
        (message(14, &[0; 16]), error::BAD_LEN),
        (message(4, &[0, 0, 0x23, 0x20, 0, 0, 0, 16]), error::BAD_EXPERIMENTER),
        (message(18, &[0, 99, 0, 0, 0, 0, 0, 0]), error::BAD_MULTIPART),
        (message(18, &[0, 0, 0, 0, 0, 0, 0, 0, 1]), error::BAD_LEN),
        (message(24, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), error::ROLE_BAD_ROLE),
        (message(9, &[0, 2, 0, 128]), error::SWITCH_CONFIG_BAD_FLAGS),
        // These flow-mods have an invalid table, command, flag or buffer.
        (with(24, 255), error::FLOW_MOD_BAD_TABLE_ID),
        (with(25, 9), error::FLOW_MOD_BAD_COMMAND),
        (with(44, 0x80), error::FLOW_MOD_BAD_FLAGS),
        (with(35, 1), error::BUFFER_UNKNOWN),
        // In these flow-mods, the type or the first field of the match is invalid.
        (with(49, 0), error::MATCH_BAD_TYPE),
        (with(54, 0x7e), error::MATCH_BAD_FIELD),
    ];
    for (bytes, code) in wrong {
        peer.send_bytes(bytes);
        let (9, Message::Error(answer)) = peer.receive() else { panic!("no error for {bytes:?}") };
        assert_eq!(answer.code, *code, "{bytes:?}");
        assert_eq!(answer.data, bytes[..bytes.len().min(64)]);
    }
    assert_eq!(peer.ask(&Message::EchoRequest(vec![7])), Message::EchoReply(vec![7]));
    assert_eq!(lab.flows(), before);
}

#[test]
fn peers_of_other_versions_and_protocols_are_logged_and_disconnected() {
    let lab = Lab::start(1, 1, "");
    let mut peer = Peer::silent(TcpStream::connect(lab.address).unwrap());
    peer.send_bytes(&[1, 0, 0, 8, 0, 0, 0, 3]);
    peer.receive_bytes().unwrap();
    let mut reported = peer.receive_bytes().unwrap();
    assert_eq!(reported[0], 1, "the ERROR has the peer's version");
    reported[0] = 4;
    let Message::Error(answer) = decode(&reported).unwrap() else { panic!("{reported:?}") };
    assert_eq!(answer.code, error::HELLO_INCOMPATIBLE);
    assert!(String::from_utf8(answer.data).unwrap().contains("-O OpenFlow13"));
    assert_eq!(peer.receive_bytes(), None);

    let mut peer = Peer::silent(TcpStream::connect(lab.address).unwrap());
    peer.send_bytes(b"GET / HTTP/1.1\r\n\r\n");
    while peer.receive_bytes().is_some() {}
    lab.peer().barrier();
}

/// Long messages fill the input buffer, so the next message must wait in the socket.
#[test]
fn long_messages_do_not_stall() {
    const COUNT: usize = 60;
    let lab = Lab::start(1, 1, "");
    let (mut peer, start) = (lab.peer(), Instant::now());
    let message = Message::EchoRequest(vec![5; 60_000]);
    for _ in 0..COUNT / 3 {
        let asked = [peer.send(&message), peer.send(&message), peer.send(&message)];
        for xid in asked {
            assert!(matches!(peer.answer_to(xid), Message::EchoReply(data) if data.len() == 60_000));
        }
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
