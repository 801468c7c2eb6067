// SPDX-License-Identifier: Apache-2.0
//! Specification of a port, and the queues that a driver opens for it.

use crate::Queue;
use crate::fanout_group::FanoutGroup;

/// Specification of a port to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Port number, from 1; becomes `meta.in_port` of received frames.
    pub number: u32,
    /// Name of the port, for messages.
    pub name: String,
    /// Name of a driver in [`DRIVERS`](crate::DRIVERS).
    pub driver: String,
    /// The device, in the driver's notation.
    pub device: String,
    /// Number of queues to open: one for each worker that serves the port.
    pub queues: usize,
    /// Outstanding bytes per device queue at which normal frames begin to wait in the switch; `usize::MAX`
    /// means no limit.
    pub outstanding_bytes: usize,
    /// The fan-out group of an older process's port on the same interface, from which this port is to take
    /// over later ([`Fanout::take_over`](crate::Fanout::take_over)). The port receives nothing before. Only
    /// for the driver `af_packet`.
    pub fanout: Option<FanoutGroup>,
}

/// The queues of a port.
pub type Queues = Vec<Box<dyn Queue>>;
