// SPDX-License-Identifier: Apache-2.0
//! Starts a switch: from opening the ports to running worker threads. Begin with [`Daemon::start`].

use super::change::reserve_ports;
use super::clock::{self, MonotonicClock};
use super::crew::{Crew, WorkerThreads};
use super::kept_rules::{self, KeptSource, RestoredModel};
use super::link_watch::LinkThread;
use super::links::{Known, describe};
use super::model_handle::ModelHandle;
use super::ports::open_inherited;
use super::reload::{ReloadCommand, Reloader};
use super::search::SharedSearch;
use super::service::DatapathWatch;
use super::thread::{ControlWake, Member, Others, Shared};
use super::{DaemonError, OpenPort, Stop};
use crate::access::ResolvedAccess;
use crate::channels::{Channels, Protocol};
use crate::hardware::DeviceDatapath;
use crate::listener::{ListenError, Listener};
use crate::metrics::{Inlet, MetricsSource};
use crate::mirror::{self, Mirrors, MirrorsUpdate};
use crate::plane::Plane;
use crate::sandbox::{self, ThreadKind};
use crate::upgrade::{InheritedDatapath, UpgradeCommand};
use config::socket::SocketPurpose;
use config::trace::TracedPlane;
use config::{Config, ConfiguredDevice, ConfiguredPort, Endpoint};
use dataplane::DataPlane;
use flow::{Nanos, PortNo};
use model::{Changed, Model};
use port::wait::Wake;
use port::{DeviceLock, Link, PortHandle};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::StoreHandle;
use worker::{AllocatedFrames, BackgroundTask, Clock, PortQueues, PortsUpdate, ShutdownLoss, SleepFlag};
use worker::{Worker, WorkerSet, WorkerSetConfig};

/// Maximum number of clients of the control socket that wait to be accepted.
const CLIENTS_WAITING: i32 = 64;

/// Longest time in ns that the start waits for a device.
const DEVICE_WAIT_NS: Nanos = Nanos(2_000_000_000);
/// Time without a table to compile after which the thread that compiles tables ends.
const BASES_IDLE: Duration = Duration::from_secs(5);
/// Pause between two looks for datagrams of the device at the start.
const DEVICE_PAUSE: Duration = Duration::from_micros(200);

/// A datapath whose sockets, store and devices are open. Its rules are restored, but the model has no ports.
pub(super) struct OpenDatapath {
    clock: MonotonicClock,
    listener: Listener,
    channels: Channels,
    restored: RestoredModel,
    devices: OpenDevices,
}

/// The running switch of one datapath. Dropping it stops its threads.
pub struct Daemon {
    pub(super) model_handle: ModelHandle,
    /// The thread that keeps the rules. It ends after the model, which has its journal.
    pub(super) store: Option<StoreHandle>,
    pub(super) clock: MonotonicClock,
    pub(super) listener: Listener,
    pub(super) channels: Channels,
    pub(super) workers: Arc<[Arc<Shared>]>,
    pub(super) search: Option<Arc<SharedSearch>>,
    /// For each worker of a started thread, the report that the thread has released the worker.
    pub(super) released: Vec<Receiver<()>>,
    /// The threads of the workers, which other datapaths share.
    pub(super) threads: Option<Arc<WorkerThreads>>,
    pub(super) search_thread: Option<JoinHandle<()>>,
    /// Number of workers whose searches were not answered when this was last logged.
    pub(super) unanswered_workers: usize,
    /// Whether the search worker was given up, and this was logged.
    pub(super) lost_search_worker: bool,
    pub(super) control: Arc<ControlWake>,
    /// The links as last reported to the model.
    pub(super) links: Vec<Known>,
    pub(super) link_thread: LinkThread,
    /// Requests of the thread that serves metrics.
    pub(super) metrics: Inlet,
    pub(super) datapath_id: u64,
    /// Descriptor on which datagrams of a device arrive, if one forwards.
    pub(super) device_descriptor: Option<OwnedFd>,
    /// Claims on the interfaces of ports, with the devices in the configuration.
    pub(super) device_locks: Vec<(String, DeviceLock)>,
    /// Changes of the configuration, and the way by which they come.
    pub(super) reload_commands: (Sender<ReloadCommand>, Receiver<ReloadCommand>),
    /// Reports to the service manager that the datapath works, if it expects reports.
    pub(super) watch: Option<DatapathWatch>,
    /// Makes changes of the configuration that clients request. `None` without a configuration file.
    pub(super) reloader: Option<Reloader>,
    pub(super) mirrors: Mirrors,
    /// Access to the ports that can be handed over in an upgrade.
    pub(super) handles: Vec<(PortNo, PortHandle)>,
    /// Whether rules must not change, because another process gets them.
    pub(super) is_frozen: bool,
    /// Commands of an upgrade, and the way by which they come.
    pub(super) upgrade_commands: (Sender<UpgradeCommand>, Receiver<UpgradeCommand>),
}

