// SPDX-License-Identifier: Apache-2.0
//! The setup of a run: a daemon with in-memory ports, the other end of the ports, a controller and a
//! watchdog.

use crate::bell::BellQueue;
use crate::book::{Book, EGRESS};
use crate::controller::{self, Controller, Heard};
use crate::judge::{INGRESSES, Judge};
use crate::peer::Peer;
use crate::totals::{self, Late};
use crate::watchdog::{Pulse, threads, watch};
use crate::wire::{Ingress, Wire};
use crate::{Load, Run};
use config::{Config, Endpoint, Pace};
use flow::{Nanos, PortNo};
use port::mem::{MemHandle, pair};
use port::wait::Wake;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use switch::control::{Client, ControlRequest, ExpressReport};
use switch::daemon::{Daemon, DaemonError, OpenPort, Stop};

/// Returns the capacity of a port in frames per direction.
fn port_frames(load: Load) -> usize {
    match load {
        Load::Sleepy => 4_096,
        Load::Storm => 512,
    }
}
/// Sleep time that is longer than the watchdog waits, so that a missed wake-up is detected as a hang.
const FOR_EVER_NS: Nanos = Nanos(600_000_000_000);

/// Running daemon with its directory.
pub struct Stage {
    folder: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
    pub peer: Option<Peer>,
}

/// Creates a temporary directory.
pub fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("shunt-threads-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// Returns the beginning of a configuration file.
pub fn head(folder: &std::path::Path, workers: usize) -> String {
    let mut text = format!("control = {:?}\n", folder.join("control.sock"));
    text.push_str(&"[[worker]]\n".repeat(workers));
    text.push_str("[[datapath]]\nid = 7\n[datapath.openflow]\nlisten = \"127.0.0.1:0\"\n");
    text
}

impl Stage {
    pub fn start(
        folder: PathBuf,
        config: &Config,
        open: impl FnOnce() -> Result<Vec<OpenPort>, DaemonError> + Send,
    ) -> Self {
        let (stop, tell) = Stop::by_hand().unwrap();
        let flows = config.datapath.flows.clone();
        let daemon = Daemon::start(config, open, flows.as_deref(), &stop).unwrap().unwrap();
        let addresses = daemon.openflow_addresses();
        let Endpoint::Tcp(address) = addresses[0] else { panic!("not a TCP address") };
        let thread =
            std::thread::Builder::new().name("control".into()).spawn(move || daemon.serve(&stop)).unwrap();
        let peer = Some(Peer::connect(address));
        Self { folder, stop: Some(tell), thread: Some(thread), peer }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.folder.join("control.sock")).unwrap()
    }

    /// Ends the daemon. `look` can read the files in the daemon's directory before they are removed.
    pub fn end(mut self, look: impl FnOnce(&std::path::Path)) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
        look(&self.folder);
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// How receiving and sending ports are assigned to workers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The same workers receive and send.
    Mixed,
    /// The last worker sends the packets that the other workers receive, and its ports have egress queues. A
    /// copy is then dropped as `queue_full` only after it was counted as sent, and as `transmit_full` only
    /// before it is counted.
    Apart,
}

impl Layout {
    fn of(run: &Run) -> Self {
        let is_apart = run.load == Load::Storm && run.seed.is_multiple_of(2);
        if is_apart { Self::Apart } else { Self::Mixed }
    }
}

/// Returns the workers that serve each port. In a mixed layout, one ingress port and one egress port are
/// served by all workers, and every other port by one worker.
fn served(run: &Run, random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
    let last = run.workers - 1;
    if Layout::of(run) == Layout::Apart {
        return vec![(0..last).collect(), vec![random.usize(..last)], vec![last], vec![last], vec![last]];
    }
    let all: Vec<usize> = (0..run.workers).collect();
    let one = |random: &mut fastrand::Rng| vec![random.usize(..run.workers)];
    vec![all.clone(), one(random), one(random), all, vec![last]]
}

/// Returns whether all packets reach the express path. Lanes are then off.
fn is_always_express(run: &Run) -> bool {
    run.express && run.workers == 2
}

fn config(run: &Run, folder: &std::path::Path, served: &[Vec<usize>], random: &mut fastrand::Rng) -> Config {
    let mut text = head(folder, run.workers);
    let lanes = random.u8(..4) > 0 && !is_always_express(run);
    text.push_str(&format!("[datapath.lanes]\nenabled = {lanes}\n"));
    if run.express {
        text.push_str("[datapath.express]\nenabled = true\nrecords = 64\n");
    }
    for (at, workers) in served.iter().enumerate() {
        let number = at + 1;
        text.push_str(&format!(
            "[[datapath.port]]\nnumber = {number}\nname = \"p{number}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = {workers:?}\n"
        ));
        if Layout::of(run) == Layout::Apart && EGRESS.contains(&(number as u32)) {
            text.push_str("[[datapath.port.queue]]\nid = 0\n");
        }
    }
    let mut config = Config::parse(&text).unwrap();
    if run.load == Load::Sleepy {
        config.pace = Pace { spin_ns: Nanos(0), keeping_ns: FOR_EVER_NS, keeping_soon_ns: FOR_EVER_NS };
    }
    config
}

/// State shared by the threads of a run, never freed because a hanging thread may still use it.
pub struct Shared {
    pub book: Book,
    pub stop: AtomicBool,
    pub controller: Pulse,
    pub wire: Pulse,
    /// Whether the controller is asked to pause.
    pub quiet: AtomicBool,
    /// Whether the controller has paused and its last barrier is answered, or the controller has ended.
    pub is_quiet: AtomicBool,
}

