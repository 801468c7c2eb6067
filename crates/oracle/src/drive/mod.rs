// SPDX-License-Identifier: Apache-2.0
//! Driver of a case: in random order, sends packets, makes updates, and runs poll iterations of the workers
//! and the control thread.

mod close;
mod closed;
mod keys;
mod setup;
mod traffic;
mod update;

use super::CaseOptions;
use super::log::{Control, Moment, OrderLog, Origin, Record, Recorder, STEP_NS_MAX, Submission};
use super::rules::{Scope, Style};
use super::templates::Template;
use closed::ClosedPorts;
use dataplane::DataPlane;
use fastrand::Rng;
use flow::group::Group;
use flow::operation::Releases;
use flow::{Action, FlowMod, GroupId, HeldFlow, Instructions, Nanos, PortNo, RuleVersion, TableId, port_no};
use model::{AsyncMessage, Model, RemovedReason};
use port::mem::MemHandle;
use reference::Reference;
use std::collections::BTreeMap;
use worker::{SearchWorker, Worker};

pub(super) use setup::is_calm;

pub(super) struct Driver {
    rng: Rng,
    /// Generator of the ports' settings for NORMAL, in cases in which ports have them.
    vlans: Option<Rng>,
    options: CaseOptions,
    style: Style,
    templates: Vec<Template>,
    /// For each template, the port on which most of its packets arrive.
    homes: Vec<PortNo>,
    model: Model<Recorder>,
    workers: Vec<Worker<OrderLog>>,
    /// The search worker of the port caches, if there is one and it has not ended.
    search: Option<SearchWorker>,
    handles: Vec<MemHandle>,
    /// The port to which a mirror copies, if there is one.
    mirror: Option<MemHandle>,
    /// Reference that executes every operation on submission, before the workers do.
    shadow: Reference,
    shadowed: usize,
    now: Nanos,
    sequences: Vec<Vec<u64>>,
    waiting: Vec<Vec<usize>>,
    /// Flows about which the controller was asked, and that were not answered.
    asked: Vec<HeldFlow>,
    acknowledged: RuleVersion,
    tight: bool,
    /// Number of poll iterations since frames were last taken from the devices.
    untaken: usize,
    /// Ports that must be closed because of a storm limit.
    closed: ClosedPorts,
    /// Large buffers that unsent packets may use, per worker.
    large_taken: Vec<usize>,
    /// Number of lookups counted so far, per table.
    lookups: BTreeMap<TableId, u64>,
    record: Record,
}

impl Driver {
    pub fn run(mut self) -> Result<Record, String> {
        self.first_rules()?;
        // A calm case has only a few updates that may change the treatment of packets.
        let updates = match self.options.repeats {
            _ if self.style.calm => 2,
            true => 7,
            false => 10,
        };
        while self.record.arrivals.len() < self.options.packets {
            self.now += Nanos(self.rng.u64(0..STEP_NS_MAX.0));
            self.search_sometimes();
            match self.rng.u8(0..200) {
                0..110 => self.push(),
                110..170 => {
                    let worker = self.rng.usize(0..self.workers.len());
                    self.turn(worker)?;
                }
                170..184 => self.control()?,
                other if other < 184 + updates => self.update()?,
                _ => self.settle()?,
            }
        }
        self.settle()?;
        self.close();
        Ok(self.record)
    }

    /// Returns a random template, and a port on which its packets arrive.
    fn packet_in_use(&mut self) -> (usize, PortNo) {
        let template = self.rng.usize(0..self.templates.len());
        (template, self.port_of(template))
    }

    /// Returns a port on which a template's packets arrive, usually the template's own port.
    fn port_of(&mut self, template: usize) -> PortNo {
        if self.rng.u8(0..6) == 0 { self.style.any_port(&mut self.rng) } else { self.homes[template] }
    }

    /// Returns a flow-mod that adds an entry which matches some of the packets.
    fn random_entry(&mut self, table: TableId) -> FlowMod {
        let (template, port) = self.packet_in_use();
        self.style.entry(&mut self.rng, table, &self.templates[template], port)
    }

