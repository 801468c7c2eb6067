// SPDX-License-Identifier: Apache-2.0
//! Primitives of action words, and their distribution over words.

use crate::action::{ActionWord, EDIT_DATA_BYTES, EditBase};

/// Frame byte behind the MAC addresses.
pub const TAG_AT: u8 = 12;

/// Byte of the TTL in the IP header: 8 in IPv4, 7 in IPv6, or not known.
pub type TtlPlace = Option<u8>;

/// A primitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Replaces bytes.
    Edit(ByteEdit),
    /// Decrements the TTL.
    DecTtl,
}

/// Replaces `remove` bytes by `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteEdit {
    /// Origin of the offset.
    pub base: EditBase,
    /// First byte.
    pub offset: u8,
    /// Bytes that are removed.
    pub remove: u8,
    /// Bytes that are inserted.
    pub data: Vec<u8>,
    /// Whether the IPv4 header checksum changes with the bytes.
    pub fix_ip: bool,
    /// Whether the upper-layer checksum changes with the bytes.
    pub fix_l4: bool,
}

impl ByteEdit {
    /// Returns whether no byte moves.
    #[must_use]
    pub fn keeps_length(&self) -> bool {
        usize::from(self.remove) == self.data.len()
    }

    /// Returns whether the edit writes or moves the byte of the TTL.
    #[must_use]
    pub fn may_write_ttl(&self, ttl: TtlPlace) -> bool {
        let end = usize::from(self.offset) + self.data.len();
        let (first, last) = ttl.map_or((7, 8), |byte| (byte, byte));
        self.base == EditBase::L3 && self.offset <= last && end > first.into()
    }

    /// Returns whether both edits write different bytes, and move none.
    #[must_use]
    pub fn is_apart(&self, other: &Self) -> bool {
        let in_addresses = |edit: &Self| {
            edit.base == EditBase::Frame && usize::from(edit.offset) + edit.data.len() <= TAG_AT.into()
        };
        let bases = self.base != other.base;
        let headers = bases && self.base != EditBase::Frame && other.base != EditBase::Frame;
        let apart = headers || bases && (in_addresses(self) || in_addresses(other));
        self.keeps_length() && other.keeps_length() && apart
    }

    /// Joins a later edit of the same bytes or of bytes directly behind or before them. Returns whether
    /// it did.
    pub fn join(&mut self, later: &Self) -> bool {
        let (start, other) = (usize::from(self.offset), usize::from(later.offset));
        let (end, other_end) = (start + self.data.len(), other + later.data.len());
        let (first, last) = (start.min(other), end.max(other_end));
        let same = self.base == later.base && self.fix_ip == later.fix_ip && self.fix_l4 == later.fix_l4;
        let joined = self.keeps_length() && later.keeps_length() && other <= end && start <= other_end;
        if !same || !joined || last - first > EDIT_DATA_BYTES {
            return false;
        }
        let mut data = vec![0; last - first];
        data[start - first..end - first].copy_from_slice(&self.data);
        data[other - first..other_end - first].copy_from_slice(&later.data);
        (self.offset, self.remove, self.data) = (first as u8, data.len() as u8, data);
        true
    }
}

/// Adds bits to the byte that an edit writes.
pub fn patch(primitives: &mut [Primitive], (base, byte): (EditBase, u8), bits: u8) {
    for primitive in primitives {
        if let Primitive::Edit(edit) = primitive
            && edit.base == base
            && edit.keeps_length()
            && let Some(at) = byte.checked_sub(edit.offset)
            && let Some(written) = edit.data.get_mut(usize::from(at))
        {
            *written |= bits;
        }
    }
}

/// Puts primitives into as few words as their order allows.
#[must_use]
pub fn pack(primitives: &[Primitive], ttl: TtlPlace) -> Vec<ActionWord> {
    let mut words = vec![ActionWord::default()];
    let mut writes_ttl = false;
    for primitive in primitives {
        for part in parts(primitive) {
            let last = words.len() - 1;
            let has_edit = words[last].insert != 0 || words[last].remove != 0;
            let free = match &part {
                Primitive::DecTtl => !words[last].dec_ttl && !writes_ttl,
                Primitive::Edit(edit) => !(has_edit || words[last].dec_ttl && edit.may_write_ttl(ttl)),
            };
            if !free {
                words.push(ActionWord::default());
                writes_ttl = false;
            }
            let last = words.len() - 1;
            let word = &mut words[last];
            match part {
                Primitive::DecTtl => word.dec_ttl = true,
                Primitive::Edit(edit) => {
                    writes_ttl |= edit.may_write_ttl(ttl);
                    word.data[..edit.data.len()].copy_from_slice(&edit.data);
                    (word.base, word.offset) = (edit.base, edit.offset);
                    (word.insert, word.remove) = (edit.data.len() as u8, edit.remove);
                    (word.fix_ip, word.fix_l4) = (edit.fix_ip, edit.fix_l4);
                }
            }
        }
    }
    words
}

/// Cuts an edit of more than 12 bytes.
fn parts(primitive: &Primitive) -> Vec<Primitive> {
    match primitive {
        Primitive::Edit(edit) if edit.data.len() > EDIT_DATA_BYTES => {
            let chunks = edit.data.chunks(EDIT_DATA_BYTES).enumerate();
            chunks
                .map(|(number, data)| {
                    let offset = edit.offset + (number * EDIT_DATA_BYTES) as u8;
                    let (data, remove) = (data.to_vec(), data.len() as u8);
                    Primitive::Edit(ByteEdit { offset, remove, data, ..edit.clone() })
                })
                .collect()
        }
        other => vec![other.clone()],
    }
}
