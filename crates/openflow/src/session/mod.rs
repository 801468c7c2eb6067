// SPDX-License-Identifier: Apache-2.0
//! One controller connection of a switch, as a state machine without I/O.
//!
//! The caller, called the driver below, passes received bytes to [`Session::receive`], takes events until
//! there are none, and sends replies. It writes the bytes of [`Session::output`] and reports the number of
//! bytes written to [`Session::consume`]. [`Session::tick`] advances the time.
//!
//! Memory is bounded: input holds one message, and no message is processed while output exceeds its limit.
//! Before the driver sends a message without a request, such as a packet-in, it can check
//! [`Session::is_output_full`].

mod event;
mod foreign;

pub use foreign::MOVE_TO_POF;
#[cfg(test)]
mod tests;

use crate::error::{self, DecodeError, ErrorCode, TooLong};
use crate::header::{HEADER_BYTES, Header, VERSION, kind};
use crate::hello::Hello;
use crate::message::{Message, encode};
use crate::stream::{KeepaliveStep, MessageStream, SessionConfig};
use crate::symmetric::ErrorMessage;
use flow::Nanos;

pub use event::{CloseReason, Request, RequestHead, SessionEvent, Undecodable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitingHello,
    Open,
    Closed,
}

/// A session of one connection.
#[derive(Debug)]
pub struct Session {
    state: State,
    stream: MessageStream,
    /// Reason for the end, until the caller has received it.
    closing: Option<CloseReason>,
}

impl Session {
    /// Starts a session. The switch's HELLO is the first output.
    #[must_use]
    pub fn new(config: SessionConfig, now: Nanos) -> Self {
        let stream = MessageStream::new(config, now);
        let mut session = Self { state: State::AwaitingHello, stream, closing: None };
        Message::Hello(Hello::supported()).encode_one(0, session.stream.output_mut());
        session
    }

