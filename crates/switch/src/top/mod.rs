// SPDX-License-Identifier: Apache-2.0
//! Current activity of a switch, from two readings of its counters. Begin with [`Reading::take`].

mod sections;

pub use sections::{Board, Section};

use crate::control::{Client, ClientError, Counters, Ffp, Latencies, Ports, Request, Tables};
use std::time::{Duration, Instant};

/// All counters of a switch at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Time of the request.
    pub at: Instant,
    /// Ports and their counters.
    pub ports: Ports,
    /// Tables and their counters.
    pub tables: Tables,
    /// State of the fast-forwarding path.
    pub ffp: Ffp,
    /// Counters of all packets.
    pub counters: Counters,
    /// Latency distributions of frames in the switch.
    pub latencies: Latencies,
}

impl Reading {
    /// Reads the counters of a switch.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks or the switch has another version.
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

    /// Returns the activity since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Board {
        let span = self.at.saturating_duration_since(earlier.at).max(Duration::from_millis(1));
        Board::between(earlier, self, span)
    }
}
