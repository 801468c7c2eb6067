// SPDX-License-Identifier: Apache-2.0
//! One controller connection of a switch, as a state machine without I/O.
//!
//! The owner passes received bytes to [`PofSession::receive`], takes events until there are none, and sends
//! replies. It writes the bytes of [`PofSession::output`] and reports the number of bytes written to
//! [`PofSession::consume`]. [`PofSession::tick`] advances the time.
//!
//! The handshake is that of the public switches: HELLO of both sides, FEATURES_REQUEST, SET_CONFIG,
//! GET_CONFIG_REQUEST. The owner answers the last with [`PofSession::send_description`]. Any other message
//! ends the session, except echoes. Memory is bounded as in the sessions of OpenFlow.

mod event;
mod foreign;
#[cfg(test)]
mod tests;

use flow::Nanos;
use openflow::{HEADER_BYTES, Header, KeepaliveStep, MessageStream, SessionConfig, VERSION};

use crate::dialect::PofDialect;
use crate::error::{self, PofDecodeError, PofEncodeError, PofErrorCode};
use crate::message::port::{PofPort, PofPortReason, PofPortStatus};
use crate::message::setup::{PofErrorMessage, PofSwitchConfig};
use crate::message::table::ResourceReport;
use crate::message::{PofMessage, decode, encode, name_of};

pub use event::{PofCloseReason, PofEvent, PofRequest, PofStep};

/// Type of HELLO.
const HELLO: u8 = 0;
/// Type of ERROR.
const ERROR: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The handshake waits for this message.
    Awaiting(PofStep),
    Running,
    Closed,
}

/// Numbers that the controller knows the switch by. ERROR messages carry them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PofIdentity {
    /// Number of the switch.
    pub device_id: u32,
    /// Slot of the switch. Dialect 1.2 has no slots, so the number must be 0.
    pub slot: u16,
}

/// Returns the timers of the public switches: an echo request after 2 s of silence.
#[must_use]
pub fn default_timers() -> SessionConfig {
    let echo_interval_ns = 2 * Nanos::SECOND;
    SessionConfig { echo_interval_ns, ..SessionConfig::default() }
}

/// A session of one connection.
#[derive(Debug)]
pub struct PofSession {
    dialect: PofDialect,
    identity: PofIdentity,
    state: State,
    stream: MessageStream,
    /// Reason for the end, until the owner has received it.
    closing: Option<PofCloseReason>,
}

impl PofSession {
    /// Starts a session. The switch's HELLO is the first output.
    #[must_use]
    pub fn new(dialect: PofDialect, identity: PofIdentity, config: SessionConfig, now: Nanos) -> Self {
        let stream = MessageStream::new(config, now);
        let state = State::Awaiting(PofStep::Hello);
        let mut session = Self { dialect, identity, state, stream, closing: None };
        session.put(0, &PofMessage::Hello);
        session
    }

