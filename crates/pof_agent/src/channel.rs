// SPDX-License-Identifier: Apache-2.0
//! One connection to a controller. Requests are executed in order, one after the other.
//!
//! Memory is bounded: at most [`HELD_MAX`] requests with a total of [`HELD_BYTES`] wait in the channel, and
//! an answer in parts is produced only while there is little unread output.

use crate::config::AgentConfig;
use crate::job::Job;
use crate::lost::PofLostMessages;
use crate::refusal::PofRefusal;
use flow::Nanos;
use model::AsyncMessage;
use openflow::SessionConfig;
use pof::PofMessage;
use pof::message::setup::PofSwitchConfig;
use pof::session::{PofCloseReason, PofEvent, PofIdentity, PofRequest, PofSession};
use std::collections::VecDeque;

/// Maximum number of requests started in one step.
pub(crate) const REQUESTS_PER_STEP: usize = 64;
/// Maximum number of waiting requests per channel. Requests wait for a long answer, for the data plane, or
/// for another thread that uses the model. At the limit, the session is not read, so echo requests are not
/// answered.
const HELD_MAX: usize = 1_024;
/// Maximum total size in bytes of the waiting requests of a channel. The last request may exceed the limit.
const HELD_BYTES: usize = 1_024 * 1_024;
/// Maximum total size in bytes of the waiting requests of all channels. Above it, each channel may hold only
/// [`HELD_FEW`] requests.
pub(crate) const HELD_BYTES_ALL: usize = 16 * 1_024 * 1_024;
/// Number of requests that every channel may hold, even above the total limit.
const HELD_FEW: usize = 16;
/// Unread output in bytes at which a long answer pauses.
const ANSWER_BYTES: usize = 64 * 1_024;
/// Unread output in bytes above which PORT_STATUS messages are dropped.
const STATUS_BYTES: usize = 1_024 * 1_024;
/// Minimum time between two events that report lost messages.
const LOST_NS: Nanos = Nanos(1_000_000_000);

/// An event on a channel, for the log and for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PofChannelEvent {
    /// The controller sent its HELLO.
    Opened,
    /// A message was refused and answered by an ERROR. The value is the reason.
    Refused(String),
    /// The controller sent an ERROR. The value has its code and text.
    Error(String),
    /// Messages were dropped because the controller does not read. This event occurs at most once per second.
    Lost(PofLostMessages),
    /// The session has ended: write the rest of the output, then close the connection.
    Closed(PofCloseReason),
}

/// Result of a step of a channel.
#[derive(Debug, Default)]
pub struct PofProgress {
    /// More work can be done immediately.
    pub more: bool,
    /// Events of the step.
    pub events: Vec<PofChannelEvent>,
}

/// A request that waits for its turn.
#[derive(Debug)]
pub(crate) enum Held {
    /// HELLO: the controller expects an empty switch.
    Hello,
    Request(Box<PofRequest>),
}

impl Held {
    /// Returns about the memory of the request.
    fn bytes(&self) -> usize {
        match self {
            Self::Hello => 8,
            Self::Request(request) => match &request.message {
                PofMessage::FlowMod(_) | PofMessage::BucketGroupMod(_) => 4_096,
                PofMessage::PacketOut(packet) => 1_024 + packet.data.len(),
                _ => 512,
            },
        }
    }
}

/// One connection to a controller.
#[derive(Debug)]
pub struct PofChannel {
    pub(crate) session: PofSession,
    pub(crate) config: PofSwitchConfig,
    pub(crate) job: Option<Job>,
    /// Whether the answer to GET_CONFIG_REQUEST of the handshake was sent.
    pub(crate) is_described: bool,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Whether the waiting requests of all channels exceed the total limit.
    crowded: bool,
    pub(crate) lost: PofLostMessages,
    /// Numbers of lost messages that the last event reported, and the time of that event.
    lost_reported: (PofLostMessages, Option<Nanos>),
}

impl PofChannel {
    pub(crate) fn new(config: &AgentConfig, timers: SessionConfig, now: Nanos) -> Self {
        let identity = PofIdentity { device_id: config.device_id, slot: 0 };
        Self {
            session: PofSession::new(config.dialect, identity, timers, now),
            config: PofSwitchConfig { miss_send_length: u16::MAX, ..PofSwitchConfig::default() },
            job: None,
            is_described: false,
            held: VecDeque::new(),
            held_bytes: 0,
            crowded: false,
            lost: PofLostMessages::default(),
            lost_reported: (PofLostMessages::default(), None),
        }
    }

