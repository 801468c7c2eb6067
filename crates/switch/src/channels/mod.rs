// SPDX-License-Identifier: Apache-2.0
//! OpenFlow connections that peers open, and connections to configured controllers.
//!
//! All of this runs on the control thread without blocking. The module moves bytes; [`model::agent`]
//! interprets the messages. Begin with [`Channels::step`].
//!
//! At most [`CONNECTIONS`] connections are accepted. A connection is read only while the agent has space for
//! its requests, and its output stays within the agent's limits.

mod acceptor;
mod dialer;
mod fallback;
mod link;
mod log_limit;
mod stream;

use crate::listener::ListenError;
use acceptor::Acceptor;
use config::Endpoint;
use dialer::Dialer;
use fallback::Fallback;
use flow::Nanos;
use link::ControllerLink;
use log_limit::LogLimit;
use model::agent::{Agent, ChannelEvent, ChannelId, Context, Done, LostMessages, Progress, Work};
use model::{AsyncMessage, Model};
use rustix::event::{PollFd, PollFlags};
use std::io::ErrorKind;
use worker::WorkerSet;

/// Maximum number of accepted connections.
pub(crate) const CONNECTIONS: usize = 1_024;
/// Maximum number of connections that a socket accepts per step.
const ACCEPTS_PER_STEP: usize = 64;
/// Pause in accepting after the system refused a connection, in ns.
const ACCEPT_PAUSE_NS: Nanos = Nanos(100_000_000);
/// Maximum number of asynchronous messages passed to the agent per step.
const ASYNC_MESSAGES_PER_STEP: usize = 1_024;

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The peer connected to this switch.
    Peer,
    /// This switch connected to a controller; the index is the controller's position in the configuration.
    Controller(usize),
}

/// All OpenFlow connections of a datapath.
pub struct Channels {
    agent: Agent,
    acceptors: Vec<Acceptor>,
    /// Time until which no connection is accepted.
    deaf_until_ns: Nanos,
    dialers: Vec<Dialer>,
    links: Vec<(Origin, ControllerLink)>,
    fallback: Fallback,
    log: LogLimit,
}

impl Channels {
    /// Binds all endpoints. The first step connects to the controllers.
    ///
    /// # Errors
    ///
    /// Returns an error if an endpoint cannot be bound.
    pub fn open(config: &config::OpenFlow) -> Result<Self, ListenError> {
        let acceptors = config.listen.iter().map(Acceptor::open).collect::<Result<_, _>>()?;
        let mut agent = Agent::default();
        agent.lend_long_work();
        Ok(Self {
            agent,
            acceptors,
            deaf_until_ns: Nanos(0),
            dialers: config.controllers.iter().cloned().map(Dialer::new).collect(),
            links: Vec::new(),
            fallback: Fallback::new(config.standalone && !config.controllers.is_empty()),
            log: LogLimit::default(),
        })
    }

    /// Returns the bound endpoints.
    pub fn addresses(&self) -> Vec<Endpoint> {
        self.acceptors.iter().map(|acceptor| acceptor.address().clone()).collect()
    }

    /// Adds the descriptors to poll. [`Channels::woken`] must get their results in the same order.
    pub fn descriptors<'a>(&'a self, set: &mut Vec<PollFd<'a>>) {
        for acceptor in &self.acceptors {
            set.extend(acceptor.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        for dialer in &self.dialers {
            set.extend(dialer.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        }
        for (_, link) in &self.links {
            set.extend(link.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, link.waits_for())));
        }
    }