    /// Returns a flow-mod that adds an entry for packets that no other entry matches.
    fn random_resort(&mut self, table: TableId) -> FlowMod {
        let (template, port) = self.packet_in_use();
        let mut resort = self.style.last_resort(&mut self.rng, table, &self.templates[template], port);
        if self.quenches() && self.rng.bool() {
            let apply = vec![Action::output(port_no::CONTROLLER)];
            resort.instructions = Instructions { apply, ..Instructions::default() };
        }
        resort
    }

    /// Returns whether packets wait for the controller after a packet-in.
    fn quenches(&self) -> bool {
        self.options.port_cache.is_some_and(|cache| cache.quench.is_some())
    }

    /// Answers a packet-in for whose answer packets wait or have waited. Many answers are late, and some are
    /// given twice. A quarter of them are packet-outs with the buffer ID of the packet-in.
    fn answer(&mut self) -> Result<(), String> {
        if self.asked.is_empty() || self.rng.bool() {
            return Ok(());
        }
        let at = self.rng.usize(0..self.asked.len());
        let flow = if self.rng.u8(0..4) == 0 { self.asked[at] } else { self.asked.swap_remove(at) };
        if self.rng.u8(0..4) == 0 && !self.record.room.lacks_frames() {
            let (template, _) = self.packet_in_use();
            return self.inject(template, Releases::Held(flow));
        }
        self.model.end_wait(flow);
        self.follow()
    }

    fn random_group(&mut self, id: GroupId) -> Group {
        let (template, port) = self.packet_in_use();
        let template = &self.templates[template];
        let like = self.rng.u8(0..4) == 0;
        let scope = if like { Scope::of(template, port) } else { Scope::any(template, port) };
        self.style.group(&mut self.rng, id, scope)
    }

    /// Runs one poll of the control thread.
    fn control(&mut self) -> Result<(), String> {
        self.answer()?;
        self.follow()?;
        let (moment, before) = (Moment::next(self.now), self.shadowed);
        while self.model.poll(self.now) {
            self.take_async_messages();
            self.follow_storms();
        }
        self.take_async_messages();
        self.follow_storms();
        let barrier = self.model.barrier();
        if self.model.is_applied(barrier) {
            self.acknowledged = barrier;
        }
        self.take_over(Origin::Poll)?;
        self.check_closed(before + 1..=self.shadowed)?;
        let counted_until = self.model.plane_mut().counted_until();
        self.record.controls.push(Control { moment, operations: self.shadowed, counted_until });
        Ok(())
    }

    fn take_async_messages(&mut self) {
        while let Some(message) = self.model.next_async_message() {
            match message {
                AsyncMessage::PacketIn(packet_in) => {
                    self.asked.extend(packet_in.question.map(|question| question.flow));
                    self.model.recycle(packet_in.frame);
                }
                AsyncMessage::FlowRemoved(removed) => {
                    let expired =
                        matches!(removed.reason, RemovedReason::IdleTimeout | RemovedReason::HardTimeout);
                    self.record.expired += usize::from(expired);
                    self.record.removed.push(removed);
                }
                AsyncMessage::PortStatus { .. } => {}
            }
        }
    }

    /// Applies the operations that the driver's requests caused to the shadow reference.
    fn follow(&mut self) -> Result<(), String> {
        self.take_over(Origin::Request)
    }

    /// Applies new operations to the shadow reference. Records their origin and the length of each worker's
    /// log.
    fn take_over(&mut self, origin: Origin) -> Result<(), String> {
        let lengths: Vec<usize> = self.workers.iter_mut().map(|w| w.probe().entries.len()).collect();
        let recorder = self.model.plane_mut();
        for operation in &recorder.operations[self.shadowed..] {
            self.shadow
                .apply(operation)
                .map_err(|what| format!("the model made an invalid operation: {what}"))?;
            let (lengths, moment) = (lengths.clone(), Moment::next(self.now));
            self.record.submitted.push(Submission { lengths, moment, origin });
        }
        self.shadowed = recorder.operations.len();
        Ok(())
    }
}
