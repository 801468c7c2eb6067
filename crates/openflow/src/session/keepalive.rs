// SPDX-License-Identifier: Apache-2.0
//! Detection of silent peers.

use super::SessionConfig;
use flow::Nanos;

/// Action that the session takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Send an echo request.
    Ask,
    /// The peer is gone.
    GiveUp,
}

/// Times of the peer's last signs of life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    begun_ns: Nanos,
    heard_ns: Nanos,
    /// Time of the echo request that the peer has not answered with any message yet.
    asked_ns: Option<Nanos>,
    /// Whether the peer accepted output since the last step, while the session did not read.
    unblocked: bool,
}

impl Keepalive {
    pub fn new(now: Nanos) -> Self {
        Self { begun_ns: now, heard_ns: now, asked_ns: None, unblocked: false }
    }

    pub fn heard(&mut self, now: Nanos) {
        self.heard_ns = now;
        self.asked_ns = None;
    }

    /// Records that output above the limit was accepted. The session does not read while output is above the
    /// limit, so this is the only sign of life.
    pub fn unblocked(&mut self) {
        self.unblocked = true;
    }

    pub fn deadline(&self, config: &SessionConfig, open: bool) -> Nanos {
        match (open, self.asked_ns) {
            (false, _) => self.begun_ns.saturating_add(config.hello_timeout_ns),
            (true, None) => self.heard_ns.saturating_add(config.echo_interval_ns),
            (true, Some(asked)) => asked.saturating_add(config.echo_timeout_ns),
        }
    }

    pub fn step(&mut self, config: &SessionConfig, open: bool, now: Nanos) -> Step {
        if std::mem::take(&mut self.unblocked) {
            self.heard(now);
        }
        if now < self.deadline(config, open) {
            return Step::Nothing;
        }
        if open && self.asked_ns.is_none() {
            self.asked_ns = Some(now);
            return Step::Ask;
        }
        Step::GiveUp
    }
}