    /// Processes the results of a poll, in the order of [`Channels::descriptors`].
    pub fn woken(&mut self, mut answers: impl Iterator<Item = PollFlags>) {
        for acceptor in self.acceptors.iter_mut().filter(|acceptor| acceptor.descriptor().is_some()) {
            acceptor.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
        for dialer in self.dialers.iter_mut().filter(|dialer| dialer.descriptor().is_some()) {
            dialer.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
        for (_, link) in self.links.iter_mut().filter(|(_, link)| link.descriptor().is_some()) {
            link.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
    }

    /// Returns whether a channel waits for a change to become active.
    pub fn waits_for_barrier(&mut self) -> bool {
        let agent = &mut self.agent;
        self.links
            .iter()
            .any(|(_, link)| agent.channel(link.channel()).is_some_and(|channel| channel.waits_for_barrier()))
    }

    /// Processes a bounded amount of work. Returns whether more work remains.
    pub fn step(&mut self, model: &mut Model<WorkerSet>, now: Nanos, refresh: &mut dyn FnMut()) -> bool {
        let mut more = self.send_async_messages(model, now);
        more |= self.meet(now);
        let mut context = Context { model: &mut *model, now, refresh };
        more |= self.step_links(now, |agent, channel| agent.step(channel, &mut context));
        self.agent.update_settings(model);
        let connected = self.dialers.iter().any(Dialer::is_open);
        if let Some(standalone) = self.fallback.step(connected, model.config().standalone, now) {
            let words = if standalone {
                "lost: the datapath forwards as a learning switch"
            } else {
                "is connected again"
            };
            tracing::info!("controller {words}");
            model.set_standalone(now, standalone);
            more = true;
        }
        more
    }

    /// Does the part of a step that needs no model: opens and closes connections, and answers echo requests.
    /// Replaces [`Channels::step`] while the model is lent.
    pub fn step_alone(&mut self, now: Nanos) -> bool {
        let more = self.meet(now);
        self.step_links(now, |agent, channel| agent.step_alone(channel, now)) || more
    }

    /// Returns a long-running change for which the model must be lent, if there is one.
    pub fn take_work(&mut self) -> Option<Work> {
        self.agent.take_work()
    }

    /// Returns the number of messages for controllers that were lost.
    pub fn lost(&self) -> LostMessages {
        self.agent.lost()
    }

    /// Answers the channel that requested a long-running change, after the change is complete.
    pub fn finish(
        &mut self,
        done: Done,
        model: &mut Model<WorkerSet>,
        now: Nanos,
        refresh: &mut dyn FnMut(),
    ) {
        let mut context = Context { model, now, refresh };
        let Some((channel, event)) = self.agent.finish(done, &mut context) else { return };
        if let Some((_, link)) = self.links.iter().find(|(_, link)| link.channel() == channel) {
            log(&mut self.log, now, link.peer(), &event);
        }
    }

    /// Accepts connections, and connects to controllers.
    fn meet(&mut self, now: Nanos) -> bool {
        self.accept(now);
        let mut more = now >= self.deaf_until_ns && self.acceptors.iter().any(Acceptor::is_called);
        for (number, dialer) in self.dialers.iter_mut().enumerate() {
            match dialer.step(now) {
                Some(Ok(stream)) => {
                    more = true;
                    let link =
                        ControllerLink::new(stream, dialer.address().to_string(), &mut self.agent, now);
                    self.links.push((Origin::Controller(number), link));
                }
                Some(Err(error)) => {
                    let address = dialer.address();
                    self.log.info(now, || tracing::info!("controller {address} cannot be reached: {error}"));
                }
                None => {}
            }
        }
        more
    }

    fn step_links(&mut self, now: Nanos, mut work: impl FnMut(&mut Agent, ChannelId) -> Progress) -> bool {
        let mut more = false;
        for (origin, link) in &mut self.links {
            let progress = link.step(&mut self.agent, now, &mut work);
            more |= progress.more;
            for event in progress.events {
                let peer = link.peer();
                if let (ChannelEvent::Opened, Origin::Controller(number)) = (&event, *origin)
                    && let Some(dialer) = self.dialers.get_mut(number)
                {
                    dialer.opened();
                }
                log(&mut self.log, now, peer, &event);
            }
        }
        self.forget_those_that_ended(now);
        more
    }

    fn forget_those_that_ended(&mut self, now: Nanos) {
        let (agent, dialers, log) = (&mut self.agent, &mut self.dialers, &mut self.log);
        self.links.retain_mut(|(origin, link)| {
            if link.is_over() {
                if let Some(farewell) = link.farewell() {
                    log.info(now, || tracing::info!("{}: {farewell}", link.peer()));
                }
                agent.close(link.channel());
                if let Origin::Controller(number) = *origin
                    && let Some(dialer) = dialers.get_mut(number)
                {
                    dialer.lost(now);
                }
            }
            !link.is_over()
        });
    }

    fn send_async_messages(&mut self, model: &mut Model<WorkerSet>, now: Nanos) -> bool {
        for _ in 0..ASYNC_MESSAGES_PER_STEP {
            let Some(message) = model.next_async_message() else { return false };
            if let AsyncMessage::PortStatus { port, .. } = &message {
                tracing::debug!(port = port.desc.name, "port status");
            }
            self.agent.report(model, now, message);
        }
        true
    }

    fn accept(&mut self, now: Nanos) {
        let mut accepted = self.accepted();
        for acceptor in self.acceptors.iter_mut().filter(|acceptor| acceptor.is_called()) {
            for _ in 0..ACCEPTS_PER_STEP {
                if now < self.deaf_until_ns {
                    return;
                }
                match acceptor.accept() {
                    Ok(None) => break,
                    Ok(Some((_, peer))) if accepted >= CONNECTIONS => {
                        self.log.warn(now, || {
                            tracing::warn!(
                                "{peer} is rejected: {CONNECTIONS} OpenFlow connections are open, the maximum"
                            );
                        });
                    }
                    Ok(Some((stream, peer))) => {
                        accepted += 1;
                        self.links
                            .push((Origin::Peer, ControllerLink::new(stream, peer, &mut self.agent, now)));
                    }
                    // If a client disconnected before it was accepted, the next client can still be accepted.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                    Err(error) => {
                        self.deaf_until_ns = now.saturating_add(ACCEPT_PAUSE_NS);
                        self.log
                            .warn(now, || tracing::warn!("OpenFlow connections cannot be accepted: {error}"));
                    }
                }
            }
        }
    }

    fn accepted(&self) -> usize {
        self.links.iter().filter(|(origin, _)| *origin == Origin::Peer).count()
    }
}

fn log(limit: &mut LogLimit, now: Nanos, peer: &str, event: &ChannelEvent) {
    match event {
        ChannelEvent::Opened => limit.info(now, || tracing::info!("{peer}: OpenFlow 1.3")),
        ChannelEvent::Refused(problem) => limit.info(now, || tracing::info!("{peer}: refused: {problem}")),
        ChannelEvent::Error(code) => limit.info(now, || tracing::info!("{peer}: sent an error: {code}")),
        ChannelEvent::Lost(lost) => {
            limit.warn(now, || tracing::warn!("{peer}: does not read its messages; lost: {lost}"))
        }
        ChannelEvent::Closed(reason) => limit.warn(now, || tracing::warn!("{peer}: closed: {reason}")),
    }
}
