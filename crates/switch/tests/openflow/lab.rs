// SPDX-License-Identifier: Apache-2.0
//! Test harness: a daemon in this process with in-memory ports and an OpenFlow listener.

use crate::log::Log;
use crate::peer::Peer;
use config::{Config, Endpoint};
use port::mem::{MemHandle, pair};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::daemon::{Daemon, DaemonError, OpenPort, Stop};

/// Timeout of all waits.
pub const LONG: Duration = Duration::from_secs(30);
/// Capacity of a port in frames per direction.
const PORT_FRAMES: usize = 256;

pub struct Lab {
    pub ports: Vec<MemHandle>,
    pub address: SocketAddr,
    /// All endpoints on which the switch listens.
    pub endpoints: Vec<Endpoint>,
    /// Log of the control thread, at level INFO.
    pub log: Log,
    folder: PathBuf,
    control_thread: rustix::thread::Pid,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
}

impl Lab {
    /// Starts a switch with ports 1 to `ports` and `workers` workers. `openflow` is added to the OpenFlow
    /// section of the configuration.
    pub fn start(workers: usize, ports: usize, openflow: &str) -> Self {
        Self::start_idling("adaptive", workers, ports, openflow)
    }

    /// Starts a switch as [`Lab::start`] does, with the given idle mode of the workers.
    pub fn start_idling(idle: &str, workers: usize, ports: usize, openflow: &str) -> Self {
        Self::start_with(idle, workers, ports, openflow, "")
    }

    /// Starts a switch as [`Lab::start`] does, with egress queues at the last port.
    pub fn start_queued(workers: usize, ports: usize, queues: &str) -> Self {
        Self::start_with("adaptive", workers, ports, "", queues)
    }

    fn start_with(idle: &str, workers: usize, ports: usize, openflow: &str, queues: &str) -> Self {
        let mut text = format!("[[worker]]\nidle = {idle:?}\n").repeat(workers);
        text.push_str(&format!("[[datapath]]\nid = 7\n[datapath.openflow]\n{openflow}\n"));
        if !openflow.contains("listen = ") {
            text = text.replace("[datapath.openflow]\n", "[datapath.openflow]\nlisten = \"127.0.0.1:0\"\n");
        }
        for n in 1..=ports {
            let worker = n % workers;
            text.push_str(&format!(
                "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [{worker}]\n"
            ));
        }
        text.push_str(queues);
        Self::run(&text, None)
    }

    /// Starts a switch with ports 1 to `ports`, which are the channels of the device at this address. `flows`
    /// is the text of its flow file.
    pub fn start_at_device(device: SocketAddr, settings: &str, ports: usize, flows: &str) -> Self {
        let mut text = format!(
            "[[datapath]]\nid = 7\n[datapath.openflow]\nlisten = \"127.0.0.1:0\"\n\
             [datapath.device]\nkind = \"udp\"\naddress = \"{device}\"\n{settings}\n"
        );
        for n in 1..=ports {
            text.push_str(&format!("[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\n"));
        }
        Self::run(&text, Some(flows))
    }

    /// Starts a switch with this configuration, without its control socket, and with these flows.
    fn run(text: &str, flows: Option<&str>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("shunt-openflow-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let text = format!("control = {:?}\n{text}", folder.join("control.sock"));
        let file = flows.map(|flows| {
            let path = folder.join("flows.txt");
            std::fs::write(&path, flows).unwrap();
            path
        });
        let config = Config::parse(&text).unwrap();
        let mut handles = Vec::new();
        let open = config.datapath.ports.iter().map(|port| {
            let queue = port.workers.first().map(|worker| {
                let (mut queues, handle) = pair(port.number.0, 1, PORT_FRAMES);
                handles.push(handle);
                (*worker, Box::new(queues.remove(0)) as Box<dyn port::Queue>)
            });
            let queues = queue.into_iter().collect();
            OpenPort { number: port.number, name: port.name.clone(), queues, device_lock: None }
        });
        let (stop, tell) = Stop::by_hand().unwrap();
        let daemon = Daemon::start(&config, || Ok(open.collect()), file.as_deref(), &stop).unwrap().unwrap();
        let endpoints = daemon.openflow_addresses();
        let address = endpoints.iter().find_map(Endpoint::address).unwrap();
        let log = Log::default();
        let subscriber = log.subscriber();
        let (say, reported) = std::sync::mpsc::channel();
        let thread = Some(std::thread::spawn(move || {
            say.send(rustix::thread::gettid()).unwrap();
            let _logging = tracing::subscriber::set_default(subscriber);
            daemon.serve(&stop)
        }));
        let control_thread = reported.recv().unwrap();
        Self { ports: handles, address, endpoints, log, folder, control_thread, stop: Some(tell), thread }
    }

    /// Returns a client of the control socket that sends no request.
    pub fn control_client(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("control.sock")).unwrap()
    }