/// Compiles tables in the background. Its thread starts with the first table, and ends when there was none
/// for a while, so that many datapaths do not need as many threads.
#[derive(Default)]
struct Bases(Option<Sender<BackgroundTask>>);

impl Bases {
    fn compile(&mut self, task: BackgroundTask) {
        let unsent = match &self.0 {
            Some(bases) => bases.send(task).err().map(|unsent| unsent.0),
            None => Some(task),
        };
        let Some(task) = unsent else { return };
        let (sender, tasks) = channel::<BackgroundTask>();
        let run = move || {
            sandbox::enter(ThreadKind::Task);
            while let Ok(task) = tasks.recv_timeout(BASES_IDLE) {
                task();
            }
        };
        match std::thread::Builder::new().name("bases".into()).spawn(run) {
            Ok(_) => {
                // The thread waits for its first task.
                drop(sender.send(task));
                self.0 = Some(sender);
            }
            Err(error) => {
                tracing::warn!("a table is not compiled in the background: {error}");
                task();
            }
        }
    }
}

/// The workers that forward packets, and the search worker, if there is one.
type SharedWorkers = (Vec<Arc<Shared>>, Option<Arc<SharedSearch>>);

/// Prepares the workers for their threads, and lets operations wake them. `alarms` are the alarms of the
/// threads.
fn share(
    plane: &mut WorkerSet,
    workers: Vec<Worker>,
    alarms: Vec<Arc<Wake>>,
) -> Result<SharedWorkers, DaemonError> {
    let shared: Vec<Arc<Shared>> =
        workers.into_iter().zip(alarms).map(|(worker, alarm)| Arc::new(Shared::new(worker, alarm))).collect();
    for (number, shared) in shared.iter().enumerate() {
        let shared = Arc::clone(shared);
        plane.set_waker(number, Box::new(move || shared.apply_or_wake()));
    }
    let search = plane.take_search_worker().map(|worker| SharedSearch::new(worker).map(Arc::new));
    let search =
        search.transpose().map_err(DaemonError::io("create the wake-up descriptor of the search worker"))?;
    if let Some(search) = &search {
        let search = Arc::clone(search);
        plane.set_waker(shared.len(), Box::new(move || search.apply_or_wake()));
    }
    Ok((shared, search))
}

/// What forwards the packets of a datapath.
struct Forwarding {
    workers: Vec<Arc<Shared>>,
    search: Option<Arc<SharedSearch>>,
    device_descriptor: Option<OwnedFd>,
}

/// Returns the configuration of the set of workers, without clocks.
fn worker_set_config(config: &Config) -> WorkerSetConfig {
    WorkerSetConfig { workers: config.workers.len(), ..config.datapath.worker_set() }
}

fn forward_by_workers(
    config: &Config,
    ports: Vec<OpenPort>,
    frames: Option<AllocatedFrames>,
    crew: &mut Crew,
) -> Result<(Plane, Forwarding), DaemonError> {
    let egress = |number| {
        let port = config.datapath.ports.iter().find(|port| port.number == number);
        port.map(|port| port.queues.clone()).unwrap_or_default()
    };
    let queues = ports
        .into_iter()
        .map(|port| PortQueues { number: port.number, egress: egress(port.number), queues: port.queues })
        .collect();
    let sizes = WorkerSetConfig {
        stopwatch: Some(clock::elapsed),
        clock: Clock::of_machine(),
        ..worker_set_config(config)
    };
    let frames = frames.unwrap_or_else(|| AllocatedFrames::new(&sizes));
    let (mut plane, workers) = worker::build_from(&sizes, queues, frames, || ());
    let alarms: Vec<_> = config
        .workers
        .iter()
        .map(|worker| crew.alarm(worker))
        .collect::<Result<_, _>>()
        .map_err(DaemonError::io("create the wake-up descriptor of a worker"))?;
    let (workers, search) = share(&mut plane, workers, alarms)?;
    let mut bases = Bases::default();
    plane.set_compiler(worker::BACKGROUND_ADDITIONS_MIN, Box::new(move |task| bases.compile(task)));
    Ok((Plane::of_workers(plane), Forwarding { workers, search, device_descriptor: None }))
}

