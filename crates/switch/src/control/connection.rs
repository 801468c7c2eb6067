// SPDX-License-Identifier: Apache-2.0
//! Serves one client of the control socket, on the control thread.
//!
//! To bound memory, the switch processes a client's next request only after the current answer is complete,
//! and produces the next part of an answer only after the earlier parts are sent. Begin with
//! [`Connection::step`].

use super::change::{ReloadResult, ReloadWork};
use super::flows::Walk;
use super::protocol::{Changes, ConfigurationFile, ControlRequest, ControllersReport};
use super::request::parse;
use super::{REQUEST_BYTES, mirrors, show};
use crate::live_trace::Watch;
use crate::log;
use crate::mirror::Mirrors;
use crate::plane::Plane;
use config::flow_file::{FlowFile, port_names};
use config::stateless_form::{GatesForm, StatelessForm};
use dataplane::DataPlane;
use flow::stateless::{StatelessChange, StatelessSection};
use flow::{Nanos, RuleVersion};
use model::agent::LostMessages;
use model::{Change, Changed, Model};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};
use store::StoreHandle;

/// Number of unsent bytes of answers at which no further part of an answer is produced.
const OUTBOX_BYTES: usize = 256 * 1_024;
/// Maximum number of bytes read at a time.
const READ_BYTES: usize = 64 * 1_024;
/// Maximum number of operations that wait on the control thread for space in the workers' queues. While this
/// number of operations waits, no further request is processed.
pub const PARKED_MAX: usize = 256;

/// State of the daemon that requests read and change.
pub struct ControlState<'a> {
    pub model: &'a mut Model<Plane>,
    pub now: Nanos,
    /// Makes sleeping workers publish their links and counters.
    pub refresh: &'a mut dyn FnMut(),
    /// Returns the number of messages for OpenFlow controllers that were lost.
    pub lost: &'a dyn Fn() -> LostMessages,
    /// Starts a change of the configuration. `None` without a configuration file.
    pub reload: &'a dyn Fn(ReloadWork) -> Option<Receiver<ReloadResult>>,
    /// Returns the path of the configuration file, if there is one.
    pub configuration: &'a dyn Fn() -> Option<PathBuf>,
    /// Returns the controllers and their connections.
    pub controllers: &'a dyn Fn() -> ControllersReport,
    /// Number of flows that all clients together may still send before the flows are loaded.
    pub loading_room: &'a mut usize,
    /// The store of the rules, if there is one.
    pub store: Option<&'a StoreHandle>,
    pub mirrors: &'a Mirrors,
}

/// A client's unfinished request, with its ID.
enum Job {
    Flows(u64, Walk),
    /// A change that is not active on all workers yet: request ID, version of the change's barrier, and
    /// result of the change.
    Barrier(u64, RuleVersion, Changes),
    /// A trace of real packets.
    Live(u64, Watch),
    /// A change of the configuration.
    Reload(u64, Receiver<ReloadResult>),
}

/// Error of requests that need a configuration file.
const NO_FILE: &str = "this switch was started without a configuration file";

struct Load {
    id: u64,
    file: FlowFile,
}

/// The connection of a client.
pub struct Connection {
    stream: UnixStream,
    inbox: Vec<u8>,
    /// Number of bytes at the start of `inbox` that are already processed.
    taken: usize,
    /// Number of bytes at the start of `inbox` that were already searched for the end of a request.
    searched: usize,
    outbox: Vec<u8>,
    /// Number of bytes at the start of `outbox` that are already sent.
    sent: usize,
    job: Option<Job>,
    /// Whether more records of real packets may be available.
    has_records: bool,
    load: Option<Load>,
    /// Whether reading has ended, because the client or the switch ended the connection.
    ended: bool,
    broken: bool,
}

