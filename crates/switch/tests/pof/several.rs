// SPDX-License-Identifier: Apache-2.0
//! Several POF controllers, of which one is served at a time.

use crate::lab::{LONG, Lab};
use crate::peer::{Peer, table};
use pof::PofDialect;
use pof::message::table::PofTableType;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Time within which the switch would connect again, after its shortest pause of 0.25 s.
const RETRY: Duration = Duration::from_millis(1_500);

fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// Waits for a connection of the switch. Returns `None` if there is none within this time.
fn accept(listener: &TcpListener, time: Duration) -> Option<Peer> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            return Some(Peer::silent(PofDialect::V1_4, stream));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

fn start(listeners: &[&TcpListener]) -> Lab {
    let addresses: Vec<String> =
        listeners.iter().map(|listener| format!("tcp:{}", listener.local_addr().unwrap())).collect();
    Lab::start(&format!("controllers = {addresses:?}"))
}

#[test]
fn two_configured_controllers_do_not_replace_each_other_forever() {
    let (one, two) = (listener(), listener());
    let _lab = start(&[&one, &two]);
    // The switch connects to both at its start. The last handshake decides.
    let (mut first, mut second) = (accept(&one, LONG).unwrap(), accept(&two, LONG).unwrap());
    first.greet();
    second.greet();
    first.wait_for_end();
    second.tell(&table(PofTableType::Mask, 0, &[]));
    assert!(accept(&one, RETRY).is_none(), "the switch connects while it has a controller");
    second.settle();
    // The other controller takes over when the connection ends.
    drop(second);
    let mut first = accept(&one, LONG).unwrap();
    first.greet();
    first.tell(&table(PofTableType::Mask, 0, &[]));
}

#[test]
fn a_controller_that_starts_later_does_not_empty_the_switch() {
    let (one, two) = (listener(), listener());
    let lab = start(&[&one, &two]);
    let mut first = accept(&one, LONG).unwrap();
    first.greet();
    drop(accept(&two, LONG).unwrap());
    assert!(accept(&two, RETRY).is_none(), "the switch connects to the second controller");
    first.tell(&table(PofTableType::Mask, 0, &[]));
    // A controller that connects to the switch still replaces the first, and the switch does not answer by a
    // connection to it.
    let mut other = Peer::silent(PofDialect::V1_4, TcpStream::connect(lab.pof).unwrap());
    other.greet();
    first.wait_for_end();
    assert!(accept(&one, RETRY).is_none());
    other.settle();
}