impl Shared {
    pub fn new() -> &'static Self {
        let (controller, wire) = (Pulse::default(), Pulse::default());
        let book = Book::new(controller::first);
        let [stop, quiet, is_quiet] = [(); 3].map(|()| AtomicBool::new(false));
        Box::leak(Box::new(Self { book, stop, controller, wire, quiet, is_quiet }))
    }
}

/// Runs the controller and `wire` for the duration of the run, on two threads. Returns both results.
pub fn perform<W: Send + 'static>(
    run: &Run,
    shared: &'static Shared,
    controller: Controller,
    wire: impl FnOnce() -> W + Send + 'static,
) -> (Peer, Heard, W) {
    let start = Instant::now();
    let control = std::thread::spawn(move || controller.run(shared));
    let ports = std::thread::spawn(wire);
    let watch_until = |is_over: &dyn Fn() -> bool| {
        let fine = watch(&[&shared.controller, &shared.wire], is_over);
        assert!(fine, "{run:?}: a thread hangs\n{}", threads());
    };
    watch_until(&|| start.elapsed() >= run.time || control.is_finished() || ports.is_finished());
    shared.stop.store(true, Ordering::Relaxed);
    watch_until(&|| control.is_finished() && ports.is_finished());
    let (wire, control) = (ports.join(), control.join());
    match (wire, control) {
        (Ok(wire), Ok((peer, heard))) => (peer, heard, wire),
        _ => panic!("{run:?} failed, see above\n{}", threads()),
    }
}

/// Opens in-memory ports. Returns them with their other ends and the queues to push packets into.
fn ports(run: &Run, served: &[Vec<usize>]) -> (Vec<OpenPort>, Vec<MemHandle>, Vec<Ingress>) {
    let (mut open, mut handles, mut ingresses) = (Vec::new(), Vec::new(), Vec::new());
    for (port, workers) in served.iter().enumerate() {
        let number = port as u32 + 1;
        let (queues, handle) = pair(number, workers.len(), port_frames(run.load));
        handles.push(handle);
        let mut boxed: Vec<(usize, Box<dyn port::Queue>)> = Vec::new();
        for (queue, (worker, inner)) in workers.iter().zip(queues).enumerate() {
            let bell = (run.load == Load::Sleepy).then(|| Arc::new(Wake::new().unwrap()));
            if port < 2 {
                ingresses.push(Ingress { port, queue, bell: bell.clone() });
            }
            let queue: Box<dyn port::Queue> = match bell {
                Some(bell) => Box::new(BellQueue { inner, bell }),
                None => Box::new(inner),
            };
            boxed.push((*worker, queue));
        }
        open.push(OpenPort {
            number: PortNo(number),
            name: format!("p{number}"),
            queues: boxed,
            device_lock: None,
        });
    }
    assert!(ingresses.len() <= INGRESSES);
    (open, handles, ingresses)
}

/// Runs with in-memory ports.
pub fn play(run: Run) {
    let folder = folder();
    let mut random = fastrand::Rng::with_seed(run.seed);
    let served = served(&run, &mut random);
    let config = config(&run, &folder, &served, &mut random);
    let (open, handles, ingresses) = ports(&run, &served);
    let mut stage = Stage::start(folder, &config, || Ok(open));
    let shared = Shared::new();
    let controller = Controller::start(stage.peer.take().unwrap(), &shared.book, run.seed, run.load);
    let judge = Judge::new(&shared.book, run.load == Load::Storm);
    let mut wire = Wire { handles, ingresses, shared, judge, random, load: run.load };
    let (mut peer, mut heard, mut wire) = perform(&run, shared, controller, move || {
        wire.run();
        wire
    });
    if run.load == Load::Sleepy {
        wire.settle();
    }
    let mut client = stage.client();
    let pushed = wire.judge.pushed;
    let counters = totals::settle(&mut client, pushed, || {
        wire.pop();
    });
    wire.judge.end();
    let outside = wire.judge.outside(heard.all_packet_ins(&mut peer));
    let left = outside.left;
    let late = match (run.load, Layout::of(&run)) {
        (Load::Sleepy, _) => Late::Nothing,
        (Load::Storm, Layout::Mixed) => Late::FullOutbox,
        (Load::Storm, Layout::Apart) => Late::FullQueue,
    };
    let ports = totals::ports(&mut client, pushed, left.iter().sum());
    totals::judge(&counters, &ports, outside, late);
    if run.load == Load::Sleepy {
        totals::judge_lossless(&counters);
    }
    // Packets that a full backlog refused may or may not have hit table 0 before.
    let (counted, refused) = (controller::counted(&mut peer), totals::refused(&counters));
    let counted: Vec<u64> = counted.iter().zip(heard.removed).map(|(kept, removed)| kept + removed).collect();
    let arrived = wire.judge.arrived();
    let missing: Option<Vec<u64>> =
        arrived.iter().zip(&counted).map(|(arrived, counted)| arrived.checked_sub(*counted)).collect();
    assert!(
        missing.is_some_and(|missing| missing.iter().sum::<u64>() <= refused),
        "{run:?}: entries of table 0 counted {counted:?} packets of {arrived:?}; {refused} were refused"
    );
    let express = client.ask::<ExpressReport>(&ControlRequest::Express).unwrap().sum;
    if is_always_express(&run) {
        assert!(express.hits > 0 && express.learned + express.renewed > 0, "{run:?}: {express:?}");
        assert_eq!(express.packets(), pushed, "{run:?}: {express:?}");
    }
    println!(
        "{run:?}: {pushed} packets, {} by path records, {left:?} copies, {} changes, {} barriers",
        express.hits, heard.changes, heard.barriers
    );
    stage.end(|_| ());
}