fn forward_by_device(
    config: &ConfiguredDevice,
    ports: Vec<OpenPort>,
) -> Result<(Plane, Forwarding), DaemonError> {
    let queue = |port: OpenPort| (port.number, port.queues.into_iter().next().map(|(_, queue)| queue));
    let ports = ports.into_iter().map(queue).collect();
    let device = DeviceDatapath::start(config, ports).map_err(DaemonError::io("start the device"))?;
    let device_descriptor =
        device.descriptor().map_err(DaemonError::io("wait for datagrams of the device"))?;
    let forwarding = Forwarding { workers: Vec::new(), search: None, device_descriptor };
    Ok((Plane::of_device(device), forwarding))
}

/// The open devices of a datapath.
struct OpenDevices {
    /// Link of each port.
    links: Vec<Known>,
    /// Name of each port.
    names: Vec<String>,
    /// Claims on the interfaces of ports, with the devices in the configuration.
    device_locks: Vec<(String, DeviceLock)>,
    handles: Vec<(PortNo, PortHandle)>,
    forwarding: Forwarding,
}

impl OpenDevices {
    /// Polls the links of patch ports again, because the other end may have been opened later.
    fn poll_patch_links(&mut self, plane: &mut Plane) {
        if self.links.iter().all(|known| known.patch_end.is_none()) {
            return;
        }
        self.forwarding.workers.iter().for_each(|worker| worker.keep_house());
        let links = plane.port_links();
        for known in self.links.iter_mut().filter(|known| known.patch_end.is_some()) {
            known.link = links.get(&known.port).copied().unwrap_or(known.link);
        }
    }
}

/// Builds what forwards the packets of open ports. `frames` are those of the workers, if workers forward.
fn take_ports(
    config: &Config,
    mut ports: Vec<OpenPort>,
    frames: Option<AllocatedFrames>,
    crew: &mut Crew,
) -> Result<(Plane, OpenDevices), DaemonError> {
    let links = ports.iter_mut().map(|port| known_link(config, port)).collect();
    let names = ports.iter().map(|port| port.name.clone()).collect();
    let device_locks = ports.iter_mut().filter_map(|port| take_lock(config, port)).collect();
    let handles = ports.iter().filter_map(|port| Some((port.number, port.handle()?))).collect();
    let (plane, forwarding) = match &config.datapath.device {
        Some(device) => forward_by_device(device, ports)?,
        None => forward_by_workers(config, ports, frames, crew)?,
    };
    Ok((plane, OpenDevices { links, names, device_locks, handles, forwarding }))
}

/// Opens the ports of a datapath and restores its rules. If workers forward, a second thread opens the ports,
/// and a third one allocates frames, while this thread restores the rules. A device outside this process may
/// refuse rules, so its ports are opened first.
fn open_and_restore(
    config: &Config,
    clock: MonotonicClock,
    source: KeptSource,
    open: impl FnOnce() -> Result<Vec<OpenPort>, DaemonError> + Send,
    crew: &mut Crew,
) -> Result<(OpenDevices, RestoredModel), DaemonError> {
    // The calibration takes 10 ms, during which the ports are opened.
    Clock::begin_calibration();
    if config.datapath.device.is_some() {
        let (plane, devices) = take_ports(config, open()?, None, crew)?;
        let model = new_model(config, clock, plane)?;
        return Ok((devices, RestoredModel::new(clock, model, source.read(config)?)));
    }
    std::thread::scope(|scope| {
        let opening = std::thread::Builder::new().name("open".into()).spawn_scoped(scope, open);
        let opening = opening.map_err(DaemonError::io("start the thread that opens the ports"))?;
        // Two threads that take memory slow each other down, so the frames are allocated after this.
        let read = source.read(config);
        // Without the thread, the frames are allocated later.
        let allocate = || AllocatedFrames::new(&worker_set_config(config));
        let allocating = std::thread::Builder::new().name("frames".into()).spawn_scoped(scope, allocate).ok();
        let restored = new_model(config, clock, Plane::waiting())
            .and_then(|model| Ok(RestoredModel::new(clock, model, read?)));
        let ports = opening.join().unwrap_or(Err(DaemonError::ControlEnded))?;
        let frames = allocating.and_then(|thread| thread.join().ok());
        let (plane, devices) = take_ports(config, ports, frames, crew)?;
        let mut restored = restored?;
        restored.start_plane(plane);
        Ok((devices, restored))
    })
}

