// SPDX-License-Identifier: Apache-2.0
//! Messages over the socket: reading back, duplicates, damaged datagrams, and datagrams of others.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use device::message::MESSAGE_BYTES_MAX;
use device::register::{CHANNEL_COUNTERS, CONTROL_COUNTERS, COUNTERS, SHELL_COUNTERS};
use device::session::DeviceEvent;
use device::{ActionWord, Body, DeviceMessage, KeySlice, OutputKind, PpuCommand, SelectorBase, TernaryKey};
use device_sim::{CHANNELS, ENTRIES, PPUS};
use fastrand::Rng;

use crate::rig::{Rig, Session, frame, socket, wait_until};

/// The value of a counter in a Stats_reply.
fn counter(stats: &[u64], name: &str) -> u64 {
    let names = COUNTERS.iter().chain(&SHELL_COUNTERS).chain(&CONTROL_COUNTERS);
    let at = names.map(|(name, _)| *name).position(|other| other == name);
    stats[at.unwrap_or_else(|| panic!("there is no counter {name}"))]
}

fn select() -> PpuCommand {
    let first = KeySlice { base: SelectorBase::Frame, offset: 2, bytes: 4 };
    PpuCommand::Select { slices: [first, KeySlice::default(), KeySlice::default(), KeySlice::default()] }
}

/// An entry for frames to 02:00:00:00:00:`last`.
fn write(index: u16, last: u8, port: u8) -> PpuCommand {
    let mut key = TernaryKey::default();
    key.value[..4].copy_from_slice(&[0, 0, 0, last]);
    key.mask[..4].copy_from_slice(&[0xff; 4]);
    // The presence bit of the first slice.
    key.value[16] = 0x80;
    key.mask[16] = 0x80;
    let action = ActionWord { output: OutputKind::Port, port, ..ActionWord::default() };
    PpuCommand::Write { index, key, action }
}

fn encoded(id: u32, body: Body) -> Vec<u8> {
    DeviceMessage { id, body }.encode().unwrap()
}

/// Waits for the answer to a datagram.
fn answer(socket: &UdpSocket) -> DeviceMessage {
    let mut buffer = [0; 2_048];
    let mut len = None;
    wait_until("an answer", || {
        len = socket.recv_from(&mut buffer).ok().map(|(len, _)| len);
        len.is_some()
    });
    DeviceMessage::decode(&buffer[..len.unwrap()]).unwrap()
}

fn is_silent(socket: &UdpSocket) -> bool {
    thread::sleep(Duration::from_millis(300));
    socket.recv_from(&mut [0; 2_048]).is_err()
}

#[test]
fn entries_are_read_back_with_their_hits() {
    let mut rig = Rig::new(2);
    let mut session = Session::new(rig.address, 5);
    session.session.execute(4, select());
    assert_eq!(session.next(), DeviceEvent::Executed { done: true });
    session.session.execute(4, write(ENTRIES - 1, 1, 2));
    assert_eq!(session.next(), DeviceEvent::Executed { done: true });
    for (ppu, index) in [(4, ENTRIES), (PPUS as u8, 0)] {
        session.session.execute(ppu, write(index, 1, 2));
        assert_eq!(session.next(), DeviceEvent::Executed { done: false }, "out of range");
    }
    for number in 0..7 {
        rig.push(1, &frame(1, 60, number));
    }
    rig.push(1, &frame(9, 60, 0));
    rig.take(2, 7);
    session.session.read(4, ENTRIES - 1);
    let DeviceEvent::Entry(state) = session.next() else { panic!("not an entry") };
    let PpuCommand::Write { key, action, .. } = write(0, 1, 2) else { panic!() };
    assert_eq!((state.ppu, state.index, state.valid, state.packets), (4, ENTRIES - 1, true, 7));
    assert_eq!((state.key, state.action), (key, action));
    session.session.read(3, ENTRIES - 1);
    let DeviceEvent::Entry(state) = session.next() else { panic!("not an entry") };
    assert!(!state.valid);
    let stats = session.stats();
    let channels = usize::from(CHANNELS) * CHANNEL_COUNTERS.len();
    assert_eq!(
        stats.len(),
        COUNTERS.len() + SHELL_COUNTERS.len() + CONTROL_COUNTERS.len() + channels,
        "the number of channels"
    );
    assert_eq!((counter(&stats, "received"), counter(&stats, "to_port")), (8, 7));
    assert_eq!(counter(&stats, "discarded"), 1);
    // The channels follow the other counters: rx_frames of channel 0, tx_frames and tx_bytes of channel 1.
    let channels = &stats[stats.len() - channels..];
    let tx = &channels[CHANNEL_COUNTERS.len()..];
    assert_eq!((channels[0], tx[3], tx[4]), (8, 7, 7 * 60));
}

