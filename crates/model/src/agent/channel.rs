// SPDX-License-Identifier: Apache-2.0
//! One connection to a controller. Requests are done in order; a barrier holds back what comes after it, and a long
//! answer only the next long answer. Memory is bounded: a session holds one message, at most [`HELD_MAX`] requests of
//! [`HELD_BYTES`] wait here, and an answer grows only while little of it waits to be read.

use super::bundle::Bundles;
use super::dump::Dump;
use super::layout::Layout;
use super::long::Away;
use super::lost::Lost;
use super::{ChannelId, Context, Refusal, Shared};
use crate::change::LONG_ENTRIES;
use crate::data_plane::DataPlane;
use flow::Nanos;
use openflow::features::SwitchConfig;
use openflow::role::{AsyncConfig, AsyncKind, Role};
use openflow::{CloseReason, Head, Message, Request, Session, SessionConfig, SessionEvent, Undecodable};
use std::collections::VecDeque;

/// Requests begun in one step; fewer if their changes look at [`LONG_ENTRIES`] together.
const REQUESTS_PER_STEP: usize = 64;
/// Requests that wait behind a barrier, a long answer, a full data plane or a model that is lent before the session is
/// asked for no more. Until then echoes are answered.
const HELD_MAX: usize = 1_024;
/// Bytes of such requests, as they came; one may go beyond.
const HELD_BYTES: usize = 256 * 1_024;
/// The same of all channels together. Beyond it each channel holds [`HELD_FEW`] of [`HELD_BYTES_FEW`] at most.
pub(super) const HELD_BYTES_ALL: usize = 16 * 1_024 * 1_024;
/// Requests that every channel may hold.
const HELD_FEW: usize = 16;
/// Bytes of such requests; one may go beyond.
const HELD_BYTES_FEW: usize = 16 * 1_024;
/// Bytes of output up to which a long answer goes on.
const ANSWER_BYTES: usize = 64 * 1_024;
/// Operations parked on the way to the workers above which no request is begun.
const PARKED_MAX: usize = 256;
/// Bytes of output up to which asynchronous messages are sent. Packet-ins stop earlier, at the session's own limit.
const ASYNC_BYTES: usize = 1_024 * 1_024;

/// Between two events about lost messages.
const LOST_NS: Nanos = 1_000_000_000;

/// Something that happened on a channel, for the log and the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// The version is agreed on.
    Opened,
    /// A message was refused, and answered by an ERROR: why.
    Refused(String),
    /// The controller sent an ERROR.
    Error(String),
    /// Messages were not sent because the controller does not read: at most one such event a second.
    Lost(Lost),
    /// It is over: write the rest of the output and close the connection.
    Closed(CloseReason),
}

/// What a step did.
#[derive(Debug, Default)]
pub struct Progress {
    /// There is more to do at once.
    pub more: bool,
    /// What happened.
    pub events: Vec<ChannelEvent>,
}

/// What a channel is busy with.
#[derive(Debug)]
pub(super) enum Job {
    /// Waits until this version is in force, then answers the barrier with this number.
    Barrier(u32, u64),
    Dump(Box<Dump>),
    /// Waits until the changes it asked for are made elsewhere.
    Away(Box<Away>),
}

/// A request whose turn has not come.
#[derive(Debug)]
enum Held {
    Request(Box<Request>),
    /// It will be refused: for what is wrong with it, or because the channel is a slave by then.
    Undecodable(Box<Undecodable>),
}

impl Held {
    /// Bytes of the request as it came.
    fn bytes(&self) -> usize {
        match self {
            Self::Request(request) => request.head.message_bytes(),
            Self::Undecodable(request) => request.head.message_bytes(),
        }
    }

    /// Whether it must not overtake a long answer that is under way.
    fn waits_for_others(&self) -> bool {
        matches!(self, Self::Request(request) if waits_for_others(&request.message))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Channel {
    pub(super) id: ChannelId,
    pub(super) session: Session,
    /// As it asked for; who is no longer master is slave.
    pub(super) asked_role: Role,
    pub(super) async_config: AsyncConfig,
    pub(super) config: SwitchConfig,
    pub(super) bundles: Bundles,
    /// A TABLE_FEATURES request of which parts are missing.
    pub(super) layout: Layout,
    /// The peer has used our low_latency instruction. Others, like ovs-ofctl, could not read an answer that has it.
    pub(super) knows_marks: bool,
    job: Option<Job>,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// All channels together hold so much that this one gets [`HELD_FEW`].
    crowded: bool,
    /// Messages that found no room.
    lost: Lost,
    /// Those of them that were told of, and when they were.
    lost_told: (Lost, Option<Nanos>),
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
            held: VecDeque::new(),
            held_bytes: 0,
            crowded: false,
            lost: Lost::default(),
            lost_told: (Lost::default(), None),
        }
    }