    /// Accepts received bytes in pieces of any size, and returns the number of bytes accepted. If bytes are
    /// left over, the caller processes the events and then passes these bytes again.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        if self.state == State::Closed {
            return bytes.len();
        }
        self.stream.receive(bytes, now)
    }

    /// Returns whether the caller should read: input has space, output is below its limit, and the session is
    /// not closed.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.state != State::Closed && self.stream.wants_read()
    }

    /// Returns whether output exceeds its limit. No message is processed until the caller has written some of
    /// the output.
    #[must_use]
    pub fn is_output_full(&self) -> bool {
        self.stream.is_output_full()
    }

    /// Returns whether the version is negotiated and the session is not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns whether the session is closed. The caller may still have to take the last event.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Returns the bytes to write to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.stream.output()
    }

    /// Reports that the first `count` bytes of the output were written.
    pub fn consume(&mut self, count: usize) {
        self.stream.consume(count);
    }

    /// Reports that the peer accepts a long reply and is therefore alive. Its echo replies may be queued
    /// behind requests that wait for the end of the long reply.
    pub fn answer_goes_on(&mut self, now: Nanos) {
        self.stream.heard(now);
    }

    /// Sends a reply or an asynchronous message. Nothing is sent before [`SessionEvent::Opened`] or after the
    /// end.
    ///
    /// # Errors
    /// Returns an error if the message exceeds 65535 bytes.
    pub fn send(&mut self, xid: u32, message: &Message) -> Result<(), TooLong> {
        if self.state != State::Open {
            return Ok(());
        }
        encode(message, xid, self.stream.output_mut())
    }

    /// Returns the output of an open session, for [`crate::multipart::parts::Parts`] to write to.
    pub fn output_mut(&mut self) -> Option<&mut Vec<u8>> {
        (self.state == State::Open).then_some(self.stream.output_mut())
    }

    /// Sends an ERROR that refuses a request.
    pub fn send_error(&mut self, xid: u32, code: impl Into<ErrorCode>, head: &RequestHead) {
        if self.state == State::Open {
            self.put_error(xid, code.into(), head.bytes());
        }
    }

    fn put_error(&mut self, xid: u32, code: ErrorCode, data: &[u8]) {
        Message::Error(ErrorMessage { code, data: data.to_vec() }).encode_one(xid, self.stream.output_mut());
    }

    /// Returns the next event, or `None` until more input arrives or output is written.
    pub fn next_event(&mut self) -> Option<SessionEvent> {
        while self.state != State::Closed && !self.is_output_full() {
            let header = self.stream.header()?;
            let length = usize::from(header.length);
            if length < HEADER_BYTES {
                self.close_for_framing(header, error::BAD_LEN, format!("a message of {length} bytes"));
                break;
            }
            if self.state == State::AwaitingHello && header.kind != kind::HELLO {
                // An ERROR is never answered by an ERROR.
                if header.kind != kind::ERROR {
                    self.refuse_hello(header, "OpenFlow begins with HELLO");
                }
                self.close(CloseReason::NoHello(header.kind));
                break;
            }
            // The length of a message of another version is unknown, unless the message is a HELLO.
            if header.version != VERSION && header.kind != kind::HELLO && self.state == State::Open {
                let head = RequestHead::of(self.stream.unread());
                self.close_for_version(header, head);
                break;
            }
            let message = self.stream.take(length)?;
            let decoded = crate::decode(message).map_err(|error| foreign::with_hint(header, error));
            let head = RequestHead::of(message);
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

    /// Processes the peer's first message.
    fn hello(&mut self, header: Header, decoded: Result<Message, DecodeError>) -> Option<SessionEvent> {
        let peer = match decoded {
            Ok(Message::Hello(hello)) => hello,
            // Elements that cannot be decoded are treated as absent.
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

    /// Refuses the HELLO with an ERROR in the peer's version.
    fn refuse_hello(&mut self, header: Header, text: &str) {
        let at = self.stream.output_mut().len();
        self.put_error(header.xid, error::HELLO_INCOMPATIBLE, text.as_bytes());
        self.stream.output_mut()[at] = header.version.clamp(1, VERSION);
    }

    fn message(
        &mut self,
        header: Header,
        decoded: Result<Message, DecodeError>,
        head: RequestHead,
    ) -> Option<SessionEvent> {
        let xid = header.xid;
        let error = match decoded {
            Ok(Message::EchoRequest(data)) => {
                Message::EchoReply(data).encode_one(xid, self.stream.output_mut());
                return None;
            }
            // Every message shows that the peer is alive, so an echo reply needs no further processing.
            Ok(Message::EchoReply(_)) => return None,
            // A repeated HELLO may have any version from 1.3 on.
            Ok(Message::Hello(hello)) if hello.version >= VERSION => return None,
            Ok(Message::Hello(_)) => {
                self.close_for_version(header, head);
                return None;
            }
            Ok(message) if message.is_from_switch() => DecodeError {
                code: error::BAD_TYPE,
                problem: format!("a message of type {} must not be sent to a switch", head.kind()).into(),
            },
            Ok(message) => return Some(SessionEvent::Request(Box::new(Request { xid, message, head }))),
            // An ERROR is never answered by an ERROR.
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
        let head = RequestHead::of(self.stream.unread());
        self.close_for(header, head, DecodeError { code, problem: problem.into() });
    }

    /// Closes the session because of a message with a version other than 1.3, or a HELLO with an earlier
    /// version.
    fn close_for_version(&mut self, header: Header, head: RequestHead) {
        let problem =
            format!("a message has version {:#04x}, although version 1.3 was negotiated", header.version);
        self.close_for(header, head, DecodeError { code: error::BAD_VERSION, problem: problem.into() });
    }

    fn close_for(&mut self, header: Header, head: RequestHead, error: DecodeError) {
        // An ERROR is never answered by an ERROR.
        if header.kind != kind::ERROR {
            self.put_error(header.xid, error.code, head.bytes());
        }
        self.close(CloseReason::Framing(error));
    }

    fn close(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.stream.drop_input();
        self.closing = Some(reason);
    }

    /// Advances the time: sends an echo request to a silent peer, and closes the session if the peer stays
    /// silent. The caller takes events afterwards.
    pub fn tick(&mut self, now: Nanos) {
        if self.state == State::Closed {
            return;
        }
        match self.stream.step(self.state == State::Open, now) {
            KeepaliveStep::Nothing => {}
            KeepaliveStep::Ask => {
                Message::EchoRequest(Vec::new()).encode_one(0, self.stream.output_mut());
            }
            KeepaliveStep::GiveUp if self.state == State::Open => self.close(CloseReason::EchoTimeout),
            KeepaliveStep::GiveUp => self.close(CloseReason::HelloTimeout),
        }
    }

    /// Returns the time at which [`Session::tick`] must be called next, or `None` once the session is closed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let open = self.state == State::Open;
        (self.state != State::Closed).then(|| self.stream.deadline(open))
    }
}
