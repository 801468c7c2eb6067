// SPDX-License-Identifier: Apache-2.0
//! Opening of DPDK devices.

use super::queue::DpdkQueue;
use super::shim::{self, Pool, Port};
use super::{DpdkSettings, bad, eal, interface};
use crate::{Link, PortError, Queue, Queues, Spec, sys};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum and minimum number of receive descriptors per queue. The queues of a port share a quarter of its
/// mbufs.
const DESCRIPTORS_MAX: usize = 1_024;
const DESCRIPTORS_MIN: usize = 32;

/// DPDK's numbers of the open devices. A second port on one of these devices is refused.
static OPEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
/// Number of pools created so far, used for their names.
static POOLS: AtomicUsize = AtomicUsize::new(0);

/// Minimum time between two attempts to reattach a device, because an attempt blocks the worker.
const PAUSE: Duration = Duration::from_secs(1);

/// A started device, which is closed and detached on drop.
pub(super) struct Attached {
    port: Option<Port>,
    /// Name and index of the network interface on which the device is based, if any.
    interface: Option<(String, u32)>,
}

impl Attached {
    /// Returns the index of the interface on which the device is based.
    pub(super) fn interface_index(&self) -> Option<i32> {
        self.interface.as_ref().and_then(|(_, index)| i32::try_from(*index).ok())
    }

    pub(super) fn port(&self) -> Option<&Port> {
        self.port.as_ref()
    }

    /// Returns whether the device, or the interface on which it is based, was removed.
    pub(super) fn is_gone(&self) -> bool {
        self.port.as_ref().is_none_or(Port::is_gone)
            || self.interface.as_ref().is_some_and(|(name, index)| sys::index_of(name) != Some(*index))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The lock is held until the device is closed, so no other port can get the device's number earlier.
        let mut open = lock(&OPEN);
        if let Some(port) = self.port.take() {
            let number = port.number();
            drop(port);
            open.retain(|open| *open != number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State shared by the queues of a port.
pub(super) struct Device {
    arguments: String,
    queues: u16,
    descriptors: u16,
    mtu: u16,
    pub(super) pool: Pool,
    /// The current device, and the time of the last attempt to reattach it. Only the queues own the device,
    /// so it is closed when all queues have noticed its removal.
    attached: Mutex<(Weak<Attached>, Option<Instant>)>,
    /// Link state as last queried by the first queue.
    pub(super) link: Mutex<Link>,
}

impl Device {
    fn attach(&self) -> Result<Arc<Attached>, String> {
        let mut open = lock(&OPEN);
        let port = Port::attach(&self.arguments)?;
        if open.contains(&port.number()) {
            port.forget();
            return Err("another port has this device".into());
        }
        port.start(self.queues, self.descriptors, self.mtu, self.pool)?;
        open.push(port.number());
        let interface =
            interface(&self.arguments).and_then(|name| Some((name.to_owned(), sys::index_of(name)?)));
        Ok(Arc::new(Attached { port: Some(port), interface }))
    }

    /// Reattaches the device for a queue that has lost it. Returns `None` while the device is missing or
    /// other queues still hold the old device.
    pub(super) fn find(&self) -> Option<Arc<Attached>> {
        let mut attached = lock(&self.attached);
        if let Some(there) = attached.0.upgrade() {
            return (!there.is_gone()).then_some(there);
        }
        if attached.1.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        attached.1 = Some(Instant::now());
        let fresh = self.attach().ok()?;
        attached.0 = Arc::downgrade(&fresh);
        Some(fresh)
    }
}

pub(super) fn open(spec: &Spec, settings: &DpdkSettings) -> Result<Queues, PortError> {
    let failed = |what, error: String| PortError::Io {
        port: spec.name.clone(),
        device: spec.device.clone(),
        what,
        source: io::Error::other(error),
    };
    eal::start(settings).map_err(|error| failed("start DPDK", error))?;
    let port = Port::attach(&spec.device).map_err(|error| failed("attach a port of DPDK", error))?;
    let number = port.number();
    let taken = lock(&OPEN).contains(&number);
    let known = port.device();
    if taken {
        port.forget();
        return Err(bad(spec, "another port has this device".into()));
    }
    let known = known.map_err(|error| failed("query the device", error))?;
    let most = usize::from(known.max_rx_queues.min(known.max_tx_queues));
    if spec.queues > most {
        let driver = shim::driver(&known);
        return Err(bad(
            spec,
            format!("{driver} supports {most} queues here, but {} workers serve the port", spec.queues),
        ));
    }
    let name = format!("shunt-{}", POOLS.fetch_add(1, Ordering::Relaxed));
    let pool = Pool::new(&name, settings.mbufs, known.socket)
        .map_err(|error| failed("allocate its packet buffers (dpdk.mbufs, 2.4 KB each)", error))?;
    let device = Device {
        arguments: spec.device.clone(),
        queues: spec.queues as u16,
        descriptors: (settings.mbufs as usize / 4 / spec.queues).clamp(DESCRIPTORS_MIN, DESCRIPTORS_MAX)
            as u16,
        mtu: settings.mtu,
        pool,
        attached: Mutex::default(),
        link: Mutex::default(),
    };
    // Discards this value without detaching the device, which `attach` then finds attached and starts.
    port.forget();
    let attached = device
        .attach()
        .map_err(|error| failed("start it (a quarter of dpdk.mbufs is for its receive queues)", error))?;
    lock(&device.attached).0 = Arc::downgrade(&attached);
    let device = Arc::new(device);
    let queue = |number| {
        let queue = DpdkQueue::new(spec.number, number as u16, Arc::clone(&device), Arc::clone(&attached));
        Box::new(queue) as Box<dyn Queue>
    };
    Ok((0..spec.queues).map(queue).collect())
}
