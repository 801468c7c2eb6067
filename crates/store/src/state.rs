// SPDX-License-Identifier: Apache-2.0
//! The state in files: the last value of each item, not decoded yet.

use crate::format::ByteFields;
use crate::items::ItemKind;
use std::collections::BTreeMap;

/// Usual length of a flow entry in a file.
const ENTRY_BYTES: usize = 128;

/// Maximum serial number of a flow entry. No switch adds that many entries.
const SERIAL_MAX: u64 = u64::MAX / 2;

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

/// The last value of each item.
#[derive(Clone, Debug, Default)]
pub struct FileState<'a> {
    /// Values of flow entries by serial number in the order of the files, and `None` where an entry is
    /// removed. The last value counts.
    entries: Vec<(u64, Option<EntryItem<'a>>)>,
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
        self.entries.reserve(bytes / ENTRY_BYTES);
    }

    /// Applies an item. Returns `None` if the item is malformed.
    pub fn apply(&mut self, (item, bytes): RawItem<'a>) -> Option<()> {
        let mut r = ByteFields(bytes);
        match item {
            ItemKind::Entry => {
                let (serial, created, learned) = (r.u64()?, r.i64()?, r.u8()?);
                if serial > SERIAL_MAX {
                    return None;
                }
                let entry = EntryItem { created, is_learned: learned == 1, message: r.0 };
                self.entries.push((serial, Some(entry)));
                return Some(());
            }
            ItemKind::EntryGone => {
                self.entries.push((r.u64()?, None));
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

    /// Takes the flow entries by ascending serial number.
    pub fn take_entries(&mut self) -> Vec<(u64, EntryItem<'a>)> {
        let mut values = std::mem::take(&mut self.entries);
        // The sort is stable, and fast for values that are nearly in order.
        values.sort_by_key(|(serial, _)| *serial);
        values.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                *earlier = *later;
            }
            is_same
        });
        values.into_iter().filter_map(|(serial, value)| Some((serial, value?))).collect()
    }
}
