// SPDX-License-Identifier: Apache-2.0
//! Capture files as ports: a file to receive from, a file to send to, or both.

mod device;
mod queue;

use crate::{PortError, Queue, Queues, Spec};
use device::Device;
use queue::PcapQueue;
use std::path::Path;
use wire::capture::{CaptureError, CaptureReader, CaptureWriter};

/// Name of the driver.
pub const NAME: &str = "pcap";

/// Checks the device string and the number of queues. Files are not accessed.
///
/// # Errors
/// Returns an error if the device string is invalid or the number of queues is not 1.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    device(spec).map(drop)
}

/// Checks whether the capture to receive from is readable, and whether the folder for the capture to write
/// exists.
///
/// # Errors
/// Returns the errors of [`open`], except for damage after the header of a capture.
pub fn find(spec: &Spec) -> Result<(), PortError> {
    let device = device(spec)?;
    if let Some(path) = device.input {
        CaptureReader::open(path).map_err(|error| bad(spec, format!("file {path}: {error}")))?;
    }
    let Some(output) = device.output else { return Ok(()) };
    let folder = Path::new(output).parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(bad(spec, format!("file {output}: there is no folder {}", folder.display())));
    }
    if Path::new(output).is_dir() {
        return Err(bad(spec, format!("file {output}: is a folder")));
    }
    Ok(())
}

fn device(spec: &Spec) -> Result<Device<'_>, PortError> {
    if spec.queues != 1 {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "exactly 1: the packets of a file have one order",
        });
    }
    Device::parse(&spec.device).map_err(|wrong| bad(spec, wrong))
}

fn bad(spec: &Spec, wrong: String) -> PortError {
    PortError::BadDevice {
        port: spec.name.clone(),
        driver: NAME,
        device: spec.device.clone(),
        wrong,
        expected: device::EXPECTED,
    }
}

/// Opens the device "in=FILE,out=FILE,loop=N". The packets of the input capture are received N times (once
/// without `loop`, endlessly with 0). Transmitted frames are segmented, get complete checksums, and are
/// written to the output capture with the UTC time. This call reads the whole input into memory. A port has
/// one queue.
///
/// # Errors
/// Returns an error if the device string is invalid, a file cannot be read or created, or a capture is
/// damaged.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    let device = device(spec)?;
    let bad_file = |path: &str, error: CaptureError| bad(spec, format!("file {path}: {error}"));
    let mut queue = PcapQueue::new(spec.number, device.rounds);
    if let Some(path) = device.input {
        load(path, &mut queue).map_err(|error| bad_file(path, error))?;
    }
    if let Some(path) = device.output {
        queue.write_to(CaptureWriter::create(path).map_err(|error| bad_file(path, error))?);
    }
    Ok(vec![Box::new(queue) as Box<dyn Queue>])
}

fn load(path: &str, queue: &mut PcapQueue) -> Result<(), CaptureError> {
    let mut reader = CaptureReader::open(path)?;
    while let Some(packet) = reader.next_packet()? {
        queue.add(packet.truncated, packet.bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