#[test]
fn duplicates_and_old_commands_change_nothing() {
    let rig = Rig::new(1);
    let mut session = Session::new(rig.address, 100);
    session.session.execute(0, select());
    session.next();
    // The rest by hand, at the session's socket.
    let link = &session.link;
    let flow_mod = |id, command| encoded(id, Body::FlowMod { ppu: 0, command });
    let send = |datagram: &[u8]| _ = link.socket.send_to(datagram, rig.address).unwrap();
    let done = |id, done| DeviceMessage { id, body: Body::FlowAck { done } };
    let write = flow_mod(110, write(3, 1, 2));
    for _ in 0..3 {
        send(&write);
        assert_eq!(answer(&link.socket), done(110, true));
    }
    // An older command that arrives later is refused: it would undo a newer one.
    send(&flow_mod(109, PpuCommand::Remove { index: 3 }));
    assert_eq!(answer(&link.socket), done(109, false));
    send(&flow_mod(30, PpuCommand::Remove { index: 3 }));
    assert!(is_silent(&link.socket), "a command from before the session");
    // Two commands in reverse order: the newer one wins.
    send(&flow_mod(121, PpuCommand::Remove { index: 5 }));
    send(&flow_mod(120, self::write(5, 2, 2)));
    let both = [answer(&link.socket), answer(&link.socket)];
    assert!(both.contains(&done(121, true)) && both.contains(&done(120, false)), "{both:?}");
    let mut valid = |index| {
        session.session.read(0, index);
        matches!(session.next(), DeviceEvent::Entry(state) if state.valid)
    };
    assert!(valid(3) && !valid(5));
    let stats = session.stats();
    let of = |name| counter(&stats, name);
    assert_eq!((of("control_duplicate"), of("control_late"), of("control_stale")), (2, 2, 1));
    assert_eq!(of("control_flow_mod"), 3);
}

