// SPDX-License-Identifier: Apache-2.0
//! One connection of a switch to a controller, without the connection.
//!
//! The driver gives what it reads to [`Session::receive`], takes events until there are none, sends replies, writes
//! what [`Session::output`] holds and says with [`Session::consume`] how much of it went; [`Session::tick`] lets time
//! pass. Memory is bounded: input holds one message, and while output is over its limit nothing more is worked off, so
//! that output holds its limit and what one request makes of it (plus what the driver itself sends unasked: it can look
//! at [`Session::is_output_full`]).

mod event;
mod keepalive;
#[cfg(test)]
mod tests;

use crate::error::{self, DecodeError, ErrorCode, TooLong};
use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, VERSION, kind};
use crate::hello::Hello;
use crate::message::{Message, encode};
use crate::symmetric::ErrorMessage;
use flow::Nanos;
use keepalive::{Keepalive, Step};

pub use event::{CloseReason, Head, Request, SessionConfig, SessionEvent, Undecodable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitingHello,
    Open,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    state: State,
    /// Bytes of messages that were not worked off; `taken` of them were.
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    keepalive: Keepalive,
    /// Why it ended, until the driver is told.
    closing: Option<CloseReason>,
}

impl Session {
    /// A fresh connection. Our HELLO is the first output.
    #[must_use]
    pub fn new(config: SessionConfig, now: Nanos) -> Self {
        let mut session = Self {
            config,
            state: State::AwaitingHello,
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            sent: 0,
            keepalive: Keepalive::new(now),
            closing: None,
        };
        Message::Hello(Hello::ours()).encode_one(0, &mut session.output);
        session
    }

