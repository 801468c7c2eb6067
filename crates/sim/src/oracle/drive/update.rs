// SPDX-License-Identifier: Apache-2.0
//! Changes rules, groups, ports and settings while packets pass.

use super::Driver;
use crate::oracle::log::Arrival;
use crate::oracle::rules::LINEAR;
use crate::oracle::views;
use flow::operation::PacketOut;
use flow::{Action, Command, EntryFlags, FlowMod, Instructions, PortNo, port_no};
use model::{Change, GroupCommand, PortConfig};
use reference::Processed;

/// Tries to find an update that changes what becomes of a packet in use.
const LIVE_TRIES: usize = 8;

impl Driver {
    /// A random change, made so that it changes what becomes of a packet in use.
    pub(super) fn update(&mut self) -> Result<(), String> {
        self.control()?;
        // A port that is down comes back before anything else changes.
        let down = self.model.ports().find(|p| !p.is_up() || p.config.no_recv).map(|p| p.desc.number);
        if let Some(number) = down {
            drop(self.model.set_link(self.now, number, true));
            drop(self.model.set_port_config(self.now, number, PortConfig::default()));
            self.follow()?;
        }
        // A packet that gets as far as the tables.
        let mut in_use = self.packet_in_use();
        for _ in 0..LIVE_TRIES {
            if !self.shadow.process(in_use.1, &self.templates[in_use.0].bytes).hits.is_empty() {
                break;
            }
            in_use = self.packet_in_use();
        }
        let (template, port) = in_use;
        views::compare(&self.model, &mut self.shadow, port, &self.templates[template].bytes)?;
        self.record.traced += 1;
        let bytes = self.templates[template].bytes.clone();
        if !self.record.egress.is_empty() && self.rng.u8(0..4) == 0 {
            return self.requeue(template, port);
        }
        if self.rng.u8(0..14) == 0 && down.is_none() {
            let before = self.shadow.process(port, &bytes);
            let egress = before.sent.first().map_or(port, |copy| copy.port);
            self.port_change(egress);
            return self.account(&before, port, &bytes);
        }
        // Without a frame for it a packet of the controller's never begins its way.
        if self.rng.u8(0..8) == 0 && !self.record.room.lacks_frames() {
            return self.inject(template);
        }
        if self.rng.u8(0..20) == 0 {
            // Most packets do not notice: it is no update that counts.
            self.other_settings();
            return self.follow();
        }
        if self.style.groups > 0 && self.rng.u8(0..10) == 0 {
            let before = self.shadow.process(port, &bytes);
            let id = self.rng.u32(1..=self.style.groups);
            let group = self.style.group(&mut self.rng, id);
            self.model.group_mod(self.now, GroupCommand::Modify, group).map_err(|error| error.to_string())?;
            self.follow()?;
            // Only a group in use is an update that counts.
            let live = usize::from(self.shadow.process(port, &bytes) != before);
            self.record.updates += live;
            self.record.live_updates += live;
            return Ok(());
        }
        if self.rng.u8(0..24) == 0 {
            // Many changes at once: a swap. Deletes a whole table, or all entries of a cookie.
            let before = self.shadow.process(port, &bytes);
            let table = before.hits.first().map_or(0, |(table, _)| *table);
            let mut mods =
                vec![FlowMod { command: Command::Delete, table: Some(table), ..FlowMod::default() }];
            if self.rng.u8(0..4) == 0 {
                mods[0].cookie = self.rng.u64(0..4);
                mods[0].cookie_mask = 3;
            }
            for _ in 0..self.rng.usize(0..80) {
                let (template, port) = self.packet_in_use();
                mods.push(self.style.entry(&mut self.rng, table, &self.templates[template], port));
            }
            if self.rng.u8(0..4) == 0 {
                // All entries of the table do something else.
                mods.clear();
                let instructions = self.style.instructions(&mut self.rng, table);
                mods.push(FlowMod {
                    command: Command::Modify,
                    table: Some(table),
                    instructions,
                    flags: EntryFlags { reset_counts: self.rng.bool(), ..EntryFlags::default() },
                    ..FlowMod::default()
                });
            }
            let mut changes: Vec<Change> = mods.into_iter().map(Change::Flow).collect();
            if self.style.groups > 0 && self.rng.bool() {
                let id = self.rng.u32(1..=self.style.groups);
                let group = self.style.group(&mut self.rng, id);
                changes.insert(self.rng.usize(0..=changes.len()), Change::Group(GroupCommand::Modify, group));
            }
            drop(self.model.bundle(self.now, changes));
            return self.account(&before, port, &bytes);
        }
        let before = self.shadow.process(port, &bytes);
        for _ in 0..LIVE_TRIES {
            let m = self.change(template, port, &before);
            let operations = self.model.plane_mut().operations.len();
            let done = self.model.flow_mod(self.now, m);
            if done.is_ok() && self.model.plane_mut().operations.len() > operations {
                return self.account(&before, port, &bytes);
            }
        }
        Ok(())
    }

