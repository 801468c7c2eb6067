// SPDX-License-Identifier: Apache-2.0
//! Bits of arriving packets that tables examine although entries shift packets: they move the base by
//! constants, or insert or delete bytes. Each byte of a model frame has the number that it had on arrival.

use crate::{ExaminedBits, Reference};
use flow::{Action, CutOrigin, Edit, Field, FlowEntry, Next, Slice, SliceBase, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// Shifts that [`Reference::examined_on_arrival`] takes into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shifts {
    /// None: all packets are examined as they arrive.
    Ignored,
    /// Moves of the base.
    Bases,
    /// Moves of the base, and insertions and deletions of bytes.
    All,
}

/// Examined bits of arriving packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivingBits {
    /// Numbers of bits of the frame that slices examine.
    pub frame: BTreeSet<usize>,
    /// Examined bits of other fields.
    pub others: ExaminedBits,
}

/// A model frame: the number that each byte had on arrival, and the base.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    bytes: Vec<Option<usize>>,
    base: usize,
}

/// Number of bytes of a model frame on arrival.
const MODEL_BYTES: usize = 2_500;

impl ArrivingBits {
    /// Returns the bits of a set whose slices are slices of the arriving packet.
    #[must_use]
    pub fn of(bits: &ExaminedBits) -> Self {
        let mut made = Self::default();
        let model = Model { bytes: (0..MODEL_BYTES).map(Some).collect(), base: 0 };
        bits.0.iter().for_each(|(field, mask)| made.add(&model, *field, *mask));
        made
    }

    /// Returns whether this set has all bits of the other set.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.frame.is_superset(&other.frame) && self.others.includes(&other.others)
    }

    fn add(&mut self, model: &Model, field: Field, mask: u128) {
        let (first, length) = match field {
            Field::EthDst => (0, 48),
            Field::EthSrc => (48, 48),
            Field::Slice(Slice { base: SliceBase::Packet, offset_bits, length_bits }) => {
                (offset_bits, length_bits)
            }
            Field::Slice(Slice { base: SliceBase::Moving, offset_bits, length_bits }) => {
                (offset_bits + 8 * model.base as u16, length_bits)
            }
            other => return self.others.add(other, mask),
        };
        for bit in (0..length).filter(|bit| mask >> (length - 1 - bit) & 1 != 0) {
            let at = usize::from(first + bit);
            // A byte behind the end of the model frame has been behind the end of every frame.
            if let Some(Some(byte)) = model.bytes.get(at / 8) {
                self.frame.insert(8 * byte + at % 8);
            }
        }
    }
}

impl Model {
    fn after(&self, edits: &[Edit]) -> Option<Self> {
        let mut made = self.clone();
        for edit in edits {
            match *edit {
                Edit::MoveBase(by) => made.base = made.base.checked_add_signed(by.into())?,
                Edit::AddField { range, .. } => {
                    let at = made.base + usize::from(range.offset_bits / 8);
                    made.bytes.splice(at..at, std::iter::repeat_n(None, usize::from(range.length_bits / 8)));
                }
                Edit::DeleteField(range) => {
                    let at = made.base + usize::from(range.offset_bits / 8);
                    made.bytes.drain(at..at + usize::from(range.length_bits / 8));
                }
                Edit::CutFront { origin, bytes } => {
                    let before = if origin == CutOrigin::Base { made.base } else { 0 };
                    made.bytes.drain(..(before + usize::from(bytes)).min(made.bytes.len()));
                    made.base = 0;
                }
                _ => {}
            }
        }
        Some(made)
    }
}

impl Reference {
    /// Returns the bits of arriving packets that are examined by the tables that they can reach. Counts an
    /// entry as shifting if it does nothing besides but write MAC addresses and registers, and send copies.
    #[must_use]
    pub fn examined_on_arrival(&self, shifts: Shifts) -> ArrivingBits {
        let mut models: BTreeMap<TableId, Vec<Model>> = BTreeMap::new();
        let arrived = Model { bytes: (0..MODEL_BYTES).map(Some).collect(), base: 0 };
        models.insert(TableId(0), vec![arrived]);
        let mut made = ArrivingBits::of(&self.examined_by_normal());
        for table in TableId::of_controllers() {
            for model in models.remove(&table).unwrap_or_default() {
                for entry in self.entries(table) {
                    entry.matching.fields().for_each(|c| made.add(&model, c.field, c.mask));
                    let Some(next) = entry.instructions.next.map(Next::table) else { continue };
                    let edits = shifting(entry, shifts);
                    let known = models.entry(next).or_default();
                    known.extend(model.after(&edits).filter(|model| !known.contains(model)));
                }
            }
        }
        made
    }
}

/// Returns the edits by which an entry shifts packets.
fn shifting(entry: &FlowEntry, shifts: Shifts) -> Vec<Edit> {
    let apply = &entry.instructions.apply;
    let is_shift = |edit: &Edit| {
        let resizes = matches!(edit, Edit::AddField { .. } | Edit::DeleteField(_) | Edit::CutFront { .. });
        resizes || matches!(edit, Edit::MoveBase(_))
    };
    let is_permitted = |action: &Action| match action {
        Action::Edit(Edit::MoveBase(_)) => shifts >= Shifts::Bases,
        Action::Edit(edit) => is_shift(edit) && shifts >= Shifts::All,
        Action::SetField(set) => match set.field {
            Field::Slice(slice) => slice.base == SliceBase::Metadata,
            field => matches!(field, Field::EthDst | Field::EthSrc | Field::TunnelId),
        },
        Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => true,
        _ => false,
    };
    if entry.instructions.meter.is_some() || !apply.iter().all(is_permitted) {
        return Vec::new();
    }
    let edits =
        apply.iter().filter_map(|action| if let Action::Edit(edit) = action { Some(*edit) } else { None });
    edits.collect()
}
