// SPDX-License-Identifier: Apache-2.0
//! Requests to workers: changes of the rules and of the ports that a worker serves, applied between two
//! bursts (docs/adr/0059).
//!
//! The control thread opens the devices and prepares every part with its full capacity. The worker exchanges
//! parts only. What it gives back, such as the queues of removed ports, returns in the same box, so that the
//! devices are closed by the control thread.

use crate::mirror::{MirrorChange, Taps};
use crate::outbox::Outbox;
use crate::published::Published;
use crate::routes::Routes;
use actions::PacketInLimits;
use flow::PortNo;
use pipeline::Updates;
use port::Queue;
use std::sync::Arc;

/// A queue that a worker serves.
pub(crate) struct Served {
    pub number: PortNo,
    /// Mirrors of the queue.
    pub taps: Taps,
    pub queue: Box<dyn Queue>,
    pub published: Published,
}

/// A request of the control thread to a worker.
pub(crate) struct Request {
    /// Changes of the rules.
    pub updates: Updates,
    /// Change of the ports, made after the changes of the rules. It is always between two versions of the
    /// rules, so it has no version of its own.
    pub ports: Option<PortChange>,
}

/// A queue of a port with its outbox.
pub(crate) struct ServedOutbox {
    pub served: Served,
    pub outbox: Outbox,
}

/// A change of a worker's ports. After the worker has applied it, it holds the replaced parts.
pub(crate) struct PortChange {
    /// Ports whose queues the worker gives back.
    pub removed: Vec<PortNo>,
    /// Queues that the worker takes. They come after all others.
    pub added: Vec<ServedOutbox>,
    /// Outboxes with other egress queues, for ports that stay.
    pub outboxes: Vec<(PortNo, Outbox)>,
    /// Watermarks in bytes, for ports that stay.
    pub outstanding: Vec<(PortNo, usize)>,
    /// Routes of the worker after the change.
    pub routes: Routes,
    /// Limits of packet-ins, if they change.
    pub limits: Option<Arc<PacketInLimits>>,
    /// Change of the mirrors, if there is one.
    pub mirrors: Option<MirrorChange>,
    /// Empty lists with space for all queues after the change.
    pub space: (Vec<Served>, Vec<Outbox>),
    /// Empty list with space for the queues that are given back.
    pub given_back: Vec<ServedOutbox>,
    /// Shows that the parts still exist.
    pub _alive: Arc<()>,
}
