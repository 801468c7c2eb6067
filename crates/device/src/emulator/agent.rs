// SPDX-License-Identifier: Apache-2.0
//! The device's side of the message protocol: filter of messages, and their execution.

use std::collections::VecDeque;

use crate::emulator::{Emulator, Fate};
use crate::message::{Body, DeviceMessage};

/// A device that exchanges messages with a daemon, and frames with ports.
#[derive(Clone, Debug)]
pub struct DeviceAgent {
    /// The data plane.
    pub device: Emulator,
    /// ID and result of the last command, after the first Hello.
    last: Option<(u32, bool)>,
    /// Datagrams that were not executed.
    pub refused: u64,
    replies: VecDeque<Vec<u8>>,
    frames: VecDeque<(u8, Vec<u8>)>,
}

/// Returns whether an ID is ahead of another by less than 2^31.
fn is_newer(id: u32, than: u32) -> bool {
    id != than && id.wrapping_sub(than) < 1 << 31
}

impl DeviceAgent {
    /// Returns an agent that waits for a Hello.
    #[must_use]
    pub fn new(device: Emulator) -> Self {
        Self { device, last: None, refused: 0, replies: VecDeque::new(), frames: VecDeque::new() }
    }

    /// Takes a datagram for the daemon.
    pub fn next_datagram(&mut self) -> Option<Vec<u8>> {
        self.replies.pop_front()
    }

    /// Takes a frame and its egress port.
    pub fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        self.frames.pop_front()
    }

    /// Forwards a frame from a port.
    pub fn receive_frame(&mut self, port: u8, frame: &[u8]) {
        match self.device.process(port, frame) {
            Fate::Port { port, frame } => self.frames.push_back((port, frame)),
            Fate::Controller { ppu, code, frame } => {
                if self.last.is_some() {
                    self.reply(0, Body::PacketIn { port, ppu, code, frame });
                }
            }
            Fate::Dropped(_) => {}
        }
    }

    /// Executes a datagram from a source, which must be the configured daemon.
    pub fn receive(&mut self, is_daemon: bool, datagram: &[u8]) {
        match DeviceMessage::decode(datagram) {
            Ok(message) if is_daemon => self.execute(message),
            _ => self.refused += 1,
        }
    }

    fn execute(&mut self, message: DeviceMessage) {
        let id = message.id;
        let Some((last, done)) = self.last else {
            return match message.body {
                Body::Hello { .. } => self.greet(id),
                _ => self.refused += 1,
            };
        };
        match message.body {
            Body::Hello { .. } if is_newer(id, last) || id == last => self.greet(id),
            Body::Hello { .. } => self.hello(last),
            Body::EchoRequest(data) => self.reply(id, Body::EchoReply(data)),
            // The reply to the last command was lost.
            Body::FlowMod { .. } if id == last => self.reply(id, Body::FlowAck { done }),
            Body::FlowMod { ppu, command } if is_newer(id, last) => {
                let done = self.device.execute(ppu, &command);
                self.last = Some((id, done));
                self.reply(id, Body::FlowAck { done });
            }
            Body::FlowRequest { ppu, index } => match self.device.entry(ppu, index) {
                Some(state) => self.reply(id, Body::FlowReply(state)),
                None => self.refused += 1,
            },
            Body::PacketOut { port, pipeline: true, frame } => self.receive_frame(port, &frame),
            Body::PacketOut { port, pipeline: false, frame } => self.frames.push_back((port, frame)),
            Body::StatsRequest => self.reply(id, Body::StatsReply(self.device.counters())),
            _ => self.refused += 1,
        }
    }

    fn greet(&mut self, id: u32) {
        self.last = Some((id, false));
        self.hello(id);
    }

    fn hello(&mut self, id: u32) {
        let (ppus, entries) = self.device.size();
        self.reply(id, Body::Hello { ppus, entries });
    }

    fn reply(&mut self, id: u32, body: Body) {
        // A frame of the maximum length fits into a message.
        if let Ok(datagram) = (DeviceMessage { id, body }).encode() {
            self.replies.push_back(datagram);
        }
    }
}
