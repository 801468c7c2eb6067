// SPDX-License-Identifier: Apache-2.0
//! Tests of the maximum number of connections, and of connections beyond it.

use crate::peer::Peer;
use crate::scene::{Scene, bytes_of, dump};
use openflow::{Hello, Message};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::TcpStream;
use std::time::Instant;

const PEERS: usize = 1_000;
/// Maximum number of connections that the switch accepts, including those of the scene itself.
const MORE: usize = 1_024;
const MIB: usize = 1_024 * 1_024;

#[test]
fn a_thousand_peers_are_served_and_further_peers_are_rejected() {
    // Each connection needs two descriptors, because both ends are in this process.
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(4_096, |most| most.min(4_096));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).unwrap();
    let mut scene = Scene::start();
    let start = Instant::now();
    let mut peers: Vec<Peer> = (0..PEERS).map(|_| scene.lab.peer()).collect();
    scene.is_served();
    // One tenth of the peers do not read the long answers that they request. Another tenth stop in the middle
    // of a message.
    for (at, peer) in peers.iter_mut().enumerate() {
        match at % 10 {
            0 => peer.send_bytes(&bytes_of(&dump()).repeat(20)),
            1 => peer.send_bytes(&bytes_of(&Message::EchoRequest(vec![1; 60_000]))[..30_000]),
            _ => {}
        }
    }
    scene.is_served();
    for round in 0..3 {
        for (at, peer) in peers.iter_mut().enumerate().filter(|(at, _)| at % 10 > 1) {
            let data = vec![round, at as u8];
            assert_eq!(peer.ask(&Message::EchoRequest(data.clone())), Message::EchoReply(data));
        }
        scene.is_served();
    }
    scene.has_grown_at_most(PEERS * MIB / 8);
    // Connections beyond the limit are closed without a message.
    let mut away = 0;
    let mut more = Vec::new();
    for _ in PEERS..MORE + 20 {
        let mut peer = Peer::silent(TcpStream::connect(scene.lab.address).unwrap());
        match peer.receive_bytes() {
            Some(_) => more.push(peer),
            None => away += 1,
        }
    }
    assert!((20..=22).contains(&away), "{away} peers were rejected");
    scene.is_logged(1, &["WARN", "is rejected: 1024 connections of controllers are open, the maximum"]);
    scene.is_served();
    // When the peers leave, new connections are accepted again.
    drop((peers, more));
    let mut again = scene.lab.peer();
    again.barrier();
    let mut greeted = Peer::silent(TcpStream::connect(scene.lab.address).unwrap());
    greeted.send_bytes(&bytes_of(&Message::Hello(Hello::supported())));
    assert!(greeted.receive_bytes().is_some());
    println!("{PEERS} connections for {:?}", start.elapsed());
    scene.end();
}
