// SPDX-License-Identifier: Apache-2.0
//! Rates of a switch, calculated from two readings of its counters. Begin with [`Reading::take`].

mod sections;

pub use sections::{Board, TopSection};

use crate::control::{
    Client, ClientError, ControlRequest, CountersReport, Ffp, LatencyBuckets, Ports, Tables,
};
use std::time::{Duration, Instant};

/// Returns an empty report if the datapath has no workers.
fn of_workers<T: Default>(report: Result<T, ClientError>) -> Result<T, ClientError> {
    match report {
        Err(ClientError::Refused(_)) => Ok(T::default()),
        report => report,
    }
}

/// All counters of a switch at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Time at which the reading was requested.
    pub at: Instant,
    /// Ports and their counters.
    pub ports: Ports,
    /// Tables and their counters.
    pub tables: Tables,
    /// State of the fast-forwarding path.
    pub ffp: Ffp,
    /// Counters of all packets.
    pub counters: CountersReport,
    /// Latency distributions of frames in the switch.
    pub latencies: LatencyBuckets,
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
            ports: client.ask(&ControlRequest::Ports)?,
            tables: client.ask(&ControlRequest::Tables)?,
            ffp: of_workers(client.ask(&ControlRequest::Ffp))?,
            counters: client.ask(&ControlRequest::Counters)?,
            latencies: of_workers(client.ask(&ControlRequest::Latencies))?,
        })
    }

    /// Returns the rates since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Board {
        let span = self.at.saturating_duration_since(earlier.at).max(Duration::from_millis(1));
        Board::between(earlier, self, span)
    }
}