#[test]
fn damaged_datagrams_are_counted_and_change_nothing() {
    let mut rig = Rig::new(2);
    let mut session = Session::new(rig.address, 100);
    session.session.execute(0, select());
    session.next();
    session.session.execute(0, write(0, 1, 2));
    session.next();
    let mut rng = Rng::with_seed(7);
    let before = session.stats();
    let start = rig.settle().control.received;
    let mut all: Vec<Vec<u8>> = vec![Vec::new(), vec![0; 65_507], vec![1; MESSAGE_BYTES_MAX + 1]];
    for _ in 0..60 {
        let mut bytes = encoded(rng.u32(..), Body::FlowMod { ppu: 0, command: write(0, 1, 1) });
        match rng.u8(0..4) {
            0 => bytes.truncate(rng.usize(..bytes.len())),
            1 => bytes.extend((0..rng.usize(1..2_000)).map(|_| rng.u8(..))),
            2 => bytes = (0..rng.usize(..2_000)).map(|_| rng.u8(..)).collect(),
            // Version and type.
            _ => bytes[rng.usize(..2)] ^= 0x80 | rng.u8(..),
        }
        all.push(bytes);
    }
    for (at, datagram) in all.iter().enumerate() {
        session.link.socket.send_to(datagram, rig.address).unwrap();
        // The socket's buffer is finite.
        if at % 8 == 2 || at + 1 == all.len() {
            let wanted = start + at as u64 + 1;
            wait_until("the device takes the datagrams", || rig.counters().control.received == wanted);
        }
    }
    let after = session.stats();
    let grown = |name| counter(&after, name) - counter(&before, name);
    let refusals = [
        "control_bad_frame",
        "control_foreign",
        "control_spoofed",
        "control_checksum",
        "control_length",
        "control_version",
        "control_type",
        "control_value",
    ];
    let refused: u64 = refusals.into_iter().map(grown).sum();
    assert_eq!(refused, all.len() as u64);
    assert!(grown("control_version") > 5 && grown("control_length") > 5 && grown("control_bad_frame") >= 2);
    // The Stats_request itself is the only other message.
    assert_eq!((grown("control_received"), grown("control_request")), (refused + 1, 1));
    assert_eq!(grown("control_flow_mod"), 0);
    rig.push(1, &frame(1, 60, 1));
    assert_eq!(rig.take(2, 1), [frame(1, 60, 1)]);
    assert_eq!(rig.counters().control.malformed, 0);
}

#[test]
fn another_peer_becomes_the_daemon_when_the_first_is_silent() {
    let rig = Rig::new(1);
    let stranger = socket();
    let send = |datagram: &[u8]| _ = stranger.send_to(datagram, rig.address).unwrap();
    send(&encoded(7, Body::EchoRequest(vec![1, 2])));
    assert!(is_silent(&stranger), "before a Hello");
    let mut session = Session::new(rig.address, 100);
    send(&encoded(500, Body::FlowMod { ppu: 0, command: write(0, 1, 1) }));
    send(&encoded(501, Body::EchoRequest(vec![1, 2])));
    send(&encoded(502, Body::StatsRequest));
    assert!(is_silent(&stranger));
    let stats = session.stats();
    assert_eq!((counter(&stats, "control_spoofed"), counter(&stats, "control_flow_mod")), (4, 0));
    session.session.read(0, 0);
    assert!(matches!(session.next(), DeviceEvent::Entry(state) if !state.valid));
    send(&encoded(999, Body::Hello { ppus: 0, entries: 0 }));
    assert!(is_silent(&stranger), "the daemon was heard");
    // After 1.5 s of silence, a Hello makes the stranger the daemon.
    thread::sleep(Duration::from_millis(1_600));
    send(&encoded(1_000, Body::Hello { ppus: 0, entries: 0 }));
    assert_eq!(answer(&stranger).body, Body::Hello { ppus: PPUS as u8, entries: ENTRIES });
    session.link.socket.send_to(&encoded(1_001, Body::EchoRequest(Vec::new())), rig.address).unwrap();
    assert!(is_silent(&session.link.socket));
    assert_eq!(rig.settle().control.remote, 0);
}

#[test]
fn a_peer_on_another_host_does_not_reach_the_device() {
    // An address of this host that is no loopback address stands for another host.
    let Some(address) = outer_address() else {
        println!("skipped: this host has only loopback addresses");
        return;
    };
    let control = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = control.local_addr().unwrap().port();
    let simulation = device_sim::Simulation::start(Vec::new(), control, Default::default()).unwrap();
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.send_to(&encoded(1, Body::Hello { ppus: 0, entries: 0 }), (address, port)).unwrap();
    wait_until("the datagram is counted", || simulation.counters().control.remote == 1);
    assert!(is_silent(&socket));
    assert_eq!(simulation.counters().control.received, 0);
}

/// The address from which this host would reach others. No packet is sent.
fn outer_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(address) if !address.is_loopback() => Some(address),
        _ => None,
    }
}