    /// Returns the CPU time of the control thread.
    pub fn control_cpu(&self) -> Duration {
        let path = format!("/proc/self/task/{}/schedstat", self.control_thread.as_raw_nonzero());
        let text = std::fs::read_to_string(path).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    pub fn peer(&self) -> Peer {
        Peer::connect(self.address)
    }

    /// Returns the output of `ovs-ofctl -O OpenFlow13`. The first of `words` is the command.
    pub fn ofctl(&self, words: &[&str]) -> String {
        let (good, text) = self.try_ofctl(words);
        assert!(good, "ovs-ofctl {words:?}: {text}");
        text
    }

    /// Runs the command and returns whether it succeeded, with its output.
    pub fn try_ofctl(&self, words: &[&str]) -> (bool, String) {
        self.try_ofctl_at(&format!("tcp:{}", self.address), words)
    }

    /// Runs the command with the switch's address in the notation of ovs-ofctl.
    pub fn try_ofctl_at(&self, target: &str, words: &[&str]) -> (bool, String) {
        let split = words.iter().take_while(|word| word.starts_with('-')).count() + 1;
        let output = self
            .tool("ovs-ofctl")
            .args(["--timeout=30", "-O", "OpenFlow13"])
            .args(&words[..split])
            .arg(target)
            .args(&words[split..])
            .output()
            .expect("ovs-ofctl is needed: scripts/setup.sh test installs it");
        // A successful command may also print comments to stderr.
        let good = output.status.success();
        let text = if good { output.stdout } else { output.stderr };
        (good, String::from_utf8(text).unwrap())
    }

    /// Returns the command for a tool of Open vSwitch. The tool keeps its files in the lab's directory.
    pub fn tool(&self, name: &str) -> Command {
        // Directory of the tools that scripts/setup.sh provides without installing them.
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin").join(name);
        let mut command = if own.exists() { Command::new(own) } else { Command::new(name) };
        command.env("OVS_RUNDIR", &self.folder).stdin(Stdio::null());
        command
    }

    /// Writes a file for a tool and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns the flows as ovs-ofctl prints them, without counters and times.
    pub fn flows(&self) -> Vec<String> {
        let printed = self.ofctl(&["--no-names", "--no-stats", "dump-flows"]);
        printed.lines().map(|line| line.trim().to_owned()).filter(|line| !line.starts_with("OFPST")).collect()
    }

    /// Waits for a frame that leaves port `to` and returns it.
    pub fn pop(&mut self, to: usize) -> Vec<u8> {
        let end = Instant::now() + LONG;
        loop {
            if let Some(frame) = self.ports[to - 1].pop(0) {
                return frame;
            }
            assert!(Instant::now() < end, "no frame left port {to}");
            // Sleep instead of yielding: the scheduler prefers a thread that slept to busy workers.
            std::thread::sleep(Duration::from_micros(1));
        }
    }

    pub fn push(&mut self, number: usize, bytes: &[u8]) {
        assert!(self.ports[number - 1].push(0, bytes));
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

/// Returns an Ethernet frame between stations with these numbers.
pub fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x12, 0x34];
    bytes.resize(60, from);
    bytes
}

/// Waits until `probe` returns `true`.
pub fn until(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !probe() {
        assert!(Instant::now() < end, "timeout while waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
