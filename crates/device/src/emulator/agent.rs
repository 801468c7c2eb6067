// SPDX-License-Identifier: Apache-2.0
//! The device's side of the message protocol: filter of messages, and their execution.

use std::collections::VecDeque;

use crate::emulator::{Emulator, Fate};
use crate::message::{Body, DeviceMessage};
use crate::register::{CHANNEL_COUNTERS, CONTROL_COUNTERS, COUNTERS, SHELL_COUNTERS};
use crate::simulated;

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
    /// [`CHANNEL_COUNTERS`] of each channel.
    channels: Vec<[u64; CHANNEL_COUNTERS.len()]>,
}

/// Indices of counters of a channel: frames received and sent. Their bytes follow.
const RX_FRAMES: usize = 0;
const TX_FRAMES: usize = 3;

/// Returns whether an ID is ahead of another by less than 2^31.
fn is_newer(id: u32, than: u32) -> bool {
    id != than && id.wrapping_sub(than) < 1 << 31
}

impl DeviceAgent {
    /// Returns an agent with as many channels as the simulated device, which waits for a Hello.
    #[must_use]
    pub fn new(device: Emulator) -> Self {
        Self {
            device,
            last: None,
            refused: 0,
            replies: VecDeque::new(),
            frames: VecDeque::new(),
            channels: vec![Default::default(); simulated::CHANNELS.into()],
        }
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
        self.count(port, RX_FRAMES, frame);
        self.process(port, frame);
    }

    fn process(&mut self, port: u8, frame: &[u8]) {
        match self.device.process(port, frame) {
            Fate::Port { port, frame } => self.send_frame(port, frame),
            Fate::Controller { ppu, code, frame } => {
                if self.last.is_some() {
                    self.reply(0, Body::PacketIn { port, ppu, code, frame });
                }
            }
            Fate::Dropped(_) => {}
        }
    }

    fn send_frame(&mut self, port: u8, frame: Vec<u8>) {
        self.count(port, TX_FRAMES, &frame);
        self.frames.push_back((port, frame));
    }

    /// Counts a frame and its bytes at the channel of a port.
    fn count(&mut self, port: u8, frames: usize, frame: &[u8]) {
        let channel = usize::from(port).checked_sub(1).and_then(|channel| self.channels.get_mut(channel));
        if let Some(counters) = channel {
            counters[frames] += 1;
            counters[frames + 1] += frame.len() as u64;
        }
    }

    /// Returns the counters of a Stats_reply. Shell and control path count nothing.
    fn counters(&self) -> Vec<u64> {
        let mut all = self.device.counters();
        all.resize(COUNTERS.len() + SHELL_COUNTERS.len() + CONTROL_COUNTERS.len(), 0);
        all.extend(self.channels.iter().flatten());
        all
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
        match (message.body, self.last) {
            // What changes nothing is answered without a session, too.
            (Body::EchoRequest(data), _) => self.reply(id, Body::EchoReply(data)),
            (Body::FlowRequest { ppu, index }, _) => match self.device.entry(ppu, index) {
                Some(state) => self.reply(id, Body::FlowReply(state)),
                None => self.refused += 1,
            },
            (Body::StatsRequest, _) => self.reply(id, Body::StatsReply(self.counters())),
            (Body::Hello { .. }, None) => self.greet(id),
            (Body::Hello { .. }, Some((last, _))) if is_newer(id, last) || id == last => self.greet(id),
            (Body::Hello { .. }, Some((last, _))) => self.hello(last),
            // The reply to the last command was lost.
            (Body::FlowMod { .. }, Some((last, done))) if id == last => {
                self.reply(id, Body::FlowAck { done })
            }
            (Body::FlowMod { ppu, command }, Some((last, _))) if is_newer(id, last) => {
                let done = self.device.execute(ppu, &command);
                self.last = Some((id, done));
                self.reply(id, Body::FlowAck { done });
            }
            (Body::PacketOut { port, pipeline: true, frame }, Some(_)) => self.process(port, &frame),
            (Body::PacketOut { port, pipeline: false, frame }, Some(_)) => self.send_frame(port, frame),
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
