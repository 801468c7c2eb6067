// SPDX-License-Identifier: Apache-2.0
//! A connection and the agent's channel for it. It moves bytes and does not know the protocol.

use super::agents::{Agents, ChannelKey, LinkEvent, LinkProgress, Protocol};
use super::stream::Stream;
use flow::Nanos;
use rustix::event::PollFlags;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::SystemTime;

/// Length of a message header in bytes, in both protocols.
const HEADER_BYTES: usize = 8;
/// Maximum number of bytes read at a time.
const READ_BYTES: usize = 16 * 1_024;
/// Time in ns for which the peer may still read the last messages after the channel has closed.
const LINGER_NS: Nanos = Nanos(1_000_000_000);

/// What broke a connection.
#[derive(Debug)]
enum Broken {
    /// The system reported an error.
    Lost(ErrorKind),
    /// TLS failed for this reason.
    Tls(String),
}

/// A connection and the agent's channel for it.
pub struct ControllerLink {
    stream: Stream,
    /// Name of the peer in the log.
    peer: String,
    channel: ChannelKey,
    /// Length of the peer's first message, and number of bytes received.
    first_length: u16,
    received: u64,
    /// Bytes that were read while the channel had no space for them.
    inbox: Vec<u8>,
    /// Whether the socket may have data to read.
    readable: bool,
    /// Whether the peer has stopped sending.
    ended: bool,
    /// Whether both sides have stopped sending. The socket must then not be polled.
    hung_up: bool,
    /// Time until which the peer may read the last messages, or `None` while the channel is open.
    closing_until_ns: Option<Nanos>,
    shut: bool,
    over: bool,
    /// Time of day at which the handshake was complete, in seconds since 1970.
    opened_s: Option<u64>,
    /// What broke the connection.
    broken: Option<Broken>,
    /// Events to poll for.
    interest: PollFlags,
}

impl ControllerLink {
    /// Opens a channel on a non-blocking connection.
    pub fn new(stream: Stream, peer: String, protocol: Protocol, agents: &mut Agents, now: Nanos) -> Self {
        Self {
            stream,
            peer,
            channel: agents.open(protocol, now),
            first_length: 0,
            received: 0,
            inbox: Vec::new(),
            readable: true,
            ended: false,
            hung_up: false,
            closing_until_ns: None,
            shut: false,
            over: false,
            opened_s: None,
            broken: None,
            interest: PollFlags::IN | PollFlags::OUT,
        }
    }

    pub fn peer(&self) -> &str {
        &self.peer
    }

    pub fn protocol(&self) -> Protocol {
        match self.channel {
            ChannelKey::OpenFlow(_) => Protocol::OpenFlow,
            ChannelKey::Pof(_) => Protocol::Pof,
        }
    }

    pub fn channel(&self) -> ChannelKey {
        self.channel
    }

    /// Notes that the handshake is complete.
    pub fn opened(&mut self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.opened_s.get_or_insert(now.as_secs());
    }

    /// Returns the time of day at which the handshake was complete, in seconds since 1970.
    pub fn opened_s(&self) -> Option<u64> {
        self.opened_s
    }

    /// Returns a line for the log if the connection is over and the channel has not reported the reason.
    pub fn close_reason(&self) -> Option<String> {
        match &self.broken {
            _ if self.closing_until_ns.is_some() => None,
            Some(Broken::Lost(kind)) => Some(format!("connection lost: {kind}")),
            // `tls_problem` reports it.
            Some(Broken::Tls(_)) => None,
            None => Some("closed by the peer".into()),
        }
    }

