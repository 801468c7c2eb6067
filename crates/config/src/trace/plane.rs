// SPDX-License-Identifier: Apache-2.0
//! Data planes whose forwarding a trace explains.

use dataplane::DataPlane;
use worker::WorkerSet;

/// Lookup engine of the tables of a device, in reports.
pub const DEVICE: &str = "device";

/// A data plane that consists of workers, or of a device. Only workers have a fast-forwarding path, path
/// records and port caches.
pub trait TracedPlane: DataPlane {
    /// Returns the workers, or `None` if a device forwards the packets.
    fn workers(&mut self) -> Option<&mut WorkerSet>;
}

impl TracedPlane for WorkerSet {
    fn workers(&mut self) -> Option<&mut WorkerSet> {
        Some(self)
    }
}