    /// Takes in bytes that were read; returns how many there was room for.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        self.session.receive(bytes, now)
    }

    /// Whether reading makes sense.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.can_hold() && self.session.wants_read()
    }

    fn can_hold(&self) -> bool {
        let (most, most_bytes) =
            if self.crowded { (HELD_FEW, HELD_BYTES_FEW) } else { (HELD_MAX, HELD_BYTES) };
        self.held.len() < most && self.held_bytes < most_bytes
    }

    /// Bytes of the requests that wait, as they came.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Says whether all channels together hold as much as they may.
    pub(super) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// What is to be written to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.session.output()
    }

    /// Says that the first `count` bytes of the output are written.
    pub fn consume(&mut self, count: usize) {
        self.session.consume(count);
    }

    /// Whether it waits for a change to come into force.
    #[must_use]
    pub fn waits_for_barrier(&self) -> bool {
        matches!(self.job, Some(Job::Barrier(..)))
    }

    /// Whether requests wait, or an answer is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.job.is_some() || !self.held.is_empty()
    }

    /// When the clock next makes something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.session.next_deadline()
    }

    /// Messages that were not sent because the peer did not read.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost
    }

    fn tell_lost(&mut self, now: Nanos, events: &mut Vec<ChannelEvent>) {
        let (told, at) = self.lost_told;
        if told != self.lost && at.is_none_or(|at| now.saturating_sub(at) >= LOST_NS) {
            events.push(ChannelEvent::Lost(self.lost.since(told)));
            self.lost_told = (self.lost, Some(now));
        }
    }

    pub(super) fn step<D: DataPlane>(
        &mut self,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Progress {
        self.session.tick(context.now);
        let mut events = Vec::new();
        self.tell_lost(context.now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        shared.spent = 0;
        self.advance(context);
        while left > 0 {
            if let Some(held) = self.next_ready(shared, context) {
                left -= 1;
                events.extend(self.take_up(held, shared, context));
                // Others have their turn after so much work. The agent heeds what is asked anew before a barrier is begun.
                if shared.spent >= LONG_ENTRIES || shared.asked_anew {
                    left = 0;
                }
                self.advance(context);
                continue;
            }
            if !self.take_event(&mut left, &mut events) {
                break;
            }
        }
        let dumps = matches!(self.job, Some(Job::Dump(_))) && self.has_room();
        Progress { more: left == 0 || dumps, events }
    }

    /// Takes in what came, without the model.
    pub(super) fn step_alone(&mut self, now: Nanos) -> Progress {
        self.session.tick(now);
        let mut events = Vec::new();
        self.tell_lost(now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        while left > 0 && self.take_event(&mut left, &mut events) {}
        Progress { more: left == 0, events }
    }

    /// Takes the session's next event; false when there is none, or no room for it.
    fn take_event(&mut self, left: &mut usize, events: &mut Vec<ChannelEvent>) -> bool {
        // That it is over needs no room, and what waits is not waited for any more.
        if !self.can_hold() && !self.session.is_closed() {
            return false;
        }
        match self.session.next_event() {
            None => return false,
            Some(SessionEvent::Opened) => events.push(ChannelEvent::Opened),
            Some(SessionEvent::Request(request)) => match request.message {
                Message::Error(error) => events.push(ChannelEvent::Error(error.code.to_string())),
                _ => self.hold(Held::Request(request)),
            },
            Some(SessionEvent::Undecodable(request)) => self.hold(Held::Undecodable(request)),
            Some(SessionEvent::Refused { error, .. }) => {
                *left -= 1;
                events.push(ChannelEvent::Refused(error.to_string()));
            }
            Some(SessionEvent::Closed { reason }) => {
                self.held.clear();
                self.held_bytes = 0;
                self.job = None;
                events.push(ChannelEvent::Closed(reason));
                return false;
            }
        }
        true
    }

    fn hold(&mut self, held: Held) {
        self.held_bytes += held.bytes();
        self.held.push_back(held);
    }

    /// Answers a request by an ERROR.
    pub(super) fn refuse(&mut self, xid: u32, head: &Head, refusal: &Refusal) -> ChannelEvent {
        self.session.send_error(xid, refusal.code, head);
        ChannelEvent::Refused(format!("{} ({})", refusal.problem, refusal.code))
    }

    /// The request whose changes are made elsewhere; it is no longer waited for.
    pub(super) fn take_away(&mut self) -> Option<Away> {
        match self.job.take() {
            Some(Job::Away(away)) => Some(*away),
            other => {
                self.job = other;
                None
            }
        }
    }

    fn has_room(&self) -> bool {
        self.session.output().len() < ANSWER_BYTES
    }

    /// The next request, if it may begin now.
    fn next_ready<D: DataPlane>(&mut self, shared: &Shared, context: &mut Context<'_, D>) -> Option<Held> {
        let held = self.held.front()?;
        let free = match &self.job {
            None => true,
            Some(Job::Barrier(..) | Job::Away(_)) => false,
            Some(Job::Dump(_)) => !held.waits_for_others(),
        };
        if !free
            || shared.work.is_some()
            || self.session.is_output_full()
            || context.model.plane_mut().parked() >= PARKED_MAX
        {
            return None;
        }
        let held = self.held.pop_front()?;
        self.held_bytes -= held.bytes();
        Some(held)
    }

    /// Goes on with the job.
    fn advance<D: DataPlane>(&mut self, context: &mut Context<'_, D>) {
        self.job = match self.job.take() {
            Some(Job::Barrier(xid, version)) if context.model.is_applied(version) => {
                self.reply(xid, &Message::BarrierReply);
                None
            }
            Some(Job::Dump(dump)) if self.has_room() => {
                self.session.answer_goes_on(context.now);
                dump.advance(&mut self.session, context).map(|rest| Job::Dump(Box::new(rest)))
            }
            other => other,
        };
    }

    pub(super) fn begin(&mut self, job: Job) {
        self.job = Some(job);
    }

    /// Sends a reply that fits one message, or parts by itself.
    pub(super) fn reply(&mut self, xid: u32, message: &Message) {
        if self.session.send(xid, message).is_err() {
            self.lost.reply += 1;
        }
    }

    pub(super) fn wants(&self, shared: &Shared, kind: AsyncKind) -> bool {
        self.session.is_open() && self.async_config.allows(self.role(shared), kind)
    }

    pub(super) fn tell(&mut self, shared: &Shared, kind: AsyncKind, message: &Message) {
        if !self.wants(shared, kind) {
            return;
        }
        let full = match kind {
            AsyncKind::PacketIn(_) => self.session.is_output_full(),
            _ => self.session.output().len() > ASYNC_BYTES,
        };
        if full || self.session.send(0, message).is_err() {
            self.lost.note(kind);
        }
    }

    /// Returns what it holds of what all share.
    pub(super) fn give_back(self, shared: &mut Shared) {
        shared.bundled = shared.bundled.minus(self.bundles.size());
        shared.held_bytes = shared.held_bytes.saturating_sub(self.held_bytes);
        shared.lost = shared.lost.plus(self.lost);
        if shared.master == Some(self.id) {
            shared.master = None;
        }
    }
}

/// Whether a request must not overtake a long answer that is under way: a barrier is answered behind it, and there is
/// one long answer at a time.
fn waits_for_others(message: &Message) -> bool {
    use openflow::multipart::Query;
    match message {
        Message::BarrierRequest | Message::LaneRequest => true,
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

impl Channel {
    /// Does or refuses a request whose turn has come.
    fn take_up<D: DataPlane>(
        &mut self,
        held: Held,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<ChannelEvent> {
        match held {
            Held::Request(request) => {
                let refusal = self.start(&request, shared, context).err()?;
                Some(self.refuse(request.xid, &request.head, &refusal))
            }
            Held::Undecodable(request) => {
                let Undecodable { xid, error, head } = *request;
                if let Some(more) = head.table_features_part() {
                    self.layout.refuse(xid, more);
                }
                let refusal = self.barred(shared).unwrap_or(Refusal::new(error.code, error.problem));
                Some(self.refuse(xid, &head, &refusal))
            }
        }
    }

    fn start<D: DataPlane>(
        &mut self,
        request: &Request,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<(), Refusal> {
        if let Some(reply) = self.answer(request, shared, context)? {
            self.reply(request.xid, &reply);
        }
        Ok(())
    }
}