    /// Returns why TLS failed, if it did.
    pub fn tls_problem(&self) -> Option<&str> {
        match &self.broken {
            Some(Broken::Tls(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the peer of an OpenFlow channel may be a POF controller: it has sent a HELLO without
    /// versions, as POF's is, and at most one other message without a body. Such a controller closes the
    /// connection when it gets an OpenFlow message with another length than POF's.
    pub fn may_speak_pof(&self) -> bool {
        let is_openflow = matches!(self.channel, ChannelKey::OpenFlow(_));
        let header = HEADER_BYTES as u64;
        is_openflow && u64::from(self.first_length) == header && self.received <= 2 * header
    }

    /// Returns whether the connection can be removed.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the descriptor to poll, or `None` if both sides have stopped sending.
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

    /// Reads, processes and writes a bounded amount of data.
    pub fn step(
        &mut self,
        agents: &mut Agents,
        now: Nanos,
        work: impl FnOnce(&mut Agents, ChannelKey) -> LinkProgress,
    ) -> LinkProgress {
        let mut progress = LinkProgress::default();
        if self.closing_until_ns.is_none() {
            self.write(agents);
            let read = self.read(agents, now);
            progress = work(agents, self.channel);
            // Polling the descriptor does not report bytes in the inbox, or decrypted ones, for which the
            // channel may now have space.
            let has_room = agents.channel(self.channel).is_some_and(|channel| channel.wants_read());
            progress.more |= read || (has_room && (!self.inbox.is_empty() || self.stream.has_data()));
            if progress.events.iter().any(|event| matches!(event, LinkEvent::Closed(_))) {
                self.closing_until_ns = Some(now.saturating_add(LINGER_NS));
            }
        }
        self.write(agents);
        match self.closing_until_ns {
            Some(until) => self.close(agents, until, now),
            None => self.look_ahead(agents, progress.more),
        }
        progress
    }

    /// Sets the events to poll for, and determines whether the connection is over.
    fn look_ahead(&mut self, agents: &mut Agents, more: bool) {
        let Some(channel) = agents.channel(self.channel) else { return };
        let unsent = !channel.output().is_empty() || self.stream.wants_write();
        self.over |= self.ended && !more && !channel.is_busy() && !unsent;
        self.interest = PollFlags::empty();
        self.interest.set(PollFlags::IN, !self.ended && self.inbox.is_empty() && channel.wants_read());
        self.interest.set(PollFlags::OUT, unsent);
    }

    /// Waits until the peer has read the last messages. Input is read and discarded, because closing a socket
    /// with unread input drops its unsent output.
    fn close(&mut self, agents: &mut Agents, until: Nanos, now: Nanos) {
        let unsent = self.stream.wants_write()
            || agents.channel(self.channel).is_some_and(|channel| !channel.output().is_empty());
        if !unsent && !std::mem::replace(&mut self.shut, true) {
            // An error means that the peer is gone.
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

    /// Passes received bytes to the channel. Returns whether there may be more bytes to read immediately.
    fn read(&mut self, agents: &mut Agents, now: Nanos) -> bool {
        let Some(channel) = agents.channel(self.channel) else { return false };
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
                if self.received == 0 && count >= HEADER_BYTES {
                    self.first_length = u16::from_be_bytes([bytes[2], bytes[3]]);
                }
                self.received += count as u64;
                let taken = channel.receive(&bytes[..count], now);
                self.inbox.extend_from_slice(&bytes[taken..count]);
                return true;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return true,
            Err(error) if is_temporary(error.kind()) => self.readable = false,
            Err(error) => self.breaks(&error),
        }
        false
    }

    fn breaks(&mut self, error: &io::Error) {
        self.over = true;
        self.broken.get_or_insert_with(|| match (&self.stream, error.get_ref()) {
            (Stream::Tls(_), Some(reason)) => Broken::Tls(reason.to_string()),
            _ => Broken::Lost(error.kind()),
        });
    }

    fn write(&mut self, agents: &mut Agents) {
        let Some(channel) = agents.channel(self.channel) else { return };
        while !channel.output().is_empty() {
            match self.stream.write(channel.output()) {
                Ok(0) => self.over = true,
                Ok(count) => {
                    channel.consume(count);
                    continue;
                }
                Err(error) if is_temporary(error.kind()) => {}
                Err(error) => self.breaks(&error),
            }
            return;
        }
        if let Err(error) = self.stream.flush() {
            self.breaks(&error);
        }
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