    /// Passes received bytes to the session. Returns the number of bytes accepted.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        self.session.receive(bytes, now)
    }

    /// Returns whether the driver should read from the connection.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.can_hold() && self.session.wants_read()
    }

    /// Returns the bytes to write to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.session.output()
    }

    /// Removes the first `count` bytes of the output after they were written.
    pub fn consume(&mut self, count: usize) {
        self.session.consume(count);
    }

    /// Returns whether requests wait or an answer is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.job.is_some() || !self.held.is_empty()
    }

    /// Returns when the session's next timer is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.session.next_deadline()
    }

    /// Returns the numbers of messages dropped because the peer did not read.
    #[must_use]
    pub fn lost(&self) -> PofLostMessages {
        self.lost
    }

    /// Returns whether the handshake is complete and the session is not closed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.session.is_running()
    }

    fn can_hold(&self) -> bool {
        let most = if self.crowded { HELD_FEW } else { HELD_MAX };
        self.held.len() < most && self.held_bytes < HELD_BYTES
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(crate) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    pub(crate) fn has_room(&self) -> bool {
        self.session.output().len() < ANSWER_BYTES
    }

    /// Handles received messages without access to the model.
    pub(crate) fn step_alone(&mut self, now: Nanos) -> PofProgress {
        self.session.tick(now);
        let mut events = Vec::new();
        self.report_lost(now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        while left > 0 && self.take_event(&mut left, &mut events) {}
        PofProgress { more: left == 0, events }
    }

    /// Takes the session's next event. Returns false if there is no event, or no space to queue it.
    pub(crate) fn take_event(&mut self, left: &mut usize, events: &mut Vec<PofChannelEvent>) -> bool {
        // The end of a session needs no space, because the waiting requests are discarded.
        if !self.can_hold() && !self.session.is_closed() {
            return false;
        }
        match self.session.next_event() {
            None => return false,
            Some(PofEvent::Opened) => {
                events.push(PofChannelEvent::Opened);
                self.hold(Held::Hello);
            }
            Some(PofEvent::Request(request)) => match &request.message {
                PofMessage::Error(error) => {
                    let text = format!("{} ({})", error.text.text(), error.error_code());
                    events.push(PofChannelEvent::Error(text));
                }
                _ => self.hold(Held::Request(request)),
            },
            Some(PofEvent::Refused { error, .. }) => {
                *left -= 1;
                events.push(PofChannelEvent::Refused(error.to_string()));
            }
            Some(PofEvent::Closed { reason }) => {
                self.held.clear();
                self.held_bytes = 0;
                self.job = None;
                events.push(PofChannelEvent::Closed(reason));
                return false;
            }
        }
        true
    }

    /// Returns whether requests wait.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes the next request to execute.
    pub(crate) fn pop_held(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.held_bytes -= held.bytes();
        Some(held)
    }

    fn hold(&mut self, held: Held) {
        self.held_bytes += held.bytes();
        self.held.push_back(held);
    }

    /// Ends the request whose changes the driver has applied.
    pub(crate) fn finish(&mut self, xid: u32, refusal: Option<PofRefusal>) -> Option<PofChannelEvent> {
        if self.job.as_ref().is_some_and(Job::is_lent) {
            self.job = None;
        }
        refusal.map(|refusal| self.refuse(xid, &refusal))
    }

    /// Answers a request by an ERROR message.
    pub(crate) fn refuse(&mut self, xid: u32, refusal: &PofRefusal) -> PofChannelEvent {
        let text = refusal.to_string();
        self.session.send_error(xid, refusal.code, &text);
        PofChannelEvent::Refused(text)
    }

    /// Sends a reply.
    pub(crate) fn reply(&mut self, xid: u32, message: &PofMessage) {
        if self.session.send(xid, message).is_err() {
            self.lost.reply += 1;
        }
    }

    /// Sends asynchronous messages, unless too much output is unread.
    pub(crate) fn report(&mut self, message: &AsyncMessage, encoded: &[PofMessage]) {
        let is_packet_in = matches!(message, AsyncMessage::PacketIn(_));
        for message in encoded {
            let full = if is_packet_in {
                self.session.is_output_full()
            } else {
                self.session.output().len() > STATUS_BYTES
            };
            if full || self.session.send(0, message).is_err() {
                *(if is_packet_in { &mut self.lost.packet_in } else { &mut self.lost.port_status }) += 1;
            }
        }
    }

    pub(crate) fn report_lost(&mut self, now: Nanos, events: &mut Vec<PofChannelEvent>) {
        let (reported, at) = self.lost_reported;
        if reported != self.lost && at.is_none_or(|at| now.saturating_sub(at) >= LOST_NS) {
            events.push(PofChannelEvent::Lost(self.lost));
            self.lost_reported = (self.lost, Some(now));
        }
    }
}