    /// Takes in bytes that were read, in any pieces, and returns how many there was room for: all but what goes beyond
    /// one message. Work off the events, then give it the rest.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        if self.state == State::Closed {
            return bytes.len();
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        let taken = bytes.len().min(MESSAGE_BYTES_MAX - self.input.len());
        // What comes again and again because there is no room says nothing about the peer.
        if taken > 0 {
            self.keepalive.heard(now);
        }
        self.input.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Whether reading makes sense: there is room for input, and output is not over its limit. `false` once closed.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        let room = self.input.len() - self.taken < MESSAGE_BYTES_MAX;
        self.state != State::Closed && room && !self.is_output_full()
    }

    /// Output is over its limit: nothing more is worked off until the driver has written some.
    #[must_use]
    pub fn is_output_full(&self) -> bool {
        self.output.len() - self.sent > self.config.output_limit
    }

    /// Whether the version is agreed on and the session not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether it is over: the next event is the last, if it was not taken yet.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// What is to be written to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Says that the first `count` bytes of the output are written.
    pub fn consume(&mut self, count: usize) {
        if count > 0 && self.is_output_full() {
            self.keepalive.unblocked();
        }
        self.sent = self.output.len().min(self.sent + count);
        // Bytes move only when as many were written, so that each moves once on average.
        if self.sent * 2 >= self.output.len() {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Says that a long answer goes on because the peer takes it. That is a sign of life: its echo replies may wait
    /// behind requests that wait for the answer's end.
    pub fn answer_goes_on(&mut self, now: Nanos) {
        self.keepalive.heard(now);
    }

    /// Sends a reply or an asynchronous message. Before [`SessionEvent::Opened`] and after the end nothing is sent.
    ///
    /// # Errors
    /// A message that does not fit 65535 bytes.
    pub fn send(&mut self, xid: u32, message: &Message) -> Result<(), TooLong> {
        if self.state != State::Open {
            return Ok(());
        }
        encode(message, xid, &mut self.output)
    }

    /// Where [`crate::multipart::parts::Parts`] may write its parts, on an open session.
    pub fn output_mut(&mut self) -> Option<&mut Vec<u8>> {
        (self.state == State::Open).then_some(&mut self.output)
    }

    /// Refuses a request.
    pub fn send_error(&mut self, xid: u32, code: impl Into<ErrorCode>, head: &Head) {
        if self.state == State::Open {
            self.put_error(xid, code.into(), head.bytes());
        }
    }

    fn put_error(&mut self, xid: u32, code: ErrorCode, data: &[u8]) {
        Message::Error(ErrorMessage { code, data: data.to_vec() }).encode_one(xid, &mut self.output);
    }

    /// The next thing to do; none until more input comes or output goes.
    pub fn next_event(&mut self) -> Option<SessionEvent> {
        while self.state != State::Closed && !self.is_output_full() {
            let header = Header::read(&self.input[self.taken..])?;
            let length = usize::from(header.length);
            if length < HEADER_BYTES {
                self.close_for_framing(header, error::BAD_LEN, format!("a message of {length} bytes"));
                break;
            }
            if self.state == State::AwaitingHello && header.kind != kind::HELLO {
                // An ERROR is never answered by another.
                if header.kind != kind::ERROR {
                    self.refuse_hello(header, "OpenFlow begins with HELLO");
                }
                self.close(CloseReason::NoHello(header.kind));
                break;
            }
            // A foreign version's lengths mean nothing; a HELLO's do.
            if header.version != VERSION && header.kind != kind::HELLO && self.state == State::Open {
                let head = Head::of(&self.input[self.taken..]);
                self.close_for_version(header, head);
                break;
            }
            let at = self.taken;
            if self.input.len() - at < length {
                return None;
            }
            self.taken += length;
            let decoded = crate::decode(&self.input[at..at + length]);
            let head = Head::of(&self.input[at..at + length]);
            let event = match self.state {
                State::AwaitingHello => self.hello(header, decoded),
                _ => self.message(header, decoded, head),
            };
            if event.is_some() {
                return event;
            }
        }
        self.closing.take().map(|reason| SessionEvent::Closed { reason })
    }

    /// The peer's first message.
    fn hello(&mut self, header: Header, decoded: Result<Message, DecodeError>) -> Option<SessionEvent> {
        let peer = match decoded {
            Ok(Message::Hello(hello)) => hello,
            // Elements that cannot be understood are as good as none.
            _ => Hello { version: header.version, bitmap: None },
        };
        if peer.accepts_ours() {
            self.state = State::Open;
            return Some(SessionEvent::Opened);
        }
        self.refuse_hello(
            header,
            "this switch speaks OpenFlow 1.3 (version 0x04) only; ovs-ofctl: use -O OpenFlow13",
        );
        self.close(CloseReason::Version { peer: event::versions(&peer) });
        None
    }

    /// Says no in a version that the peer understands: this ERROR is the same in all.
    fn refuse_hello(&mut self, header: Header, text: &str) {
        let at = self.output.len();
        self.put_error(header.xid, error::HELLO_INCOMPATIBLE, text.as_bytes());
        self.output[at] = header.version.clamp(1, VERSION);
    }

    fn message(
        &mut self,
        header: Header,
        decoded: Result<Message, DecodeError>,
        head: Head,
    ) -> Option<SessionEvent> {
        let xid = header.xid;
        let error = match decoded {
            Ok(Message::EchoRequest(data)) => {
                Message::EchoReply(data).encode_one(xid, &mut self.output);
                return None;
            }
            // That something came is what counts.
            Ok(Message::EchoReply(_)) => return None,
            // It may come again, and of a later version, but not of one that cannot come up to 1.3.
            Ok(Message::Hello(hello)) if hello.version >= VERSION => return None,
            Ok(Message::Hello(_)) => {
                self.close_for_version(header, head);
                return None;
            }
            Ok(message) if message.is_from_switch() => DecodeError {
                code: error::BAD_TYPE,
                problem: format!("a message of type {} goes to controllers, not to switches", head.kind())
                    .into(),
            },
            Ok(message) => return Some(SessionEvent::Request(Box::new(Request { xid, message, head }))),
            // An ERROR is never answered by another.
            Err(error) if head.kind() == kind::ERROR => return Some(SessionEvent::Refused { xid, error }),
            Err(error) if head.is_barred_for_slaves() => {
                return Some(SessionEvent::Undecodable(Box::new(Undecodable { xid, error, head })));
            }
            Err(error) => error,
        };
        self.put_error(xid, error.code, head.bytes());
        Some(SessionEvent::Refused { xid, error })
    }

    fn close_for_framing(&mut self, header: Header, code: ErrorCode, problem: String) {
        let head = Head::of(&self.input[self.taken..]);
        self.close_for(header, head, DecodeError { code, problem: problem.into() });
    }

    /// A message of another version than 1.3, or a HELLO of an earlier one.
    fn close_for_version(&mut self, header: Header, head: Head) {
        let problem = format!("a message of version {:#04x} after 1.3 was agreed on", header.version);
        self.close_for(header, head, DecodeError { code: error::BAD_VERSION, problem: problem.into() });
    }

    fn close_for(&mut self, header: Header, head: Head, error: DecodeError) {
        // An ERROR is never answered by another.
        if header.kind != kind::ERROR {
            self.put_error(header.xid, error.code, head.bytes());
        }
        self.close(CloseReason::Framing(error));
    }

    fn close(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.input = Vec::new();
        self.taken = 0;
        self.closing = Some(reason);
    }

    /// Lets time pass: asks a silent peer for an echo, gives up one that stays silent. Take events afterwards.
    pub fn tick(&mut self, now: Nanos) {
        if self.state == State::Closed {
            return;
        }
        match self.keepalive.step(&self.config, self.state == State::Open, now) {
            Step::Nothing => {}
            Step::Ask => Message::EchoRequest(Vec::new()).encode_one(0, &mut self.output),
            Step::GiveUp if self.state == State::Open => self.close(CloseReason::EchoTimeout),
            Step::GiveUp => self.close(CloseReason::HelloTimeout),
        }
    }

    /// When [`Session::tick`] next has something to do; none once closed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let open = self.state == State::Open;
        (self.state != State::Closed).then(|| self.keepalive.deadline(&self.config, open))
    }
}
