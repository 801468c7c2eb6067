// SPDX-License-Identifier: Apache-2.0
//! The loop of the control thread. The thread owns the model, answers clients and controllers, and processes
//! timers and worker events.
//!
//! Begin with [`Daemon::serve`].

use super::{Daemon, DaemonError, Stop, links};
use crate::control::{Connection, ControlState, PARKED_MAX};
use config::trace::TracedPlane;
use dataplane::DataPlane;
use flow::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;

/// Maximum number of clients of the control socket.
const CLIENTS: usize = 64;
/// Time between two checks of links and threads, in ns, and the longest sleep.
const TEND_NS: Nanos = Nanos(100_000_000);
/// Longest sleep while a client waits for traces of real packets, in ns.
const RECORDS_NS: Nanos = Nanos(5_000_000);
/// Longest sleep while a client waits for a change to become active, in ns.
const BARRIER_NS: Nanos = Nanos(200_000);

impl Daemon {
    /// Serves clients, controllers and workers until the daemon is stopped. Then the workers end and the
    /// control socket is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread of the daemon ended unexpectedly, or if `poll` fails.
    pub fn serve(mut self, stop: &Stop) -> Result<(), DaemonError> {
        let mut clients: Vec<Connection> = Vec::new();
        let mut loading_room = self.model_handle.here().map_or(0, |model| model.config().limits.entries);
        let mut tended_ns = Nanos::ZERO;
        loop {
            let done = self.model_handle.take_back()?;
            // Announce the sleep before looking for work, so that a worker that reports something later wakes
            // this thread. While the model is lent, workers need not wake this thread, because their reports
            // must wait.
            match self.model_handle.here() {
                Some(_) => self.control.asleep.announce(),
                None => self.control.asleep.end(),
            }
            let now = self.clock.now();
            let is_due = now.saturating_sub(tended_ns) >= TEND_NS;
            if is_due {
                self.check()?;
                tended_ns = now;
            }
            if let Some(model) = self.model_handle.here()
                && (self.link_thread.take_changed() | is_due)
            {
                links::carry(model, now, &mut self.links, &self.link_thread.links());
            }
            let mut congested = true;
            let sleep_ns = match self.model_handle.here() {
                // The thread that has the model wakes this thread when it is done. Until then, only echo
                // requests are answered.
                None if self.channels.step_alone(now) => Nanos::ZERO,
                None => TEND_NS,
                Some(model) => {
                    let mut more = model.poll(now);
                    let workers = &self.workers;
                    let mut refresh = || workers.iter().for_each(|worker| worker.keep_house());
                    if let Some(done) = done {
                        self.channels.finish(done, model, now, &mut refresh);
                    }
                    more |= self.channels.step(model, self.clock.now(), &mut refresh);
                    let now = self.clock.now();
                    let channels = &self.channels;
                    let mut state = ControlState {
                        model,
                        now,
                        refresh: &mut refresh,
                        lost: &|| channels.lost(),
                        loading_room: &mut loading_room,
                    };
                    more |= serve_clients(&mut clients, &mut state);
                    // Waking up takes longer than most answers of a device.
                    let now = self.clock.now();
                    more |= model.plane_mut().device().is_some_and(|device| device.plane.expects_answer(now));
                    // A device reports that it has executed a change, but workers do not.
                    let device_due = model.plane_mut().device().map(|device| device.due());
                    // Take no further requests while many operations wait for the workers.
                    congested = model.plane_mut().parked() >= PARKED_MAX;
                    if more {
                        Nanos::ZERO
                    } else if device_due.is_none()
                        && (congested
                            || clients.iter().any(Connection::waits_for_barrier)
                            || self.channels.waits_for_barrier())
                    {
                        BARRIER_NS
                    } else {
                        let due = model.next_deadline();
                        let waits = clients.iter().any(Connection::waits_for_records);
                        let longest_ns = if waits { RECORDS_NS } else { TEND_NS };
                        let due = due.into_iter().chain(device_due).min();
                        due.map_or(longest_ns, |at| at.saturating_sub(self.clock.now())).min(longest_ns)
                    }
                }
            };
            if let Some(work) = self.channels.take_work() {
                self.model_handle.lend(work)?;
            }
            if self.wait(stop, &mut clients, sleep_ns, congested)? {
                return Ok(());
            }
        }
    }

    /// Checks what works beside the control thread, and logs changes.
    fn check(&mut self) -> Result<(), DaemonError> {
        self.check_threads()?;
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

    /// Waits for clients, controllers, workers or the timeout. Returns `true` if the daemon is stopped.
    fn wait(
        &mut self,
        stop: &Stop,
        clients: &mut Vec<Connection>,
        sleep_ns: Nanos,
        congested: bool,
    ) -> Result<bool, DaemonError> {
        let wake = &self.control.wake;
        let flags = |client: &Connection| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !congested && client.wants_to_read());
            flags.set(PollFlags::OUT, client.wants_to_write());
            flags
        };
        let mut set = vec![
            PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        // While the model is lent, clients are not served, and their ready descriptors would end every sleep
        // immediately.
        let serves = self.model_handle.here().is_some();
        if serves {
            set.push(PollFd::from_borrowed_fd(self.listener.descriptor(), PollFlags::IN));
            // Datagrams of the device end the sleep.
            set.extend(self.device_descriptor.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            set.extend(
                clients.iter().map(|client| PollFd::from_borrowed_fd(client.descriptor(), flags(client))),
            );
        }
        let of_clients = set.len();
        self.channels.descriptors(&mut set);
        let limit = Timespec { tv_sec: 0, tv_nsec: sleep_ns.min(TEND_NS).0 as _ };
        match poll(&mut set, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(DaemonError::Io { what: "wait for clients", source: error.into() }),
        }
        let is_ready = |n: usize| set.get(n).is_some_and(|fd| !fd.revents().is_empty());
        let (stopped, woken, called) = (is_ready(0), is_ready(1), serves && is_ready(2));
        let answers: Vec<PollFlags> = set.drain(..).skip(of_clients).map(|fd| fd.revents()).collect();
        drop(set);
        if woken {
            self.control.wake.clear();
        }
        self.channels.woken(answers.into_iter());
        if called {
            self.accept(clients);
        }
        Ok(stopped)
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

fn serve_clients(clients: &mut Vec<Connection>, state: &mut ControlState<'_>) -> bool {
    let mut more = false;
    clients.retain_mut(|client| {
        more |= client.step(state);
        if client.is_over() {
            client.close(state);
        }
        !client.is_over()
    });
    more
}
