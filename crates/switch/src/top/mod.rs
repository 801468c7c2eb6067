// SPDX-License-Identifier: Apache-2.0
//! What a switch does right now: two readings of its counters, and what happened between them.

mod sections;

pub use sections::{Board, Section};

use crate::control::{Client, ClientError, Counters, Ffp, Latencies, Ports, Request, Tables};
use std::time::{Duration, Instant};

/// All that a switch counts, at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When it was asked.
    pub at: Instant,
    /// Its ports.
    pub ports: Ports,
    /// Its tables.
    pub tables: Tables,
    /// Its fast-forwarding path.
    pub ffp: Ffp,
    /// What became of packets.
    pub counters: Counters,
    /// How long frames were in it.
    pub latencies: Latencies,
}

impl Reading {
    /// Asks a switch.
    ///
    /// # Errors
    /// The switch is gone, or of another version.
    pub fn take(client: &mut Client) -> Result<Self, ClientError> {
        Ok(Self {
            at: Instant::now(),
            ports: client.ask(&Request::Ports)?,
            tables: client.ask(&Request::Tables)?,
            ffp: client.ask(&Request::Ffp)?,
            counters: client.ask(&Request::Counters)?,
            latencies: client.ask(&Request::Latencies)?,
        })
    }

    /// What happened since an earlier reading, as a board of figures.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Board {
        let span = self.at.saturating_duration_since(earlier.at).max(Duration::from_millis(1));
        Board::between(earlier, self, span)
    }
}
