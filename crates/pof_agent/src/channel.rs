// SPDX-License-Identifier: Apache-2.0
//! One connection to a controller. Requests are executed in order, one after the other.
//!
//! Memory is bounded: the waiting requests are limited by [`WAITING`], and an answer in parts is produced
//! only while there is little unread output.

use crate::config::AgentConfig;
use crate::job::Job;
use crate::refusal::PofRefusal;
use flow::Nanos;
use model::AsyncMessage;
use model::agent::limits::{ANSWER_BYTES, ASYNC_BYTES, REQUESTS_PER_STEP};
use model::agent::{LossCounters, LostMessages, QueueLimits, RequestQueue};
use openflow::SessionConfig;
use pof::PofMessage;
use pof::message::setup::PofSwitchConfig;
use pof::session::{PofCloseReason, PofEvent, PofIdentity, PofRequest, PofSession};

/// Limits of the waiting requests, whose sizes are about those in memory. Requests wait for a long answer,
/// for the data plane, or for another thread that uses the model. At a limit, the session is not read, so
/// echo requests are not answered.
const WAITING: QueueLimits = QueueLimits {
    requests: 1_024,
    bytes: 1_024 * 1_024,
    over_limit_requests: 16,
    over_limit_bytes: 16 * 1_024,
};

/// An event on a channel, for the log and for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PofChannelEvent {
    /// The handshake is complete.
    Opened,
    /// A message was refused and answered by an ERROR. The value is the reason.
    Refused(String),
    /// The controller sent an ERROR. The value has its code and text.
    Error(String),
    /// The dialect cannot express the numbers of this many ports, so the controller does not see them.
    HiddenPorts(usize),
    /// Messages were dropped because the controller does not read. This event occurs at most once per second.
    Lost(LostMessages),
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
pub(crate) enum PendingRequest {
    /// The end of the handshake: the controller expects an empty switch.
    Reset,
    Request(Box<PofRequest>),
}

impl PendingRequest {
    /// Returns about the memory of the request.
    fn bytes(&self) -> usize {
        match self {
            Self::Reset => 8,
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
    /// Whether GET_CONFIG_REQUEST of the handshake was received.
    is_greeted: bool,
    /// Whether the answer to GET_CONFIG_REQUEST of the handshake was sent.
    pub(crate) is_described: bool,
    pub(crate) waiting: RequestQueue<PendingRequest>,
    pub(crate) lost: LossCounters,
    /// Number of ports that the description of the switch left out, until it is reported.
    pub(crate) hidden_ports: usize,
}

impl PofChannel {
    pub(crate) fn new(config: &AgentConfig, timers: SessionConfig, now: Nanos) -> Self {
        let identity = PofIdentity { device_id: config.device_id, slot: 0 };
        Self {
            session: PofSession::new(config.dialect, identity, timers, now),
            config: PofSwitchConfig { miss_send_length: u16::MAX, ..PofSwitchConfig::default() },
            job: None,
            is_greeted: false,
            is_described: false,
            waiting: RequestQueue::new(WAITING),
            lost: LossCounters::default(),
            hidden_ports: 0,
        }
    }

    /// Passes received bytes to the session. Returns the number of bytes accepted.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        self.session.receive(bytes, now)
    }

    /// Returns whether the driver should read from the connection.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.waiting.has_room() && self.session.wants_read()
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
        self.job.is_some() || !self.waiting.is_empty()
    }

    /// Returns when the session's next timer is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.session.next_deadline()
    }

    /// Returns the numbers of messages dropped because the peer did not read.
    #[must_use]
    pub fn lost(&self) -> LostMessages {
        self.lost.counts
    }

    /// Returns whether the switch has answered the last message of the handshake, and the session is not
    /// closed.
    pub(crate) fn is_described(&self) -> bool {
        self.is_described && self.is_running()
    }

    /// Returns whether the handshake is complete and the session is not closed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.session.is_running()
    }

    /// Returns whether a counter is being added up for a request.
    pub(crate) fn is_counting(&self) -> bool {
        self.job.as_ref().is_some_and(Job::is_count)
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
        if !self.waiting.has_room() && !self.session.is_closed() {
            return false;
        }
        match self.session.next_event() {
            None => return false,
            Some(PofEvent::Opened) => {}
            Some(PofEvent::Request(request)) => match &request.message {
                PofMessage::Error(error) => {
                    let text = format!("{} ({})", error.text.text().escape_debug(), error.error_code());
                    events.push(PofChannelEvent::Error(text));
                }
                PofMessage::GetConfigRequest if !std::mem::replace(&mut self.is_greeted, true) => {
                    events.push(PofChannelEvent::Opened);
                    self.enqueue(PendingRequest::Reset);
                    self.enqueue(PendingRequest::Request(request));
                }
                _ => self.enqueue(PendingRequest::Request(request)),
            },
            Some(PofEvent::Refused { error, .. }) => {
                *left -= 1;
                events.push(PofChannelEvent::Refused(error.to_string()));
            }
            Some(PofEvent::Closed { reason }) => {
                self.waiting.clear();
                self.job = None;
                events.push(PofChannelEvent::Closed(reason));
                return false;
            }
        }
        true
    }

    fn enqueue(&mut self, pending: PendingRequest) {
        let bytes = pending.bytes();
        self.waiting.push(pending, bytes);
    }

    /// Ends the request whose changes the driver has applied.
    pub(crate) fn finish(&mut self, xid: u32, refusal: Option<PofRefusal>) -> Option<PofChannelEvent> {
        if self.job.as_ref().is_some_and(Job::is_offloaded) {
            self.job = None;
        }
        refusal.map(|refusal| self.refuse(xid, &refusal))
    }

    /// Ends the session because another controller has completed its handshake. Waiting requests are
    /// discarded: the other controller expects that the switch is empty.
    pub(crate) fn replace(&mut self) {
        self.waiting.clear();
        self.session.close(PofCloseReason::Replaced);
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
            self.lost.counts.reply += 1;
        }
    }

    /// Sends asynchronous messages, unless too much output is unread.
    pub(crate) fn report(&mut self, message: &AsyncMessage, encoded: &[PofMessage]) {
        let is_packet_in = matches!(message, AsyncMessage::PacketIn(_));
        for message in encoded {
            let full = if is_packet_in {
                self.session.is_output_full()
            } else {
                self.session.output().len() > ASYNC_BYTES
            };
            if full || self.session.send(0, message).is_err() {
                let lost = &mut self.lost.counts;
                *(if is_packet_in { &mut lost.packet_in } else { &mut lost.port_status }) += 1;
            }
        }
    }

    pub(crate) fn report_lost(&mut self, now: Nanos, events: &mut Vec<PofChannelEvent>) {
        events.extend(self.lost.unreported(now).map(PofChannelEvent::Lost));
    }
}
