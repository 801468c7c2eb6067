// SPDX-License-Identifier: Apache-2.0
//! A simulation with ports in memory, and a daemon that is connected by a UDP socket.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use dataplane::DataPlane;
use device::compile::PpuLayout;
use device::plane::{DeviceLink, DevicePlane};
use device::session::{DeviceEvent, DeviceSession, DeviceTimes};
use device_sim::{DeviceChannel, ENTRIES, PPUS, Simulation, SimulationCounters, SimulationSettings};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use port::mem::{MemHandle, pair};

/// Time after which a test fails. The simulation is slow, and tests share the CPUs.
const PATIENCE: Duration = Duration::from_secs(240);
/// Frames that a port in memory holds.
pub const CAPACITY: usize = 256;
/// PPUs of the tables in tests.
pub const TABLES: [u8; 3] = [1, 1, 3];

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// A socket for a daemon.
pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Times of a session with a slow device.
pub fn times() -> DeviceTimes {
    let ms = |count: u64| Nanos(count * 1_000_000);
    DeviceTimes { timeout: ms(500), tries: 20, interval: ms(500), ..DeviceTimes::default() }
}

/// A device with ports in memory.
pub struct Rig {
    pub simulation: Simulation,
    pub handles: Vec<MemHandle>,
    pub address: SocketAddr,
}

impl Rig {
    /// Starts a device with the ports 1 to `ports`.
    pub fn new(ports: u8) -> Self {
        Self::at(ports, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
    }

    /// Ends the device, and starts another one with as many ports at the same address.
    pub fn restart(self) -> Self {
        let Self { simulation, handles, address } = self;
        drop(simulation);
        Self::at(handles.len() as u8, UdpSocket::bind(address).unwrap())
    }

    fn at(ports: u8, control: UdpSocket) -> Self {
        let (mut channels, mut handles) = (Vec::new(), Vec::new());
        for port in 1..=ports {
            let (mut queues, handle) = pair(port.into(), 1, CAPACITY);
            channels.push(DeviceChannel { port, queue: Box::new(queues.remove(0)) });
            handles.push(handle);
        }
        Self { handles, ..Self::with_socket(channels, control) }
    }

    pub fn with_channels(channels: Vec<DeviceChannel>) -> Self {
        Self::with_socket(channels, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
    }

    fn with_socket(channels: Vec<DeviceChannel>, control: UdpSocket) -> Self {
        let address = control.local_addr().unwrap();
        let simulation = Simulation::start(channels, control, SimulationSettings::default()).unwrap();
        Self { simulation, handles: Vec::new(), address }
    }

    /// Sends a frame to a port, as soon as the port has room.
    pub fn push(&mut self, port: u8, frame: &[u8]) {
        let handle = &mut self.handles[usize::from(port) - 1];
        wait_until("room at a port", || handle.push(0, frame));
    }

    /// Takes a frame that has left.
    pub fn pop(&mut self, port: u8) -> Option<Vec<u8>> {
        self.handles[usize::from(port) - 1].pop(0)
    }

    /// Waits for frames that leave a port.
    pub fn take(&mut self, port: u8, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        wait_until(&format!("{count} frames of port {port}"), || {
            frames.extend(self.pop(port));
            frames.len() >= count
        });
        frames
    }

    pub fn counters(&self) -> SimulationCounters {
        self.simulation.counters()
    }

    /// Waits until the device has nothing to do, and returns the counters. Between two publications of the
    /// counters, the thread must have slept without a cycle; the first one follows the call.
    pub fn settle(&self) -> SimulationCounters {
        let (mut last, mut quiet) = (self.counters(), 0);
        wait_until("the clock stands", || {
            let now = self.counters();
            if now.cycles != last.cycles {
                quiet = 0;
            } else if now.sleeps > last.sleeps {
                quiet += 1;
            }
            last = now;
            quiet == 2
        });
        last
    }
}

/// A link to the device over UDP.
pub struct UdpLink {
    pub socket: UdpSocket,
    pub address: SocketAddr,
}

impl DeviceLink for UdpLink {
    fn send(&mut self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.address).unwrap();
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2_048];
        let (len, from) = self.socket.recv_from(&mut buffer).ok()?;
        assert_eq!(from, self.address);
        Some(buffer[..len].to_vec())
    }
}

