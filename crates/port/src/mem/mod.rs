// SPDX-License-Identifier: Apache-2.0
//! In-memory ports: queue pairs with a handle for the other side, and endless loops for benchmarks.

mod looped;
mod pair;

pub use looped::LoopQueue;
pub use pair::{MemHandle, MemQueue, pair};

use crate::{PortError, Queue, Queues, Spec};

/// The driver's name.
pub const NAME: &str = "mem";

/// Opens `spec.queues` queues of the device "null": nothing is received, what is transmitted is counted and forgotten.
///
/// # Errors
/// Any other device string.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    if spec.device != "null" {
        return Err(PortError::BadDevice {
            port: spec.name.clone(),
            driver: NAME,
            device: spec.device.clone(),
            wrong: "unknown".into(),
            expected: "\"null\"",
        });
    }
    Ok((0..spec.queues)
        .map(|_| Box::new(LoopQueue::new(spec.number, Vec::new())) as Box<dyn Queue>)
        .collect())
}
