// SPDX-License-Identifier: Apache-2.0
//! The daemon's side of the message protocol, without I/O. The caller passes datagrams and the time.
//!
//! One command is under way at a time, so that the device executes commands in order. Up to [`READS_MAX`]
//! reads are under way together, because they change nothing. A request is repeated until its reply arrives.
//! After too many repetitions, the session is down, and greets the device again. Events follow the order of
//! the requests.
//!
//! A packet is sent when all commands before it were executed. It is not repeated. After
//! [`PACKETS_UNANSWERED_MAX`] packets, an Echo_request follows, and further packets wait for its reply.
//!
//! Transaction IDs count up. A Hello with a new ID begins a session of the device, and commands need newer
//! IDs than it ([`message`](crate::message)). So a late duplicate does no harm, and the first ID must differ
//! from those of earlier daemons.

use std::collections::VecDeque;

use flow::Nanos;

use crate::command::PpuCommand;
use crate::message::{Body, DeviceMessage, EntryState};

/// Times and limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Time after which a request is repeated. It doubles with each of the first repetitions.
    pub timeout: Nanos,
    /// Number of times that a request is sent before the session is down.
    pub tries: u32,
    /// Time between two Echo_requests, and between two Hellos while the session is down.
    pub interval: Nanos,
    /// Maximum number of events that wait for the caller. At the limit, packets for the controller are
    /// dropped.
    pub events: usize,
}

const MS: u64 = 1_000_000;

/// Maximum number of reads that are under way together.
pub const READS_MAX: usize = 16;
/// Number of repetitions after which the time to the next one stays the same.
const DOUBLINGS_MAX: u32 = 3;
/// Maximum number of packets that wait for commands before them.
const PACKETS_MAX: usize = 1_024;
/// Maximum number of packets that are sent before an answer shows that the device has taken them. Each has up
/// to 1,600 bytes, so 16 fit into the buffers of the device's socket and of the device.
pub const PACKETS_UNANSWERED_MAX: usize = 16;

impl Default for DeviceTimes {
    /// Returns times for a device in the local network. A thread of the daemon may stall for 20 ms.
    fn default() -> Self {
        Self { timeout: Nanos(20 * MS), tries: 10, interval: Nanos(500 * MS), events: 4_096 }
    }
}

impl DeviceTimes {
    /// Returns times for a simulated device, which executes some 25,000 cycles per second, and shares CPUs
    /// with other processes.
    #[must_use]
    pub fn simulated() -> Self {
        Self { timeout: Nanos(200 * MS), ..Self::default() }
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
    /// Packets for the device that were dropped because too many wait, or because the session is down.
    pub unsent: u64,
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
    /// The answer, while an earlier request has none. Echoes and Hellos have no event.
    answer: Option<Option<DeviceEvent>>,
}

impl UnderWay {
    /// Returns the time at which the request is repeated, if it has no answer.
    fn due(&self, timeout: Nanos) -> Option<Nanos> {
        let doublings = self.tries.saturating_sub(1).min(DOUBLINGS_MAX);
        self.answer.is_none().then(|| self.sent.saturating_add(timeout * (1 << doublings)))
    }

