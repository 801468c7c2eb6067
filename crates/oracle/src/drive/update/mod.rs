// SPDX-License-Identifier: Apache-2.0
//! Changes rules, groups, meters, ports and settings while packets pass. Most changes affect a test packet.

mod entries;
mod groups;
mod meters;
mod ports;

use super::Driver;
use crate::log::Arrival;
use crate::rules::Scope;
use crate::views;
use flow::operation::{PacketOut, Releases};
use flow::{Action, PortNo, port_no};
use reference::{Processed, Unfinished};

/// Maximum number of attempts to find an update that changes the treatment of a test packet.
const LIVE_TRIES: usize = 8;

/// A test packet, and the reference's result for this packet before an update.
struct Subject {
    template: usize,
    port: PortNo,
    bytes: Vec<u8>,
    before: Processed,
}

impl Driver {
    /// Makes a random change that is likely to affect a test packet.
    pub(super) fn update(&mut self) -> Result<(), String> {
        self.control()?;
        let disturbed = self.restore_ports()?;
        // New entries are preferably made for a packet that no entry forwards.
        let misses = |processed: &Processed| processed.hits.last().is_some_and(|(_, hit)| hit.is_none());
        let mut subject = self.subject(misses);
        if !misses(&subject.before) {
            subject = self.subject(|processed| !processed.sent.is_empty() && !processed.hits.is_empty());
        }
        views::compare(&self.model, &mut self.shadow, subject.port, &subject.bytes)?;
        self.record.traced += 1;
        if let Some((table, None)) = subject.before.hits.last()
            && *table != self.style.linear
            && self.rng.u8(0..4) > 0
        {
            // Makes sure that most packets are forwarded.
            let resort = self.random_resort(*table);
            drop(self.model.flow_mod(self.now, resort));
            return self.account(&subject);
        }
        let queued = !self.record.egress.is_empty();
        match self.rng.u8(0..120) {
            0..24 if queued => self.requeue(&subject),
            // Calm cases have few updates, so a port would stay down for most of the case.
            24..36 if !disturbed && !self.style.calm => {
                self.disturb_ports(&subject);
                self.account(&subject)
            }
            // Without a free frame, a packet-out never enters the pipeline, so cases that lack frames send
            // none.
            36..48 if !self.record.room.lacks_frames() => {
                for _ in 0..self.rng.u8(1..4) {
                    self.inject(subject.template, Releases::SameFlow)?;
                }
                Ok(())
            }
            48..54 => {
                // This change does not affect most packets, so it is not counted as an update.
                self.other_settings();
                self.follow()
            }
            54..68 if self.style.groups > 0 => self.change_group(),
            68..78 if self.style.meters > 0 => {
                for _ in 0..self.rng.u8(1..4) {
                    self.change_meter()?;
                }
                Ok(())
            }
            78..83 => self.swap_table(&subject),
            83..91 => self.delete_senders(),
            _ => self.change_entry(&subject),
        }
    }

    /// Returns a test packet that satisfies `wanted`, or any test packet after several failed attempts.
    fn subject(&mut self, wanted: impl Fn(&Processed) -> bool) -> Subject {
        let mut tries = LIVE_TRIES;
        loop {
            let (template, port) = self.packet_in_use();
            let bytes = self.templates[template].bytes.clone();
            let before = self.shadow.process(port, &bytes);
            tries -= 1;
            if tries == 0 || wanted(&before) {
                return Subject { template, port, bytes, before };
            }
        }
    }

    /// Sends a packet-out. The worker whose packets it releases sends the packet, or the first worker.
    pub(super) fn inject(&mut self, template: usize, releases: Releases) -> Result<(), String> {
        let tag = self.record.arrivals.len();
        let in_port = if self.rng.bool() {
            [port_no::CONTROLLER, port_no::ANY, port_no::LOCAL, PortNo(0)][self.rng.usize(0..4)]
        } else {
            self.style.any_port(&mut self.rng)
        };
        let scope = Scope::of(&self.templates[template], in_port);
        let mut actions = self.style.instructions(&mut self.rng, self.style.linear, scope).apply;
        if self.rng.bool() {
            actions.push(Action::output(port_no::TABLE));
        }
        let bytes = self.templates[template].tagged(tag);
        let packet = PacketOut { in_port, actions, bytes: bytes.clone(), releases };
        if self.model.packet_out(packet).is_ok() {
            let version = self.model.barrier();
            self.record.injected.insert(version, tag);
            let worker = match releases {
                Releases::Held(flow) => {
                    self.record.answered += 1;
                    flow.worker.into()
                }
                Releases::SameFlow | Releases::Nothing => 0,
            };
            let arrival = Arrival {
                port: in_port,
                unfinished: Unfinished::default(),
                worker,
                sequence: 0,
                flow: Arrival::injected_flow(tag),
                bytes,
                acknowledged: self.acknowledged,
            };
            self.record.arrivals.push(arrival);
        }
        self.follow()
    }

    /// Counts an update, and a live update if it changed the treatment of the packet.
    fn account(&mut self, subject: &Subject) -> Result<(), String> {
        let changed = self.changes(subject)?;
        self.record.updates += 1;
        self.record.live_updates += usize::from(changed);
        Ok(())
    }

    /// If an update changed the treatment of the packet, counts an update and a live update.
    fn account_if_live(&mut self, subject: &Subject) -> Result<(), String> {
        let live = usize::from(self.changes(subject)?);
        self.record.updates += live;
        self.record.live_updates += live;
        Ok(())
    }

    fn changes(&mut self, subject: &Subject) -> Result<bool, String> {
        self.follow()?;
        Ok(self.shadow.process(subject.port, &subject.bytes) != subject.before)
    }
}
