// SPDX-License-Identifier: Apache-2.0
//! A device with its link and its ports, and, if the device is simulated, the simulation.

use super::UdpLink;
use config::{ConfiguredDevice, DeviceKind};
use device::plane::{DevicePlane, DeviceState};
use device::session::{DeviceSession, DeviceTimes};
use flow::{Nanos, PortNo};
use port::{Link, Queue};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;

/// A port of the device, with the queue on which the simulated device serves it.
pub type DevicePort = (PortNo, Option<Box<dyn Queue>>);

/// The device of a datapath.
pub struct DeviceDatapath {
    /// The data plane.
    pub plane: DevicePlane<UdpLink>,
    ports: Vec<PortNo>,
    /// State that was logged last.
    logged: Option<DeviceState>,
    #[cfg(feature = "rtl")]
    simulation: Option<device_sim::Simulation>,
}

/// Returns a random ID behind which a session's IDs begin. The device answers commands with the IDs of an
/// earlier daemon without executing them.
fn first_id() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

impl DeviceDatapath {
    /// Connects with a device, and starts it if it is simulated. The device gets no rules before
    /// [`DevicePlane::release_link`].
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses a socket or a thread, or if this build has no simulation.
    pub fn start(config: &ConfiguredDevice, ports: Vec<DevicePort>) -> io::Result<Self> {
        match config.kind {
            DeviceKind::Udp { address, bind, .. } => {
                let numbers = ports.iter().map(|(number, _)| *number).collect();
                Ok(Self::with(config, UdpLink::connect(address, bind)?, numbers))
            }
            DeviceKind::Simulated => simulated(config, ports),
        }
    }

    /// Returns a datapath without a device, which only checks what a device could execute.
    #[must_use]
    pub fn without_device(config: &ConfiguredDevice) -> Self {
        Self::with(config, UdpLink::closed(), Vec::new())
    }

    fn with(config: &ConfiguredDevice, link: UdpLink, ports: Vec<PortNo>) -> Self {
        let times = match config.kind {
            DeviceKind::Udp { timeout, .. } => DeviceTimes { timeout, ..DeviceTimes::default() },
            DeviceKind::Simulated => DeviceTimes::simulated(),
        };
        let session = DeviceSession::new(times, first_id());
        let mut plane = DevicePlane::new(link, session, config.layout.clone());
        plane.hold_link();
        Self {
            plane,
            ports,
            logged: None,
            #[cfg(feature = "rtl")]
            simulation: None,
        }
    }

    /// Returns whether the device works, as far as this process can see. The thread of a simulated one ends
    /// only by a fault.
    #[must_use]
    pub fn is_running(&self) -> bool {
        #[cfg(feature = "rtl")]
        if let Some(simulation) = &self.simulation {
            return simulation.is_running();
        }
        true
    }

    /// Returns the links of all ports. Only a simulated device reports them; those of another one are up.
    #[must_use]
    pub fn links(&self) -> BTreeMap<PortNo, Link> {
        #[cfg(feature = "rtl")]
        if let Some(simulation) = &self.simulation {
            return simulation.links().into_iter().map(|(port, link)| (PortNo(port.into()), link)).collect();
        }
        let up = Link { up: true, ..Link::default() };
        self.ports.iter().map(|port| (*port, up)).collect()
    }

    /// Returns a descriptor that becomes readable when a datagram arrives, for threads that do not own the
    /// datapath.
    ///
    /// # Errors
    ///
    /// Returns an error if no further descriptor can be opened.
    pub fn descriptor(&self) -> io::Result<Option<OwnedFd>> {
        self.plane.link().descriptor().map(|fd| fd.try_clone_to_owned()).transpose()
    }

    /// Returns the time at which the session must be polled at the latest.
    #[must_use]
    pub fn due(&self) -> Nanos {
        self.plane.due()
    }

    /// Logs whether the device answers, if this has changed.
    pub fn log_state(&mut self) {
        let state = self.plane.state();
        // Reading may follow each short answer, so it is not logged.
        if state == DeviceState::Reading || self.logged.replace(state) == Some(state) {
            return;
        }
        match state {
            DeviceState::Silent => match self.plane.link().fault() {
                Some(fault) => {
                    tracing::warn!("the device does not answer ({fault}); rules are kept for it");
                }
                None => tracing::warn!("the device does not answer; rules are kept for it"),
            },
            DeviceState::WrongSize { ppus, entries } => tracing::error!(
                "the device has {ppus} PPUs of {entries} entries, but datapath.device says otherwise, so it gets no rules"
            ),
            DeviceState::Reading => {}
            DeviceState::Ready { rewrites } => {
                tracing::info!("the device has the entries of the rules (rewritten {rewrites} times)");
            }
        }
    }
}

/// Starts the simulated device, whose ports are these queues.
#[cfg(feature = "rtl")]
fn simulated(config: &ConfiguredDevice, ports: Vec<DevicePort>) -> io::Result<DeviceDatapath> {
    use device_sim::{DeviceChannel, Simulation, SimulationSettings};
    use std::net::{Ipv4Addr, UdpSocket};

    let control = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let link = UdpLink::connect(control.local_addr()?, None)?;
    if let Some(daemon) = link.address()? {
        control.connect(daemon)?;
    }
    let numbers = ports.iter().map(|(number, _)| *number).collect();
    let channels = ports
        .into_iter()
        .filter_map(|(number, queue)| {
            Some(DeviceChannel { port: u8::try_from(number.0).ok()?, queue: queue? })
        })
        .collect();
    let simulation = Simulation::start(channels, control, SimulationSettings::default())?;
    let mut made = DeviceDatapath::with(config, link, numbers);
    made.simulation = Some(simulation);
    Ok(made)
}

#[cfg(not(feature = "rtl"))]
fn simulated(_: &ConfiguredDevice, _: Vec<DevicePort>) -> io::Result<DeviceDatapath> {
    Err(io::Error::other("this build has no simulated device; build it with `make rtl-switch`"))
}
