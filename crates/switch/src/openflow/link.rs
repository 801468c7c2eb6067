// SPDX-License-Identifier: Apache-2.0
//! One connection and its channel.

use super::stream::Stream;
use flow::Nanos;
use model::agent::{Agent, ChannelEvent, ChannelId, Progress};
use openflow::SessionConfig;
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes read in one go.
const READ_BYTES: usize = 16 * 1_024;
/// How long the peer has for reading our last words.
const LINGER_NS: Nanos = 1_000_000_000;

/// See the module.
pub struct Link {
    stream: Stream,
    /// Its name in the log.
    peer: String,
    channel: ChannelId,
    /// What was read and the channel had no room for yet.
    inbox: Vec<u8>,
    /// There may be something to read.
    readable: bool,
    /// The peer sends nothing more.
    ended: bool,
    /// Neither side sends anything more: nothing to sleep on.
    hung_up: bool,
    /// The channel is over; until then the peer may read the rest.
    closing_until_ns: Option<Nanos>,
    shut: bool,
    over: bool,
    /// Why it broke.
    broken: Option<ErrorKind>,
    /// What to sleep for.
    interest: PollFlags,
}

impl Link {
    /// Begins a channel on a connection that does not block.
    pub fn new(stream: Stream, peer: String, agent: &mut Agent, now: Nanos) -> Self {
        Self {
            stream,
            peer,
            channel: agent.open(now, SessionConfig::default()),
            inbox: Vec::new(),
            readable: true,
            ended: false,
            hung_up: false,
            closing_until_ns: None,
            shut: false,
            over: false,
            broken: None,
            interest: PollFlags::IN | PollFlags::OUT,
        }
    }

    pub fn peer(&self) -> &str {
        &self.peer
    }

    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// For the log, once it is over without the channel having said why.
    pub fn farewell(&self) -> Option<String> {
        match self.broken {
            _ if self.closing_until_ns.is_some() => None,
            Some(kind) => Some(format!("connection lost: {kind}")),
            None => Some("closed by the peer".into()),
        }
    }

    /// Whether it can be forgotten.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What to sleep on; none when the connection has nothing to say.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.hung_up).then(|| self.stream.as_fd())
    }

    pub fn waits_for(&self) -> PollFlags {
        self.interest
    }

    pub fn woken(&mut self, answer: PollFlags) {
        self.readable |= answer.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        self.hung_up |= answer.intersects(PollFlags::HUP | PollFlags::ERR);
    }

    /// Reads, works and writes a bounded amount.
    pub fn step(
        &mut self,
        agent: &mut Agent,
        now: Nanos,
        work: impl FnOnce(&mut Agent, ChannelId) -> Progress,
    ) -> Progress {
        let mut progress = Progress::default();
        if self.closing_until_ns.is_none() {
            self.write(agent);
            let read = self.read(agent, now);
            progress = work(agent, self.channel);
            // What the channel had no room for, and now has: the descriptor would not wake us for it.
            let has_room = agent.channel(self.channel).is_some_and(|channel| channel.wants_read());
            progress.more |= read || (has_room && !self.inbox.is_empty());
            if progress.events.iter().any(|event| matches!(event, ChannelEvent::Closed(_))) {
                self.closing_until_ns = Some(now.saturating_add(LINGER_NS));
            }
        }
        self.write(agent);
        match self.closing_until_ns {
            Some(until) => self.close(agent, until, now),
            None => self.look_ahead(agent, progress.more),
        }
        progress
    }

    /// What to sleep for, and whether it is over.
    fn look_ahead(&mut self, agent: &mut Agent, more: bool) {
        let Some(channel) = agent.channel(self.channel) else { return };
        let unsent = !channel.output().is_empty();
        self.over |= self.ended && !more && !channel.is_busy() && !unsent;
        self.interest = PollFlags::empty();
        self.interest.set(PollFlags::IN, !self.ended && self.inbox.is_empty() && channel.wants_read());
        self.interest.set(PollFlags::OUT, unsent);
    }

    /// Gives the peer time to read what is said last: a socket that is closed with input unread loses its output.
    fn close(&mut self, agent: &mut Agent, until: Nanos, now: Nanos) {
        let unsent = agent.channel(self.channel).is_some_and(|channel| !channel.output().is_empty());
        if !unsent && !std::mem::replace(&mut self.shut, true) {
            // One that is gone already needs no goodbye.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.ended = true,
            Err(error) if !is_temporary(error.kind()) => self.ended = true,
            _ => {}
        }
        self.over |= now >= until || (self.ended && (!unsent || self.hung_up));
        self.interest = PollFlags::empty();
        self.interest.set(PollFlags::IN, !self.ended);
        self.interest.set(PollFlags::OUT, unsent);
    }

    /// Feeds the channel; true if there may be more to read at once.
    fn read(&mut self, agent: &mut Agent, now: Nanos) -> bool {
        let Some(channel) = agent.channel(self.channel) else { return false };
        if !self.inbox.is_empty() {
            let taken = channel.receive(&self.inbox, now);
            self.inbox.drain(..taken);
        }
        if !self.inbox.is_empty() || !self.readable || self.ended || !channel.wants_read() {
            return false;
        }
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                let taken = channel.receive(&bytes[..count], now);
                self.inbox.extend_from_slice(&bytes[taken..count]);
                return true;
            }
            Err(error) if is_temporary(error.kind()) => self.readable = false,
            Err(error) => self.breaks(error.kind()),
        }
        false
    }

    fn breaks(&mut self, kind: ErrorKind) {
        self.over = true;
        self.broken.get_or_insert(kind);
    }

    fn write(&mut self, agent: &mut Agent) {
        let Some(channel) = agent.channel(self.channel) else { return };
        while !channel.output().is_empty() {
            match self.stream.write(channel.output()) {
                Ok(0) => self.over = true,
                Ok(count) => {
                    channel.consume(count);
                    continue;
                }
                Err(error) if is_temporary(error.kind()) => {}
                Err(error) => self.breaks(error.kind()),
            }
            return;
        }
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