/// Prepares the mirrors, and lets the workers take them with their first operations.
fn start_mirrors(
    config: &Config,
    model: &mut Model<Plane>,
    clock: MonotonicClock,
    is_continued: bool,
) -> Mirrors {
    let datapath = &config.datapath;
    let mut mirrors = Mirrors::default();
    let Some(workers) = model.plane_mut().workers().filter(|_| !datapath.mirrors.is_empty()) else {
        return mirrors;
    };
    let prepare = if is_continued { mirror::prepare_all_later } else { mirror::prepare_all };
    let prepared = prepare(&datapath.mirrors, &datapath.ports, config.workers.len(), clock);
    let MirrorsUpdate { removed, added } = mirrors.change(&[], prepared);
    workers.change_ports(PortsUpdate {
        mirrors_removed: removed,
        mirrors_added: added,
        ..PortsUpdate::default()
    });
    mirrors
}

/// Takes the claim on the interface of an open port, with the device in the configuration.
fn take_lock(config: &Config, port: &mut OpenPort) -> Option<(String, DeviceLock)> {
    let settings = config.datapath.ports.iter().find(|settings| settings.number == port.number);
    settings.map(|settings| settings.device.clone()).zip(port.device_lock.take())
}

/// Returns the kernel interface of a port, if there is one.
pub(super) fn interface(port: &ConfiguredPort) -> Option<String> {
    port::interface_of(&port.driver, &port.device).map(str::to_owned)
}

fn known_link(config: &Config, port: &mut OpenPort) -> Known {
    let settings = config.datapath.ports.iter().find(|settings| settings.number == port.number);
    Known {
        port: port.number,
        interface: settings.and_then(interface),
        patch_end: port.patch_end(),
        link: port.poll_link(),
        downs: 0,
    }
}

impl Daemon {
    /// Starts forwarding over the ports that `open` returns.
    ///
    /// Another thread calls `open`, after the control socket is bound. So a second daemon with the same
    /// configuration fails before it touches the first daemon's devices. The flows of `flows` are active
    /// before the first packet. Returns `None` if the daemon was stopped before it forwarded packets.
    ///
    /// # Errors
    ///
    /// Returns an error if the control socket cannot be created, a port cannot be opened, or the flow file is
    /// wrong.
    pub fn start(
        config: &Config,
        open: impl FnOnce() -> Result<Vec<OpenPort>, DaemonError> + Send,
        flows: Option<&Path>,
        stop: &Stop,
    ) -> Result<Option<Self>, DaemonError> {
        let mut crew = Crew::default();
        let opened = Self::open(config, open, &mut crew)?;
        let Some(mut daemon) = Self::prepare(config, opened, flows, stop, &mut crew)? else {
            return Ok(None);
        };
        start_workers(crew, config, [&mut daemon])?;
        Ok(Some(daemon))
    }

    /// Binds the sockets of a datapath, and opens its store and its devices. All datapaths must be opened
    /// before the first one is prepared, because a patch port has a link only if its other end is open.
    pub(super) fn open(
        config: &Config,
        open: impl FnOnce() -> Result<Vec<OpenPort>, DaemonError> + Send,
        crew: &mut Crew,
    ) -> Result<OpenDatapath, DaemonError> {
        pipeline::set_portable(config.portable);
        let clock = MonotonicClock::new();
        let access = &config.process.control;
        let listener = Listener::bind(&config.control, SocketPurpose::Control, access, CLIENTS_WAITING)?;
        let channels = Channels::open(&config.datapath, None)?;
        // If another datapath or process uses the store, no device is touched. Threads read the store while
        // the devices are opened.
        let source = KeptSource::Store(kept_rules::begin(config, clock)?);
        let (devices, restored) = open_and_restore(config, clock, source, open, crew)?;
        Ok(OpenDatapath { clock, listener, channels, restored, devices })
    }

