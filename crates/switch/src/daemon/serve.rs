// SPDX-License-Identifier: Apache-2.0
//! The loop of a control thread. It owns the models of its datapaths, answers clients and controllers, and
//! processes timers and worker events.
//!
//! Begin with [`serve`], then read [`Served::step`].

use super::change::PendingChange;
use super::{Daemon, DaemonError, Stop, links, storms};
use crate::control::{Connection, ControlState, PARKED_MAX};
use config::trace::TracedPlane;
use dataplane::DataPlane;
use flow::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of clients of a control socket.
const CLIENTS: usize = 64;
/// Time between two checks of links and threads, in ns, and the longest sleep.
const TEND_NS: Nanos = Nanos(100_000_000);
/// Longest sleep of a datapath without workers and device. Only timeouts of connections end late by it.
const QUIET_NS: Nanos = Nanos(1_000_000_000);
/// Longest sleep while a client waits for traces of real packets, in ns.
const RECORDS_NS: Nanos = Nanos(5_000_000);
/// Time after a message in which the thread of a device's datapath polls without sleep. Waking up takes 20 to
/// 40 us, which is longer than most controllers on the same machine need for their next message.
const AWAKE_NS: Nanos = Nanos(100_000);
/// Longest sleep while a client waits for a change to become active, in ns.
const BARRIER_NS: Nanos = Nanos(200_000);

/// A datapath with its clients, and the time of its next step.
struct Served {
    daemon: Daemon,
    clients: Vec<Connection>,
    loading_room: usize,
    /// Time of the last check of links and threads, by the clock of the datapath.
    tended_ns: Nanos,
    /// Whether too many operations wait for the workers to take further requests.
    congested: bool,
    /// Time at which a descriptor was last ready, by the clock of the datapath.
    woken_ns: Nanos,
    /// Change of the configuration that the workers are applying.
    pending: Option<PendingChange>,
    /// Time of the next step, unless a descriptor is ready earlier.
    due: Instant,
}

/// Serves datapaths on the calling thread until they are stopped. Then their workers end and their control
/// sockets are removed.
///
/// # Errors
///
/// Returns an error if a thread of a datapath ended unexpectedly, or if `poll` fails.
pub(super) fn serve(daemons: Vec<Daemon>, stop: &Stop) -> Result<(), DaemonError> {
    let mut all: Vec<Served> = daemons.into_iter().map(Served::new).collect();
    loop {
        let now = Instant::now();
        for served in all.iter_mut().filter(|served| served.due <= now) {
            served.step()?;
        }
        if wait(&mut all, stop)? {
            all.iter_mut().flat_map(|served| &mut served.clients).for_each(Connection::flush);
            return Ok(());
        }
    }
}

/// Waits until a datapath has something to do. Returns `true` if the daemon is stopped.
fn wait(all: &mut [Served], stop: &Stop) -> Result<bool, DaemonError> {
    let mut set = vec![PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)];
    let mut ends = Vec::with_capacity(all.len());
    for served in all.iter() {
        served.descriptors(&mut set);
        ends.push(set.len());
    }
    let due = all.iter().map(|served| served.due).min();
    let sleep = due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
    let limit = Timespec { tv_sec: sleep.as_secs() as _, tv_nsec: sleep.subsec_nanos().into() };
    match poll(&mut set, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(DaemonError::Io { what: "wait for clients", source: error.into() }),
    }
    let answers: Vec<PollFlags> = set.into_iter().map(|fd| fd.revents()).collect();
    let mut begin = 1;
    for (served, end) in all.iter_mut().zip(ends) {
        let of_datapath = answers.get(begin..end).unwrap_or_default();
        if of_datapath.iter().any(|answer| !answer.is_empty()) {
            served.woken(of_datapath);
        }
        begin = end;
    }
    Ok(answers.first().is_some_and(|answer| !answer.is_empty()))
}

impl Served {
    fn new(mut daemon: Daemon) -> Self {
        let loading_room = daemon.model_handle.here().map_or(0, |model| model.config().limits.entries);
        Self {
            daemon,
            clients: Vec::new(),
            loading_room,
            tended_ns: Nanos::ZERO,
            congested: true,
            woken_ns: Nanos::ZERO,
            pending: None,
            due: Instant::now(),
        }
    }

