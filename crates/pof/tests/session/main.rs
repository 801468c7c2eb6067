// SPDX-License-Identifier: Apache-2.0
//! One session per dialect, byte for byte. The transcripts `*.session` are written by hand from the byte
//! tables. `>` begins a message of the controller, `<` an output of the switch. A message is given in hex
//! digits, as `0*N` for `N` zero bytes, and as `"text"`.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

use flow::Nanos;
use pof::message::port::{PofForwarding, PofPort};
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::setup::{PofFeatures, PofSwitchConfig, capability};
use pof::message::table::{PofTableType, ResourceReport, TableResource, extension};
use pof::session::{PofEvent, PofIdentity, PofSession, default_timers};
use pof::{PofDialect, PofMessage};

const OLD: &str = include_str!("1.2.session");
const NEW: &str = include_str!("1.4.0.015.session");

/// Returns the messages of a transcript: whether the controller sends it, and its bytes.
fn messages(transcript: &str) -> Vec<(bool, Vec<u8>)> {
    let mut made: Vec<(bool, Vec<u8>)> = Vec::new();
    for line in transcript.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace().peekable();
        if let Some(first) = words.next_if(|word| ["<", ">"].contains(word)) {
            made.push((first == ">", Vec::new()));
        }
        let (_, bytes) = made.last_mut().unwrap();
        bytes.extend(common::bytes(words));
    }
    made
}

/// A switch with two ports that answers requests with fixed values.
struct Owner {
    dialect: PofDialect,
    config: PofSwitchConfig,
    /// Requests that changed something.
    changes: Vec<PofMessage>,
    events: Vec<&'static str>,
}

const DEVICE: u32 = 0x0000_00d1;

impl Owner {
    fn slot(&self) -> u16 {
        if self.dialect == PofDialect::V1_2 { 0 } else { 3 }
    }

    fn port(&self, number: u32) -> PofPort {
        PofPort {
            slot: self.slot(),
            number,
            device_id: DEVICE,
            mac: [2, 0, 0, 0, 0, number as u8],
            name: format!("p{number}").as_str().into(),
            speed_kbps: 10_000_000,
            forwarding: PofForwarding::Enabled,
            ..PofPort::default()
        }
    }

    fn report(&self) -> ResourceReport {
        let of = |table_type, tables| TableResource {
            device_id: DEVICE,
            table_type,
            tables,
            key_bits: 160,
            entries: 1_000,
        };
        ResourceReport {
            extensions: extension::LOW_LATENCY,
            slot: self.slot(),
            counters: 512,
            meters: 256,
            groups: 1_024,
            tables: [
                of(PofTableType::Mask, 10),
                of(PofTableType::LongestPrefix, 10),
                of(PofTableType::Exact, 5),
                of(PofTableType::Linear, 20),
            ],
            ..ResourceReport::default()
        }
    }

    fn answer(&mut self, session: &mut PofSession, event: PofEvent) {
        let request = match event {
            PofEvent::Opened => return self.events.push("opened"),
            PofEvent::Refused { .. } => return self.events.push("refused"),
            PofEvent::Closed { reason } => panic!("{reason}"),
            PofEvent::Request(request) => request,
        };
        let xid = request.xid;
        match request.message {
            PofMessage::FeaturesRequest => {
                let features = PofFeatures {
                    device_id: DEVICE,
                    slot: self.slot(),
                    ports: 2,
                    tables: 45,
                    capabilities: capability::FLOW_STATS | capability::PORT_STATS,
                    vendor: "shunt".into(),
                    forwarding_engine: "f1".into(),
                    lookup_engine: "l1".into(),
                };
                session.send(xid, &PofMessage::FeaturesReply(features)).unwrap();
            }
            PofMessage::SetConfig(config) => self.config = config,
            PofMessage::GetConfigRequest => {
                let ports = [self.port(1), self.port(2)];
                session.send_description(xid, self.config.clone(), self.report(), ports).unwrap();
            }
            PofMessage::CounterRequest(counter) => {
                let bytes = if self.dialect == PofDialect::V1_2 { 0 } else { 1_500 };
                let reply = PofCounter { command: CounterCommand::Reply, packets: 7, bytes, ..counter };
                session.send(xid, &PofMessage::CounterReply(reply)).unwrap();
            }
            PofMessage::QueryAllRequest(_) => session.send(xid, &PofMessage::QueryAllFin).unwrap(),
            other => self.changes.push(other),
        }
    }
}

/// Replays a transcript in pieces of `piece` bytes, and returns the owner.
fn replay(dialect: PofDialect, transcript: &str, piece: usize) -> Owner {
    let config = PofSwitchConfig::default();
    let mut owner = Owner { dialect, config, changes: Vec::new(), events: Vec::new() };
    let identity = PofIdentity { device_id: DEVICE, slot: owner.slot() };
    let mut session = PofSession::new(dialect, identity, default_timers(), Nanos(0));
    for (number, (from_controller, bytes)) in messages(transcript).into_iter().enumerate() {
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        assert_eq!(bytes.len(), length, "message {number} of the transcript");
        if from_controller {
            assert_eq!(session.output(), [], "before message {number}");
            for part in bytes.chunks(piece) {
                assert_eq!(session.receive(part, Nanos(0)), part.len());
                while let Some(event) = session.next_event() {
                    owner.answer(&mut session, event);
                }
            }
        } else {
            let sent = session.output().get(..length).unwrap_or(session.output());
            assert_eq!(sent, bytes, "message {number}");
            session.consume(length);
        }
    }
    assert_eq!(session.output(), []);
    assert!(session.is_running());
    owner
}

fn names(owner: &Owner) -> Vec<&'static str> {
    owner.changes.iter().map(|message| message.kind().1).collect()
}

#[test]
fn a_session_of_dialect_1_2_is_answered_byte_for_byte() {
    for piece in [1, 7, 100_000] {
        let owner = replay(PofDialect::V1_2, OLD, piece);
        assert_eq!(owner.config.miss_send_length, 0x80);
        assert_eq!(names(&owner), ["TABLE_MOD", "FLOW_MOD"]);
        assert_eq!(owner.events, ["opened", "refused"]);
    }
}

#[test]
fn a_session_of_dialect_1_4_is_answered_byte_for_byte() {
    for piece in [1, 7, 100_000] {
        let owner = replay(PofDialect::V1_4, NEW, piece);
        assert_eq!(owner.config.miss_send_length, 0x80);
        assert_eq!(names(&owner), ["TABLE_MOD", "FLOW_MOD", "PACKET_OUT"]);
        assert_eq!(owner.events, ["opened", "refused"]);
    }
}
