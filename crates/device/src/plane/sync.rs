// SPDX-License-Identifier: Apache-2.0
//! Reads the entries of a device that begins to answer, and writes them anew if the rules require others.

use std::collections::BTreeMap;

use flow::Nanos;

use crate::action::{ActionWord, OutputKind};
use crate::command::PpuCommand;
use crate::compile::DeviceCommand;
use crate::key::TernaryKey;
use crate::message::EntryState;
use crate::plane::{Awaited, DeviceLink, DevicePlane, Place};

/// Agreement with the device.
#[derive(Debug)]
pub(super) enum Sync {
    /// The device does not answer, or has not the expected size.
    Down,
    /// Its entries are read.
    Reading(Vec<EntryState>),
    /// Its entries are those of the rules as soon as all commands are executed.
    Ready,
}

/// Row that drops all packets while a device is rewritten.
fn closed() -> PpuCommand {
    let action = ActionWord { output: OutputKind::Discard, last: true, ..ActionWord::default() };
    PpuCommand::Write { index: 0, key: TernaryKey::default(), action }
}

impl<L: DeviceLink> DevicePlane<L> {
    /// The device has answered a Hello.
    pub(super) fn begin_sync(&mut self, ppus: u8, entries: u16) {
        let layout = self.compiler.layout();
        if (usize::from(ppus), entries) != (layout.ppus(), layout.entries()) {
            self.wrong_size = Some((ppus, entries, self.now));
            // Another device may answer later.
            return self.session.pause(self.now);
        }
        self.wrong_size = None;
        self.sync = Sync::Reading(Vec::new());
        for (ppu, index) in (0..ppus).flat_map(|ppu| (0..entries).map(move |index| (ppu, index))) {
            self.session.read(ppu, index);
            self.ask(Awaited::Compare);
        }
    }

    /// Takes an entry that was read.
    pub(super) fn compare(&mut self, state: EntryState) {
        let layout = self.compiler.layout();
        let all = layout.ppus() * usize::from(layout.entries());
        let Sync::Reading(states) = &mut self.sync else { return };
        states.push(state);
        if states.len() == all {
            let states = std::mem::take(states);
            self.finish_sync(&states);
        }
    }

    fn finish_sync(&mut self, states: &[EntryState]) {
        // The compiler's state contains what its commands would do.
        drop(self.compiler.take_commands());
        let layout = self.compiler.layout();
        let (ppus, entries) = (layout.ppus() as u8, layout.entries());
        let wanted: BTreeMap<(u8, u16), PpuCommand> = (0..ppus)
            .flat_map(|ppu| self.compiler.rows(ppu).map(move |row| ((ppu, row.index()), row)))
            .collect();
        let is_wanted = |state: &EntryState| match wanted.get(&(state.ppu, state.index)) {
            Some(PpuCommand::Write { key, action, .. }) => {
                state.valid && (state.key, state.action) == (*key, *action)
            }
            _ => !state.valid,
        };
        let equal = states.iter().all(is_wanted);
        // Hits while the device did not answer count, too. Entries are read in order.
        let number = |(ppu, index): (u8, u16)| usize::from(ppu) * usize::from(entries) + usize::from(index);
        for (place, used) in std::mem::take(&mut self.places) {
            if let Some(state) = states.get(number(place)) {
                self.hits(used, state);
            }
        }
        self.sync = Sync::Ready;
        let mut commands = Vec::new();
        if !equal {
            commands = self.rewritten(states, &wanted, &is_wanted, ppus);
            self.rewrites += 1;
        }
        self.send(commands);
        let is_closed = !equal && states.iter().any(|state| state.valid);
        for &(ppu, index) in wanted.keys() {
            let state = states.get(number((ppu, index)));
            let kept = state.filter(|state| is_wanted(state) && !(is_closed && (ppu, index) == (0, 0)));
            let seen = kept.map_or(0, |state| state.packets);
            let Some(row) = self.compiler.installed_row(ppu, index) else { continue };
            let (entry, key) = (row.owner, row.key);
            if entry.is_some() || index + 1 == entries {
                self.generation += 1;
                self.places.insert((ppu, index), Place { entry, seen, generation: self.generation, key });
            }
        }
        let asked = self.asked;
        for (_, position) in &mut self.versions {
            *position = (*position).min(asked);
        }
        self.counted = Nanos(0);
        self.advance();
    }

    /// Returns commands for a device with other entries. The first closes PPU 0, and the last opens it.
    fn rewritten(
        &self,
        states: &[EntryState],
        wanted: &BTreeMap<(u8, u16), PpuCommand>,
        is_wanted: &dyn Fn(&EntryState) -> bool,
        ppus: u8,
    ) -> Vec<DeviceCommand> {
        let mut commands = Vec::new();
        let closes = states.iter().any(|state| state.valid);
        if closes {
            commands.push((0, closed()));
        }
        for ppu in (0..ppus).rev() {
            let select = self.compiler.slices(ppu).map(|slices| (ppu, PpuCommand::Select { slices }));
            commands.extend(select);
            // In an empty PPU, a row is right as soon as all rows before it are there.
            for state in states.iter().filter(|state| state.ppu == ppu && (ppu, state.index) != (0, 0)) {
                if !is_wanted(state) {
                    let remove = PpuCommand::Remove { index: state.index };
                    commands.push((ppu, *wanted.get(&(ppu, state.index)).unwrap_or(&remove)));
                }
            }
        }
        let first = PpuCommand::Remove { index: 0 };
        match wanted.get(&(0, 0)) {
            Some(row) if closes => commands.push((0, *row)),
            None if closes => commands.push((0, first)),
            // In an empty device, the first row must precede the others of PPU 0.
            Some(row) => {
                let at =
                    commands.iter().rposition(|(_, command)| matches!(command, PpuCommand::Select { .. }));
                commands.insert(at.map_or(0, |at| at + 1), (0, *row));
            }
            None => {}
        }
        commands
    }
}
