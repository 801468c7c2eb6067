// SPDX-License-Identifier: Apache-2.0
//! Tests of connections that the switch opens to controllers.

use crate::lab::{LONG, Lab, frame, until};
use crate::peer::{Peer, add};
use openflow::Message;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, format!("controllers = [\"tcp:{address}\"]"))
}

fn accept(listener: &TcpListener) -> Peer {
    let mut peer = Peer::silent(listener.accept().unwrap().0);
    peer.greet();
    peer
}

#[test]
fn a_secure_switch_forwards_only_by_entries_of_its_controller() {
    let (listener, keys) = listener();
    let mut lab = Lab::start(1, 2, &keys);
    assert_eq!(lab.flows(), [""; 0]);
    let mut peer = accept(&listener);
    peer.send(&add("in_port=1,actions=output:2"));
    peer.barrier();
    drop(peer);
    // The switch connects again and has kept its flows.
    let mut peer = accept(&listener);
    assert_eq!(lab.flows().len(), 1);
    lab.push(1, &frame(2, 1));
    assert_eq!(lab.pop(2), frame(2, 1));
    assert_eq!(peer.ask(&Message::EchoRequest(vec![3])), Message::EchoReply(vec![3]));
}

#[test]
fn a_standalone_switch_learns_while_its_controller_is_away() {
    let (listener, keys) = listener();
    let lab = Lab::start(1, 2, &format!("{keys}\nfail_mode = \"standalone\""));
    assert_eq!(lab.flows(), ["priority=0 actions=NORMAL"]);
    let mut peer = accept(&listener);
    until("the default flow is gone", || lab.flows().is_empty());
    peer.send(&add("in_port=1,actions=output:2"));
    peer.barrier();
    drop((peer, listener));
    let start = Instant::now();
    until("it learns again", || lab.flows() == ["priority=0 actions=NORMAL"]);
    assert!(
        start.elapsed() > Duration::from_secs(3),
        "standalone mode began too early for a controller that restarts"
    );
}

#[test]
fn several_controllers_are_served_despite_a_dead_one() {
    let (one, first) = listener();
    let (two, second) = listener();
    let (dead, third) = listener();
    drop(dead);
    let list = [first, second, third].map(|keys| keys.split('"').nth(1).unwrap().to_owned());
    let lab = Lab::start(1, 1, &format!("controllers = {list:?}"));
    let (mut one, mut two) = (accept(&one), accept(&two));
    one.barrier();
    two.barrier();
    lab.peer().barrier();
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ovs_testcontroller_turns_the_switch_into_a_learning_switch() {
    let (listener, keys) = listener();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut lab = Lab::start(1, 3, &keys);
    // The first connection attempt may have failed, because the controller was not running yet.
    let controller = lab
        .tool("ovs-testcontroller")
        .args(["-O", "OpenFlow13", &format!("ptcp:{port}:127.0.0.1")])
        .stderr(Stdio::null())
        .spawn()
        .expect("ovs-testcontroller is needed: scripts/setup.sh test installs it");
    let _controller = Ended(controller);
    until("the controller has set its table-miss entry", || lab.flows().join("").contains("CONTROLLER"));
    // Station 2 is not known yet, so the frame is flooded. Station 2 answers, and its address is learned.
    lab.push(1, &frame(2, 1));
    assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 1), frame(2, 1)));
    lab.push(2, &frame(1, 2));
    assert_eq!(lab.pop(1), frame(1, 2));
    let end = Instant::now() + LONG;
    while !lab.flows().join("").contains("actions=output:2") {
        assert!(Instant::now() < end, "no flow towards station 2");
        lab.push(1, &frame(2, 1));
        assert_eq!(lab.pop(2), frame(2, 1));
    }
    assert_eq!(lab.ports[2].pop(0), None, "nothing is flooded any more");
}
