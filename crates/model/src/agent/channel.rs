// SPDX-License-Identifier: Apache-2.0
//! One connection to a controller. Requests are executed in order. A barrier delays all requests after it; a
//! long answer delays only barriers and other long answers.
//!
//! Memory is bounded: the waiting requests are limited by [`WAITING`], and an answer is produced only while
//! there is little unread output.

use super::bundle::Bundles;
use super::context::{ChannelId, Refusal};
use super::dump::Dump;
use super::layout::Layout;
use super::limits::{ANSWER_BYTES, ASYNC_BYTES, REQUESTS_PER_STEP};
use super::long::OffloadedRequest;
use super::lost::{LossCounters, LostMessages};
use super::request_queue::{QueueLimits, RequestQueue};
use super::shared::Shared;
use flow::{Nanos, RuleVersion};
use openflow::features::SwitchConfig;
use openflow::role::{AsyncConfig, AsyncKind, Role};
use openflow::{
    CloseReason, Message, Request, RequestHead, Session, SessionConfig, SessionEvent, Undecodable,
};

/// Limits of the waiting requests, whose sizes are as received. Requests wait for a barrier, for a long
/// answer, for the data plane, or for another thread that uses the model. At a limit, the session is not
/// read, so echo requests are not answered.
const WAITING: QueueLimits = QueueLimits {
    requests: 1_024,
    bytes: 256 * 1_024,
    over_limit_requests: 16,
    over_limit_bytes: 16 * 1_024,
};

/// An event on a channel, for the log and for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// The version is negotiated.
    Opened,
    /// A message was refused and answered by an ERROR. The value is the reason.
    Refused(String),
    /// The controller sent an ERROR. The value is the name of its code.
    Error(String),
    /// Messages were dropped because the controller does not read. This event occurs at most once per second.
    Lost(LostMessages),
    /// The session has ended: write the rest of the output, then close the connection.
    Closed(CloseReason),
}

/// Result of a step of a channel.
#[derive(Debug, Default)]
pub struct Progress {
    /// More work can be done immediately.
    pub more: bool,
    /// Events of the step.
    pub events: Vec<ChannelEvent>,
}

/// The job that a channel is executing.
#[derive(Debug)]
pub(super) enum Job {
    /// The channel waits until this version is active, and then answers the barrier request with this
    /// transaction ID.
    Barrier(u32, RuleVersion),
    Dump(Box<Dump>),
    /// The channel waits until the driver has applied the changes of the request.
    Offloaded(Box<OffloadedRequest>),
}

/// A request that waits for its turn.
#[derive(Debug)]
pub(super) enum PendingRequest {
    Request(Box<Request>),
    /// A request that cannot be decoded. A slave's request is refused because of the role, any other request
    /// because of the format.
    Undecodable(Box<Undecodable>),
}

impl PendingRequest {
    /// Returns the size in bytes of the request as received.
    fn bytes(&self) -> usize {
        match self {
            Self::Request(request) => request.head.message_bytes(),
            Self::Undecodable(request) => request.head.message_bytes(),
        }
    }

    /// Returns whether the request must wait for a long answer in progress.
    pub(super) fn waits_for_others(&self) -> bool {
        matches!(self, Self::Request(request) if waits_for_others(&request.message))
    }
}

/// One connection to a controller.
#[derive(Debug)]
pub struct Channel {
    pub(super) id: ChannelId,
    pub(super) session: Session,
    /// The role that the controller requested. A former master counts as slave.
    pub(super) asked_role: Role,
    pub(super) async_config: AsyncConfig,
    pub(super) config: SwitchConfig,
    pub(super) bundles: Bundles,
    /// A TABLE_FEATURES request of which some parts have not been received.
    pub(super) layout: Layout,
    /// Whether the controller has used the `low_latency` instruction. Other controllers, such as ovs-ofctl,
    /// cannot parse answers with this instruction.
    pub(super) knows_marks: bool,
    pub(super) job: Option<Job>,
    pub(super) waiting: RequestQueue<PendingRequest>,
    /// Messages dropped because the output was full.
    lost: LossCounters,
}