/// The daemon's model over a link to a device with ports 1 to 4.
pub struct Daemon<L: DeviceLink> {
    pub model: Model<DevicePlane<L>>,
    start: Instant,
}

impl Daemon<UdpLink> {
    /// A daemon whose transaction IDs begin behind `last_id`. It is not connected yet.
    pub fn new(address: SocketAddr, last_id: u32) -> Self {
        Self::with_link(UdpLink { socket: socket(), address }, last_id)
    }

    /// Creates a daemon that notices after some seconds that the device does not answer.
    pub fn impatient(address: SocketAddr, last_id: u32) -> Self {
        let session = DeviceSession::new(DeviceTimes { tries: 6, ..times() }, last_id);
        Self::with_session(UdpLink { socket: socket(), address }, session)
    }
}

impl<L: DeviceLink> Daemon<L> {
    pub fn with_link(link: L, last_id: u32) -> Self {
        Self::with_session(link, DeviceSession::new(times(), last_id))
    }

    fn with_session(link: L, session: DeviceSession) -> Self {
        let layout = PpuLayout::new(PPUS as u8, ENTRIES, &TABLES).unwrap();
        let plane = DevicePlane::new(link, session, layout);
        let mut made =
            Self { model: Model::new(ModelConfig::default(), plane, Nanos(1)), start: Instant::now() };
        for number in 1..=4 {
            let desc = PortDesc { number: PortNo(number), ..PortDesc::default() };
            made.model.add_port(Nanos(1), desc, true).unwrap();
        }
        made
    }

    pub fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64 + 1)
    }

    pub fn poll(&mut self) {
        let now = self.now();
        self.model.plane_mut().tick(now);
        self.model.poll(now);
    }

    pub fn change(&mut self, text: &str) {
        let change = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        let now = self.now();
        self.model.flow_mod(now, change).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// Runs until a condition holds.
    pub fn run_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        wait_until(what, || {
            self.poll();
            holds(self)
        });
    }

    /// Runs until the device has executed all changes.
    pub fn settle(&mut self) {
        let barrier = self.model.barrier();
        self.run_until("the device has the rules", |daemon| {
            daemon.model.is_applied(barrier) && daemon.model.plane_mut().is_ready()
        });
    }
}

/// A session without a data plane.
pub struct Session {
    pub session: DeviceSession,
    pub link: UdpLink,
    start: Instant,
}

impl Session {
    pub fn new(address: SocketAddr, last_id: u32) -> Self {
        let link = UdpLink { socket: socket(), address };
        let mut made = Self { session: DeviceSession::new(times(), last_id), link, start: Instant::now() };
        assert_eq!(made.next(), DeviceEvent::Up { ppus: PPUS as u8, entries: ENTRIES });
        made
    }

    /// Waits for the next event.
    pub fn next(&mut self) -> DeviceEvent {
        let mut event = None;
        wait_until("an event of the session", || {
            let now = Nanos(self.start.elapsed().as_nanos() as u64 + 1);
            self.session.poll(now);
            while let Some(datagram) = self.session.next_datagram() {
                self.link.send(&datagram);
            }
            while let Some(datagram) = self.link.receive() {
                self.session.receive(&datagram, now);
            }
            event = self.session.next_event();
            event.is_some()
        });
        event.unwrap()
    }

    /// Reads the counter of this name in `names`, which begin at register `first` of the reply.
    pub fn stats(&mut self) -> Vec<u64> {
        self.session.ask_stats();
        loop {
            if let DeviceEvent::Stats(counters) = self.next() {
                return counters;
            }
        }
    }
}

/// A frame to 02:00:00:00:00:`last` of this length, with a number in it.
pub fn frame(last: u8, len: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 9, 0x88, 0xb9];
    frame.extend(number.to_be_bytes());
    let fill = (frame.len()..len).map(|at| (at as u32 * 31 + number) as u8);
    frame.extend(fill.collect::<Vec<_>>());
    frame.truncate(len);
    frame
}