    /// Does what is due and what has arrived, and sets the time of the next step.
    fn step(&mut self) -> Result<(), DaemonError> {
        let daemon = &mut self.daemon;
        let done = daemon.model_handle.take_back()?;
        // Announce the sleep before looking for work, so that a worker that reports something later wakes
        // this thread. While the model is lent, workers need not wake this thread, because their reports
        // must wait.
        match daemon.model_handle.here() {
            Some(_) => daemon.control.asleep.announce(),
            None => daemon.control.asleep.end(),
        }
        let now = daemon.clock.now();
        self.pending = change_configuration(daemon, self.pending.take());
        let is_due = now.saturating_sub(self.tended_ns) >= TEND_NS;
        if is_due {
            daemon.check()?;
            self.tended_ns = now;
        }
        if let Some(model) = daemon.model_handle.here()
            && (daemon.link_thread.take_changed() | is_due)
        {
            links::carry(model, now, &mut daemon.links, &daemon.link_thread.links());
        }
        self.congested = true;
        let sleep_ns = match daemon.model_handle.here() {
            // The thread that has the model wakes this thread when it is done. Until then, only echo
            // requests are answered.
            None if daemon.channels.step_alone(now) => Nanos::ZERO,
            None => TEND_NS,
            Some(model) => {
                let mut more = model.poll(now);
                storms::log_notices(model);
                let workers = &daemon.workers;
                let mut refresh = || workers.iter().for_each(|worker| worker.keep_house());
                if let Some(done) = done {
                    daemon.channels.finish(done, model, now, &mut refresh);
                }
                more |= if daemon.is_frozen {
                    daemon.channels.step_alone(now)
                } else {
                    daemon.channels.step(model, daemon.clock.now(), &mut refresh)
                };
                let now = daemon.clock.now();
                let (channels, control) = (&daemon.channels, &daemon.control);
                let reloader = daemon.reloader.as_ref();
                let mut state = ControlState {
                    model,
                    now,
                    refresh: &mut refresh,
                    lost: &|| channels.lost(),
                    reload: &|work| Some(reloader?.request(work, Arc::clone(control))),
                    configuration: &|| Some(reloader?.path().to_path_buf()),
                    controllers: &|| channels.report(),
                    loading_room: &mut self.loading_room,
                    store: daemon.store.as_ref(),
                    mirrors: &daemon.mirrors,
                };
                more |= serve_clients(&mut self.clients, &mut state, daemon.is_frozen);
                daemon.metrics.answer(&mut state, workers.len());
                self.sleep_ns(more)
            }
        };
        if !self.daemon.is_frozen
            && let Some(work) = self.daemon.channels.take_work()
        {
            self.daemon.model_handle.lend(work);
        }
        if !self.daemon.model_handle.is_lent() {
            self.daemon.step_upgrade();
        }
        self.due = Instant::now() + Duration::from(sleep_ns);
        Ok(())
    }

    /// Returns the longest sleep after a step, and sets whether the datapath is congested. `more` states
    /// whether more work is ready.
    fn sleep_ns(&mut self, mut more: bool) -> Nanos {
        let daemon = &mut self.daemon;
        let Some(model) = daemon.model_handle.here() else { return TEND_NS };
        // Waking up takes longer than most answers of a device.
        let now = daemon.clock.now();
        more |= model.plane_mut().device().is_some_and(|device| {
            device.plane.expects_answer(now) || now.saturating_sub(self.woken_ns) < AWAKE_NS
        });
        // A device reports that it has executed a change, but workers do not.
        let device_due = model.plane_mut().device().map(|device| device.due());
        // Take no further requests while many operations wait for the workers.
        self.congested = model.plane_mut().parked() >= PARKED_MAX;
        if more {
            return Nanos::ZERO;
        }
        let waits = self.pending.is_some() || self.clients.iter().any(Connection::waits_for_barrier);
        if (device_due.is_none() || self.pending.is_some())
            && (self.congested || waits || daemon.channels.waits_for_barrier())
        {
            return BARRIER_NS;
        }
        let waits = self.clients.iter().any(Connection::waits_for_records);
        let longest_ns = match () {
            () if waits => RECORDS_NS,
            () if daemon.workers.is_empty() && device_due.is_none() => QUIET_NS,
            () => TEND_NS,
        };
        let due = model.next_deadline().into_iter().chain(device_due).chain(daemon.channels.due()).min();
        due.map_or(longest_ns, |at| at.saturating_sub(daemon.clock.now())).min(longest_ns)
    }

