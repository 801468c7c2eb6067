// SPDX-License-Identifier: Apache-2.0
//! Test harness: a daemon in this process with in-memory ports.

use config::Config;
use port::mem::{MemHandle, pair};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::control::Client;
use switch::daemon::{Daemon, DaemonError, OpenPort, Stop};
use switch::metrics::MetricsSource;

/// Timeout of all waits.
pub const LONG: Duration = Duration::from_secs(20);
/// Capacity of a port in frames per direction.
const PORT_FRAMES: usize = 256;

pub struct Lab {
    pub ports: Vec<MemHandle>,
    pub socket: PathBuf,
    /// Where the metrics come from.
    pub metrics: Option<MetricsSource>,
    folder: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
}

/// Returns the path of a new temporary directory.
pub fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("shunt-switch-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

pub fn config(socket: &Path, workers: usize, ports: usize) -> Config {
    let mut text = format!("control = {:?}\n", socket.to_str().unwrap());
    text.push_str(&"[[worker]]\n".repeat(workers));
    text.push_str("[[datapath]]\nid = 1\n");
    for n in 1..=ports {
        let worker = n % workers;
        text.push_str(&format!(
            "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [{worker}]\n"
        ));
    }
    Config::parse(&text).unwrap()
}

/// Starts a daemon without ports. The start cannot be stopped.
pub fn start_bare(config: &Config, flows: Option<&Path>) -> Result<Daemon, DaemonError> {
    let (stop, _tell) = Stop::by_hand().unwrap();
    Daemon::start(config, || Ok(Vec::new()), flows, &stop).map(Option::unwrap)
}

impl Lab {
    pub fn start(workers: usize, ports: usize, flows: Option<&str>) -> Self {
        Self::start_under_traffic(workers, ports, flows, &[])
    }

    /// Starts a daemon as [`Lab::start`] does, with packets that already wait at every port.
    pub fn start_under_traffic(
        workers: usize,
        ports: usize,
        flows: Option<&str>,
        waiting: &[Vec<u8>],
    ) -> Self {
        Self::start_with(|socket| config(socket, workers, ports), flows, waiting)
    }

    /// Starts a daemon as [`Lab::start_under_traffic`] does, with a configuration for its control socket.
    pub fn start_with(
        config: impl FnOnce(&Path) -> Config,
        flows: Option<&str>,
        waiting: &[Vec<u8>],
    ) -> Self {
        let folder = folder();
        let socket = folder.join("made/by/the/daemon/control.sock");
        let config = config(&socket);
        std::fs::create_dir_all(&folder).unwrap();
        let flows = flows.map(|text| {
            let path = folder.join("start.flows");
            std::fs::write(&path, text).unwrap();
            path
        });
        let mut handles = Vec::new();
        let open = config.datapath.ports.iter().map(|port| {
            let (mut queues, mut handle) = pair(port.number.0, 1, PORT_FRAMES);
            assert!(waiting.iter().all(|bytes| handle.push(0, bytes)));
            handles.push(handle);
            let queues = vec![(port.workers[0], Box::new(queues.remove(0)) as Box<dyn port::Queue>)];
            OpenPort { number: port.number, name: port.name.clone(), queues, device_lock: None }
        });
        let (stop, tell) = Stop::by_hand().unwrap();
        let daemon = Daemon::start(&config, || Ok(open.collect()), flows.as_deref(), &stop).unwrap().unwrap();
        let metrics = Some(daemon.metrics_source());
        let thread = Some(std::thread::spawn(move || daemon.serve(&stop)));
        Self { ports: handles, socket, metrics, folder, stop: Some(tell), thread }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    pub fn raw(&self) -> Raw {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Raw(BufReader::new(stream))
    }

    /// Sends a frame into port `number`, and returns the frame that leaves port `to`.
    pub fn pass(&mut self, number: usize, bytes: &[u8], to: usize) -> Vec<u8> {
        assert!(self.ports[number - 1].push(0, bytes));
        let end = Instant::now() + LONG;
        loop {
            if let Some(frame) = self.ports[to - 1].pop(0) {
                return frame;
            }
            assert!(Instant::now() < end, "no frame left port {to}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join();
        let left = self.socket.exists();
        std::fs::remove_dir_all(&self.folder).unwrap();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
            assert!(!left, "the control socket still exists");
        }
    }
}

/// A client that can send invalid requests.
pub struct Raw(BufReader<UnixStream>);

impl Raw {
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends bytes as [`Raw::send`] does, but tolerates that the switch closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Returns a handle for sending while another thread reads answers.
    pub fn writer(&self) -> UnixStream {
        self.0.get_ref().try_clone().unwrap()
    }

    /// Returns the next line, or an empty string if the connection was closed.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(line.as_bytes());
        self.send(b"\n");
        self.line()
    }

    pub fn end(&mut self) {
        self.0.get_mut().shutdown(Shutdown::Write).unwrap();
    }
}

/// Waits until `probe` returns `true`.
pub fn until(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !probe() {
        assert!(Instant::now() < end, "timeout while waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