    /// Brings a flow to another egress queue of the port that it leaves by, by an entry that makes nothing low-latency.
    fn requeue(&mut self, template: usize, port: PortNo) -> Result<(), String> {
        let before = self.shadow.process(port, &self.templates[template].bytes);
        let egress = before.sent.first().map_or(port, |copy| copy.port);
        let table = before.hits.first().map_or(0, |(table, _)| *table);
        let apply = vec![Action::SetQueue(self.rng.u32(0..3)), Action::output(egress)];
        let entry = self.style.entry(&mut self.rng, table, &self.templates[template], port);
        let requeues = FlowMod {
            // Before all others.
            priority: 1_000 + self.shadowed.min(10_000) as u16,
            instructions: Instructions::apply(apply),
            low_latency: Some(false),
            ..entry
        };
        drop(self.model.flow_mod(self.now, requeues));
        self.follow()
    }

    /// Sends a packet of the controller's.
    fn inject(&mut self, template: usize) -> Result<(), String> {
        let tag = self.record.arrivals.len();
        let in_port = if self.rng.bool() { port_no::CONTROLLER } else { self.rng.u32(1..=self.style.ports) };
        let mut actions = self.style.instructions(&mut self.rng, LINEAR).apply;
        if self.rng.bool() {
            actions.push(Action::output(port_no::TABLE));
        }
        let bytes = self.templates[template].tagged(tag);
        let packet = PacketOut { in_port, actions, bytes: bytes.clone() };
        if self.model.packet_out(packet).is_ok() {
            let version = self.model.barrier();
            self.record.injected.insert(version, tag);
            // A flow of its own.
            let flow = 1 << 40 | tag as u64;
            let arrival = Arrival {
                port: in_port,
                worker: 0,
                sequence: 0,
                flow,
                bytes,
                acknowledged: self.acknowledged,
            };
            self.record.arrivals.push(arrival);
        }
        self.follow()
    }

    /// Counts an update, and whether it changed what becomes of the packet.
    fn account(&mut self, before: &Processed, port: PortNo, bytes: &[u8]) -> Result<(), String> {
        self.follow()?;
        let after = self.shadow.process(port, bytes);
        self.record.updates += 1;
        self.record.live_updates += usize::from(after != *before);
        Ok(())
    }

    fn port_change(&mut self, port: PortNo) {
        if self.rng.u8(0..4) > 0 {
            let up = self.model.port(port).is_some_and(|p| p.link_up);
            drop(self.model.set_link(self.now, port, !up));
        } else {
            let config = PortConfig {
                down: self.rng.u8(0..6) == 0,
                no_recv: self.rng.u8(0..6) == 0,
                no_fwd: self.rng.u8(0..4) == 0,
                no_flood: self.rng.u8(0..4) == 0,
                no_packet_in: self.rng.u8(0..4) == 0,
            };
            drop(self.model.set_port_config(self.now, port, config));
        }
    }

    /// A flow-mod that bears on an entry which the packet hits, or on what it misses.
    fn change(&mut self, template: usize, port: PortNo, before: &Processed) -> FlowMod {
        let hits: Vec<_> =
            before.hits.iter().filter(|(table, _)| *table < LINEAR || self.rng.u8(0..3) == 0).collect();
        let (table, entry) = match hits.len() {
            0 => (0, None),
            n => *hits[self.rng.usize(0..n)],
        };
        let hit = entry.and_then(|id| self.shadow.entries(table).iter().find(|e| e.id == id).cloned());
        let Some(hit) = hit else {
            return self.style.entry(&mut self.rng, table, &self.templates[template], port);
        };
        let same = FlowMod {
            flags: EntryFlags { reset_counts: self.rng.u8(0..4) == 0, ..EntryFlags::default() },
            table: Some(table),
            priority: hit.priority,
            matching: hit.matching.clone(),
            cookie: 0,
            ..FlowMod::default()
        };
        let instructions = self.style.instructions(&mut self.rng, table);
        match self.rng.u8(0..10) {
            0..3 => FlowMod { command: Command::DeleteStrict, ..same },
            3 => FlowMod { command: Command::Delete, ..same },
            4..6 => FlowMod { command: Command::ModifyStrict, instructions, ..same },
            6 => FlowMod { command: Command::Modify, instructions, ..same },
            7 => FlowMod { instructions, ..same },
            _ => FlowMod {
                priority: hit.priority.saturating_add(self.rng.u16(1..4)),
                ..self.style.entry(&mut self.rng, table, &self.templates[template], port)
            },
        }
    }
}