    /// Returns whether clients are served. While the model is lent, they are not, and their ready descriptors
    /// would end every sleep immediately.
    fn serves_clients(&self) -> bool {
        !self.daemon.model_handle.is_lent() && !self.daemon.is_frozen
    }

    /// Adds the descriptors to poll. [`Self::woken`] must get their results in the same order.
    fn descriptors<'a>(&'a self, set: &mut Vec<PollFd<'a>>) {
        let daemon = &self.daemon;
        set.push(PollFd::from_borrowed_fd(daemon.control.wake.as_fd(), PollFlags::IN));
        if self.serves_clients() {
            set.push(PollFd::from_borrowed_fd(daemon.listener.descriptor(), PollFlags::IN));
            // Datagrams of the device end the sleep.
            set.extend(daemon.device_descriptor.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            for client in &self.clients {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, !self.congested && client.wants_to_read());
                flags.set(PollFlags::OUT, client.wants_to_write());
                set.push(PollFd::from_borrowed_fd(client.descriptor(), flags));
            }
        }
        daemon.channels.descriptors(set);
    }

    /// Processes the results of a poll, of which at least one is not empty.
    fn woken(&mut self, answers: &[PollFlags]) {
        self.due = Instant::now();
        self.woken_ns = self.daemon.clock.now();
        let is_ready = |at: usize| answers.get(at).is_some_and(|answer| !answer.is_empty());
        let serves = self.serves_clients();
        let of_clients = match serves {
            true => 2 + usize::from(self.daemon.device_descriptor.is_some()) + self.clients.len(),
            false => 1,
        };
        if is_ready(0) {
            self.daemon.control.wake.clear();
        }
        self.daemon.channels.woken(answers.iter().skip(of_clients).copied());
        if serves && is_ready(1) {
            self.daemon.accept(&mut self.clients);
        }
    }
}

/// Continues the change of the configuration that the workers are applying, or begins the next one. Returns
/// the change that the workers have not applied yet.
fn change_configuration(daemon: &mut Daemon, pending: Option<PendingChange>) -> Option<PendingChange> {
    if daemon.model_handle.is_lent() {
        return pending;
    }
    let begun = match pending {
        Some(pending) => Some(pending),
        None => {
            let command = daemon.reload_commands.1.try_recv().ok()?;
            daemon.begin_change(command)
        }
    };
    begun.filter(|pending| !daemon.end_change(pending))
}

impl Daemon {
    /// Serves clients, controllers and workers on the calling thread until the daemon is stopped. Then the
    /// workers end and the control socket is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread of the daemon ended unexpectedly, or if `poll` fails.
    pub fn serve(self, stop: &Stop) -> Result<(), DaemonError> {
        serve(vec![self], stop)
    }

    /// Checks what works beside the control thread, and logs changes.
    fn check(&mut self) -> Result<(), DaemonError> {
        self.check_threads()?;
        if let Some(watch) = &mut self.watch {
            watch.check(&self.workers);
        }
        self.check_search_worker();
        let model = self.model_handle.here();
        let Some(device) = model.and_then(|model| model.plane_mut().device()) else { return Ok(()) };
        device.log_state();
        if device.is_running() { Ok(()) } else { Err(DaemonError::DeviceEnded) }
    }

    /// Logs when the search worker ceases or begins to answer, and when it is given up.
    fn check_search_worker(&mut self) {
        let Some(model) = self.model_handle.here() else { return };
        let Some(plane) = model.plane_mut().workers() else { return };
        if !plane.reaches_search_worker() {
            if !std::mem::replace(&mut self.lost_search_worker, true) {
                tracing::error!(
                    "the search worker has ended or applies no rule changes, so it is not used again until the switch is restarted; all workers look up packets in their own tables"
                );
            }
            return;
        }
        let unanswered = plane.unanswered_workers();
        if std::mem::replace(&mut self.unanswered_workers, unanswered) == unanswered {
            return;
        }
        if unanswered == 0 {
            tracing::info!("the search worker answers again");
        } else {
            tracing::warn!(
                "the search worker does not answer {unanswered} of the workers, which look up packets in their own tables"
            );
        }
    }

