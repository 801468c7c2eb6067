// SPDX-License-Identifier: Apache-2.0
//! Connections that controllers open, and connections to configured controllers, of both protocols.
//!
//! All of this runs on the control thread without blocking. The module moves bytes; [`model::agent`] and
//! [`pof_agent`] interpret the messages. Begin with [`Channels::step`].
//!
//! A connection's protocol is that of the configured address: the first messages do not show it.
//!
//! At most [`CONNECTIONS`] connections are accepted. A connection is read only while the agent has space for
//! its requests, and its output stays within the agent's limits.

mod acceptor;
mod agents;
mod change;
mod dialer;
mod fallback;
mod link;
mod log_limit;
mod report;
mod stream;
mod tls;

use crate::listener::ListenError;
use crate::plane::Plane;
use crate::upgrade::InheritedDatapath;
pub use acceptor::Acceptor;
use agents::{Agents, ChannelKey, LinkEvent, LinkProgress};
pub use agents::{OffloadedDone, OffloadedWork, Protocol};
pub use change::bind_added;
use config::Endpoint;
use dialer::Dialer;
use fallback::Fallback;
use flow::Nanos;
use link::ControllerLink;
use log_limit::LogLimit;
use model::agent::{Context, LostMessages};
use model::{AsyncMessage, Model};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use stream::Stream;
pub use tls::Tls;

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
    /// The peer connected to this switch, at the acceptor with this number.
    Peer(u64),
    /// This switch connected to a controller; the index is the controller's position in the configuration.
    Controller(usize),
}

/// All connections of a datapath to controllers.
pub struct Channels {
    agents: Agents,
    /// Acceptors with their numbers.
    acceptors: Vec<(u64, Acceptor)>,
    /// Number of the next acceptor.
    next_acceptor: u64,
    /// Time until which no connection is accepted.
    accept_paused_until_ns: Nanos,
    dialers: Vec<Dialer>,
    links: Vec<(Origin, ControllerLink)>,
    fallback: Fallback,
    tls: Option<Tls>,
    log: LogLimit,
}

impl Channels {
    /// Binds all endpoints. The first step connects to the controllers.
    ///
    /// # Errors
    ///
    /// Returns an error if an endpoint cannot be bound, or if the files of TLS cannot be used.
    ///
    /// Endpoints in `inherited` are those of an earlier process.
    pub fn open(
        datapath: &config::Datapath,
        mut inherited: Option<&mut InheritedDatapath>,
    ) -> Result<Self, ListenError> {
        let (openflow, pof) = (&datapath.openflow, datapath.pof.as_ref());
        let openflow_ends = openflow.listen.iter().map(|end| (Protocol::OpenFlow, end));
        let pof_ends = pof.into_iter().flat_map(|pof| &pof.listen).map(|end| (Protocol::Pof, end));
        let acceptors = openflow_ends.chain(pof_ends).map(|(protocol, end)| {
            let name = acceptor::handover_name(protocol, end);
            match inherited.as_mut().and_then(|inherited| inherited.take_listener(&name)) {
                Some(socket) => Acceptor::inherited(protocol, end, socket),
                None => Acceptor::open(protocol, end),
            }
        });
        let acceptors: Vec<_> = acceptors.collect::<Result<_, _>>()?;
        let to_openflow = openflow.controllers.iter().map(|end| (Protocol::OpenFlow, end));
        let to_pof = pof.into_iter().flat_map(|pof| &pof.controllers).map(|end| (Protocol::Pof, end));
        let dialers: Vec<_> =
            to_openflow.chain(to_pof).map(|(protocol, end)| Dialer::new(protocol, end.clone())).collect();
        Ok(Self {
            agents: Agents::new(pof),
            next_acceptor: acceptors.len() as u64,
            acceptors: (0..).zip(acceptors).collect(),
            accept_paused_until_ns: Nanos(0),
            fallback: Fallback::new(openflow.standalone && !dialers.is_empty()),
            dialers,
            links: Vec::new(),
            tls: open_tls(datapath)?,
            log: LogLimit::default(),
        })
    }

