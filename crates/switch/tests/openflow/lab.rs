// SPDX-License-Identifier: Apache-2.0
//! A daemon in this process, with in-memory ports and an OpenFlow listener.

use crate::log::Log;
use crate::peer::Peer;
use port::mem::{MemHandle, pair};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::config::{Config, Endpoint};
use switch::daemon::{Daemon, DaemonError, OpenPort, Stop};

/// Nothing here should take longer.
pub const LONG: Duration = Duration::from_secs(30);
/// Frames that fit into a port each way.
const PORT_FRAMES: usize = 256;

pub struct Lab {
    pub ports: Vec<MemHandle>,
    pub address: SocketAddr,
    /// What the control thread logs, infos too.
    pub log: Log,
    folder: PathBuf,
    control_thread: rustix::thread::Pid,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
}

impl Lab {
    /// Ports 1 to `ports` over `workers` workers; `openflow` is more of that section.
    pub fn start(workers: usize, ports: usize, openflow: &str) -> Self {
        Self::start_idling("adaptive", workers, ports, openflow)
    }

    /// As [`Lab::start`], with what workers do without packets.
    pub fn start_idling(idle: &str, workers: usize, ports: usize, openflow: &str) -> Self {
        Self::start_with(idle, workers, ports, openflow, "")
    }

    /// As [`Lab::start`], the last port with the given egress queues.
    pub fn start_queued(workers: usize, ports: usize, queues: &str) -> Self {
        Self::start_with("adaptive", workers, ports, "", queues)
    }

    fn start_with(idle: &str, workers: usize, ports: usize, openflow: &str, queues: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("shunt-openflow-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut text = format!("control = {:?}\n", folder.join("control.sock"));
        text.push_str(&format!("[[worker]]\nidle = {idle:?}\n").repeat(workers));
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
        let config = Config::parse(&text).unwrap();
        let mut handles = Vec::new();
        let open = config.datapath.ports.iter().map(|port| {
            let (mut queues, handle) = pair(port.number, 1, PORT_FRAMES);
            handles.push(handle);
            let queues = vec![(port.workers[0], Box::new(queues.remove(0)) as Box<dyn port::Queue>)];
            OpenPort { number: port.number, name: port.name.clone(), queues, claim: None }
        });
        let (stop, tell) = Stop::by_hand().unwrap();
        let daemon = Daemon::start(&config, || Ok(open.collect()), None, &stop).unwrap().unwrap();
        let addresses = daemon.openflow_addresses();
        let address = addresses
            .iter()
            .find_map(|endpoint| match endpoint {
                Endpoint::Tcp(address) => Some(*address),
                Endpoint::Unix(_) => None,
            })
            .unwrap();
        let log = Log::default();
        let subscriber = log.subscriber();
        let (say, told) = std::sync::mpsc::channel();
        let thread = Some(std::thread::spawn(move || {
            say.send(rustix::thread::gettid()).unwrap();
            let _logging = tracing::subscriber::set_default(subscriber);
            daemon.serve(&stop)
        }));
        let control_thread = told.recv().unwrap();
        Self { ports: handles, address, log, folder, control_thread, stop: Some(tell), thread }
    }

    /// A client of the control socket that asks nothing.
    pub fn control_client(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("control.sock")).unwrap()
    }

    /// How long the control thread has run on a CPU.
    pub fn control_cpu(&self) -> Duration {
        let path = format!("/proc/self/task/{}/schedstat", self.control_thread.as_raw_nonzero());
        let text = std::fs::read_to_string(path).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    pub fn peer(&self) -> Peer {
        Peer::connect(self.address)
    }

    /// What `ovs-ofctl -O OpenFlow13` prints; the first of `words` is the command.
    pub fn ofctl(&self, words: &[&str]) -> String {
        let (good, text) = self.try_ofctl(words);
        assert!(good, "ovs-ofctl {words:?}: {text}");
        text
    }

    /// The same, and whether it went well.
    pub fn try_ofctl(&self, words: &[&str]) -> (bool, String) {
        self.try_ofctl_at(&format!("tcp:{}", self.address), words)
    }

    /// The same, with the switch's address as ovs-ofctl takes it.
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
        // Also what goes well may be commented on stderr.
        let good = output.status.success();
        let text = if good { output.stdout } else { output.stderr };
        (good, String::from_utf8(text).unwrap())
    }

    /// One of Open vSwitch's tools, which keeps its own files in the lab's folder.
    pub fn tool(&self, name: &str) -> Command {
        // Where scripts/setup.sh puts what it does not install.
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin").join(name);
        let mut command = if own.exists() { Command::new(own) } else { Command::new(name) };
        command.env("OVS_RUNDIR", &self.folder).stdin(Stdio::null());
        command
    }

    /// A file for a tool.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The flows as ovs-ofctl prints them, without what changes by itself.
    pub fn flows(&self) -> Vec<String> {
        let printed = self.ofctl(&["--no-names", "--no-stats", "dump-flows"]);
        printed.lines().map(|line| line.trim().to_owned()).filter(|line| !line.starts_with("OFPST")).collect()
    }

    /// What leaves port `to`, waited for.
    pub fn pop(&mut self, to: usize) -> Vec<u8> {
        let end = Instant::now() + LONG;
        loop {
            if let Some(frame) = self.ports[to - 1].pop(0) {
                return frame;
            }
            assert!(Instant::now() < end, "nothing left port {to}");
            // Who sleeps comes before busy workers, who yields does not.
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

/// An Ethernet frame from and to stations with these numbers.
pub fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x12, 0x34];
    bytes.resize(60, from);
    bytes
}

/// Waits until `probe` says yes.
pub fn until(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !probe() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