impl Channel {
    pub(super) fn new(id: ChannelId, config: SessionConfig, now: Nanos) -> Self {
        Self {
            id,
            session: Session::new(config, now),
            asked_role: Role::Equal,
            async_config: AsyncConfig::default(),
            config: SwitchConfig::default(),
            bundles: Bundles::default(),
            layout: Layout::default(),
            knows_marks: false,
            job: None,
            waiting: RequestQueue::new(WAITING),
            lost: LossCounters::default(),
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

    /// Returns whether the channel waits until a change is active.
    #[must_use]
    pub fn waits_for_barrier(&self) -> bool {
        matches!(self.job, Some(Job::Barrier(..)))
    }

    /// Returns whether requests wait or a job is in progress.
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

    pub(super) fn report_lost(&mut self, now: Nanos, events: &mut Vec<ChannelEvent>) {
        events.extend(self.lost.unreported(now).map(ChannelEvent::Lost));
    }

    /// Handles received messages without access to the model.
    pub(super) fn step_alone(&mut self, now: Nanos) -> Progress {
        self.session.tick(now);
        let mut events = Vec::new();
        self.report_lost(now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        while left > 0 && self.take_event(&mut left, &mut events) {}
        Progress { more: left == 0, events }
    }

    /// Takes the session's next event. Returns false if there is no event, or no space to queue it.
    pub(super) fn take_event(&mut self, left: &mut usize, events: &mut Vec<ChannelEvent>) -> bool {
        // The end of a session needs no space, because the waiting requests are discarded.
        if !self.waiting.has_room() && !self.session.is_closed() {
            return false;
        }
        match self.session.next_event() {
            None => return false,
            Some(SessionEvent::Opened) => events.push(ChannelEvent::Opened),
            Some(SessionEvent::Request(request)) => match request.message {
                Message::Error(error) => events.push(ChannelEvent::Error(error.code.to_string())),
                _ => self.enqueue(PendingRequest::Request(request)),
            },
            Some(SessionEvent::Undecodable(request)) => self.enqueue(PendingRequest::Undecodable(request)),
            Some(SessionEvent::Refused { error, .. }) => {
                *left -= 1;
                events.push(ChannelEvent::Refused(error.to_string()));
            }
            Some(SessionEvent::Closed { reason }) => {
                self.waiting.clear();
                self.job = None;
                events.push(ChannelEvent::Closed(reason));
                return false;
            }
        }
        true
    }

    fn enqueue(&mut self, pending: PendingRequest) {
        let bytes = pending.bytes();
        self.waiting.push(pending, bytes);
    }

    /// Answers a request by an ERROR message.
    pub(super) fn refuse(&mut self, xid: u32, head: &RequestHead, refusal: &Refusal) -> ChannelEvent {
        self.session.send_error(xid, refusal.code, head);
        ChannelEvent::Refused(format!("{} ({})", refusal.problem, refusal.code))
    }

    /// Takes the request whose changes the driver has applied, and ends the job that waits for it.
    pub(super) fn take_offloaded(&mut self) -> Option<OffloadedRequest> {
        match self.job.take() {
            Some(Job::Offloaded(offloaded)) => Some(*offloaded),
            other => {
                self.job = other;
                None
            }
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.session.output().len() < ANSWER_BYTES
    }

    pub(super) fn begin(&mut self, job: Job) {
        self.job = Some(job);
    }

    /// Sends a reply that fits into one message, or that the encoder splits.
    pub(super) fn reply(&mut self, xid: u32, message: &Message) {
        if self.session.send(xid, message).is_err() {
            self.lost.counts.reply += 1;
        }
    }

    pub(super) fn wants(&self, shared: &Shared, kind: AsyncKind) -> bool {
        self.session.is_open() && self.async_config.allows(self.role(shared), kind)
    }

    pub(super) fn report(&mut self, shared: &Shared, kind: AsyncKind, message: &Message) -> bool {
        if !self.wants(shared, kind) {
            return false;
        }
        let full = match kind {
            AsyncKind::PacketIn(_) => self.session.is_output_full(),
            _ => self.session.output().len() > ASYNC_BYTES,
        };
        let is_lost = full || self.session.send(0, message).is_err();
        if is_lost {
            self.lose(kind);
        }
        !is_lost
    }

    /// Counts an asynchronous message that the controller does not get.
    pub(super) fn lose(&mut self, kind: AsyncKind) {
        self.lost.counts.note(kind);
    }

    /// Subtracts the waiting requests and bundles of a closed channel from the totals of all channels, and
    /// adds its lost messages.
    pub(super) fn give_back(self, shared: &mut Shared) {
        shared.bundled = shared.bundled.minus(self.bundles.size());
        shared.queued.remove(&self.waiting);
        shared.lost = shared.lost.plus(self.lost.counts);
        if shared.master == Some(self.id) {
            shared.master = None;
        }
    }
}

/// Returns whether a request must wait for a long answer in progress.
fn waits_for_others(message: &Message) -> bool {
    use openflow::multipart::Query;
    match message {
        Message::BarrierRequest | Message::StatelessRequest => true,
        Message::MultipartRequest(request) => {
            matches!(
                request.query,
                Query::Flow(_)
                    | Query::Aggregate(_)
                    | Query::TableFeatures(_)
                    | Query::Group { .. }
                    | Query::GroupDesc
                    | Query::Meter { .. }
                    | Query::MeterConfig { .. }
            )
        }
        _ => false,
    }
}
