// SPDX-License-Identifier: Apache-2.0
//! Space of one PPU: slices of its key, and places of its rows.

use std::collections::BTreeMap;

use flow::EntryId;

use crate::action::{ActionWord, EDIT_DATA_BYTES};
use crate::command::PpuCommand;
use crate::compile::conditions::{Conditions, KeyWindow};
use crate::compile::error::CompileError;
use crate::compile::positions::{Positions, Rank, TcamRow};
use crate::key::{KEY_BYTES, KEY_SLICES, KeySlice, SLICE_BYTES, TernaryKey};

/// Rank of the row for packets that hit no other.
const LAST: Rank = Rank { class: 2, priority: 0, sequence: 0, version: 0, part: 0 };

/// Returns slices as data of an action: base, offset and length of each.
fn slice_data(slices: &[KeySlice; KEY_SLICES]) -> [u8; EDIT_DATA_BYTES] {
    let mut data = [0; EDIT_DATA_BYTES];
    for (bytes, slice) in data.chunks_mut(3).zip(slices) {
        bytes.copy_from_slice(&[slice.base as u8, slice.offset, slice.bytes]);
    }
    data
}

/// Slices and rows of a PPU.
#[derive(Clone, Debug)]
pub struct PpuSpace {
    number: u8,
    /// KeyWindow of each slice. A window without users may be replaced.
    slices: [Option<KeyWindow>; KEY_SLICES],
    users: BTreeMap<KeyWindow, usize>,
    rows: Positions,
}

impl PpuSpace {
    /// Returns an unused PPU.
    #[must_use]
    pub fn new(number: u8, entries: u16) -> Self {
        Self { number, slices: [None; KEY_SLICES], users: BTreeMap::new(), rows: Positions::new(entries) }
    }

    /// Puts the row for packets that hit no other into the last place. The data of its action, which has no
    /// edit, are the slices of the key, so that a daemon that was restarted can read them.
    pub fn begin(&mut self, action: ActionWord) -> Option<PpuCommand> {
        let action = ActionWord { data: slice_data(&self.slices()), ..action };
        self.rows.insert_last(TcamRow { rank: LAST, owner: None, key: TernaryKey::default(), action })
    }

    /// Returns the slices of the key.
    #[must_use]
    pub fn slices(&self) -> [KeySlice; KEY_SLICES] {
        self.slices.map(|slice| slice.map_or_else(Default::default, KeyWindow::slice))
    }

    /// Returns the rows.
    #[must_use]
    pub fn rows(&self) -> &Positions {
        &self.rows
    }

    /// Checks whether there is space for rows with these conditions.
    ///
    /// # Errors
    /// There is none.
    pub fn check<'a>(&self, new: impl Iterator<Item = &'a Conditions>) -> Result<(), CompileError> {
        let mut windows: Vec<KeyWindow> = self.users.keys().copied().collect();
        let mut needed = 0;
        for conditions in new {
            needed += 1;
            windows.extend(conditions.windows().map(|(window, _)| window));
        }
        windows.sort_unstable();
        windows.dedup();
        let (ppu, free) = (self.number, self.rows.free());
        if windows.len() > KEY_SLICES {
            return Err(CompileError::KeyFull { ppu, slices: windows.len() });
        }
        if needed > free { Err(CompileError::TableFull { ppu, free, needed }) } else { Ok(()) }
    }

    /// Adds a row of an entry, or of none. [`PpuSpace::check`] has found space.
    pub fn insert(
        &mut self,
        (rank, owner): (Rank, Option<EntryId>),
        conditions: &Conditions,
        action: ActionWord,
    ) -> Vec<PpuCommand> {
        let mut commands = Vec::new();
        for (window, _) in conditions.windows() {
            if !self.slices.contains(&Some(window)) {
                let is_free =
                    |slice: &Option<KeyWindow>| slice.is_none_or(|used| !self.users.contains_key(&used));
                if let Some(at) = self.slices.iter().position(is_free) {
                    self.slices[at] = Some(window);
                    let slices = self.slices();
                    commands.push(PpuCommand::Select { slices });
                    let last = self.rows.rows().find(|(_, row)| row.rank == LAST).map(|(_, row)| *row);
                    if let Some(last) = last {
                        let action = ActionWord { data: slice_data(&slices), ..last.action };
                        commands.extend(self.rows.act(LAST, action));
                    }
                }
            }
            *self.users.entry(window).or_default() += 1;
        }
        let row = TcamRow { rank, owner, key: self.key(conditions), action };
        commands.extend(self.rows.insert(row).unwrap_or_default());
        commands
    }

    /// Removes the row of a rank with these conditions.
    pub fn remove(&mut self, rank: Rank, conditions: &Conditions) -> Option<PpuCommand> {
        let command = self.rows.remove(rank)?;
        for (window, _) in conditions.windows() {
            if let Some(count) = self.users.get_mut(&window) {
                *count -= 1;
                if *count == 0 {
                    self.users.remove(&window);
                }
            }
        }
        Some(command)
    }

    /// Replaces the action of a row.
    pub fn act(&mut self, rank: Rank, action: ActionWord) -> Option<PpuCommand> {
        self.rows.act(rank, action)
    }

    fn key(&self, conditions: &Conditions) -> TernaryKey {
        let mut key = TernaryKey::default();
        for (window, (value, mask)) in conditions.windows() {
            let Some(slice) = self.slices.iter().position(|slice| *slice == Some(window)) else { continue };
            let bytes = slice * SLICE_BYTES..(slice + 1) * SLICE_BYTES;
            key.value[bytes.clone()].copy_from_slice(value);
            key.mask[bytes].copy_from_slice(mask);
            // The bits of an absent slice are 0, so its presence is compared, too.
            key.value[KEY_BYTES - 1] |= 0x80 >> slice;
            key.mask[KEY_BYTES - 1] |= 0x80 >> slice;
        }
        key
    }
}
