// SPDX-License-Identifier: Apache-2.0
//! The agents of both protocols, behind one interface for the code that moves bytes.

use crate::plane::Plane;
use flow::Nanos;
use model::agent::{Agent, ChannelEvent, ChannelId, Context, LostMessages};
use model::{AsyncMessage, Model};
use openflow::SessionConfig;
use openflow::role::Role;
use pof::PofDialect;

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    OpenFlow,
    Pof,
}

impl Protocol {
    /// Returns the name of the protocol in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenFlow => "openflow",
            Self::Pof => "pof",
        }
    }
}

/// ID of a channel, whatever its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKey {
    OpenFlow(ChannelId),
    Pof(pof_agent::PofChannelId),
}

/// The bytes of a channel, whatever its protocol.
pub trait ChannelBytes {
    /// Passes received bytes to the channel. Returns the number of bytes accepted.
    fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize;
    /// Returns whether the connection should be read.
    fn wants_read(&self) -> bool;
    /// Returns the bytes to write.
    fn output(&self) -> &[u8];
    /// Removes the first `count` bytes of the output.
    fn consume(&mut self, count: usize);
    /// Returns whether requests wait or an answer is in progress.
    fn is_busy(&self) -> bool;
}

macro_rules! channel_bytes {
    ($($channel:ty)*) => {
        $(impl ChannelBytes for $channel {
            fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
                Self::receive(self, bytes, now)
            }

            fn wants_read(&self) -> bool {
                Self::wants_read(self)
            }

            fn output(&self) -> &[u8] {
                Self::output(self)
            }

            fn consume(&mut self, count: usize) {
                Self::consume(self, count);
            }

            fn is_busy(&self) -> bool {
                Self::is_busy(self)
            }
        })*
    };
}

channel_bytes! { model::agent::Channel pof_agent::PofChannel }

/// An event on a channel, for the log and for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The handshake has begun, in this protocol.
    Opened(&'static str),
    /// A message was refused for this reason.
    Refused(String),
    /// The controller sent this error.
    Error(String),
    /// The controller does not see a part of the switch, for this reason.
    Hidden(String),
    /// These messages for the controller were dropped.
    Lost(String),
    /// The session has ended for this reason.
    Closed(String),
}

/// Result of a step of a channel.
#[derive(Debug, Default)]
pub struct LinkProgress {
    /// More work can be done immediately.
    pub more: bool,
    /// Events of the step.
    pub events: Vec<LinkEvent>,
}

fn openflow_event(event: ChannelEvent) -> LinkEvent {
    match event {
        ChannelEvent::Opened => LinkEvent::Opened("OpenFlow 1.3"),
        ChannelEvent::Refused(problem) => LinkEvent::Refused(problem),
        ChannelEvent::Error(code) => LinkEvent::Error(code),
        ChannelEvent::Lost(lost) => LinkEvent::Lost(lost.to_string()),
        ChannelEvent::Closed(reason) => LinkEvent::Closed(reason.to_string()),
    }
}

fn pof_event(event: pof_agent::PofChannelEvent, dialect: PofDialect) -> LinkEvent {
    use pof_agent::PofChannelEvent as Event;
    match event {
        Event::Opened => LinkEvent::Opened(match dialect {
            PofDialect::V1_2 => "POF 1.2",
            PofDialect::V1_4 => "POF 1.4.0.015",
        }),
        Event::Refused(problem) => LinkEvent::Refused(problem),
        Event::Error(error) => LinkEvent::Error(error),
        Event::HiddenPorts(ports) => LinkEvent::Hidden(format!(
            "{ports} ports have a number above {}, which dialect {dialect} cannot express; the controller does not \
             see them",
            u16::MAX
        )),
        Event::Lost(lost) => LinkEvent::Lost(lost.to_string()),
        Event::Closed(reason) => LinkEvent::Closed(reason.to_string()),
    }
}

/// A long-running change for which the model is lent.
pub enum OffloadedWork {
    OpenFlow(model::agent::Work),
    Pof(pof_agent::PofWork),
}

/// Result of [`OffloadedWork`].
pub enum OffloadedDone {
    OpenFlow(model::agent::Done),
    Pof(pof_agent::PofDone),
}

impl OffloadedWork {
    /// Applies the changes. The duration is not bounded.
    pub fn run(self, model: &mut Model<Plane>) -> OffloadedDone {
        match self {
            Self::OpenFlow(work) => OffloadedDone::OpenFlow(work.run(model)),
            Self::Pof(work) => OffloadedDone::Pof(work.run(model)),
        }
    }
}

/// The agents of both protocols.
pub struct Agents {
    openflow: Agent,
    pof: Option<pof_agent::PofAgent>,
}

impl Agents {
    pub fn new(pof: Option<&config::Pof>) -> Self {
        let mut openflow = Agent::default();
        openflow.offload_long_work();
        let pof = pof.map(|pof| {
            let mut agent = pof_agent::PofAgent::new(pof_agent::AgentConfig {
                dialect: pof.dialect,
                layout: pof_agent::TableLayout::new(pof.tables),
                device_id: pof.device_id,
                miss: match pof.miss {
                    config::PofMiss::Drop => pof_agent::Miss::Drop,
                    config::PofMiss::Controller => pof_agent::Miss::Controller,
                },
            });
            agent.offload_long_work();
            agent
        });
        Self { openflow, pof }
    }

    /// Opens a channel on a new connection. A protocol without configuration has no connections.
    pub fn open(&mut self, protocol: Protocol, now: Nanos) -> ChannelKey {
        match (protocol, &mut self.pof) {
            (Protocol::Pof, Some(pof)) => ChannelKey::Pof(pof.open(now, pof::session::default_timers())),
            _ => ChannelKey::OpenFlow(self.openflow.open(now, SessionConfig::default())),
        }
    }

