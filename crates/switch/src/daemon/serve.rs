// SPDX-License-Identifier: Apache-2.0
//! The control thread: owns the model, answers clients, and does what the clock and the workers ask for.

use super::{Daemon, DaemonError, Stop, links};
use crate::control::{Connection, PARKED_MAX, State};
use flow::Nanos;
use model::DataPlane;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::atomic::{Ordering, fence};

/// Clients at a time.
const CLIENTS: usize = 64;
/// Between two looks at links and threads; also the longest sleep.
const TEND_NS: Nanos = 100_000_000;
/// Longest sleep while a client waits for a change to come into force.
const BARRIER_NS: Nanos = 200_000;

impl Daemon {
    /// Serves until told to stop; then the workers end and the control socket is gone.
    ///
    /// # Errors
    /// A worker ended by itself, or the system does not let the control thread wait.
    pub fn serve(mut self, stop: &Stop) -> Result<(), DaemonError> {
        let mut clients: Vec<Connection> = Vec::new();
        let mut loading_room = self.model.config().limits.entries;
        let mut tended_ns = 0;
        loop {
            // Set before looking for work: a worker that reports something later sees it and wakes us.
            self.control.asleep.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let now = self.clock.now();
            if now.saturating_sub(tended_ns) >= TEND_NS {
                self.check_threads()?;
                links::carry(&mut self.model, now, &mut self.links);
                tended_ns = now;
            }
            let mut more = self.model.poll(now);
            more |= self.serve_openflow();
            more |= self.serve_clients(&mut clients, &mut loading_room);
            // No request is taken while the workers have so much to do.
            let congested = self.model.plane_mut().parked() >= PARKED_MAX;
            let sleep_ns = if more {
                0
            } else if congested
                || clients.iter().any(Connection::waits_for_barrier)
                || self.openflow.waits_for_barrier()
            {
                BARRIER_NS
            } else {
                let due =
                    self.model.next_deadline().map_or(TEND_NS, |at| at.saturating_sub(self.clock.now()));
                due.min(TEND_NS)
            };
            if self.wait(stop, &mut clients, sleep_ns, congested)? {
                return Ok(());
            }
        }
    }

    fn serve_openflow(&mut self) -> bool {
        let workers = &self.workers;
        let mut refresh = || workers.iter().for_each(|worker| worker.keep_house());
        self.openflow.step(&mut self.model, self.clock.now(), &mut refresh)
    }

    fn serve_clients(&mut self, clients: &mut Vec<Connection>, loading_room: &mut usize) -> bool {
        let workers = &self.workers;
        let mut refresh = || workers.iter().for_each(|worker| worker.keep_house());
        let now = self.clock.now();
        let mut state = State { model: &mut self.model, now, refresh: &mut refresh, loading_room };
        let mut more = false;
        clients.retain_mut(|client| {
            more |= client.step(&mut state);
            if client.is_over() {
                client.close(&mut state);
            }
            !client.is_over()
        });
        more
    }

    /// Waits for something to do; true when told to stop.
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
            PollFd::from_borrowed_fd(self.listener.descriptor(), PollFlags::IN),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        set.extend(clients.iter().map(|client| PollFd::from_borrowed_fd(client.descriptor(), flags(client))));
        let of_clients = set.len();
        self.openflow.descriptors(&mut set);
        let limit = Timespec { tv_sec: 0, tv_nsec: sleep_ns.min(TEND_NS) as _ };
        match poll(&mut set, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(DaemonError::Io { what: "wait for clients", source: error.into() }),
        }
        let told = |n: usize| set.get(n).is_some_and(|fd| !fd.revents().is_empty());
        let (stopped, called) = (told(0), told(1));
        wake.clear();
        let answers: Vec<PollFlags> = set.drain(..).skip(of_clients).map(|fd| fd.revents()).collect();
        drop(set);
        self.openflow.woken(answers.into_iter());
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
                        client.refuse(
                            "64 clients are connected, the most a switch serves; close one and try again",
                        );
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
