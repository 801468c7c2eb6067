// SPDX-License-Identifier: Apache-2.0
//! The state in files: the last value of each item, not decoded yet.

use crate::format::ByteFields;
use crate::items::ItemKind;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Usual length of a flow entry in a file.
const ENTRY_BYTES: usize = 128;

/// Value of a flow entry's item.
#[derive(Clone, Copy, Debug)]
pub struct EntryItem<'a> {
    /// Time of addition by the machine's monotonic clock, in ns.
    pub created: i64,
    /// Whether the entry was low-latency because of its measured hit rate.
    pub is_learned: bool,
    /// FLOW_MOD.
    pub message: &'a [u8],
}

/// Hasher of serial numbers, which are consecutive apart from gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct SerialHasher(u64);

impl Hasher for SerialHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// The last value of each item.
#[derive(Clone, Debug, Default)]
pub struct FileState<'a> {
    entries: HashMap<u64, EntryItem<'a>, BuildHasherDefault<SerialHasher>>,
    pub macs: BTreeMap<(u16, [u8; 6]), u32>,
    pub groups: BTreeMap<u32, &'a [u8]>,
    pub meters: BTreeMap<u32, &'a [u8]>,
    pub ports: BTreeMap<u32, u8>,
    pub stateless: Option<&'a [u8]>,
    pub tables: Option<[u8; 32]>,
    pub drop_fragments: bool,
    pub standalone: bool,
}

/// Time of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    /// Time by the machine's monotonic clock, in ns.
    pub monotonic: i64,
    /// Time of day in ms since 1970.
    pub wall_ms: u64,
}

/// An item of a frame.
pub type RawItem<'a> = (ItemKind, &'a [u8]);

/// Reads the time at the start of a transaction's first frame.
pub fn time_of(fields: &mut ByteFields<'_>) -> Option<FileTime> {
    Some(FileTime { monotonic: fields.i64()?, wall_ms: fields.u64()? })
}

/// Reads the next item of a frame. Returns `Some(None)` at the end of the frame.
pub fn next_item<'a>(fields: &mut ByteFields<'a>) -> Option<Option<RawItem<'a>>> {
    if fields.0.is_empty() {
        return Some(None);
    }
    let head = fields.u32()?;
    let item = ItemKind::numbered((head >> 24) as u8)?;
    Some(Some((item, fields.bytes(head as usize & crate::format::ITEM_MAX)?)))
}

impl<'a> FileState<'a> {
    /// Reserves space for the entries of a file of this length in bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.entries.reserve((bytes / ENTRY_BYTES).saturating_sub(self.entries.len()));
    }

    /// Applies an item. Returns `None` if the item is malformed.
    pub fn apply(&mut self, (item, bytes): RawItem<'a>) -> Option<()> {
        let mut r = ByteFields(bytes);
        match item {
            ItemKind::Entry => {
                let (serial, created, learned) = (r.u64()?, r.i64()?, r.u8()?);
                let entry = EntryItem { created, is_learned: learned == 1, message: r.0 };
                self.entries.insert(serial, entry);
                return Some(());
            }
            ItemKind::EntryGone => {
                self.entries.remove(&r.u64()?);
            }
            ItemKind::Mac => {
                let key = (r.u16()?, r.array()?);
                self.macs.insert(key, r.u32()?);
            }
            ItemKind::MacGone => {
                self.macs.remove(&(r.u16()?, r.array()?));
            }
            ItemKind::Group => {
                let number = r.u32()?;
                self.groups.insert(number, r.0);
                return Some(());
            }
            ItemKind::GroupGone => {
                self.groups.remove(&r.u32()?);
            }
            ItemKind::Meter => {
                let number = r.u32()?;
                self.meters.insert(number, r.0);
                return Some(());
            }
            ItemKind::MeterGone => {
                self.meters.remove(&r.u32()?);
            }
            ItemKind::Port => {
                let number = r.u32()?;
                self.ports.insert(number, r.u8()?);
            }
            ItemKind::Stateless => {
                self.stateless = Some(bytes);
                return Some(());
            }
            ItemKind::Tables => self.tables = Some(r.array()?),
            ItemKind::DropFragments => self.drop_fragments = r.u8()? == 1,
            ItemKind::Standalone => self.standalone = r.u8()? == 1,
        }
        r.end(())
    }

    /// Returns the flow entries by ascending serial number.
    pub fn entries_in_order(&self) -> Vec<(u64, EntryItem<'a>)> {
        let mut entries: Vec<_> = self.entries.iter().map(|(serial, item)| (*serial, *item)).collect();
        entries.sort_unstable_by_key(|(serial, _)| *serial);
        entries
    }
}
