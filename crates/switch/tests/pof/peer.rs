// SPDX-License-Identifier: Apache-2.0
//! The POF controller of the tests, and the messages that it sends.

use crate::lab::LONG;
use flow::TableId;
use pof::action::{OutputAction, PofAction};
use pof::instruction::{ApplyActions, GotoTable, PofInstruction};
use pof::message::setup::PofSwitchConfig;
use pof::message::table::{FlowCommand, PofFlowMod, PofTableMod, PofTableType, TableCommand};
use pof::value::{PofField, PofMatch, PofOperand};
use pof::{PofDialect, PofErrorCode, PofMessage, decode, encode};
use rustls::StreamOwned;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes of a connection, with or without TLS.
pub trait Transport: Read + Write + Send {}
impl<T: Read + Write + Send> Transport for T {}

pub struct Peer {
    transport: Box<dyn Transport>,
    /// The connection below the transport.
    socket: TcpStream,
    dialect: PofDialect,
    xid: u32,
    /// Answers to the handshake.
    pub greeting: Vec<PofMessage>,
}

impl Peer {
    /// Connects in dialect 1.4.0.015 and completes the handshake with a switch of four ports.
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_in(PofDialect::V1_4, address)
    }

    pub fn connect_in(dialect: PofDialect, address: SocketAddr) -> Self {
        let mut peer = Self::silent(dialect, TcpStream::connect(address).unwrap());
        peer.greet();
        peer
    }

    /// Completes the handshake with a switch of four ports.
    pub fn greet(&mut self) {
        self.send(&PofMessage::Hello);
        assert_eq!(self.receive().1, PofMessage::Hello);
        let features = self.ask(&PofMessage::FeaturesRequest);
        self.send(&PofMessage::SetConfig(PofSwitchConfig::default()));
        let config = self.ask(&PofMessage::GetConfigRequest);
        self.greeting = vec![features, config];
        // Resources, and four ports.
        for _ in 0..5 {
            let (xid, message) = self.receive();
            assert_eq!(xid, self.xid);
            self.greeting.push(message);
        }
    }

    /// Waits until the switch has closed the connection.
    pub fn wait_for_end(mut self) {
        let mut rest = Vec::new();
        self.transport.read_to_end(&mut rest).unwrap();
    }

    /// Creates a controller that has not sent its HELLO yet.
    pub fn silent(dialect: PofDialect, stream: TcpStream) -> Self {
        let socket = stream.try_clone().unwrap();
        Self::over(Box::new(stream), socket, dialect)
    }

    /// Creates a controller that speaks TLS, and has not sent its HELLO yet.
    pub fn secure<S>(dialect: PofDialect, stream: StreamOwned<S, TcpStream>) -> Self
    where
        StreamOwned<S, TcpStream>: Transport + 'static,
    {
        let socket = stream.sock.try_clone().unwrap();
        Self::over(Box::new(stream), socket, dialect)
    }

    fn over(transport: Box<dyn Transport>, socket: TcpStream, dialect: PofDialect) -> Self {
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.set_write_timeout(Some(LONG)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { transport, socket, dialect, xid: 100, greeting: Vec::new() }
    }

    /// Returns another handle of a connection without TLS.
    pub fn stream(&self) -> TcpStream {
        self.socket.try_clone().unwrap()
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.transport.write_all(bytes).unwrap();
        self.transport.flush().unwrap();
    }

    /// Sends a message and returns its transaction number.
    pub fn send(&mut self, message: &PofMessage) -> u32 {
        self.xid += 1;
        let mut bytes = Vec::new();
        encode(message, self.xid, self.dialect, &mut bytes).unwrap();
        self.send_bytes(&bytes);
        self.xid
    }

    /// Returns the next message except echo requests, which it answers.
    pub fn receive(&mut self) -> (u32, PofMessage) {
        loop {
            let mut bytes = vec![0; 8];
            self.transport.read_exact(&mut bytes).expect("the switch closed the connection");
            bytes.resize(u16::from_be_bytes([bytes[2], bytes[3]]).into(), 0);
            self.transport.read_exact(&mut bytes[8..]).unwrap();
            let xid = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
            match decode(&bytes, self.dialect).unwrap() {
                PofMessage::EchoRequest => drop(self.send(&PofMessage::EchoReply)),
                message => return (xid, message),
            }
        }
    }

    /// Sends a request and returns the first answer with its transaction number.
    pub fn ask(&mut self, message: &PofMessage) -> PofMessage {
        let asked = self.send(message);
        loop {
            let (xid, message) = self.receive();
            if xid == asked {
                return message;
            }
        }
    }

    /// Sends a request without an answer, which must not be refused.
    pub fn tell(&mut self, message: &PofMessage) {
        self.send(message);
        self.settle();
    }

    /// Waits until all requests are executed. Panics if one of them was refused.
    pub fn settle(&mut self) {
        let asked = self.send(&PofMessage::FeaturesRequest);
        loop {
            match self.receive() {
                (xid, PofMessage::FeaturesReply(_)) if xid == asked => return,
                (_, PofMessage::Error(error)) => {
                    panic!("refused: {} ({})", error.text.text(), error.error_code())
                }
                _ => {}
            }
        }
    }

    /// Sends a request that must be refused. Returns code and text.
    pub fn refused(&mut self, message: &PofMessage) -> (PofErrorCode, String) {
        match self.ask(message) {
            PofMessage::Error(error) => (error.error_code(), error.text.text()),
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// Returns a TABLE_MOD that creates a table of 1,000 entries.
pub fn table(table_type: PofTableType, table: u8, fields: &[PofField]) -> PofMessage {
    let key_bits = fields.iter().map(|field| field.length_bits).sum();
    PofMessage::TableMod(PofTableMod {
        command: TableCommand::Add,
        table,
        table_type,
        entries: 1_000,
        key_bits,
        fields: fields.to_vec(),
        ..PofTableMod::default()
    })
}

/// Returns a field of the packet.
pub fn field(offset_bits: u16, length_bits: u16) -> PofField {
    PofField { id: 1, offset_bits, length_bits }
}

/// Returns a condition with a right-aligned value, on all bits of the field.
pub fn equals(field: PofField, value: u128) -> PofMatch {
    let shift = 128 - u32::from(field.length_bits);
    PofMatch { field, value: value << shift, mask: u128::MAX << shift }
}

/// Returns the FLOW_MOD that adds an entry to the masked table 0.
pub fn entry(index: u32, matches: Vec<PofMatch>, instructions: Vec<PofInstruction>) -> PofFlowMod {
    PofFlowMod {
        command: FlowCommand::Add,
        index,
        priority: 100,
        matches,
        instructions,
        ..PofFlowMod::default()
    }
}

pub fn apply(actions: Vec<PofAction>) -> PofInstruction {
    PofInstruction::ApplyActions(ApplyActions { actions })
}

pub fn output(port: u32) -> PofAction {
    PofAction::Output(OutputAction { port: PofOperand::Number(port), ..OutputAction::default() })
}

pub fn goto(table: u8, packet_offset_bytes: u16) -> PofInstruction {
    PofInstruction::GotoTable(GotoTable { table: TableId(table), packet_offset_bytes, fields: Vec::new() })
}

/// Returns an Ethernet frame of 64 bytes with this EtherType.
pub fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(payload);
    bytes.resize(64, 0xee);
    bytes
}