    fn accept(&self, clients: &mut Vec<Connection>) {
        loop {
            match self.listener.accept() {
                Ok(None) => return,
                Ok(Some(stream)) => {
                    let mut client = Connection::new(stream);
                    if clients.len() >= CLIENTS {
                        client.refuse("64 clients are connected, the maximum; close one and try again");
                        continue;
                    }
                    clients.push(client);
                }
                Err(error) => {
                    tracing::warn!("a client of the control socket was not accepted: {error}");
                    return;
                }
            }
        }
    }
}

/// Serves clients. While the rules are frozen, only those that wait for an upgrade are served.
fn serve_clients(clients: &mut Vec<Connection>, state: &mut ControlState<'_>, is_frozen: bool) -> bool {
    let mut more = false;
    clients.retain_mut(|client| {
        if is_frozen && !client.waits_for_reload() {
            return true;
        }
        more |= client.step(state);
        if client.is_over() {
            client.close(state);
        }
        !client.is_over()
    });
    more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::open;
    use config::{Config, Endpoint};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A datapath with one port, which has no device.
    fn datapath(folder: &std::path::Path, id: u64, stop: &Stop) -> Daemon {
        let socket = folder.join(format!("{id}.sock"));
        let text = format!(
            "control = {socket:?}\n[[datapath]]\nid = {id}\n[datapath.openflow]\nlisten = \"127.0.0.1:0\"\n\
             [[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"none\"\n"
        );
        let config = Config::parse(&text).unwrap();
        Daemon::start(&config, || open(&config), None, stop).unwrap().unwrap()
    }

    /// Reads one OpenFlow message.
    fn message(stream: &mut TcpStream) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        stream.read_exact(&mut bytes).unwrap();
        bytes.resize(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), 0);
        stream.read_exact(&mut bytes[8..]).unwrap();
        bytes
    }

    // Types of messages.
    const HELLO: u8 = 0;
    const ECHO_REQUEST: u8 = 2;
    const ECHO_REPLY: u8 = 3;
    const FEATURES_REQUEST: u8 = 5;
    const FEATURES_REPLY: u8 = 6;

    /// An OpenFlow 1.3 message without a body.
    fn header(kind: u8, xid: u8) -> [u8; 8] {
        [4, kind, 0, 8, 0, 0, 0, xid]
    }

    #[test]
    fn a_thread_serves_several_datapaths_without_workers() {
        const COUNT: u64 = 5;
        let folder = std::env::temp_dir().join(format!("shunt-serve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (stop, tell) = Stop::by_hand().unwrap();
        let daemons: Vec<_> = (1..=COUNT).map(|id| datapath(&folder, id, &stop)).collect();
        assert!(daemons.iter().all(|daemon| daemon.workers.is_empty()));
        let addresses: Vec<_> = daemons.iter().flat_map(Daemon::openflow_addresses).collect();
        let thread = std::thread::spawn(move || serve(daemons, &stop));
        let mut streams: Vec<_> = addresses
            .iter()
            .map(|address| {
                let Endpoint::Tcp(address) = address else { panic!("{address}") };
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                stream.write_all(&header(HELLO, 1)).unwrap();
                assert_eq!(message(&mut stream)[1], HELLO);
                stream
            })
            .collect();
        for round in 1..=3 {
            for (id, stream) in (1..).zip(&mut streams) {
                stream.write_all(&header(FEATURES_REQUEST, round)).unwrap();
                let reply = message(stream);
                assert_eq!((reply[1], reply[15]), (FEATURES_REPLY, id));
                stream.write_all(&header(ECHO_REQUEST, round)).unwrap();
                assert_eq!(message(stream), header(ECHO_REPLY, round));
            }
        }
        // A datapath without a client does not hinder the others.
        drop(streams.remove(0));
        streams[0].write_all(&header(ECHO_REQUEST, 9)).unwrap();
        assert_eq!(message(&mut streams[0]), header(ECHO_REPLY, 9));
        drop(tell);
        thread.join().unwrap().unwrap();
        assert!((1..=COUNT).all(|id| !folder.join(format!("{id}.sock")).exists()));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
