// SPDX-License-Identifier: Apache-2.0
//! The daemon's side of the message protocol, without I/O. The caller passes datagrams and the time.
//!
//! One request is under way at a time, so that the device executes commands in order. A request is repeated
//! until its reply arrives. After too many repetitions, the session is down, and greets the device again.
//!
//! Transaction IDs count up. The device executes a command only if its ID is newer than that of the last
//! command, so that a late duplicate does no harm. An ID is newer if it is ahead by less than 2^31. The
//! device answers a Hello whose ID is not newer by its last ID, with which the session continues.

use std::collections::VecDeque;

use flow::Nanos;

use crate::command::PpuCommand;
use crate::message::{Body, DeviceMessage, EntryState};

/// Times and limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Time after which a request is repeated.
    pub timeout: Nanos,
    /// Number of times that a request is sent before the session is down.
    pub tries: u32,
    /// Time between two Echo_requests, and between two Hellos while the session is down.
    pub interval: Nanos,
    /// Maximum number of events that wait for the caller. At the limit, packets for the controller are
    /// dropped.
    pub events: usize,
}

impl Default for DeviceTimes {
    fn default() -> Self {
        let ms = |count: u64| Nanos(count * 1_000_000);
        Self { timeout: ms(5), tries: 5, interval: ms(500), events: 4_096 }
    }
}

/// What a session reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// The device has answered a Hello. Requests before it are void.
    Up {
        /// Number of PPUs.
        ppus: u8,
        /// Entries of each PPU.
        entries: u16,
    },
    /// The device does not answer. Requests that wait are void.
    Down,
    /// The oldest command has been executed, or refused.
    Executed {
        /// Whether it was executed.
        done: bool,
    },
    /// Answer to a read.
    Entry(EntryState),
    /// Counters of the device.
    Stats(Vec<u64>),
    /// A packet for the controller.
    PacketIn {
        /// Ingress port.
        port: u8,
        /// PPU whose action sent it.
        ppu: u8,
        /// Field `port` of the action.
        code: u8,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Datagrams that are not messages.
    pub malformed: u64,
    /// Messages that no device sends, and replies to no request.
    pub unexpected: u64,
    /// Repeated requests.
    pub repeated: u64,
    /// Packets for the controller that were dropped because too many events wait.
    pub dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next Hello is due at this time.
    Down(Nanos),
    Up,
}

#[derive(Debug)]
struct UnderWay {
    id: u32,
    body: Body,
    sent: Nanos,
    tries: u32,
}

/// A session with a device.
#[derive(Debug)]
pub struct DeviceSession {
    config: DeviceTimes,
    state: State,
    last_id: u32,
    under_way: Option<UnderWay>,
    waiting: VecDeque<Body>,
    heard: Nanos,
    datagrams: VecDeque<Vec<u8>>,
    events: VecDeque<DeviceEvent>,
    counters: SessionCounters,
}

impl DeviceSession {
    /// Returns a session that is down. Its IDs begin behind `last_id`, which should be newer than those of
    /// earlier sessions, such as a time.
    #[must_use]
    pub fn new(config: DeviceTimes, last_id: u32) -> Self {
        Self {
            config,
            state: State::Down(Nanos(0)),
            last_id,
            under_way: None,
            waiting: VecDeque::new(),
            heard: Nanos(0),
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            counters: SessionCounters::default(),
        }
    }

    /// Returns whether the device answers.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Returns the number of requests without an answer.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.waiting.len() + usize::from(self.under_way.is_some())
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> SessionCounters {
        self.counters
    }

    /// Executes a command. The event [`DeviceEvent::Executed`] follows, unless the session is down.
    pub fn execute(&mut self, ppu: u8, command: PpuCommand) {
        self.request(Body::FlowMod { ppu, command });
    }

    /// Reads an entry.
    pub fn read(&mut self, ppu: u8, index: u16) {
        self.request(Body::FlowRequest { ppu, index });
    }

    /// Asks for the counters of the device.
    pub fn ask_stats(&mut self) {
        self.request(Body::StatsRequest);
    }

    /// Sends a packet, once.
    pub fn packet_out(&mut self, port: u8, pipeline: bool, frame: Vec<u8>) {
        if self.is_up() {
            self.last_id = self.last_id.wrapping_add(1);
            self.send(self.last_id, Body::PacketOut { port, pipeline, frame });
        }
    }