    /// Accepts received bytes in pieces of any size, and returns the number of bytes accepted. If bytes are
    /// left over, the owner processes the events and then passes these bytes again.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        if self.state == State::Closed {
            return bytes.len();
        }
        self.stream.receive(bytes, now)
    }

    /// Returns whether the owner should read: input has space, output is below its limit, and the session is
    /// not closed.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.state != State::Closed && self.stream.wants_read()
    }

    /// Returns whether output exceeds its limit. No message is processed until the owner has written some of
    /// the output.
    #[must_use]
    pub fn is_output_full(&self) -> bool {
        self.stream.is_output_full()
    }

    /// Returns whether the handshake is complete and the session is not closed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Returns whether the session is closed. The owner may still have to take the last event.
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

    /// Reports that the peer accepts a long answer and is therefore alive. Its echo replies may be queued
    /// behind requests that wait for the end of the answer.
    pub fn answer_goes_on(&mut self, now: Nanos) {
        self.stream.heard(now);
    }

    /// Sends a reply or an asynchronous message. Nothing is sent before [`PofEvent::Opened`] or after the
    /// end. PACKET_IN and PORT_STATUS are not sent before the handshake is complete.
    ///
    /// # Errors
    /// Returns an error if the dialect cannot express the message.
    pub fn send(&mut self, xid: u32, message: &PofMessage) -> Result<(), PofEncodeError> {
        let asynchronous = matches!(message, PofMessage::PacketIn(_) | PofMessage::PortStatus(_));
        match self.state {
            State::Closed | State::Awaiting(PofStep::Hello) => Ok(()),
            State::Awaiting(_) if asynchronous => Ok(()),
            _ => encode(message, xid, self.dialect, self.stream.output_mut()),
        }
    }

    /// Answers GET_CONFIG_REQUEST: sends the configuration, the resources, and each port in a PORT_STATUS.
    /// All have the transaction number of the request.
    ///
    /// # Errors
    /// Returns an error if the dialect cannot express a message. The messages before it are sent.
    pub fn send_description(
        &mut self,
        xid: u32,
        config: PofSwitchConfig,
        report: ResourceReport,
        ports: impl IntoIterator<Item = PofPort>,
    ) -> Result<(), PofEncodeError> {
        self.send(xid, &PofMessage::GetConfigReply(config))?;
        self.send(xid, &PofMessage::ResourceReport(report))?;
        ports.into_iter().try_for_each(|port| {
            self.send(xid, &PofMessage::PortStatus(PofPortStatus { reason: PofPortReason::Add, port }))
        })
    }

    /// Sends an ERROR that refuses a request. The text may have 255 bytes; more is cut.
    pub fn send_error(&mut self, xid: u32, code: PofErrorCode, text: &str) {
        if !matches!(self.state, State::Closed | State::Awaiting(PofStep::Hello)) {
            self.put_error(xid, code, text);
        }
    }

    fn put_error(&mut self, xid: u32, code: PofErrorCode, text: &str) {
        let PofIdentity { device_id, slot } = self.identity;
        let slot = if self.dialect == PofDialect::V1_2 { 0 } else { slot };
        let PofErrorCode { kind, code } = code;
        self.put(xid, &PofMessage::Error(PofErrorMessage { kind, code, device_id, slot, text: text.into() }));
    }

    /// Writes a message that every dialect can express.
    fn put(&mut self, xid: u32, message: &PofMessage) {
        let written = encode(message, xid, self.dialect, self.stream.output_mut());
        debug_assert_eq!(written, Ok(()));
    }

    /// Returns the next event, or `None` until more input arrives or output is written.
    pub fn next_event(&mut self) -> Option<PofEvent> {
        while self.state != State::Closed && !self.is_output_full() {
            let header = self.stream.header()?;
            if self.refuse_header(header) {
                break;
            }
            let bytes = self.stream.take(usize::from(header.length))?;
            let decoded = decode(bytes, self.dialect).map_err(|error| with_hint(header, error));
            let event = match self.state {
                State::Awaiting(step) => self.handshake(step, header, decoded),
                _ => self.message(header, decoded),
            };
            if event.is_some() {
                return event;
            }
        }
        self.closing.take().map(|reason| PofEvent::Closed { reason })
    }

    /// Closes the session if the header shows that the message cannot be read. Returns whether it did.
    fn refuse_header(&mut self, header: Header) -> bool {
        let refuse = |code: PofErrorCode, offset, reason: String| PofDecodeError {
            code,
            message: name_of(header.kind).unwrap_or("message").into(),
            offset,
            reason: reason.into(),
        };
        let length = usize::from(header.length);
        let reason = if self.state == State::Awaiting(PofStep::Hello) {
            match foreign::openflow_message(header) {
                Some(name) if header.kind == HELLO && header.version == VERSION => {
                    PofCloseReason::OpenFlow(name.into())
                }
                _ if header.kind != HELLO => {
                    PofCloseReason::OutOfOrder { expected: PofStep::Hello, got: name(header) }
                }
                _ if header.version != VERSION => PofCloseReason::Version(header.version),
                _ if length < HEADER_BYTES => {
                    PofCloseReason::Framing(refuse(error::BAD_LEN, 2, format!("a message of {length} bytes")))
                }
                _ => return false,
            }
        } else if header.version != VERSION {
            let reason = format!("version {:#04x}, although the HELLO had version 0x04", header.version);
            PofCloseReason::Framing(refuse(error::BAD_VERSION, 0, reason))
        } else if length < HEADER_BYTES {
            PofCloseReason::Framing(refuse(error::BAD_LEN, 2, format!("a message of {length} bytes")))
        } else {
            return false;
        };
        self.close_with_error(header, reason);
        true
    }

    /// Processes a message of the handshake.
    fn handshake(
        &mut self,
        step: PofStep,
        header: Header,
        decoded: Result<PofMessage, PofDecodeError>,
    ) -> Option<PofEvent> {
        let xid = header.xid;
        let next = match (step, decoded) {
            (PofStep::Hello, Ok(PofMessage::Hello)) => {
                self.state = State::Awaiting(PofStep::FeaturesRequest);
                return Some(PofEvent::Opened);
            }
            (_, Ok(message @ (PofMessage::EchoRequest | PofMessage::EchoReply))) => {
                self.echo(xid, &message);
                return None;
            }
            (PofStep::FeaturesRequest, Ok(message @ PofMessage::FeaturesRequest)) => {
                (State::Awaiting(PofStep::SetConfig), message)
            }
            (PofStep::SetConfig, Ok(message @ PofMessage::SetConfig(_))) => {
                (State::Awaiting(PofStep::GetConfigRequest), message)
            }
            (PofStep::GetConfigRequest, Ok(message @ PofMessage::GetConfigRequest)) => {
                (State::Running, message)
            }
            (_, Ok(PofMessage::Error(refusal))) => {
                let text = format!("{} ({})", refusal.text.text().escape_debug(), refusal.error_code());
                self.close(PofCloseReason::Refused(text));
                return None;
            }
            (expected, other) => {
                let reason = match (foreign::openflow_message(header), other) {
                    (Some(name), _) => PofCloseReason::OpenFlow(name.into()),
                    (None, Err(error)) if expected.message() == error.message => {
                        PofCloseReason::Handshake(error)
                    }
                    (None, _) => PofCloseReason::OutOfOrder { expected, got: name(header) },
                };
                self.close_with_error(header, reason);
                return None;
            }
        };
        let (state, message) = next;
        self.state = state;
        Some(PofEvent::Request(Box::new(PofRequest { xid, message })))
    }

    fn echo(&mut self, xid: u32, message: &PofMessage) {
        // Every message shows that the peer is alive, so an echo reply needs no further processing.
        if *message == PofMessage::EchoRequest {
            self.put(xid, &PofMessage::EchoReply);
        }
    }

    /// Processes a message after the handshake.
    fn message(&mut self, header: Header, decoded: Result<PofMessage, PofDecodeError>) -> Option<PofEvent> {
        let xid = header.xid;
        let refuse = |reason: &'static str| PofDecodeError {
            code: error::BAD_TYPE,
            message: name(header).into(),
            offset: 1,
            reason: reason.into(),
        };
        let error = match decoded {
            Ok(message @ (PofMessage::EchoRequest | PofMessage::EchoReply)) => {
                self.echo(xid, &message);
                return None;
            }
            Ok(PofMessage::Hello) => refuse("only the first message of a connection is a HELLO"),
            Ok(message) if message.is_from_switch() => refuse("a controller must not send this message"),
            Ok(message) => return Some(PofEvent::Request(Box::new(PofRequest { xid, message }))),
            Err(error) => error,
        };
        // An ERROR is never answered by an ERROR.
        if header.kind != ERROR {
            self.put_error(xid, error.code, &error.to_string());
        }
        Some(PofEvent::Refused { xid, error })
    }

    /// Closes the session and sends an ERROR with the reason, unless the message is an ERROR itself.
    fn close_with_error(&mut self, header: Header, reason: PofCloseReason) {
        let code = match &reason {
            PofCloseReason::Version(_) => error::HELLO_INCOMPATIBLE,
            PofCloseReason::OpenFlow(_) if header.kind == HELLO => error::HELLO_INCOMPATIBLE,
            PofCloseReason::Handshake(error) | PofCloseReason::Framing(error) => error.code,
            _ => error::BAD_TYPE,
        };
        if header.kind != ERROR {
            self.put_error(header.xid, code, &reason.to_string());
        }
        self.close(reason);
    }

    /// Closes the session. The last event is [`PofEvent::Closed`] with this reason.
    pub fn close(&mut self, reason: PofCloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.stream.drop_input();
        self.closing = Some(reason);
    }

    /// Advances the time: sends an echo request to a silent peer, and closes the session if the peer stays
    /// silent. The owner takes events afterwards.
    pub fn tick(&mut self, now: Nanos) {
        if self.state == State::Closed {
            return;
        }
        let open = self.state != State::Awaiting(PofStep::Hello);
        match self.stream.step(open, now) {
            KeepaliveStep::Nothing => {}
            KeepaliveStep::Ask => self.put(0, &PofMessage::EchoRequest),
            KeepaliveStep::GiveUp if open => self.close(PofCloseReason::EchoTimeout),
            KeepaliveStep::GiveUp => self.close(PofCloseReason::HelloTimeout),
        }
    }

    /// Returns the time at which [`PofSession::tick`] must be called next, or `None` once the session is
    /// closed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let open = self.state != State::Awaiting(PofStep::Hello);
        (self.state != State::Closed).then(|| self.stream.deadline(open))
    }
}

/// Returns the name of a message, or its type.
fn name(header: Header) -> String {
    name_of(header.kind).map_or_else(|| format!("a message of type {}", header.kind), str::to_owned)
}

/// Adds to an error that the message may be one of OpenFlow.
fn with_hint(header: Header, error: PofDecodeError) -> PofDecodeError {
    let Some(name) = foreign::openflow_message(header) else { return error };
    let reason = format!(
        "{}; as {name} of OpenFlow it would be valid: if the controller speaks OpenFlow, move its address in \
         the configuration from [datapath.pof] to [datapath.openflow]",
        error.reason
    );
    PofDecodeError { reason: reason.into(), ..error }
}