    /// Returns the bytes of a channel.
    pub fn channel(&mut self, key: ChannelKey) -> Option<&mut dyn ChannelBytes> {
        match key {
            ChannelKey::OpenFlow(id) => self.openflow.channel(id).map(|channel| channel as _),
            ChannelKey::Pof(id) => self.pof.as_mut()?.channel(id).map(|channel| channel as _),
        }
    }

    /// Returns the role of the controller at a channel. POF has no roles.
    pub fn role(&self, key: ChannelKey) -> Option<&'static str> {
        let ChannelKey::OpenFlow(id) = key else { return None };
        self.openflow.role(id).map(|role| match role {
            Role::Master => "master",
            Role::Slave => "slave",
            Role::Equal | Role::NoChange => "equal",
        })
    }

    /// Returns whether a channel waits for a change to become active.
    pub fn waits_for_barrier(&mut self, key: ChannelKey) -> bool {
        match key {
            ChannelKey::OpenFlow(id) => {
                self.openflow.channel(id).is_some_and(|channel| channel.waits_for_barrier())
            }
            ChannelKey::Pof(_) => false,
        }
    }

    /// Handles a bounded number of a channel's requests.
    pub fn step(&mut self, key: ChannelKey, context: &mut Context<'_, Plane>) -> LinkProgress {
        match key {
            // A long change of one protocol must be applied before a request of the other starts.
            ChannelKey::OpenFlow(id) if self.has_pof_work() => {
                openflow_progress(self.openflow.step_alone(id, context.now))
            }
            ChannelKey::OpenFlow(id) => openflow_progress(self.openflow.step(id, context)),
            ChannelKey::Pof(id) => {
                let waits = self.openflow.has_work();
                let Some(pof) = &mut self.pof else { return LinkProgress::default() };
                let progress = if waits { pof.step_alone(id, context.now) } else { pof.step(id, context) };
                pof_progress(progress, pof.config().dialect)
            }
        }
    }

    /// Answers echo requests of a channel while the model is lent.
    pub fn step_alone(&mut self, key: ChannelKey, now: Nanos) -> LinkProgress {
        match key {
            ChannelKey::OpenFlow(id) => openflow_progress(self.openflow.step_alone(id, now)),
            ChannelKey::Pof(id) => {
                let Some(pof) = &mut self.pof else { return LinkProgress::default() };
                pof_progress(pof.step_alone(id, now), pof.config().dialect)
            }
        }
    }

    /// Returns whether a POF controller is served.
    pub fn has_pof_controller(&self) -> bool {
        self.pof.as_ref().is_some_and(pof_agent::PofAgent::has_controller)
    }

    fn has_pof_work(&self) -> bool {
        self.pof.as_ref().is_some_and(pof_agent::PofAgent::has_work)
    }

    /// Adjusts the settings of the data plane after channels were closed.
    pub fn update_settings(&mut self, model: &mut Model<Plane>) {
        self.openflow.update_settings(model);
    }

    /// Takes a long-running change. There is at most one.
    pub fn take_work(&mut self) -> Option<OffloadedWork> {
        let openflow = self.openflow.take_work().map(OffloadedWork::OpenFlow);
        openflow.or_else(|| self.pof.as_mut()?.take_work().map(OffloadedWork::Pof))
    }

    /// Answers the channel whose long-running change is complete. Returns an event to log, if there is one.
    pub fn finish(
        &mut self,
        done: OffloadedDone,
        context: &mut Context<'_, Plane>,
    ) -> Option<(ChannelKey, LinkEvent)> {
        match done {
            OffloadedDone::OpenFlow(done) => {
                let (id, event) = self.openflow.finish(done, context)?;
                Some((ChannelKey::OpenFlow(id), openflow_event(event)))
            }
            OffloadedDone::Pof(done) => {
                let pof = self.pof.as_mut()?;
                let dialect = pof.config().dialect;
                let (id, event) = pof.finish(done)?;
                Some((ChannelKey::Pof(id), pof_event(event, dialect)))
            }
        }
    }

    /// Sends an asynchronous message to the controllers of both protocols. The agent of OpenFlow comes last,
    /// because it returns the frame of a packet-in to the data plane.
    pub fn report(&mut self, model: &mut Model<Plane>, now: Nanos, message: AsyncMessage) {
        if let Some(pof) = &mut self.pof {
            pof.report(&message);
        }
        self.openflow.report(model, now, message);
    }

    /// Returns the number of messages for controllers that were lost.
    pub fn lost(&self) -> LostMessages {
        let pof = self.pof.as_ref().map(pof_agent::PofAgent::lost).unwrap_or_default();
        self.openflow.lost().plus(pof)
    }

    /// Removes a channel whose connection is closed.
    pub fn close(&mut self, key: ChannelKey) {
        match key {
            ChannelKey::OpenFlow(id) => self.openflow.close(id),
            ChannelKey::Pof(id) => self.pof.iter_mut().for_each(|pof| pof.close(id)),
        }
    }
}

fn openflow_progress(progress: model::agent::Progress) -> LinkProgress {
    LinkProgress { more: progress.more, events: progress.events.into_iter().map(openflow_event).collect() }
}

fn pof_progress(progress: pof_agent::PofProgress, dialect: PofDialect) -> LinkProgress {
    let events = progress.events.into_iter().map(|event| pof_event(event, dialect)).collect();
    LinkProgress { more: progress.more, events }
}
