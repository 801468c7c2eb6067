// SPDX-License-Identifier: Apache-2.0
//! Interface of the engines of a replay.

use crate::replay::input::Burst;
use crate::replay::queue::Numbered;
use dataplane::DataPlane;
use flow::{Nanos, PortNo};
use model::Model;
use port_cache::MissFigures;

/// Forwards bursts on the calling thread. All work is done when a call returns.
pub(super) trait Forwarder {
    /// Data plane under the model.
    type Plane: DataPlane;

    /// Applies all operations that the model has submitted.
    fn settle(&mut self, model: &mut Model<Self::Plane>, now: Nanos);

    /// Returns the counters of the port caches.
    fn misses(_model: &mut Model<Self::Plane>) -> MissFigures {
        MissFigures::default()
    }

    fn forward(&mut self, model: &mut Model<Self::Plane>, now: Nanos, burst: &Burst);

    /// Calls `each` for every frame sent since the last call. Frames of a port are in the order of the
    /// packets. Copies of a packet are in the order of their creation.
    fn take_sent(&mut self, model: &mut Model<Self::Plane>, each: impl FnMut(PortNo, Vec<Numbered>));
}
