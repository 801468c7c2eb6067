// SPDX-License-Identifier: Apache-2.0
//! The state in files: the last value of each item, not decoded yet.

use crate::format::ByteFields;
use crate::items::ItemKind;
use std::collections::BTreeMap;

/// Length of a short flow entry in a file.
const ENTRY_BYTES: usize = 96;

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

/// An item of a frame, whose OpenFlow messages are not decoded yet. `None` removes a value.
#[derive(Clone, Copy, Debug)]
pub enum RawItem<'a> {
    Entry(u64, Option<EntryItem<'a>>),
    Mac((u16, [u8; 6]), Option<u32>),
    Group(u32, Option<&'a [u8]>),
    Meter(u32, Option<&'a [u8]>),
    Port(u32, u8),
    Stateless(&'a [u8]),
    Tables(&'a [u8; 32]),
    DropFragments(bool),
    Standalone(bool),
}

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
    let kind = ItemKind::numbered((head >> 24) as u8)?;
    let bytes = fields.bytes(head as usize & crate::format::ITEM_MAX)?;
    RawItem::decode(kind, bytes).map(Some)
}

impl<'a> RawItem<'a> {
    /// Returns the item in these bytes, or `None` if it is malformed.
    fn decode(kind: ItemKind, bytes: &'a [u8]) -> Option<Self> {
        let mut r = ByteFields(bytes);
        let item = match kind {
            ItemKind::Entry => {
                let (serial, created, learned) = (r.u64()?, r.i64()?, r.u8()?);
                if serial > SERIAL_MAX {
                    return None;
                }
                let entry = EntryItem { created, is_learned: learned == 1, message: r.0 };
                return Some(Self::Entry(serial, Some(entry)));
            }
            ItemKind::EntryGone => Self::Entry(r.u64()?, None),
            ItemKind::Mac => Self::Mac((r.u16()?, r.array()?), Some(r.u32()?)),
            ItemKind::MacGone => Self::Mac((r.u16()?, r.array()?), None),
            ItemKind::Group => return Some(Self::Group(r.u32()?, Some(r.0))),
            ItemKind::GroupGone => Self::Group(r.u32()?, None),
            ItemKind::Meter => return Some(Self::Meter(r.u32()?, Some(r.0))),
            ItemKind::MeterGone => Self::Meter(r.u32()?, None),
            ItemKind::Port => Self::Port(r.u32()?, r.u8()?),
            ItemKind::Stateless => return Some(Self::Stateless(bytes)),
            ItemKind::Tables => return bytes.try_into().ok().map(Self::Tables),
            ItemKind::DropFragments => Self::DropFragments(r.u8()? == 1),
            ItemKind::Standalone => Self::Standalone(r.u8()? == 1),
        };
        r.end(item)
    }
}

impl<'a> FileState<'a> {
    /// Reserves space for the entries of a file of this length in bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.entries.reserve(bytes / ENTRY_BYTES);
    }

    /// Applies an item.
    pub fn apply(&mut self, item: RawItem<'a>) {
        match item {
            RawItem::Entry(serial, value) => self.entries.push((serial, value)),
            RawItem::Mac(key, port) => set(&mut self.macs, key, port),
            RawItem::Group(number, message) => set(&mut self.groups, number, message),
            RawItem::Meter(number, message) => set(&mut self.meters, number, message),
            RawItem::Port(number, bits) => set(&mut self.ports, number, Some(bits)),
            RawItem::Stateless(messages) => self.stateless = Some(messages),
            RawItem::Tables(bits) => self.tables = Some(*bits),
            RawItem::DropFragments(drop) => self.drop_fragments = drop,
            RawItem::Standalone(standalone) => self.standalone = standalone,
        }
    }

    /// Adds a number of ns to the times of addition of all flow entries, because the next values have times
    /// of another boot.
    pub fn shift_times(&mut self, by_ns: i64) {
        for entry in self.entries.iter_mut().filter_map(|(_, value)| value.as_mut()) {
            entry.created = entry.created.saturating_add(by_ns);
        }
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

/// Sets or removes the value of a key.
fn set<K: Ord, V>(values: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(values.insert(key, value)),
        None => drop(values.remove(&key)),
    }
}
