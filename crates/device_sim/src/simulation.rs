// SPDX-License-Identifier: Apache-2.0
//! The device as a running thing: a thread clocks the RTL, and moves frames between it and its ports, and
//! datagrams between it and the daemon.
//!
//! Begin with `run.rs`, the thread's loop. `channel.rs` is a port, `control.rs` the path to the daemon.

mod channel;
mod control;
mod run;

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use device::OutputKind;
use port::wait::Wake;
use port::{Link, Queue};

use crate::{CHANNELS, RtlDevice};
use channel::Port;
use control::ControlPath;
use run::Runner;

/// A port of the device.
pub struct DeviceChannel {
    /// Number of the port, from 1 to [`CHANNELS`]. Port p is channel p - 1 of the RTL.
    pub port: u8,
    /// Where its frames come from and go to.
    pub queue: Box<dyn Queue>,
}

/// Settings of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationSettings {
    /// Output of frames for which no PPU set one.
    pub miss_output: OutputKind,
    /// Cycles without a beat after which the clock stops until a frame or a datagram arrives. The device
    /// needs up to 160 cycles after a reset, and about 120 for a reply or a frame.
    pub idle_cycles: u32,
    /// Seed of the registers' values before the reset.
    pub seed: u32,
}

impl Default for SimulationSettings {
    fn default() -> Self {
        Self { miss_output: OutputKind::Discard, idle_cycles: 500, seed: 1 }
    }
}

/// Counters of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Number of the port.
    pub port: u8,
    /// Frames from the queue that entered the device.
    pub received: u64,
    /// Frames that left the device and that the queue accepted. Some of them may be counted as `lost`, too.
    pub sent: u64,
    /// Frames that the queue lost in either direction, or that could not be completed or stored.
    pub lost: u64,
    /// Number of times that the link went down.
    pub failures: u64,
}

/// Counters of the path between device and daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounters {
    /// Datagrams that entered the device, also those that its filter refuses.
    pub received: u64,
    /// Datagrams sent to the daemon.
    pub sent: u64,
    /// Datagrams from other hosts, which do not enter the device.
    pub remote: u64,
    /// Frames of the device that are no datagrams to the daemon.
    pub malformed: u64,
    /// Datagrams of the device that could not be sent, or that no daemon awaits.
    pub lost: u64,
    /// Failures of the socket when it received.
    pub failures: u64,
}

/// Counters of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulationCounters {
    /// Cycles since the reset.
    pub cycles: u64,
    /// Number of times that the thread slept.
    pub sleeps: u64,
    /// Frames that left by a channel without a port.
    pub unconnected: u64,
    /// Counters of the channels, in the order in which they were given.
    pub channels: Vec<ChannelCounters>,
    /// Counters of the path to the daemon.
    pub control: ControlCounters,
}

/// What the thread shares with others.
#[derive(Default)]
struct Shared {
    counters: Mutex<SimulationCounters>,
    links: Mutex<Vec<(u8, Link)>>,
    stop: AtomicBool,
}

/// Locks what a thread that panicked may have left: both values are overwritten as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A simulated device in a thread of its own. Dropping it stops the thread, and waits for its end.
pub struct Simulation {
    shared: Arc<Shared>,
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Simulation {
    /// Starts a device without entries. `control` receives the datagrams of the daemon. The daemon is the
    /// first peer on this host that says Hello, until it was silent for 1.5 s. The device refuses datagrams
    /// of others as spoofed.
    ///
    /// # Errors
    ///
    /// Returns an error of kind `InvalidInput` if a port does not exist or is given twice, or an error of the
    /// system.
    pub fn start(
        channels: Vec<DeviceChannel>,
        control: UdpSocket,
        settings: SimulationSettings,
    ) -> io::Result<Self> {
        check(&channels)?;
        control.set_nonblocking(true)?;
        let mut rtl = RtlDevice::new(settings.seed).ok_or(io::ErrorKind::OutOfMemory)?;
        rtl.set_miss_output(settings.miss_output);
        let shared = Arc::new(Shared::default());
        let wake = Arc::new(Wake::new()?);
        let ports = channels.into_iter().map(Port::new).collect();
        let mut runner = Runner::new(
            rtl,
            ports,
            ControlPath::new(control),
            settings.idle_cycles,
            Arc::clone(&shared),
            Arc::clone(&wake),
        );
        runner.poll_links();
        runner.publish();
        let thread = Builder::new().name("device".into()).spawn(move || runner.run())?;
        Ok(Self { shared, wake, thread: Some(thread) })
    }

    /// Returns the state of the links, which the thread polls every 100 ms.
    #[must_use]
    pub fn links(&self) -> Vec<(u8, Link)> {
        lock(&self.shared.links).clone()
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> SimulationCounters {
        lock(&self.shared.counters).clone()
    }

    /// Returns whether the thread runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            // The thread has logged its panic.
            let _ = thread.join();
        }
    }
}

fn check(channels: &[DeviceChannel]) -> io::Result<()> {
    let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    for (at, channel) in channels.iter().enumerate() {
        let port = channel.port;
        if port == 0 || u16::from(port) > CHANNELS {
            return invalid(format!("the device has no port {port}; its ports are 1 to {CHANNELS}"));
        }
        if channels[..at].iter().any(|other| other.port == port) {
            return invalid(format!("port {port} is given twice"));
        }
    }
    Ok(())
}
