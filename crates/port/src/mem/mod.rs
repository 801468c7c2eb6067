// SPDX-License-Identifier: Apache-2.0
//! In-memory ports: queue pairs with a handle for the other side, and endless loops for benchmarks.

mod looped;
mod pair;

pub use looped::LoopQueue;
pub use pair::{MemHandle, MemQueue, pair};

use crate::{PortError, Queue, Queues, Spec};

/// Name of the driver.
pub const NAME: &str = "mem";

/// Checks the device string and the number of queues.
///
/// # Errors
/// Returns an error for a device string other than "null", or for 0 queues.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    if spec.queues == 0 {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "at least 1",
        });
    }
    if spec.device == "null" {
        return Ok(());
    }
    Err(PortError::BadDevice {
        port: spec.name.clone(),
        driver: NAME,
        device: spec.device.clone(),
        wrong: "unknown".into(),
        expected: "\"null\"",
    })
}

/// Opens `spec.queues` queues of the device "null": they receive nothing, and count and discard transmitted
/// frames.
///
/// # Errors
/// Returns an error for a device string other than "null", or for 0 queues.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    check(spec)?;
    Ok((0..spec.queues)
        .map(|_| Box::new(LoopQueue::new(spec.number, Vec::new())) as Box<dyn Queue>)
        .collect())
}