    fn is_read(&self) -> bool {
        is_read(&self.body)
    }
}

fn is_read(body: &Body) -> bool {
    matches!(body, Body::FlowRequest { .. } | Body::StatsRequest)
}

/// A session with a device.
#[derive(Debug)]
pub struct DeviceSession {
    config: DeviceTimes,
    state: State,
    last_id: u32,
    /// One command, echo or Hello, or several reads.
    under_way: VecDeque<UnderWay>,
    waiting: VecDeque<Body>,
    /// Packets in `waiting`.
    packets: usize,
    /// Packets that were sent since the last request for whose answer later packets wait.
    unanswered: usize,
    heard: Nanos,
    datagrams: VecDeque<Vec<u8>>,
    events: VecDeque<DeviceEvent>,
    counters: SessionCounters,
}

impl DeviceSession {
    /// Returns a session that is down. Its IDs begin behind `last_id`, which should be random, so that they
    /// differ from those of earlier daemons.
    #[must_use]
    pub fn new(config: DeviceTimes, last_id: u32) -> Self {
        Self {
            config,
            state: State::Down(Nanos(0)),
            last_id,
            under_way: VecDeque::new(),
            waiting: VecDeque::new(),
            packets: 0,
            unanswered: 0,
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
        self.waiting.len() + self.under_way.len()
    }

    /// Returns the time at which the last request without an answer was sent first.
    #[must_use]
    pub fn last_request(&self) -> Option<Nanos> {
        self.under_way
            .back()
            .filter(|request| request.answer.is_none() && request.tries == 1)
            .map(|last| last.sent)
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

    /// Sends a packet, once, after the commands before it. It may have at most
    /// [`FRAME_BYTES_MAX`](crate::message::FRAME_BYTES_MAX) bytes.
    pub fn packet_out(&mut self, port: u8, pipeline: bool, frame: Vec<u8>) {
        if !self.is_up() || self.packets >= PACKETS_MAX {
            self.counters.unsent += 1;
            return;
        }
        self.packets += 1;
        self.waiting.push_back(Body::PacketOut { port, pipeline, frame });
    }

    /// Ends the session, because the device is not in the expected state, and begins another one at once.
    pub fn restart(&mut self, now: Nanos) {
        self.lose(now);
    }

    /// Ends the session, and begins another one after the interval.
    pub fn pause(&mut self, now: Nanos) {
        self.lose(now);
        self.state = State::Down(now.saturating_add(self.config.interval));
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
        self.repeat(now);
        if let State::Down(due) = self.state
            && self.under_way.is_empty()
        {
            if now < due {
                return due;
            }
            self.forget_waiting();
            self.start(now, Body::Hello { ppus: 0, entries: 0 });
        }
        if self.is_up() {
            self.send_waiting(now);
        }
        let interval = self.config.interval;
        if self.is_up() && self.pending() == 0 && now.saturating_sub(self.heard) >= interval {
            self.start(now, Body::EchoRequest(Vec::new()));
        }
        let repetition = self.under_way.iter().filter_map(|request| request.due(self.config.timeout)).min();
        repetition.unwrap_or(self.heard.saturating_add(interval))
    }

    /// Sends the requests and packets that may be under way with those before them.
    fn send_waiting(&mut self, now: Nanos) {
        while let Some(body) = self.waiting.front() {
            let only_reads = self.under_way.iter().all(UnderWay::is_read);
            let may = match body {
                Body::PacketOut { .. } => only_reads,
                body if is_read(body) => only_reads && self.under_way.len() < READS_MAX,
                _ => self.under_way.is_empty(),
            };
            if !may {
                return;
            }
            let is_packet = matches!(body, Body::PacketOut { .. });
            if is_packet && self.unanswered >= PACKETS_UNANSWERED_MAX {
                if self.under_way.is_empty() {
                    self.start(now, Body::EchoRequest(Vec::new()));
                }
                return;
            }
            let Some(body) = self.waiting.pop_front() else { return };
            if is_packet {
                self.packets -= 1;
                self.unanswered += 1;
                self.last_id = self.last_id.wrapping_add(1);
                self.send(self.last_id, body);
            } else {
                self.start(now, body);
            }
        }
    }

    fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.counters.unsent += self.packets as u64;
        self.packets = 0;
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
        if !is_read(&body) {
            // Packets wait for its answer, which shows that the device took all packets before it.
            self.unanswered = 0;
        }
        self.send(id, body.clone());
        self.under_way.push_back(UnderWay { id, body, sent: now, tries: 1, answer: None });
    }

    fn send(&mut self, id: u32, body: Body) {
        // Only a frame can be too long, and its sender has checked it.
        if let Ok(datagram) = (DeviceMessage { id, body }).encode() {
            self.datagrams.push_back(datagram);
        }
    }

    fn repeat(&mut self, now: Nanos) {
        let timeout = self.config.timeout;
        let is_late = |request: &UnderWay| request.due(timeout).is_some_and(|due| now >= due);
        if self.under_way.iter().any(|request| is_late(request) && request.tries >= self.config.tries) {
            // A Hello without an answer is repeated after a pause.
            return if self.is_up() { self.restart(now) } else { self.pause(now) };
        }
        let mut again = Vec::new();
        for request in self.under_way.iter_mut().filter(|request| is_late(request)) {
            request.tries += 1;
            request.sent = now;
            again.push((request.id, request.body.clone()));
        }
        for (id, body) in again {
            self.counters.repeated += 1;
            self.send(id, body);
        }
    }

    fn lose(&mut self, now: Nanos) {
        self.under_way.clear();
        self.forget_waiting();
        if self.is_up() {
            self.events.push_back(DeviceEvent::Down);
        }
        self.state = State::Down(now);
    }

    fn reply(&mut self, id: u32, body: Body, now: Nanos) {
        let request = self.under_way.iter_mut().find(|request| request.id == id && request.answer.is_none());
        let Some(request) = request else {
            self.counters.unexpected += 1;
            return;
        };
        let event = match (&request.body, body) {
            (Body::Hello { .. }, Body::Hello { ppus, entries }) if ppus > 0 => {
                self.state = State::Up;
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
                return;
            }
        };
        request.answer = Some(event);
        self.heard = now;
        let answered = self.under_way.iter().take_while(|request| request.answer.is_some()).count();
        for request in self.under_way.drain(..answered) {
            self.events.extend(request.answer.flatten());
        }
    }
}
