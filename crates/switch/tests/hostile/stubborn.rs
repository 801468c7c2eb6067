// SPDX-License-Identifier: Apache-2.0
//! Tests of peers that send byte by byte, send nothing, send too much, or do not read.

use crate::peer::{Peer, add};
use crate::scene::{ENTRIES, Scene, bytes_of, dump};
use flow::TableId;
use openflow::{Hello, Message};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MIB: usize = 1_024 * 1_024;

fn silent(scene: &Scene) -> Peer {
    Peer::silent(TcpStream::connect(scene.lab.address).unwrap())
}

#[test]
fn peers_that_send_byte_by_byte_are_answered() {
    const PEERS: usize = 50;
    let mut scene = Scene::start();
    let mut peers: Vec<_> = (0..PEERS).map(|_| silent(&scene)).collect();
    let messages =
        [Message::Hello(Hello::supported()), Message::EchoRequest(vec![5; 20]), Message::FeaturesRequest];
    let bytes: Vec<u8> = messages.iter().flat_map(bytes_of).collect();
    for (at, byte) in bytes.iter().enumerate() {
        for peer in &mut peers {
            peer.send_bytes(&[*byte]);
        }
        std::thread::sleep(Duration::from_millis(2));
        if at % 16 == 0 {
            scene.is_served();
        }
    }
    for peer in &mut peers {
        assert!(matches!(peer.receive(), (_, Message::Hello(_))));
        assert_eq!(peer.receive(), (9, Message::EchoReply(vec![5; 20])));
        assert!(matches!(peer.receive(), (9, Message::FeaturesReply(_))));
    }
    scene.has_grown_at_most(16 * MIB);
    scene.end();
}

#[test]
fn silent_peers_are_disconnected() {
    const PEERS: usize = 100;
    let scene = Scene::start();
    let start = Instant::now();
    let mut peers: Vec<_> = (0..PEERS).map(|_| silent(&scene)).collect();
    // Half of the peers begin a HELLO and stop in the middle.
    for peer in peers.iter_mut().take(PEERS / 2) {
        peer.send_bytes(&[4, 0, 0, 16, 0]);
    }
    for peer in &mut peers {
        // The switch sends its HELLO and nothing else.
        assert!(peer.receive_bytes().is_some());
        assert_eq!(peer.receive_bytes(), None);
    }
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(9) && waited < Duration::from_secs(15), "{waited:?}");
    scene.is_logged(10, &["WARN", "closed: no HELLO came in time; is the peer an OpenFlow controller?"]);
    // The next line of the log reports how many lines were suppressed.
    std::thread::sleep(Duration::from_secs(1));
    scene.lab.peer().barrier();
    scene.is_logged(1, &["lines about connections of controllers were suppressed"]);
    scene.end();
}

/// Sends as much as the switch accepts, until the time `until`. Returns the number of bytes sent.
fn flood(mut stream: TcpStream, bytes: &[u8], until: Instant) -> usize {
    stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while Instant::now() < until {
        match stream.write(&bytes[sent % bytes.len()..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

#[test]
fn floods_are_slowed_down_without_delaying_other_peers() {
    const SECONDS: u64 = 3;
    let mut scene = Scene::start();
    let mut same = add("in_port=1,actions=output:2");
    if let Message::FlowMod(m) = &mut same {
        m.flow.table = Some(TableId(250));
    }
    let mut wrong = bytes_of(&same);
    wrong[25] = 99;
    let kinds = [
        bytes_of(&Message::EchoRequest(vec![1; 60_000])),
        bytes_of(&Message::EchoRequest(Vec::new())).repeat(1_000),
        bytes_of(&Message::BarrierRequest).repeat(1_000),
        bytes_of(&dump()).repeat(1_000),
        wrong.repeat(500),
        [4, 200, 0, 8, 0, 0, 0, 1].repeat(1_000),
    ];
    // During the floods, other lines may reach the limit of lines per second first.
    let mut peer = scene.lab.peer();
    peer.send_bytes(&wrong);
    scene.is_logged(1, &["refused: "]);
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let address = scene.lab.address;
    let floods: Vec<_> = (0..3)
        .flat_map(|_| kinds.clone())
        .map(|bytes| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&bytes_of(&Message::Hello(Hello::supported()))).unwrap();
            std::thread::spawn(move || flood(stream, &bytes, until))
        })
        .collect();
    while Instant::now() < until {
        scene.is_served();
    }
    scene.has_grown_at_most(48 * MIB);
    let sent: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    assert!(sent > MIB, "{sent}");
    scene.is_logged(1, &["lines about connections of controllers were suppressed"]);
    scene.end();
}

#[test]
fn no_work_is_done_for_peers_that_do_not_read() {
    const PEERS: usize = 50;
    let mut scene = Scene::start();
    let dumps = bytes_of(&dump()).repeat(200);
    let mut peers: Vec<_> = (0..PEERS).map(|_| scene.lab.peer()).collect();
    for peer in &mut peers {
        peer.send_bytes(&dumps);
    }
    for _ in 0..50 {
        scene.is_served();
        std::thread::sleep(Duration::from_millis(20));
    }
    // All answers together need more than 1 GiB, because an entry takes at least 64 bytes.
    const { assert!(PEERS * 200 * ENTRIES * 64 > 1_024 * MIB) };
    scene.has_grown_at_most(PEERS * MIB);
    // A peer that begins to read gets its complete answer.
    let mut late = peers.pop().unwrap();
    let mut ended = 0;
    while ended < 3 {
        if let (9, Message::MultipartReply(reply)) = late.receive() {
            ended += usize::from(!reply.more);
        }
    }
    drop(peers);
    scene.end();
}