    /// Opens a datapath like [`Daemon::open`] with the sockets and the state of an earlier process. Its store
    /// is opened later.
    pub(super) fn open_inherited(
        config: &Config,
        mut inherited: InheritedDatapath,
        crew: &mut Crew,
    ) -> Result<OpenDatapath, DaemonError> {
        pipeline::set_portable(config.portable);
        let clock = MonotonicClock::new();
        let purpose = SocketPurpose::Control;
        let is_same = Path::new(&inherited.offer.control) == config.control;
        let listener = match inherited.control.take().filter(|_| is_same) {
            Some(socket) => Listener::inherited(&config.control, purpose, socket)?,
            None => Listener::bind(&config.control, purpose, &config.process.control, CLIENTS_WAITING)?,
        };
        let channels = Channels::open(&config.datapath, Some(&mut inherited))?;
        let source = KeptSource::Predecessor(kept_rules::decode(config, clock, &inherited.state)?);
        let open = || open_inherited(config, &mut inherited);
        let (devices, restored) = open_and_restore(config, clock, source, open, crew)?;
        Ok(OpenDatapath { clock, listener, channels, restored, devices })
    }

    /// Like [`Daemon::start`], but does not start the threads of workers. Adds the workers to `crew` instead.
    pub(super) fn prepare(
        config: &Config,
        opened: OpenDatapath,
        flows: Option<&Path>,
        stop: &Stop,
        crew: &mut Crew,
    ) -> Result<Option<Self>, DaemonError> {
        let Some(mut daemon) = Self::set_up(config, opened, flows, stop)? else { return Ok(None) };
        if !daemon.put_into_force(stop) {
            return Ok(None);
        }
        daemon.start_search(config)?;
        daemon.enlist(config, crew);
        Ok(Some(daemon))
    }

    /// Returns the bound OpenFlow endpoints in the order of the configuration, with the port that the system
    /// chose in place of port 0.
    #[must_use]
    pub fn openflow_addresses(&self) -> Vec<Endpoint> {
        self.channels.addresses(Protocol::OpenFlow)
    }

    /// Returns the bound POF endpoints in the order of the configuration, with the port that the system chose
    /// in place of port 0.
    #[must_use]
    pub fn pof_addresses(&self) -> Vec<Endpoint> {
        self.channels.addresses(Protocol::Pof)
    }

    /// Returns where metrics of the datapath come from, for [`crate::metrics::start`].
    #[must_use]
    pub fn metrics_source(&self) -> MetricsSource {
        let control = Arc::clone(&self.control);
        self.metrics.source(self.datapath_id, Box::new(move || control.wake.wake()))
    }

    /// Sets up everything except the threads. Operations may still be queued for the workers afterwards.
    pub(super) fn set_up(
        config: &Config,
        opened: OpenDatapath,
        flows: Option<&Path>,
        stop: &Stop,
    ) -> Result<Option<Self>, DaemonError> {
        let OpenDatapath { clock, listener, channels, mut restored, mut devices } = opened;
        let model = &mut restored.model;
        devices.poll_patch_links(model.plane_mut());
        let OpenDevices { links, names, device_locks, handles, forwarding } = devices;
        for (Known { port, link, .. }, name) in links.iter().zip(names) {
            model.add_port(clock.now(), describe(*port, name, link), link.up)?;
        }
        reserve_ports(model, clock.now(), &config.datapath);
        let is_handed_over = restored.is_handed_over();
        let mirrors = start_mirrors(config, &mut restored.model, clock, is_handed_over);
        let Some((model, store)) = restored.complete(clock, flows, stop)? else { return Ok(None) };
        let Forwarding { workers, search, device_descriptor } = forwarding;
        let wake =
            Wake::new().map_err(DaemonError::io("create the wake-up descriptor of the control thread"))?;
        let control = Arc::new(ControlWake { wake, asleep: SleepFlag::default() });
        let interfaces = config.datapath.ports.iter().filter_map(interface).collect();
        let link_thread = LinkThread::start(interfaces, Arc::clone(&control))
            .map_err(DaemonError::io("watch the ports' links"))?;
        let model_handle = ModelHandle::new(model, Arc::clone(&control));
        let daemon = Self {
            model_handle,
            store,
            clock,
            listener,
            channels,
            workers: workers.into(),
            search,
            released: Vec::new(),
            threads: None,
            search_thread: None,
            unanswered_workers: 0,
            lost_search_worker: false,
            control,
            links,
            link_thread,
            metrics: Inlet::new(),
            datapath_id: config.datapath.id,
            device_descriptor,
            device_locks,
            reload_commands: channel(),
            watch: None,
            reloader: None,
            mirrors,
            handles,
            is_frozen: false,
            upgrade_commands: channel(),
        };
        Ok(Some(daemon))
    }

