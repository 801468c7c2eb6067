// SPDX-License-Identifier: Apache-2.0
//! Test harness: a daemon in this process with in-memory ports and listeners of both protocols.

use crate::log::Log;
use crate::peer::Peer;
use config::{Config, Endpoint};
use port::mem::{MemHandle, pair};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::daemon::{Daemon, DaemonError, OpenPort, Stop};

/// Timeout of all waits.
pub const LONG: Duration = Duration::from_secs(30);
/// Time after which a packet that has not arrived counts as dropped.
const SHORT: Duration = Duration::from_millis(100);
/// Capacity of a port in frames per direction.
const PORT_FRAMES: usize = 256;
/// Number of ports.
const PORTS: usize = 4;

pub struct Lab {
    pub ports: Vec<MemHandle>,
    pub pof: SocketAddr,
    pub openflow: SocketAddr,
    pub log: Log,
    /// Path of the control socket.
    pub control: PathBuf,
    folder: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
}

fn first(list: &[Endpoint]) -> SocketAddr {
    list.first().and_then(Endpoint::address).unwrap()
}

impl Lab {
    /// Starts a switch with four ports. `pof` is added to the POF section of the configuration.
    pub fn start(pof: &str) -> Self {
        Self::start_at("127.0.0.1:0", pof)
    }

    /// Starts a switch as [`Lab::start`] does, which listens for POF at this address.
    pub fn start_at(listen: &str, pof: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("shunt-pof-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let control = folder.join("control.sock");
        let mut text = format!(
            "control = {:?}\n[[worker]]\n[[datapath]]\nid = 7\n[datapath.openflow]\nlisten = \"127.0.0.1:0\"\n\
             [datapath.pof]\nlisten = {listen:?}\n{pof}\n",
            control
        );
        for n in 1..=PORTS {
            text.push_str(&format!(
                "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n"
            ));
        }
        let config = Config::parse(&text).unwrap();
        let mut ports = Vec::new();
        let open = config.datapath.ports.iter().map(|port| {
            let (mut queues, handle) = pair(port.number.0, 1, PORT_FRAMES);
            ports.push(handle);
            let queues = vec![(0, Box::new(queues.remove(0)) as Box<dyn port::Queue>)];
            OpenPort { number: port.number, name: port.name.clone(), queues, device_lock: None }
        });
        let (stop, tell) = Stop::by_hand().unwrap();
        let daemon = Daemon::start(&config, || Ok(open.collect()), None, &stop).unwrap().unwrap();
        let (pof, openflow) = (first(&daemon.pof_addresses()), first(&daemon.openflow_addresses()));
        let log = Log::default();
        let subscriber = log.subscriber();
        let thread = std::thread::spawn(move || {
            let _logging = tracing::subscriber::set_default(subscriber);
            daemon.serve(&stop)
        });
        Self { ports, pof, openflow, log, control, folder, stop: Some(tell), thread: Some(thread) }
    }

    /// Returns a POF controller whose handshake is complete.
    pub fn peer(&self) -> Peer {
        Peer::connect(self.pof)
    }

    /// Returns a connection to the OpenFlow port.
    pub fn openflow_stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.openflow).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    pub fn push(&mut self, port: usize, bytes: &[u8]) {
        assert!(self.ports[port - 1].push(0, bytes));
    }

    /// Waits for a frame that leaves a port and returns it.
    pub fn pop(&mut self, port: usize) -> Vec<u8> {
        self.pop_within(port, LONG).unwrap_or_else(|| panic!("no frame left port {port}"))
    }

    /// Returns whether nothing leaves any port.
    pub fn is_quiet(&mut self) -> bool {
        std::thread::sleep(SHORT);
        (1..=PORTS).all(|port| self.ports[port - 1].pop(0).is_none())
    }

    fn pop_within(&mut self, port: usize, time: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some(frame) = self.ports[port - 1].pop(0) {
                return Some(frame);
            }
            std::thread::sleep(Duration::from_micros(10));
        }
        None
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join();
        std::fs::remove_dir_all(&self.folder).unwrap();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Waits until `probe` returns `true`.
pub fn until(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !probe() {
        assert!(Instant::now() < end, "timeout while waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
