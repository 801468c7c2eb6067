// SPDX-License-Identifier: Apache-2.0
//! What a replay asks of whoever forwards.

use crate::replay::input::Burst;
use crate::replay::queue::Numbered;
use flow::{Nanos, PortNo};
use model::{DataPlane, Model};

/// Forwards bursts, in the thread that calls it, and leaves nothing for later.
pub(super) trait Forwarder {
    /// The data plane under the model.
    type Plane: DataPlane;

    /// Puts all operations in force that the model has submitted.
    fn settle(&mut self, model: &mut Model<Self::Plane>, now: Nanos);

    /// Forwards a burst.
    fn forward(&mut self, model: &mut Model<Self::Plane>, now: Nanos, burst: &Burst);

    /// Takes what was sent by a port since the last call: each port's in the order of the packets, copies of a packet
    /// in the order in which they were made.
    fn take_sent(&mut self, model: &mut Model<Self::Plane>, each: impl FnMut(PortNo, Vec<Numbered>));
}