    /// Applies all queued operations on the calling thread, before the workers' threads start.
    ///
    /// A running worker applies only a few operations per turn, so its first packets would be looked up in
    /// incomplete tables. Also publishes the links. Returns `false` if the daemon was stopped.
    pub(super) fn put_into_force(&mut self, stop: &Stop) -> bool {
        let Some(model) = self.model_handle.here() else { return false };
        if let Some(device) = model.plane_mut().device() {
            device.plane.release_link();
            return wait_for_device(model, self.clock, stop);
        }
        let barrier = model.barrier();
        while !model.is_applied(barrier) {
            if stop.is_requested() {
                return false;
            }
            self.workers.iter().for_each(|worker| worker.apply());
            self.search.iter().for_each(|search| search.apply());
        }
        self.workers.iter().for_each(|worker| worker.keep_house());
        !stop.is_requested()
    }

    /// Starts the thread of the search worker, if there is one.
    fn start_search(&mut self, config: &Config) -> Result<(), DaemonError> {
        if let Some(search) = &self.search {
            let cpu = config.datapath.searcher_cpu;
            let sleeps = config.workers.iter().any(|worker| super::sleeps(worker.idle));
            let spin_ns = sleeps.then_some(config.pace.spin_ns);
            let thread = super::search::start(Arc::clone(search), cpu, spin_ns, self.clock);
            self.search_thread = Some(thread.map_err(DaemonError::io("start the search worker's thread"))?);
        }
        Ok(())
    }

    /// Adds the workers to the threads that will run them.
    fn enlist(&mut self, config: &Config, crew: &mut Crew) {
        let others = Others {
            workers: Arc::clone(&self.workers),
            search: self.search.clone(),
            control: Arc::clone(&self.control),
        };
        for (worker, shared) in config.workers.iter().zip(self.workers.iter()) {
            let (sender, receiver) = channel();
            let (shared, others) = (Arc::clone(shared), others.clone());
            crew.add(worker, Member { shared, others, clock: self.clock, released: sender });
            self.released.push(receiver);
        }
    }

    /// Returns an error if a thread has released a worker, or has ended.
    pub(super) fn check_threads(&self) -> Result<(), DaemonError> {
        let runs = |released: &Receiver<()>| released.try_recv() == Err(TryRecvError::Empty);
        match self.released.iter().position(|released| !runs(released)) {
            Some(worker) => Err(DaemonError::WorkerEnded(worker)),
            None => Ok(()),
        }
    }
}

/// Starts the threads of the workers of all datapaths. `config` is the configuration of any of them.
pub(super) fn start_workers<'a>(
    crew: Crew,
    config: &Config,
    daemons: impl IntoIterator<Item = &'a mut Daemon>,
) -> Result<(), DaemonError> {
    let threads = Arc::new(crew.start(config.pace).map_err(DaemonError::io("start a worker's thread"))?);
    for daemon in daemons {
        daemon.threads = Some(Arc::clone(&threads));
    }
    Ok(())
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for worker in self.workers.iter() {
            worker.stop();
        }
        // An error means that the thread has panicked, or was never started.
        for released in &self.released {
            let _ = released.recv();
        }
        self.search.iter().for_each(|search| search.stop());
        if self.search_thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the search worker's thread had panicked");
        }
        // All workers are released, so none hands over frames to another.
        for (number, worker) in self.workers.iter().enumerate() {
            let ShutdownLoss { packets, frames } = worker.end();
            if packets + frames > 0 {
                tracing::warn!(
                    "worker {number} ended with {packets} waiting packets and {frames} frames for devices (shutdown)"
                );
            }
        }
        self.mirrors.finish();
        // The last datapath waits until the threads end, which closes the devices.
        self.threads = None;
    }
}

/// Waits for a while until a device has the entries of the rules. A device that does not answer gets them
/// later. Returns `false` if the daemon was stopped.
fn wait_for_device(model: &mut Model<Plane>, clock: MonotonicClock, stop: &Stop) -> bool {
    let barrier = model.barrier();
    let end = clock.now().saturating_add(DEVICE_WAIT_NS);
    while !stop.is_requested() && clock.now() < end {
        model.plane_mut().tick(clock.now());
        if model.plane_mut().device().is_some_and(|device| device.plane.is_ready())
            && model.is_applied(barrier)
        {
            break;
        }
        std::thread::sleep(DEVICE_PAUSE);
    }
    !stop.is_requested()
}

