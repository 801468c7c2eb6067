// SPDX-License-Identifier: Apache-2.0
//! Tests of peers that reset their connection at each stage.

use crate::peer::{Peer, add, flow_mod};
use crate::scene::{Scene, bytes_of, dump};
use flow::FlowModCommand;
use openflow::bundle::{BundleAdd, BundleControl, BundleKind, FLAG_ATOMIC};
use openflow::{Hello, Message};
use rustix::net::sockopt::set_socket_linger;
use std::net::TcpStream;
use std::time::Duration;

const TIMES: usize = 20;
const PAUSE: Duration = Duration::from_millis(2);

#[test]
fn a_reset_at_any_moment_leaves_nothing_behind() {
    let mut scene = Scene::start();
    let hello = bytes_of(&Message::Hello(Hello::supported()));
    let echo = bytes_of(&Message::EchoRequest(vec![1; 1_000]));
    let bundle = BundleControl { bundle_id: 1, kind: BundleKind::OpenRequest, flags: FLAG_ATOMIC };
    let delete = BundleAdd {
        bundle_id: 1,
        flags: FLAG_ATOMIC,
        message: Box::new(flow_mod(FlowModCommand::Delete, "")),
    };
    let half_done = [Message::BundleControl(bundle), Message::BundleAdd(delete)];
    let half_done: Vec<u8> = half_done.iter().flat_map(bytes_of).collect();
    // This flow-mod adds an entry that already exists.
    let barriers =
        [add("in_port=1,actions=output:2"), Message::BarrierRequest].map(|m| bytes_of(&m)).concat();
    // The bytes that are sent before the reset.
    let moments: &[(&str, Vec<u8>)] = &[
        ("before anything", vec![]),
        ("in the HELLO's header", hello[..3].to_vec()),
        ("after the HELLO's header", hello[..8].to_vec()),
        ("after the HELLO", hello.clone()),
        ("in a message's header", [&hello, &echo[..5]].concat()),
        ("in a message", [&hello, &echo[..500]].concat()),
        ("after a request", [&hello, &echo[..]].concat()),
        ("in a dump", [hello.clone(), bytes_of(&dump()).repeat(50)].concat()),
        ("in a bundle", [&hello[..], &half_done].concat()),
        ("at a barrier", [&hello[..], &barriers.repeat(50)].concat()),
    ];
    for (moment, bytes) in moments {
        for time in 0..TIMES {
            let stream = TcpStream::connect(scene.lab.address).unwrap();
            // With a linger time of 0, closing the connection resets it.
            set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            let mut peer = Peer::silent(stream);
            peer.send_bytes(bytes);
            // Reset immediately, or after the switch has begun to answer.
            std::thread::sleep(PAUSE * (time as u32 % 3));
        }
        scene.is_served();
        assert!(scene.lab.log.lines(&["panic"]).is_empty(), "{moment}");
    }
    scene.is_logged(10, &["connection lost: connection reset"]);
    scene.has_grown_at_most(16 * 1_024 * 1_024);
    scene.end();
}
