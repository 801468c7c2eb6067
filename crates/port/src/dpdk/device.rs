// SPDX-License-Identifier: Apache-2.0
//! Opens a device of DPDK.

use super::queue::DpdkQueue;
use super::shim::{self, Pool, Port};
use super::{Settings, bad, eal};
use crate::{PortError, Queue, Queues, Spec};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Devices that are open: DPDK gives each device one number, whoever asks.
static OPEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
/// Pools made so far, for their names.
static POOLS: AtomicUsize = AtomicUsize::new(0);

/// A started device. Dropped, it is closed and detached.
pub(super) struct Attached(pub(super) Port);

impl Drop for Attached {
    fn drop(&mut self) {
        let number = self.0.number();
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != number);
    }
}

/// What the queues of a port have in common.
pub(super) struct Device {
    arguments: String,
    queues: u16,
    mtu: u16,
    pub(super) pool: Pool,
    /// The device that is there; nobody has it any more once it is gone and all queues know.
    attached: Mutex<Weak<Attached>>,
}

impl Device {
    /// Attaches and starts it.
    fn attach(&self) -> Result<Arc<Attached>, String> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let port = Port::attach(&self.arguments)?;
        if open.contains(&port.number()) {
            port.forget();
            return Err("another port has this device".into());
        }
        port.start(self.queues, self.mtu, self.pool)?;
        open.push(port.number());
        Ok(Arc::new(Attached(port)))
    }

    /// For a queue that has lost it: the device that has come back. None while it has not, or while other queues do not know
    /// yet that the old one is gone.
    pub(super) fn find(&self) -> Option<Arc<Attached>> {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        match attached.upgrade() {
            Some(there) => (!there.0.is_gone()).then_some(there),
            None => {
                let fresh = self.attach().ok()?;
                *attached = Arc::downgrade(&fresh);
                Some(fresh)
            }
        }
    }
}

pub(super) fn open(spec: &Spec, settings: &Settings) -> Result<Queues, PortError> {
    let failed = |what, error: String| PortError::Io {
        port: spec.name.clone(),
        device: spec.device.clone(),
        what,
        source: io::Error::other(error),
    };
    eal::start(settings).map_err(|error| failed("start DPDK", error))?;
    let port = Port::attach(&spec.device).map_err(|error| failed("attach a port of DPDK", error))?;
    let number = port.number();
    let taken = OPEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&number);
    let known = port.device();
    if taken {
        port.forget();
        return Err(bad(spec, "another port has this device".into()));
    }
    let known = known.map_err(|error| failed("ask what DPDK knows", error))?;
    let most = usize::from(known.max_rx_queues.min(known.max_tx_queues));
    if spec.queues > most {
        let driver = shim::driver(&known);
        return Err(bad(
            spec,
            format!("{driver} gives {most} queues here, and {} workers serve it", spec.queues),
        ));
    }
    let name = format!("shunt-{}", POOLS.fetch_add(1, Ordering::Relaxed));
    let pool = Pool::new(&name, settings.mbufs, known.socket)
        .map_err(|error| failed("make its packet buffers (dpdk.mbufs, 2.4 KB each)", error))?;
    let device = Device {
        arguments: spec.device.clone(),
        queues: spec.queues as u16,
        mtu: settings.mtu,
        pool,
        attached: Mutex::default(),
    };
    // It is attached already, and stays so.
    port.forget();
    let attached = device.attach().map_err(|error| failed("start it", error))?;
    *device.attached.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&attached);
    let device = Arc::new(device);
    let queue = |number| {
        let queue = DpdkQueue::new(spec.number, number as u16, Arc::clone(&device), Arc::clone(&attached));
        Box::new(queue) as Box<dyn Queue>
    };
    Ok((0..spec.queues).map(queue).collect())
}
