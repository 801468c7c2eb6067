// SPDX-License-Identifier: Apache-2.0
//! Stream of messages on one connection: input is divided into messages by the length in their header, and
//! output waits until it is written. OpenFlow and POF have the same header, so both protocols use it.
//!
//! Memory is bounded: input holds one message, and a session processes no message while output exceeds its
//! limit.

mod keepalive;

use crate::header::{Header, MESSAGE_BYTES_MAX};
use flow::Nanos;
use keepalive::Keepalive;

pub use keepalive::KeepaliveStep;

/// Timeouts and limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Time within which the peer must send its HELLO.
    pub hello_timeout_ns: Nanos,
    /// If no message was received for this time, an echo request is sent.
    pub echo_interval_ns: Nanos,
    /// If no message was received for this time after an echo request, the connection is closed.
    pub echo_timeout_ns: Nanos,
    /// Limit of the pending output in bytes. Above this limit, no input is read or processed.
    pub output_limit: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        const SECOND_NS: Nanos = Nanos(1_000_000_000);
        Self {
            hello_timeout_ns: 10 * SECOND_NS,
            echo_interval_ns: 15 * SECOND_NS,
            echo_timeout_ns: 15 * SECOND_NS,
            output_limit: 256 * 1024,
        }
    }
}

/// Buffers and timers of one connection.
#[derive(Debug)]
pub struct MessageStream {
    config: SessionConfig,
    /// Received bytes. The first `taken` of them have been processed.
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    keepalive: Keepalive,
}

impl MessageStream {
    /// Creates the stream of a connection that begins now.
    #[must_use]
    pub fn new(config: SessionConfig, now: Nanos) -> Self {
        let keepalive = Keepalive::new(now);
        Self { config, input: Vec::new(), taken: 0, output: Vec::new(), sent: 0, keepalive }
    }

    /// Accepts received bytes in pieces of any size, and returns the number of bytes accepted.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        self.input.drain(..self.taken);
        self.taken = 0;
        let taken = bytes.len().min(MESSAGE_BYTES_MAX - self.input.len());
        // If input is full, the same bytes are offered again, which does not show that the peer is alive.
        if taken > 0 {
            self.keepalive.heard(now);
        }
        self.input.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Returns whether input has space and output is below its limit.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.unread().len() < MESSAGE_BYTES_MAX && !self.is_output_full()
    }

    /// Returns the received bytes that are not processed yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Returns the header of the next message, which may be incomplete.
    #[must_use]
    pub fn header(&self) -> Option<Header> {
        Header::read(self.unread())
    }

    /// Takes the next `length` bytes, or returns `None` if fewer have been received.
    pub fn take(&mut self, length: usize) -> Option<&[u8]> {
        let message = self.input.get(self.taken..self.taken + length)?;
        self.taken += length;
        Some(message)
    }

    /// Drops the input, after the end of a session.
    pub fn drop_input(&mut self) {
        self.input = Vec::new();
        self.taken = 0;
    }

    /// Returns whether output exceeds its limit.
    #[must_use]
    pub fn is_output_full(&self) -> bool {
        self.output.len() - self.sent > self.config.output_limit
    }

    /// Returns the bytes to write to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Returns the output, to append messages to it.
    pub fn output_mut(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Reports that the first `count` bytes of the output were written.
    pub fn consume(&mut self, count: usize) {
        if count > 0 && self.is_output_full() {
            self.keepalive.unblocked();
        }
        self.sent = self.output.len().min(self.sent + count);
        // The unsent rest is moved to the front only if it is not longer than the sent part. On average, each
        // byte is thus moved at most once.
        if self.sent * 2 >= self.output.len() {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reports that the peer is alive.
    pub fn heard(&mut self, now: Nanos) {
        self.keepalive.heard(now);
    }

    /// Returns what to do at this time. `open` states whether the HELLO of the peer was received.
    pub fn step(&mut self, open: bool, now: Nanos) -> KeepaliveStep {
        self.keepalive.step(&self.config, open, now)
    }

    /// Returns the time of the next step that does something.
    #[must_use]
    pub fn deadline(&self, open: bool) -> Nanos {
        self.keepalive.deadline(&self.config, open)
    }
}
