// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow peer of the tests, which sends and receives single messages.

use crate::lab::LONG;
use flow::{Action, FlowModCommand, Instructions, PortNo};
use openflow::flow_mod::FlowModMessage;
use openflow::{ErrorCode, HEADER_BYTES, Hello, Message, decode, encode};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

pub struct Peer {
    stream: TcpStream,
    xid: u32,
}

impl Peer {
    /// Connects and negotiates the version.
    pub fn connect(address: SocketAddr) -> Self {
        let mut peer = Self::silent(TcpStream::connect(address).unwrap());
        peer.greet();
        peer
    }

    /// Creates a peer that has not sent its HELLO yet.
    pub fn silent(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, xid: 100 }
    }

    pub fn greet(&mut self) {
        self.send(&Message::Hello(Hello::supported()));
        assert!(matches!(self.receive(), (_, Message::Hello(_))));
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a message and returns its transaction ID.
    pub fn send(&mut self, message: &Message) -> u32 {
        self.xid += 1;
        self.send_part(message)
    }

    /// Sends a message with the transaction ID of the previous one, as a further part of the same request.
    pub fn send_part(&mut self, message: &Message) -> u32 {
        let mut bytes = Vec::new();
        encode(message, self.xid, &mut bytes).unwrap();
        self.send_bytes(&bytes);
        self.xid
    }

    /// Returns the next message except echo requests.
    pub fn receive(&mut self) -> (u32, Message) {
        loop {
            let bytes = self.receive_bytes().expect("the switch closed the connection");
            let xid = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
            match decode(&bytes).unwrap() {
                Message::EchoRequest(_) => {}
                message => return (xid, message),
            }
        }
    }

    /// Returns the bytes of the next message, or `None` if the connection ended.
    pub fn receive_bytes(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER_BYTES];
        self.stream.read_exact(&mut bytes).ok()?;
        let length = u16::from_be_bytes([bytes[2], bytes[3]]);
        bytes.resize(length.into(), 0);
        self.stream.read_exact(&mut bytes[HEADER_BYTES..]).unwrap();
        Some(bytes)
    }

    /// Sends a request and returns the answer with its transaction ID.
    pub fn ask(&mut self, message: &Message) -> Message {
        let asked = self.send(message);
        self.answer_to(asked)
    }

    pub fn answer_to(&mut self, asked: u32) -> Message {
        loop {
            let (xid, message) = self.receive();
            if xid == asked {
                return message;
            }
        }
    }

    /// Waits until all earlier changes are active. Panics if one of them was refused.
    pub fn barrier(&mut self) {
        let asked = self.send(&Message::BarrierRequest);
        loop {
            match self.receive() {
                (xid, Message::BarrierReply) if xid == asked => return,
                (_, Message::Error(error)) => panic!("refused: {}", error.code),
                _ => {}
            }
        }
    }

    /// Sends a request that must be refused, and returns the error code.
    pub fn refused(&mut self, message: &Message) -> ErrorCode {
        match self.ask(message) {
            Message::Error(error) => error.code,
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// Returns a flow-mod for a line in flow syntax.
pub fn flow_mod(command: FlowModCommand, line: &str) -> Message {
    let flow = flow::syntax::parse_flow(line, command, flow::syntax::ParseOptions::default()).unwrap();
    Message::FlowMod(FlowModMessage { flow, buffer_id: None })
}

pub fn add(line: &str) -> Message {
    flow_mod(FlowModCommand::Add, line)
}

/// Returns a flow-mod that forwards all packets to a port.
pub fn all_to(port: u32) -> Message {
    let flow = flow::FlowMod {
        priority: 1,
        instructions: Instructions::apply(vec![Action::output(PortNo(port))]),
        ..flow::FlowMod::default()
    };
    Message::FlowMod(FlowModMessage { flow, buffer_id: None })
}