    /// Takes a datagram that must be sent.
    pub fn next_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// Takes an event.
    pub fn next_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }

    /// Repeats what was not answered, and sends what is due. Call it after other methods, and at the returned
    /// time at the latest.
    pub fn poll(&mut self, now: Nanos) -> Nanos {
        if let State::Down(due) = self.state
            && self.under_way.is_none()
        {
            if now < due {
                return due;
            }
            self.waiting.clear();
            self.start(now, Body::Hello { ppus: 0, entries: 0 });
        }
        self.repeat(now);
        if self.is_up() && self.under_way.is_none() {
            match self.waiting.pop_front() {
                Some(body) => self.start(now, body),
                None if now.saturating_sub(self.heard) >= self.config.interval => {
                    self.start(now, Body::EchoRequest(Vec::new()));
                }
                None => return self.heard.saturating_add(self.config.interval),
            }
        }
        match (&self.under_way, self.state) {
            (Some(request), _) => request.sent.saturating_add(self.config.timeout),
            (None, State::Down(due)) => due,
            (None, State::Up) => now.saturating_add(self.config.interval),
        }
    }

    /// Takes a datagram from the device. The caller has checked its source.
    pub fn receive(&mut self, datagram: &[u8], now: Nanos) {
        let Ok(message) = DeviceMessage::decode(datagram) else {
            self.counters.malformed += 1;
            return;
        };
        match message.body {
            Body::PacketIn { .. } if !self.is_up() => self.counters.unexpected += 1,
            Body::PacketIn { port, ppu, code, frame } => {
                if self.events.len() < self.config.events {
                    self.events.push_back(DeviceEvent::PacketIn { port, ppu, code, frame });
                } else {
                    self.counters.dropped += 1;
                }
            }
            body => self.reply(message.id, body, now),
        }
    }

    fn request(&mut self, body: Body) {
        if self.is_up() {
            self.waiting.push_back(body);
        }
    }

    fn start(&mut self, now: Nanos, body: Body) {
        self.last_id = self.last_id.wrapping_add(1);
        let id = self.last_id;
        self.send(id, body.clone());
        self.under_way = Some(UnderWay { id, body, sent: now, tries: 1 });
    }

    fn send(&mut self, id: u32, body: Body) {
        // Only a frame can be too long, and its sender has checked it.
        if let Ok(datagram) = (DeviceMessage { id, body }).encode() {
            self.datagrams.push_back(datagram);
        }
    }

    fn repeat(&mut self, now: Nanos) {
        let Some(request) = &mut self.under_way else { return };
        if now.saturating_sub(request.sent) < self.config.timeout {
            return;
        }
        if request.tries == self.config.tries {
            return self.lose(now);
        }
        request.tries += 1;
        request.sent = now;
        let (id, body) = (request.id, request.body.clone());
        self.counters.repeated += 1;
        self.send(id, body);
    }

    fn lose(&mut self, now: Nanos) {
        self.under_way = None;
        self.waiting.clear();
        if self.is_up() {
            self.events.push_back(DeviceEvent::Down);
        }
        self.state = State::Down(now.saturating_add(self.config.interval));
    }

    fn reply(&mut self, id: u32, body: Body, now: Nanos) {
        let Some(request) = self.under_way.take() else {
            self.counters.unexpected += 1;
            return;
        };
        // A device that knows newer IDs answers a Hello by its last one.
        let is_newer = matches!((&request.body, &body), (Body::Hello { .. }, Body::Hello { .. }))
            && id.wrapping_sub(request.id) < 1 << 31;
        if id != request.id && is_newer {
            self.last_id = id;
            return self.start(now, request.body);
        }
        let event = match (&request.body, body) {
            (Body::Hello { .. }, Body::Hello { ppus, entries }) if ppus > 0 => {
                Some(DeviceEvent::Up { ppus, entries })
            }
            (Body::FlowMod { .. }, Body::FlowAck { done }) => Some(DeviceEvent::Executed { done }),
            (Body::FlowRequest { ppu, index }, Body::FlowReply(state))
                if (state.ppu, state.index) == (*ppu, *index) =>
            {
                Some(DeviceEvent::Entry(state))
            }
            (Body::StatsRequest, Body::StatsReply(counters)) => Some(DeviceEvent::Stats(counters)),
            (Body::EchoRequest(_), Body::EchoReply(_)) => None,
            _ => {
                self.counters.unexpected += 1;
                self.under_way = Some(request);
                return;
            }
        };
        if id != request.id {
            self.counters.unexpected += 1;
            self.under_way = Some(request);
            return;
        }
        if matches!(event, Some(DeviceEvent::Up { .. })) {
            self.state = State::Up;
        }
        self.heard = now;
        self.events.extend(event);
    }
}