impl Connection {
    /// Creates the connection of a client. `stream` must be non-blocking.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            taken: 0,
            searched: 0,
            outbox: Vec::new(),
            sent: 0,
            job: None,
            has_records: false,
            load: None,
            ended: false,
            broken: false,
        }
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn wants_to_read(&self) -> bool {
        !self.ended
            && matches!(self.job, None | Some(Job::Live(..)))
            && self.inbox.len() - self.taken <= REQUEST_BYTES
            && self.waiting() < OUTBOX_BYTES
    }

    pub fn wants_to_write(&self) -> bool {
        self.waiting() > 0
    }

    /// Returns whether the client waits until a change is active on all workers.
    pub fn waits_for_barrier(&self) -> bool {
        matches!(self.job, Some(Job::Barrier(..)))
    }

    /// Returns whether the client waits for a change of the configuration, or for an upgrade.
    pub fn waits_for_reload(&self) -> bool {
        matches!(self.job, Some(Job::Reload(..)))
    }

    /// Sends what can be sent at once, before the process ends.
    pub fn flush(&mut self) {
        self.write();
    }

    /// Returns whether the client waits for real packets. Workers do not wake the control thread for such
    /// packets.
    pub fn waits_for_records(&self) -> bool {
        matches!(self.job, Some(Job::Live(..)))
    }

    /// Returns whether the connection can be removed.
    pub fn is_over(&self) -> bool {
        self.broken || (self.ended && self.job.is_none() && self.waiting() == 0 && !self.has_line())
    }

    /// Releases the space of an unfinished load, and stops the trace of real packets.
    pub fn close(&mut self, state: &mut ControlState<'_>) {
        self.drop_load(state);
        if let Some(Job::Live(_, watch)) = self.job.take() {
            watch.stop(state.model);
        }
        self.has_records = false;
    }

    /// Sends, processes and reads a bounded amount of data. Returns whether there is more to do without
    /// waiting.
    pub fn step(&mut self, state: &mut ControlState<'_>) -> bool {
        self.write();
        self.work(state);
        let mut more = false;
        // A client may end its trace early by closing the connection. The end of the connection may arrive in
        // the same read as the request.
        if let Some(Job::Live(id, _)) = self.job {
            if self.wants_to_read() {
                self.read();
            }
            if self.ended {
                self.close(state);
            } else if self.inbox.len() - self.taken > REQUEST_BYTES {
                self.close(state);
                self.error(Some(id), "the trace has ended because too many requests waited for its end");
            }
        }
        if self.job.is_none()
            && self.waiting() < OUTBOX_BYTES
            && state.model.plane_mut().parked() < PARKED_MAX
        {
            more = self.take_line(state);
            if !more && self.wants_to_read() {
                more = self.read();
            }
        }
        self.write();
        !self.broken
            && (more
                || (matches!(self.job, Some(Job::Flows(..))) && self.waiting() < OUTBOX_BYTES)
                || self.has_records)
    }

    /// Sends an error to the client and ends the connection.
    pub fn refuse(&mut self, sentence: &str) {
        self.error(None, sentence);
        self.ended = true;
        self.write();
    }

    fn waiting(&self) -> usize {
        self.outbox.len() - self.sent
    }

    fn has_line(&self) -> bool {
        self.inbox[self.taken..].contains(&b'\n')
    }

    fn write(&mut self) {
        while self.sent < self.outbox.len() {
            match self.stream.write(&self.outbox[self.sent..]) {
                Ok(0) => self.broken = true,
                Ok(count) => {
                    self.sent += count;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.broken |= error.kind() != ErrorKind::WouldBlock,
            }
            return;
        }
        self.outbox.clear();
        self.outbox.shrink_to(OUTBOX_BYTES);
        self.sent = 0;
    }

    fn read(&mut self) -> bool {
        self.inbox.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        let start = self.inbox.len();
        self.inbox.resize(start + READ_BYTES, 0);
        let got = self.stream.read(&mut self.inbox[start..]);
        self.inbox.truncate(start + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => self.ended = true,
            Ok(_) => return true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
        false
    }

    /// Continues the unfinished request.
    fn work(&mut self, state: &mut ControlState<'_>) {
        match self.job.take() {
            Some(Job::Flows(id, mut walk)) => {
                if self.waiting() >= OUTBOX_BYTES {
                    self.job = Some(Job::Flows(id, walk));
                } else if let Some(part) = walk.next_part(state.model, state.now) {
                    self.answer(id, "part", &part);
                    self.job = Some(Job::Flows(id, walk));
                } else {
                    self.answer(id, "done", &Map::new());
                }
            }
            Some(Job::Barrier(id, version, changes)) => {
                if state.model.is_settled(version) {
                    self.answer(id, "done", &changes);
                } else {
                    self.job = Some(Job::Barrier(id, version, changes));
                }
            }
            Some(Job::Live(id, mut watch)) => {
                self.has_records = false;
                if watch.is_over(state.now) {
                    self.answer(id, "done", &watch.stop(state.model));
                    return;
                }
                if self.waiting() < OUTBOX_BYTES
                    && let Some(real) = watch.next(state.model)
                {
                    self.answer(id, "part", &real);
                    self.has_records = true;
                }
                self.job = Some(Job::Live(id, watch));
            }
            Some(Job::Reload(id, result)) => match result.try_recv() {
                Ok(Ok(report)) => self.answer(id, "done", &report),
                Ok(Err(reasons)) => self.error(Some(id), &reasons),
                Err(TryRecvError::Empty) => self.job = Some(Job::Reload(id, result)),
                Err(TryRecvError::Disconnected) => self.error(Some(id), "the change ended unexpectedly"),
            },
            None => {}
        }
    }

    /// Takes one request from the inbox. Returns `false` if there is no complete line.
    fn take_line(&mut self, state: &mut ControlState<'_>) -> bool {
        let Some(end) = self.inbox[self.searched..].iter().position(|&byte| byte == b'\n') else {
            self.searched = self.inbox.len();
            if self.inbox.len() - self.taken > REQUEST_BYTES {
                let sentence = format!(
                    "the request is longer than {REQUEST_BYTES} bytes; send one JSON object per line"
                );
                self.hang_up(None, &sentence, state);
            }
            return false;
        };
        let end = self.searched + end;
        let parsed = parse(&self.inbox[self.taken..end]);
        self.searched = end + 1;
        self.taken = end + 1;
        match parsed {
            Ok(None) => {}
            Ok(Some((id, request))) => self.start(id, request, state),
            Err((id, sentence)) => self.error(id, &sentence),
        }
        true
    }

    fn start(&mut self, id: u64, request: ControlRequest, state: &mut ControlState<'_>) {
        match request {
            ControlRequest::Ports => {
                (state.refresh)();
                self.answer(id, "done", &show::ports(state.model));
            }
            ControlRequest::Tables => self.answer(id, "done", &show::tables(state.model)),
            ControlRequest::Counters => {
                (state.refresh)();
                self.answer(id, "done", &show::counters(state.model, (state.lost)()));
            }
            ControlRequest::Latencies => self.answer_of_workers(id, show::latencies(state.model)),
            ControlRequest::Macs => self.answer(id, "done", &show::macs(state.model, state.now)),
            ControlRequest::Controllers => self.answer(id, "done", &(state.controllers)()),
            ControlRequest::Flows { form } => self.job = Some(Job::Flows(id, Walk::new(form))),
            ControlRequest::Ffp => self.answer_of_workers(id, show::ffp(state.model)),
            ControlRequest::Express => self.answer_of_workers(id, show::express(state.model)),
            ControlRequest::Cache => self.answer_of_workers(id, show::cache(state.model)),
            ControlRequest::Device => match show::device(state.model) {
                Some(report) => self.answer(id, "done", &report),
                None => self.error(Some(id), "workers forward the packets of this datapath, and no device"),
            },
            ControlRequest::Store => match state.store {
                Some(store) => self.answer(id, "done", &show::store(store)),
                None => self.error(Some(id), "this datapath has no store; configure [datapath.store]"),
            },
            ControlRequest::Mirrors => {
                self.answer_of_workers(id, mirrors::mirrors(state.model, state.mirrors))
            }
            ControlRequest::Stateless => self.answer(id, "done", &show::stateless(state.model)),
            ControlRequest::Gates { gates, trusted } => {
                match set_gates(gates.as_ref(), trusted.as_deref(), state) {
                    Ok(changed) => self.wait_for(id, changed, state),
                    Err(error) => self.error(Some(id), &error),
                }
            }
            ControlRequest::Load { text, last } => self.load(id, &text, last, state),
            ControlRequest::Trace { packet } => {
                match config::trace::trace_synthesized(state.model, &packet) {
                    Ok(trace) => self.answer(id, "done", &trace),
                    Err(error) => self.error(Some(id), &error.to_string()),
                }
            }
            ControlRequest::TraceLive { live } => match Watch::start(state.model, &live, state.now) {
                Ok(watch) => self.job = Some(Job::Live(id, watch)),
                Err(error) => self.error(Some(id), &error.to_string()),
            },
            ControlRequest::Reload => self.reload(id, ReloadWork::File, state),
            ControlRequest::Upgrade { program } => self.reload(id, ReloadWork::Upgrade { program }, state),
            ControlRequest::Port { edit } => {
                let datapath = state.model.config().datapath_id;
                self.reload(id, ReloadWork::Port { datapath, edit }, state);
            }
            ControlRequest::Mirror { edit } => {
                let datapath = state.model.config().datapath_id;
                self.reload(id, ReloadWork::Mirror { datapath, edit }, state);
            }
            ControlRequest::Configuration => match (state.configuration)() {
                Some(path) => {
                    let (path, datapath) = (path.display().to_string(), state.model.config().datapath_id);
                    self.answer(id, "done", &ConfigurationFile { path, datapath });
                }
                None => self.error(Some(id), NO_FILE),
            },
            ControlRequest::Log => self.answer(id, "done", &log::report()),
            ControlRequest::SetLog { module, level } => match set_log(&module, &level) {
                Ok(()) => self.answer(id, "done", &log::report()),
                Err(sentence) => self.error(Some(id), &sentence),
            },
            ControlRequest::Clear => {
                let changed = state.model.clear(state.now);
                self.wait_for(id, changed, state);
            }
        }
    }

    fn reload(&mut self, id: u64, work: ReloadWork, state: &mut ControlState<'_>) {
        match (state.reload)(work) {
            Some(result) => self.job = Some(Job::Reload(id, result)),
            None => self.error(Some(id), NO_FILE),
        }
    }

    fn load(&mut self, id: u64, text: &str, last: bool, state: &mut ControlState<'_>) {
        if self.load.as_ref().is_some_and(|load| load.id != id) {
            self.hang_up(
                Some(id),
                "the previous load of this connection was not finished and is discarded",
                state,
            );
            return;
        }
        let load = self.load.get_or_insert_with(|| Load { id, file: FlowFile::new(port_names(state.model)) });
        let room = *state.loading_room + load.file.len();
        // If the file has a mistake, all its flows are discarded, which releases their space.
        load.file.push(text);
        let Some(left) = room.checked_sub(load.file.len()) else {
            *state.loading_room = room;
            self.load = None;
            let limit = state.model.config().limits.entries;
            let sentence = format!("more than {limit} flows would be loaded at a time; load fewer, or wait");
            self.hang_up(Some(id), &sentence, state);
            return;
        };
        *state.loading_room = left;
        if !last {
            return;
        }
        let Some(load) = self.load.take() else { return };
        *state.loading_room += load.file.len();
        match load.file.apply(state.model, state.now) {
            Ok(changed) => self.wait_for(id, changed, state),
            Err(error) => self.error(Some(id), &error.to_string()),
        }
    }

    /// Refuses a request and ends the connection. The bytes that follow are discarded.
    fn hang_up(&mut self, id: Option<u64>, sentence: &str, state: &mut ControlState<'_>) {
        self.drop_load(state);
        self.error(id, sentence);
        self.inbox = Vec::new();
        (self.taken, self.searched) = (0, 0);
        self.ended = true;
    }

    fn drop_load(&mut self, state: &mut ControlState<'_>) {
        if let Some(load) = self.load.take() {
            *state.loading_room += load.file.len();
        }
    }

    fn wait_for(&mut self, id: u64, changed: Changed, state: &mut ControlState<'_>) {
        let Changed { added, modified, removed } = changed;
        self.job = Some(Job::Barrier(id, state.model.barrier(), Changes { added, modified, removed }));
        self.work(state);
    }

    fn answer(&mut self, id: u64, key: &str, value: &impl Serialize) {
        match serde_json::to_value(value) {
            Ok(value) => self.put(&json!({ "id": id, key: value })),
            Err(error) => self.error(Some(id), &format!("the answer cannot be written: {error}")),
        }
    }

    /// Answers with a report about workers, or with an error if there are none.
    fn answer_of_workers<T: Serialize>(&mut self, id: u64, report: Option<T>) {
        match report {
            Some(report) => self.answer(id, "done", &report),
            None => self
                .error(Some(id), "a device forwards the packets of this datapath, so it has no such report"),
        }
    }

    fn error(&mut self, id: Option<u64>, sentence: &str) {
        self.put(&json!({ "id": id, "error": sentence }));
    }

    fn put(&mut self, line: &Value) {
        self.outbox.extend_from_slice(line.to_string().as_bytes());
        self.outbox.push(b'\n');
    }
}

fn set_log(module: &str, level: &str) -> Result<(), String> {
    log::set_level(module.parse()?, level.parse()?);
    Ok(())
}

/// Sets the gates, and the trusted ports if given.
fn set_gates(
    gates: Option<&GatesForm>,
    trusted: Option<&[i64]>,
    state: &mut ControlState<'_>,
) -> Result<Changed, String> {
    let refuse = |(key, problem): (String, String)| format!("{key}: {problem}");
    let gates = gates.map(|gates| gates.read("gates")).transpose().map_err(refuse)?;
    if gates.is_none() && trusted.is_none() && state.model.stateless().is_none() {
        // Without gates, a new stateless forwarder would drop tagged packets, so none is created.
        return Ok(Changed::default());
    }
    let mut sections = vec![StatelessSection::Gates(gates)];
    if let Some(trusted) = trusted {
        let form = StatelessForm { trusted: trusted.to_vec(), ..StatelessForm::default() };
        sections.push(StatelessSection::Trusted(form.read().map_err(refuse)?.trusted));
    }
    let change = Change::Stateless(StatelessChange::Set(sections));
    state.model.change(state.now, change).map_err(|error| error.to_string())
}
