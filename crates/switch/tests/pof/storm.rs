// SPDX-License-Identifier: Apache-2.0
//! A storm of FLOW_MODs over one connection while packets are forwarded.
//!
//! `POF_STORM` (default 3,000) sets the number of entries, and `POF_STORM_RATE` (default 50,000) the
//! FLOW_MODs per second. `POF_STORM_MIN` (default 0) is the rate that must be reached when entries are added
//! and modified. Run with `--nocapture`, the test prints the rate and the delays of echoes.

use crate::lab::{LONG, Lab, until};
use crate::peer::{Peer, apply, entry, equals, field, output, table};
use pof::PofMessage;
use pof::message::table::{FlowCommand, PofFlowMod, PofTableMod, PofTableType};
use pof::{PofDialect, decode, encode};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum delay of an echo reply. Public switches give up a connection after some seconds.
const ECHO_MAX: Duration = Duration::from_secs(2);
/// Number of FLOW_MODs between two echo requests.
const ECHO_EVERY: u32 = 500;

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn flow_mod(index: u32, command: FlowCommand) -> PofFlowMod {
    let m = entry(index, vec![equals(field(112, 32), index.into())], vec![apply(vec![output(2)])]);
    PofFlowMod { command, ..m }
}

/// Returns the packet that hits the entry with this index.
fn packet(index: u32) -> Vec<u8> {
    crate::peer::frame(0x0908, &index.to_be_bytes())
}

/// Sends FLOW_MODs and echo requests at the given rate. Returns the times at which echo requests were sent.
fn send(stream: &mut TcpStream, count: u32, rate: u32, command: FlowCommand) -> Vec<Instant> {
    let mut echoes = Vec::new();
    let start = Instant::now();
    let mut bytes = Vec::new();
    for index in 0..count {
        encode(&PofMessage::FlowMod(flow_mod(index, command)), index, PofDialect::V1_4, &mut bytes).unwrap();
        let is_last = index + 1 == count;
        if index % ECHO_EVERY == 0 || is_last {
            let xid = echoes.len() as u32;
            encode(&PofMessage::EchoRequest, xid, PofDialect::V1_4, &mut bytes).unwrap();
            echoes.push(Instant::now());
        }
        if bytes.len() > 32 * 1_024 || is_last {
            stream.write_all(&bytes).unwrap();
            bytes.clear();
            let due = Duration::from_secs_f64(f64::from(index) / f64::from(rate));
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    echoes
}

/// Receives this many echo replies, in order. Returns their times of arrival. An ERROR fails the test.
fn receive(stream: &mut TcpStream, count: u32) -> Vec<Instant> {
    let mut replies = Vec::new();
    while replies.len() < count as usize {
        let mut bytes = vec![0; 8];
        stream.read_exact(&mut bytes).unwrap();
        bytes.resize(u16::from_be_bytes([bytes[2], bytes[3]]).into(), 0);
        stream.read_exact(&mut bytes[8..]).unwrap();
        let xid = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        match decode(&bytes, PofDialect::V1_4).unwrap() {
            PofMessage::EchoReply => {
                assert_eq!(xid, replies.len() as u32, "an echo was lost");
                replies.push(Instant::now());
            }
            PofMessage::EchoRequest => {}
            other => panic!("{other:?}"),
        }
    }
    replies
}

/// Sends the storm while another thread forwards packets, and prints its figures.
fn storm(lab: &mut Lab, peer: &mut Peer, count: u32, command: FlowCommand) {
    let rate = number("POF_STORM_RATE", 50_000);
    let mut writer = peer.stream();
    let mut reader = peer.stream();
    reader.set_read_timeout(Some(2 * LONG)).unwrap();
    let (done, start) = (AtomicBool::new(false), Instant::now());
    let echoes = count.div_ceil(ECHO_EVERY) + u32::from(!(count - 1).is_multiple_of(ECHO_EVERY));
    let (delays, forwarded) = std::thread::scope(|scope| {
        let replies = scope.spawn(|| {
            let replies = receive(&mut reader, echoes);
            done.store(true, Ordering::Relaxed);
            replies
        });
        let sent = scope.spawn(move || send(&mut writer, count, rate, command));
        // The last entry of the table is not part of the storm and forwards all the time.
        let mut forwarded = 0;
        while !done.load(Ordering::Relaxed) && !replies.is_finished() {
            lab.push(1, &packet(count));
            assert_eq!(lab.pop(2), packet(count));
            forwarded += 1;
        }
        let (sent, replies) = (sent.join().unwrap(), replies.join().unwrap());
        let delays = replies.iter().zip(&sent).map(|(reply, sent)| reply.duration_since(*sent));
        (delays.collect::<Vec<_>>(), forwarded)
    });
    let mut delays = delays;
    delays.sort_unstable();
    let per_second = f64::from(count) / start.elapsed().as_secs_f64();
    println!(
        "{command:?}: {count} FLOW_MODs, {per_second:.0}/s; {} echoes: median {:?}, longest {:?}; {forwarded} \
         packets forwarded meanwhile",
        delays.len(),
        delays[delays.len() / 2],
        delays[delays.len() - 1],
    );
    assert!(forwarded > 0, "no packet was forwarded");
    assert!(delays[delays.len() - 1] < ECHO_MAX, "an echo took too long");
    if command != FlowCommand::Delete {
        assert!(per_second >= f64::from(number("POF_STORM_MIN", 0)), "{per_second:.0} FLOW_MODs/s");
    }
}

#[test]
fn a_storm_is_served_while_packets_are_forwarded() {
    let count = number("POF_STORM", 3_000);
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    let PofMessage::TableMod(definition) = table(PofTableType::Mask, 0, &[field(112, 32)]) else { panic!() };
    peer.tell(&PofMessage::TableMod(PofTableMod { entries: count + 1, ..definition }));
    peer.tell(&PofMessage::FlowMod(flow_mod(count, FlowCommand::Add)));
    for command in [FlowCommand::Add, FlowCommand::Modify] {
        storm(&mut lab, &mut peer, count, command);
        // All entries forward.
        for index in (0..count).step_by(97).chain([count - 1]) {
            lab.push(1, &packet(index));
            assert_eq!(lab.pop(2), packet(index));
        }
    }
    storm(&mut lab, &mut peer, count, FlowCommand::Delete);
    until("the last entry is deleted", || {
        lab.push(1, &packet(count - 1));
        lab.is_quiet()
    });
    // A port holds 256 frames.
    for index in (0..count).step_by(count as usize / 100 + 1) {
        lab.push(1, &packet(index));
    }
    assert!(lab.is_quiet());
}