/// Checks the ports, the stateless forwarder and the flow file that [`Daemon::start`] would use, without
/// opening a device. Returns the changes that loading the flow file would make.
///
/// # Errors
///
/// Returns the errors of [`Daemon::start`] that do not depend on devices or sockets.
pub fn check(config: &Config, flows: Option<&Path>) -> Result<Option<Changed>, DaemonError> {
    let clock = MonotonicClock::new();
    let plane = match &config.datapath.device {
        Some(device) => Plane::of_device(DeviceDatapath::without_device(device)),
        None => Plane::of_workers(worker::without_workers()),
    };
    let mut model = new_model(config, clock, plane)?;
    for port in &config.datapath.ports {
        model.add_port(clock.now(), describe(port.number, port.name.clone(), &Link::default()), true)?;
    }
    let flows = flows.or(config.datapath.flows.as_deref());
    flows.map(|flows| super::load::check(&mut model, clock, flows)).transpose()
}

/// Checks that the files of TLS connections can be used.
///
/// # Errors
///
/// Returns the first problem of the files.
pub fn check_certificates(config: &Config) -> Result<(), DaemonError> {
    Ok(crate::channels::check_tls(&config.datapath)?)
}

/// Checks that the users and groups of the configuration exist on this machine.
///
/// # Errors
///
/// Returns the first user or group that does not exist.
pub fn check_access(config: &Config) -> Result<(), DaemonError> {
    ResolvedAccess::find(&config.process.control).map_err(ListenError::from)?;
    if let Some(name) = &config.process.security.user {
        sandbox::find_user(name)?;
    }
    Ok(())
}

/// Creates the model of a datapath, without ports and rules.
fn new_model(config: &Config, clock: MonotonicClock, plane: Plane) -> Result<Model<Plane>, DaemonError> {
    let mut model = Model::new(model_config(config), plane, clock.now());
    model.set_bridge(clock.now(), config.datapath.bridge());
    model.set_stateless(clock.now(), config.datapath.stateless.clone())?;
    Ok(model)
}

fn model_config(config: &Config) -> model::ModelConfig {
    model::ModelConfig {
        datapath_id: config.datapath.id,
        standalone: config.datapath.openflow.standalone,
        low_latency_cookie: config.datapath.forwarding.low_latency_cookie,
        // A device has no low-latency entries.
        learning: config.datapath.forwarding.learning.filter(|_| config.datapath.device.is_none()),
        quenches: config.datapath.openflow.packet_ins.quench.is_some(),
        ..model::ModelConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::mem::pair;

    /// All operations must be active and all links known before the threads start.
    #[test]
    fn operations_and_links_are_applied_before_the_threads_start() {
        const PORTS: u32 = 32;
        let folder = std::env::temp_dir().join(format!("shunt-start-{}", std::process::id()));
        let text =
            format!("control = {:?}\n[[worker]]\n[[worker]]\n[[datapath]]\nid = 1\n", folder.join("s.sock"));
        let config = Config::parse(&text).unwrap();
        let (stop, _tell) = Stop::by_hand().unwrap();
        let mut handles = Vec::new();
        let ports = (1..=PORTS).map(|number| {
            let (mut queues, handle) = pair(number, 1, 4);
            handles.push(handle);
            let queue = Box::new(queues.remove(0)) as Box<dyn port::Queue>;
            OpenPort {
                number: PortNo(number),
                name: format!("p{number}"),
                queues: vec![(number as usize % 2, queue)],
                device_lock: None,
            }
        });
        let mut crew = Crew::default();
        let opened = Daemon::open(&config, || Ok(ports.collect()), &mut crew).unwrap();
        let mut daemon = Daemon::set_up(&config, opened, None, &stop).unwrap().unwrap();
        let model = daemon.model_handle.here().unwrap();
        let barrier = model.barrier();
        assert!(!model.is_applied(barrier));
        assert!(daemon.put_into_force(&stop));
        let model = daemon.model_handle.here().unwrap();
        assert!(model.is_applied(barrier));
        let links = model.plane_mut().port_links();
        assert_eq!(links.values().filter(|link| link.up).count(), PORTS as usize);
        drop(daemon);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
