// SPDX-License-Identifier: Apache-2.0
//! Detection of peers that no longer send anything.

use super::SessionConfig;
use flow::Nanos;

/// Action that a session takes as time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepaliveStep {
    /// Nothing.
    Nothing,
    /// Send an echo request.
    Ask,
    /// The peer no longer answers.
    GiveUp,
}

/// Times from which the session determines whether the peer is alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    begun_ns: Nanos,
    heard_ns: Nanos,
    /// Time at which an echo request was sent, if no message was received since.
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

    /// Records that the peer accepted output while the session did not read, which shows that the peer is
    /// alive.
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

    pub fn step(&mut self, config: &SessionConfig, open: bool, now: Nanos) -> KeepaliveStep {
        if std::mem::take(&mut self.unblocked) {
            self.heard(now);
        }
        if now < self.deadline(config, open) {
            return KeepaliveStep::Nothing;
        }
        if open && self.asked_ns.is_none() {
            self.asked_ns = Some(now);
            return KeepaliveStep::Ask;
        }
        KeepaliveStep::GiveUp
    }
}