    /// Returns the listening sockets with their names, for another process that continues to listen.
    pub fn hand_over(&self) -> io::Result<Vec<(String, OwnedFd)>> {
        self.acceptors.iter().map(|(_, acceptor)| acceptor.hand_over()).collect()
    }

    /// Leaves the files of unix sockets to another process.
    pub fn leave(&mut self) {
        self.acceptors.iter_mut().for_each(|(_, acceptor)| acceptor.leave());
    }

    /// Returns the bound endpoints of a protocol.
    pub fn addresses(&self, protocol: Protocol) -> Vec<Endpoint> {
        let acceptors = self.acceptors.iter().filter(|(_, acceptor)| acceptor.protocol() == protocol);
        acceptors.map(|(_, acceptor)| acceptor.address().clone()).collect()
    }

    /// Adds the descriptors to poll. [`Channels::woken`] must get their results in the same order.
    pub fn descriptors<'a>(&'a self, set: &mut Vec<PollFd<'a>>) {
        for (_, acceptor) in &self.acceptors {
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
        for (_, acceptor) in self.acceptors.iter_mut().filter(|(_, one)| one.descriptor().is_some()) {
            acceptor.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
        for dialer in self.dialers.iter_mut().filter(|dialer| dialer.descriptor().is_some()) {
            dialer.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
        for (_, link) in self.links.iter_mut().filter(|(_, link)| link.descriptor().is_some()) {
            link.woken(answers.next().unwrap_or(PollFlags::empty()));
        }
    }

    /// Returns the time at which a controller must be dialed, or connections may be accepted again.
    pub fn due(&self) -> Option<Nanos> {
        let paused = self.is_accept_ready().then_some(self.accept_paused_until_ns);
        let dialers = self.dialers.iter().filter(|dialer| !self.is_held(dialer));
        dialers.filter_map(Dialer::due).chain(paused).min()
    }

    /// Returns whether a controller is not dialed now: a second POF controller would empty the switch and end
    /// the session of the first.
    fn is_held(&self, dialer: &Dialer) -> bool {
        dialer.protocol() == Protocol::Pof && dialer.is_idle() && self.agents.has_pof_controller()
    }

    /// Returns whether a channel waits for a change to become active.
    pub fn waits_for_barrier(&mut self) -> bool {
        let agents = &mut self.agents;
        self.links.iter().any(|(_, link)| agents.waits_for_barrier(link.channel()))
    }

    /// Processes a bounded amount of work. Returns whether more work remains.
    pub fn step(&mut self, model: &mut Model<Plane>, now: Nanos, refresh: &mut dyn FnMut()) -> bool {
        let mut more = self.send_async_messages(model, now);
        more |= self.accept_and_connect(now);
        let mut context = Context { model: &mut *model, now, refresh };
        more |= self.step_links(now, |agents, channel| agents.step(channel, &mut context));
        self.agents.update_settings(model);
        let connected = self.is_connected();
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
        let more = self.accept_and_connect(now);
        self.step_links(now, |agents, channel| agents.step_alone(channel, now)) || more
    }

    /// Returns a long-running change for which the model must be lent, if there is one.
    pub fn take_work(&mut self) -> Option<OffloadedWork> {
        self.agents.take_work()
    }

    /// Returns the number of messages for controllers that were lost.
    pub fn lost(&self) -> LostMessages {
        self.agents.lost()
    }

    /// Answers the channel that requested a long-running change, after the change is complete.
    pub fn finish(
        &mut self,
        done: OffloadedDone,
        model: &mut Model<Plane>,
        now: Nanos,
        refresh: &mut dyn FnMut(),
    ) {
        let mut context = Context { model, now, refresh };
        let Some((channel, event)) = self.agents.finish(done, &mut context) else { return };
        if let Some((_, link)) = self.links.iter().find(|(_, link)| link.channel() == channel) {
            log(&mut self.log, now, link.peer(), &event);
        }
    }

    /// Returns whether a controller of the configuration is connected, or another serves in its place.
    fn is_connected(&self) -> bool {
        let waits = |dialer: &Dialer| dialer.protocol() == Protocol::Pof && self.agents.has_pof_controller();
        self.dialers.iter().any(|dialer| dialer.is_open() || waits(dialer))
    }

    /// Accepts connections, and connects to controllers.
    fn accept_and_connect(&mut self, now: Nanos) -> bool {
        self.accept(now);
        let mut more = now >= self.accept_paused_until_ns && self.is_accept_ready();
        let has_pof_controller = self.agents.has_pof_controller();
        for (number, dialer) in self.dialers.iter_mut().enumerate() {
            // A second POF controller would empty the switch and end the session of the first.
            if has_pof_controller && dialer.protocol() == Protocol::Pof && dialer.is_idle() {
                continue;
            }
            match dialer.step(now) {
                Some(Ok(stream)) => {
                    more = true;
                    let (peer, protocol) = (dialer.address().to_string(), dialer.protocol());
                    let begun = match dialer.address() {
                        Endpoint::Ssl(address) => {
                            begin_tls(&mut self.tls, stream, Some(*address), &mut self.log, now)
                        }
                        _ => Ok(stream),
                    };
                    let Ok(stream) = begun else {
                        dialer.lost(now);
                        continue;
                    };
                    let link = ControllerLink::new(stream, peer, protocol, &mut self.agents, now);
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

    fn step_links(
        &mut self,
        now: Nanos,
        mut work: impl FnMut(&mut Agents, ChannelKey) -> LinkProgress,
    ) -> bool {
        let mut more = false;
        for (origin, link) in &mut self.links {
            let progress = link.step(&mut self.agents, now, &mut work);
            more |= progress.more;
            for event in progress.events {
                if let LinkEvent::Opened(_) = &event {
                    link.opened();
                    if let Origin::Controller(number) = *origin
                        && let Some(dialer) = self.dialers.get_mut(number)
                    {
                        dialer.opened();
                    }
                }
                log(&mut self.log, now, link.peer(), &event);
            }
        }
        self.forget_those_that_ended(now);
        more
    }

    fn forget_those_that_ended(&mut self, now: Nanos) {
        let (agents, dialers, log) = (&mut self.agents, &mut self.dialers, &mut self.log);
        self.links.retain_mut(|(origin, link)| {
            if link.is_over() {
                if let Some(problem) = link.tls_problem() {
                    log.warn(now, || tracing::warn!("{}: {problem}", link.peer()));
                } else if link.may_speak_pof() {
                    let advice = openflow::MOVE_TO_POF;
                    log.warn(now, || {
                        tracing::warn!("{}: closed by the peer after HELLO; {advice}", link.peer())
                    });
                } else if let Some(close_reason) = link.close_reason() {
                    log.info(now, || tracing::info!("{}: {close_reason}", link.peer()));
                }
                agents.close(link.channel());
                if let Origin::Controller(number) = *origin
                    && let Some(dialer) = dialers.get_mut(number)
                {
                    dialer.lost(now);
                }
            }
            !link.is_over()
        });
    }

    fn send_async_messages(&mut self, model: &mut Model<Plane>, now: Nanos) -> bool {
        for _ in 0..ASYNC_MESSAGES_PER_STEP {
            let Some(message) = model.next_async_message() else { return false };
            if let AsyncMessage::PortStatus { port, .. } = &message {
                tracing::debug!(port = port.desc.name, "port status");
            }
            self.agents.report(model, now, message);
        }
        true
    }

    fn accept(&mut self, now: Nanos) {
        let mut accepted = self.accepted();
        for (number, acceptor) in self.acceptors.iter_mut().filter(|(_, acceptor)| acceptor.is_ready()) {
            for _ in 0..ACCEPTS_PER_STEP {
                if now < self.accept_paused_until_ns {
                    return;
                }
                match acceptor.accept() {
                    Ok(None) => break,
                    Ok(Some((_, peer))) if accepted >= CONNECTIONS => {
                        self.log.warn(now, || {
                            tracing::warn!(
                                "{peer} is rejected: {CONNECTIONS} connections of controllers are open, the maximum"
                            );
                        });
                    }
                    Ok(Some((stream, peer))) => {
                        let begun = match acceptor.address() {
                            Endpoint::Ssl(_) => begin_tls(&mut self.tls, stream, None, &mut self.log, now),
                            _ => Ok(stream),
                        };
                        let Ok(stream) = begun else { continue };
                        accepted += 1;
                        let protocol = acceptor.protocol();
                        let link = ControllerLink::new(stream, peer, protocol, &mut self.agents, now);
                        self.links.push((Origin::Peer(*number), link));
                    }
                    // If a client disconnected before it was accepted, the next client can still be accepted.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                    Err(error) => {
                        self.accept_paused_until_ns = now.saturating_add(ACCEPT_PAUSE_NS);
                        self.log.warn(now, || {
                            tracing::warn!("connections of controllers cannot be accepted: {error}")
                        });
                    }
                }
            }
        }
    }

    fn is_accept_ready(&self) -> bool {
        self.acceptors.iter().any(|(_, acceptor)| acceptor.is_ready())
    }

    fn accepted(&self) -> usize {
        self.links.iter().filter(|(origin, _)| matches!(origin, Origin::Peer(_))).count()
    }
}

/// Reads the files of TLS connections, if the datapath has any.
///
/// # Errors
///
/// Returns the first problem of the files.
pub fn open_tls(datapath: &config::Datapath) -> Result<Option<Tls>, ListenError> {
    let tls = datapath.tls.as_ref().map(Tls::open).transpose();
    tls.map_err(|error| ListenError::Tls(error.to_string()))
}

/// Checks that the files of TLS connections can be used.
///
/// # Errors
///
/// Returns the first problem of the files.
pub fn check_tls(datapath: &config::Datapath) -> Result<(), ListenError> {
    open_tls(datapath).map(drop)
}

/// Begins TLS on a connection, which this switch has opened to `address`, or accepted. If the files have
/// changed, they are read before.
fn begin_tls(
    tls: &mut Option<Tls>,
    stream: Stream,
    address: Option<SocketAddr>,
    log: &mut LogLimit,
    now: Nanos,
) -> io::Result<Stream> {
    // The configuration is refused if an endpoint of TLS has no files.
    let (Some(tls), Stream::Tcp(stream)) = (tls, stream) else { return Err(ErrorKind::Unsupported.into()) };
    match tls.refresh() {
        Ok(false) => {}
        Ok(true) => {
            log.info(now, || tracing::info!("the certificates of TLS have changed and were read again"))
        }
        Err(error) => log.warn(now, || {
            tracing::warn!("the changed certificates of TLS are not used, but those before: {error}");
        }),
    }
    let begun = match address {
        Some(address) => tls.connect(stream, address),
        None => tls.accept(stream),
    };
    begun.map(|stream| Stream::Tls(Box::new(stream)))
}

fn log(limit: &mut LogLimit, now: Nanos, peer: &str, event: &LinkEvent) {
    match event {
        LinkEvent::Opened(protocol) => limit.info(now, || tracing::info!("{peer}: {protocol}")),
        LinkEvent::Refused(problem) if problem.contains(openflow::MOVE_TO_POF) => {
            limit.warn(now, || tracing::warn!("{peer}: refused: {problem}"))
        }
        LinkEvent::Refused(problem) => limit.info(now, || tracing::info!("{peer}: refused: {problem}")),
        LinkEvent::Error(error) => limit.info(now, || tracing::info!("{peer}: sent an error: {error}")),
        LinkEvent::Hidden(reason) => limit.warn(now, || tracing::warn!("{peer}: {reason}")),
        LinkEvent::Lost(lost) => {
            limit.warn(now, || tracing::warn!("{peer}: messages for this controller were lost: {lost}"))
        }
        LinkEvent::Closed(reason) => limit.warn(now, || tracing::warn!("{peer}: closed: {reason}")),
    }
}
