// SPDX-License-Identifier: Apache-2.0
//! When a peer has been silent for too long.

use super::SessionConfig;
use flow::Nanos;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Send an echo request.
    Ask,
    /// The peer is gone.
    GiveUp,
}

/// What was heard of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    begun_ns: Nanos,
    heard_ns: Nanos,
    /// When an echo request went out that nothing followed.
    asked_ns: Option<Nanos>,
    /// The peer took output off since the last step, while the session did not listen.
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

    /// Output went that was over its limit. The session does not read meanwhile, so this is the only sign of life.
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
