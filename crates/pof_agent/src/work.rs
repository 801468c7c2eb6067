// SPDX-License-Identifier: Apache-2.0
//! Long changes, which the driver applies on another thread while echo requests are answered.

use crate::counters::PofCounts;
use dataplane::DataPlane;
use flow::{GroupId, Nanos};
use model::{Change, Changed, Model, ModelError};

/// ID of a channel. IDs are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PofChannelId(pub(crate) u64);

/// Changes to apply. Meanwhile, nothing else may use the model.
#[derive(Debug)]
pub struct PofWork {
    pub(crate) channel: PofChannelId,
    pub(crate) xid: u32,
    pub(crate) now: Nanos,
    pub(crate) changes: Vec<Change>,
    pub(crate) then: Then,
}

/// Result of [`PofWork`].
#[derive(Debug)]
pub struct PofDone {
    pub(crate) channel: PofChannelId,
    pub(crate) xid: u32,
    pub(crate) result: Result<Changed, (usize, ModelError)>,
    pub(crate) then: Then,
}

impl PofWork {
    /// Applies the changes. The duration is not bounded, so do not call this function on the thread that
    /// answers echo requests.
    pub fn run<D: DataPlane>(self, model: &mut Model<D>) -> PofDone {
        let result = apply(self.now, self.changes, self.then, model);
        PofDone { channel: self.channel, xid: self.xid, result, then: self.then }
    }
}

/// Applies the changes of a request in one transaction.
pub(crate) fn apply<D: DataPlane>(
    now: Nanos,
    changes: Vec<Change>,
    then: Then,
    model: &mut Model<D>,
) -> Result<Changed, (usize, ModelError)> {
    let changed = model.bundle(now, changes)?;
    if matches!(then, Then::Reset) {
        // All counters end.
        model.forget_kept_counts();
    }
    Ok(changed)
}

/// What remains of a request after its changes are applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// Nothing.
    Nothing,
    /// All state of the agent is dropped.
    Reset,
    /// The deleted group, which had these counts, ends its use of a counter.
    EndGroup(GroupId, PofCounts),
}

/// Changes for which a request asks, and what follows them.
pub(crate) type Asked = (Vec<Change>, Then);
