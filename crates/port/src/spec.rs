// SPDX-License-Identifier: Apache-2.0
//! Specification of a port, and the queues that a driver opens for it.

use crate::Queue;
use crate::handover::Handover;

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
    /// Number of packets for which the receive ring of each queue has space, rounded up to a power of two.
    /// `None` is the usual number of the driver. Only the driver `af_packet` uses it.
    pub receive_ring: Option<usize>,
    /// Whether the port takes over packets, or can hand them over.
    pub handover: Handover,
}

/// The queues of a port.
pub type Queues = Vec<Box<dyn Queue>>;
