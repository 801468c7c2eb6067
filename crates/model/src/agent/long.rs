// SPDX-License-Identifier: Apache-2.0
//! Long changes, which may be applied on another thread while echo requests are answered (docs/adr/0010).

use super::bundle::Origin;
use super::context::ChannelId;
use crate::changes::Change;
use crate::{Changed, Model, ModelError};
use dataplane::DataPlane;
use flow::Nanos;
use openflow::RequestHead;
use openflow::bundle::BundleControl;

/// Changes to apply. Meanwhile, nothing else may use the model.
#[derive(Debug)]
pub struct Work {
    pub(super) channel: ChannelId,
    pub(super) now: Nanos,
    pub(super) changes: Vec<Change>,
}

/// Result of [`Work`].
#[derive(Debug)]
pub struct Done {
    pub(super) channel: ChannelId,
    pub(super) result: Result<Changed, (usize, ModelError)>,
}

impl Work {
    /// Applies the changes. The duration is not bounded, so do not call this function on the thread that
    /// answers echo requests.
    pub fn run<D: DataPlane>(self, model: &mut Model<D>) -> Done {
        Done { channel: self.channel, result: model.bundle(self.now, self.changes) }
    }
}

/// What remains of a request after its changes are applied.
#[derive(Debug)]
pub(super) enum Then {
    /// Send a buffered packet through the tables.
    Packet(Option<u32>),
    /// Answer the commit of a bundle. An ERROR about a message needs its origin.
    Commit(BundleControl, Vec<Origin>),
    /// Report the tables in a reply to the request with this transaction ID.
    ReportTables(u32),
}

/// A request whose changes are being applied by the driver.
#[derive(Debug)]
pub(super) struct OffloadedRequest {
    pub(super) xid: u32,
    pub(super) head: RequestHead,
    pub(super) then: Then,
}
