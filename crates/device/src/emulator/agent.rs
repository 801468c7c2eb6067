// SPDX-License-Identifier: Apache-2.0
//! The device's side of the message protocol: filter of messages, and their execution.

use std::collections::{BTreeMap, VecDeque};

use crate::command::PpuCommand;
use crate::emulator::{Emulator, Fate};
use crate::message::{Body, DeviceMessage, WINDOW};
use crate::register::{CHANNEL_COUNTERS, CONTROL_COUNTERS, COUNTERS, SHELL_COUNTERS};
use crate::simulated;

/// A device that exchanges messages with a daemon, and frames with ports.
#[derive(Clone, Debug)]
pub struct DeviceAgent {
    /// The data plane.
    pub device: Emulator,
    /// The session, after the first Hello.
    session: Option<AgentSession>,
    /// Datagrams that were not executed.
    pub refused: u64,
    replies: VecDeque<Vec<u8>>,
    frames: VecDeque<(u8, Vec<u8>)>,
    /// [`CHANNEL_COUNTERS`] of each channel.
    channels: Vec<[u64; CHANNEL_COUNTERS.len()]>,
}

/// Transaction IDs of a session, as the RTL remembers them.
#[derive(Clone, Debug)]
struct AgentSession {
    /// ID of the Hello.
    hello: u32,
    /// Highest ID so far.
    highest: u32,
    /// ID of the last command that was executed or refused.
    executed: Option<u32>,
    /// Results of commands, and IDs of packets, in the window up to the highest ID.
    seen: BTreeMap<u32, Option<bool>>,
}

/// What a session knows of the ID of a command or a packet.
enum IdState {
    New,
    /// The ID of an executed command with this result, or of a packet that was sent.
    Seen(Option<bool>),
    /// It is outside the window, or not newer than the Hello.
    Stale,
}

impl AgentSession {
    fn new(hello: u32) -> Self {
        Self { hello, highest: hello, executed: None, seen: BTreeMap::new() }
    }

    fn state(&self, id: u32) -> IdState {
        match self.seen.get(&id) {
            Some(result) => IdState::Seen(*result),
            None if !is_newer(id, self.hello) => IdState::Stale,
            None if !is_newer(id, self.highest) && self.highest.wrapping_sub(id) >= WINDOW => IdState::Stale,
            None => IdState::New,
        }
    }

    fn remember(&mut self, id: u32, result: Option<bool>) {
        if is_newer(id, self.highest) {
            self.highest = id;
        }
        self.seen.insert(id, result);
        let highest = self.highest;
        self.seen.retain(|id, _| highest.wrapping_sub(*id) < WINDOW);
    }
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
            session: None,
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
                if self.session.is_some() {
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
        match message.body {
            // What changes nothing is answered without a session, too.
            Body::EchoRequest(data) => self.reply(id, Body::EchoReply(data)),
            Body::FlowRequest { ppu, index } => match self.device.entry(ppu, index) {
                Some(state) => self.reply(id, Body::FlowReply(state)),
                None => self.refused += 1,
            },
            Body::StatsRequest => self.reply(id, Body::StatsReply(self.counters())),
            Body::Hello { .. } => {
                // A duplicate begins no session.
                if self.session.as_ref().is_none_or(|session| session.hello != id) {
                    self.session = Some(AgentSession::new(id));
                }
                let (ppus, entries) = self.device.size();
                self.reply(id, Body::Hello { ppus, entries });
            }
            Body::FlowMod { ppu, command } => self.flow_mod(id, ppu, command),
            Body::PacketOut { port, pipeline, frame } => self.packet_out(id, port, pipeline, frame),
            _ => self.refused += 1,
        }
    }

    fn flow_mod(&mut self, id: u32, ppu: u8, command: PpuCommand) {
        let Some(session) = &mut self.session else { return self.refused += 1 };
        let done = match session.state(id) {
            IdState::Seen(Some(done)) => done,
            IdState::Seen(None) | IdState::Stale => return self.refused += 1,
            // A newer command was executed before.
            IdState::New if session.executed.is_some_and(|last| !is_newer(id, last)) => false,
            IdState::New => {
                let done = self.device.execute(ppu, &command);
                session.executed = Some(id);
                session.remember(id, Some(done));
                done
            }
        };
        self.reply(id, Body::FlowAck { done });
    }

    fn packet_out(&mut self, id: u32, port: u8, pipeline: bool, frame: Vec<u8>) {
        let Some(session) = &mut self.session else { return self.refused += 1 };
        let IdState::New = session.state(id) else { return self.refused += 1 };
        session.remember(id, None);
        if pipeline {
            self.process(port, &frame);
        } else {
            self.send_frame(port, frame);
        }
    }

    fn reply(&mut self, id: u32, body: Body) {
        // A frame of the maximum length fits into a message.
        if let Ok(datagram) = (DeviceMessage { id, body }).encode() {
            self.replies.push_back(datagram);
        }
    }
}
