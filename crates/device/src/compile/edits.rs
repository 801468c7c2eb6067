// SPDX-License-Identifier: Apache-2.0
//! Translates a list of actions to primitives of action words.

use std::collections::BTreeMap;

use flow::action::SetField;
use flow::{Action, Edit, Field, FieldBase};

use crate::action::{ActionWord, EDIT_DATA_BYTES, EditBase, REMOVE_BYTES_MAX};
use crate::compile::conditions::{Conditions, KnownByte, L3_BYTE_MAX, L4_BYTE_MAX, MOVE_BYTES_MAX, present};
use crate::compile::error::CompileError;
use crate::compile::primitives::{ByteEdit, Primitive, TAG_AT, TtlPlace, pack, patch};
use crate::key::SelectorBase;
use crate::layout::RAW_BYTES;

/// Maximum number of entries into which one entry is split, because it writes a part of a byte.
const VARIANTS_MAX: usize = 16;

/// A way in which an entry is executed, for packets that satisfy further conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Conditions in addition to those of the entry's match.
    pub conditions: Conditions,
    /// Words with edits, without output. Empty: the packet is dropped.
    pub words: Vec<ActionWord>,
}

/// Translates the actions of one entry.
pub struct EditList {
    conditions: Conditions,
    /// Whether no earlier table can have shortened the frame's copied part.
    is_first: bool,
    primitives: Vec<Primitive>,
    /// Bytes that earlier actions have written, or that the entry does not know any more.
    written: BTreeMap<(EditBaseCode, u8), KnownByte>,
    /// Whether a tag was pushed or popped, so that the match does not say what is behind the addresses.
    moved: bool,
    /// Whether bytes behind the tag moved.
    shifted: bool,
    /// Bytes that the entry inserts and removes.
    pub inserted: u16,
    /// Bytes that the entry removes.
    pub removed: u16,
    /// Headers that the actions need, beyond those of the match.
    needs: Needs,
    /// Unknown bits that are written back: byte and mask.
    unknown: Vec<(EditBase, u8, u8)>,
    /// Whether the packet has a tag at this point, if known.
    tagged: Option<bool>,
    /// Whether the type-of-service byte is written, which later tables would match as it arrived.
    pub writes_tos: bool,
}

type EditBaseCode = u8;

#[derive(Clone, Copy, Default)]
struct Needs {
    flags: u8,
    /// Either version of IP.
    ip: bool,
    tag: bool,
}

fn selector(base: EditBase) -> SelectorBase {
    match base {
        EditBase::Frame => SelectorBase::Frame,
        EditBase::L3 => SelectorBase::L3,
        EditBase::L4 => SelectorBase::L4,
    }
}

impl EditList {
    /// Begins with what a match of the first table knows of a packet.
    #[must_use]
    pub fn new(conditions: &Conditions) -> Self {
        let vlan = conditions.known(SelectorBase::Extended, 26);
        let tagged = if conditions.tagged || vlan.0 & 0x10 != 0 {
            Some(true)
        } else if vlan.1 & 0x10 != 0 {
            Some(false)
        } else {
            None
        };
        let mut conditions = conditions.clone();
        conditions.tagged |= tagged == Some(true);
        Self {
            conditions,
            is_first: true,
            primitives: Vec::new(),
            written: BTreeMap::new(),
            moved: false,
            shifted: false,
            inserted: 0,
            removed: 0,
            needs: Needs::default(),
            unknown: Vec::new(),
            tagged,
            writes_tos: false,
        }
    }

    /// Executes the actions behind other tables, which may have shortened the frame.
    #[must_use]
    pub fn in_later_table(self) -> Self {
        Self { is_first: false, ..self }
    }

    /// Adds an action.
    ///
    /// # Errors
    /// The device cannot execute it.
    pub fn add(&mut self, action: &Action) -> Result<(), CompileError> {
        match action {
            Action::SetQueue(queue) if queue.0 == 0 => Ok(()),
            Action::SetQueue(_) => Err(CompileError::Queue),
            Action::DecNwTtl => {
                self.need_ip();
                self.primitives.push(Primitive::DecTtl);
                Ok(())
            }
            Action::SetNwTtl(ttl) => match self.ip_flag() {
                Some(flag) => {
                    let is_v4 = flag == present::IPV4;
                    self.needs.flags |= flag;
                    let offset = if is_v4 { 8 } else { 7 };
                    self.write(EditBase::L3, offset, &[*ttl], (is_v4, false));
                    Ok(())
                }
                None => Err(CompileError::Action("set the TTL of IPv4 and IPv6 by one entry; match dl_type")),
            },
            Action::PopVlan => self.pop_vlan(),
            Action::PushVlan(tpid) => self.push_vlan(*tpid),
            Action::SetField(set) => self.set_field(set),
            Action::Edit(Edit::AddField { range, value }) => {
                self.raw_allowed("add_field")?;
                self.untagged("add_field in packets that may have a tag; match vlan_vid")?;
                let bytes = usize::from(range.length_bits / 8);
                if bytes > EDIT_DATA_BYTES || range.offset_bits / 8 < 14 {
                    return Err(CompileError::Action("add_field of more than 12 bytes, or before byte 14"));
                }
                self.reach(EditBase::Frame, range.offset_bits / 8)?;
                self.inserted += bytes as u16;
                let data = value.to_be_bytes()[16 - bytes..].to_vec();
                self.replace(range.offset_bits / 8, 0, data)
            }
            Action::Edit(Edit::DeleteField(range)) => {
                self.raw_allowed("delete_field")?;
                self.untagged("delete_field in packets that may have a tag; match vlan_vid")?;
                let bytes = range.length_bits / 8;
                if bytes > REMOVE_BYTES_MAX.into() || range.offset_bits / 8 < 14 {
                    return Err(CompileError::Action(
                        "delete_field of more than 16 bytes, or before byte 14",
                    ));
                }
                self.reach(EditBase::Frame, range.offset_bits / 8 + bytes)?;
                self.removed += bytes;
                self.replace(range.offset_bits / 8, bytes as u8, Vec::new())
            }
            _ => Err(CompileError::Action(
                "only set_field, VLAN tags, TTLs, add_field and delete_field are supported",
            )),
        }
    }

    /// Edits at any place need a packet of whose headers and checksums the device knows nothing.
    fn raw_allowed(&self, action: &'static str) -> Result<(), CompileError> {
        match self.conditions.eth_type.or_else(|| self.raw_type()) {
            Some(0x0800 | 0x86dd | 0x8100 | 0x88a8 | 0x9100 | ..0x0600) | None => {
                Err(CompileError::Action(match action {
                    "add_field" => "add_field in packets that may be IP; match another dl_type",
                    "delete_field" => "delete_field in packets that may be IP; match another dl_type",
                    _ => "set_field of a slice in packets that may be IP; match another dl_type",
                }))
            }
            Some(_) => Ok(()),
        }
    }

    /// Checks that the device has copied the bytes up to `end`, whichever headers are before the base.
    fn reach(&self, base: EditBase, end: u16) -> Result<(), CompileError> {
        let furthest = match base {
            EditBase::Frame => 0,
            EditBase::L3 => L3_BYTE_MAX,
            EditBase::L4 => L4_BYTE_MAX,
        };
        let removed = if self.is_first { self.removed } else { MOVE_BYTES_MAX };
        let limit = (RAW_BYTES as u16).saturating_sub(furthest + removed);
        if end > limit { Err(CompileError::Reach { end, limit }) } else { Ok(()) }
    }

    /// Offsets from the frame's first byte need a packet without tags.
    fn untagged(&self, otherwise: &'static str) -> Result<(), CompileError> {
        let known = self.tagged == Some(false) || self.raw_type().is_some();
        if known { Ok(()) } else { Err(CompileError::Action(otherwise)) }
    }

    /// Returns the EtherType, if the match compares the bytes of an untagged frame.
    fn raw_type(&self) -> Option<u16> {
        let bytes = [12, 13].map(|byte| self.conditions.known(SelectorBase::Frame, byte));
        let found = u16::from_be_bytes(bytes.map(|(value, _)| value));
        let is_tag = matches!(found, 0x8100 | 0x88a8 | 0x9100);
        (bytes.iter().all(|(_, mask)| *mask == 0xff) && !is_tag).then_some(found)
    }

    fn replace(&mut self, offset: u16, remove: u8, data: Vec<u8>) -> Result<(), CompileError> {
        if self.inserted > MOVE_BYTES_MAX || self.removed > MOVE_BYTES_MAX {
            return Err(CompileError::Growth);
        }
        let edit = ByteEdit {
            base: EditBase::Frame,
            offset: offset as u8,
            remove,
            data,
            fix_ip: false,
            fix_l4: false,
        };
        self.primitives.push(Primitive::Edit(edit));
        self.moved = true;
        // A tag moves the later headers with their bases; other bytes are only known from the packet's begin.
        self.shifted |= offset != u16::from(TAG_AT);
        let shifted = self.shifted;
        let is_frame = |base: EditBaseCode| base == EditBase::Frame as EditBaseCode;
        self.written.retain(|(base, byte), _| if is_frame(*base) { *byte < TAG_AT } else { !shifted });
        Ok(())
    }

    fn ip_flag(&self) -> Option<u8> {
        let found = self.conditions.found | self.needs.flags;
        match self.conditions.eth_type {
            _ if found & present::IPV4 != 0 => Some(present::IPV4),
            _ if found & present::IPV6 != 0 => Some(present::IPV6),
            Some(0x0800) => Some(present::IPV4),
            Some(0x86dd) => Some(present::IPV6),
            _ => None,
        }
    }

    fn ttl_place(&self) -> TtlPlace {
        self.ip_flag().map(|flag| if flag == present::IPV4 { 8 } else { 7 })
    }

    fn need_ip(&mut self) {
        match self.ip_flag() {
            Some(flag) => self.needs.flags |= flag,
            None => self.needs.ip = true,
        }
    }

    fn pop_vlan(&mut self) -> Result<(), CompileError> {
        if self.moved {
            // The device does not know whether there is an inner tag.
            return Err(CompileError::Action("a second change of VLAN tags in one entry"));
        }
        self.needs.tag |= self.tagged != Some(true);
        self.tagged = None;
        self.removed += 4;
        self.replace(TAG_AT.into(), 4, Vec::new())
    }

    fn push_vlan(&mut self, tpid: u16) -> Result<(), CompileError> {
        if self.moved {
            return Err(CompileError::Action("a second change of VLAN tags in one entry"));
        }
        let control = match self.tagged {
            Some(false) => [0, 0],
            Some(true) => {
                let bytes = [14, 15].map(|byte| self.known(EditBase::Frame, byte));
                if bytes.iter().any(|(_, mask)| *mask != 0xff) {
                    return Err(CompileError::Action(
                        "push_vlan on a tagged packet, whose tag the match does not compare",
                    ));
                }
                bytes.map(|(value, _)| value)
            }
            None => {
                return Err(CompileError::Action("push_vlan on packets that may have a tag; match vlan_vid"));
            }
        };
        let [high, low] = tpid.to_be_bytes();
        self.inserted += 4;
        self.replace(TAG_AT.into(), 0, vec![high, low, control[0], control[1]])?;
        self.tagged = Some(true);
        for (at, byte) in control.into_iter().enumerate() {
            self.written.insert((EditBase::Frame as u8, 14 + at as u8), (byte, 0xff));
        }
        Ok(())
    }

    fn set_field(&mut self, set: &SetField) -> Result<(), CompileError> {
        let refused = CompileError::SetField(set.field);
        let location = set.field.location();
        let (first, length) = (location.offset_bits, location.length_bits);
        let is_v4 = self.ip_flag() == Some(present::IPV4);
        match set.field {
            Field::EthDst | Field::EthSrc => {
                self.write_bits(EditBase::Frame, first, length, set, (false, false))
            }
            Field::VlanVid | Field::VlanPcp => {
                match self.tagged {
                    Some(true) => {}
                    // A popped tag may have uncovered another one.
                    _ if self.moved => return Err(refused),
                    _ => self.needs.tag = true,
                }
                // The first of the 13 bits is not in the frame.
                let (first, length) =
                    if set.field == Field::VlanVid { (14 * 8 + 4, 12) } else { (14 * 8, 3) };
                let mask = set.mask & ((1 << length) - 1);
                let set = SetField { field: set.field, value: set.value & mask, mask };
                self.write_bits(EditBase::Frame, first, length, &set, (false, false))
            }
            Field::Ipv4Src | Field::Ipv4Dst => {
                self.needs.flags |= present::IPV4;
                self.write_bits(EditBase::L3, first, length, set, (true, true))
            }
            Field::Ipv6Src | Field::Ipv6Dst => {
                self.needs.flags |= present::IPV6;
                self.write_bits(EditBase::L3, first, length, set, (false, true))
            }
            Field::IpDscp | Field::IpEcn if is_v4 => {
                self.needs.flags |= present::IPV4;
                self.writes_tos = true;
                let first = if set.field == Field::IpDscp { 8 } else { 14 };
                self.write_bits(EditBase::L3, first, length, set, (true, false))
            }
            Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst => {
                let is_tcp = matches!(set.field, Field::TcpSrc | Field::TcpDst);
                self.needs.flags |= if is_tcp { present::TCP } else { present::UDP };
                self.write_bits(EditBase::L4, first, length, set, (false, true))
            }
            Field::Slice(_) if location.base == FieldBase::Moving || location.base == FieldBase::Frame => {
                if first < 12 * 8 && first + length <= 12 * 8 {
                    return self.write_bits(EditBase::Frame, first, length, set, (false, false));
                }
                self.raw_allowed("set_field")?;
                if first < 14 * 8 || self.tagged != Some(false) && self.raw_type().is_none() {
                    return Err(refused);
                }
                self.write_bits(EditBase::Frame, first, length, set, (false, false))
            }
            Field::Slice(_) if location.base == FieldBase::L3 => {
                self.raw_allowed("set_field")?;
                self.write_bits(EditBase::L3, first, length, set, (false, false))
            }
            _ => Err(refused),
        }
    }

    /// Returns what is known of a byte at this point.
    fn known(&self, base: EditBase, byte: u8) -> KnownByte {
        if let Some(known) = self.written.get(&(base as u8, byte)) {
            return *known;
        }
        let in_addresses = base == EditBase::Frame && byte < TAG_AT;
        if !in_addresses && (self.shifted || self.moved && base == EditBase::Frame) {
            return (0, 0);
        }
        self.conditions.known(selector(base), byte.into())
    }

    /// Writes some bits. Bytes of which only some bits are written must be known.
    fn write_bits(
        &mut self,
        base: EditBase,
        first: u16,
        length: u16,
        set: &SetField,
        fix: (bool, bool),
    ) -> Result<(), CompileError> {
        let (start, end) = (first / 8, (first + length).div_ceil(8));
        self.reach(base, end)?;
        let pad = u32::from(end * 8 - first - length);
        let bytes = usize::from(end - start);
        // 17 bytes may be touched by 128 bits that begin within a byte.
        if bytes > 16 {
            return Err(CompileError::SetField(set.field));
        }
        let (value, mask) = ((set.value << pad).to_be_bytes(), (set.mask << pad).to_be_bytes());
        for at in 0..bytes {
            let (value, mask) = (value[16 - bytes + at], mask[16 - bytes + at]);
            let byte = (start as usize + at) as u8;
            let (old, known) = self.known(base, byte);
            if mask & !known == 0 && (old ^ value) & mask == 0 {
                continue;
            }
            let missing = !mask & !known;
            self.unknown.retain(|(place, at, _)| (*place, *at) != (base, byte));
            if missing != 0 {
                if self.shifted || self.moved && base == EditBase::Frame && byte >= TAG_AT {
                    return Err(CompileError::PartOfByte(set.field));
                }
                self.unknown.push((base, byte, missing));
            }
            self.write(base, byte, &[value | old & !mask], fix);
            self.written.insert((base as u8, byte), (value | old & !mask, !missing));
        }
        let variants: u32 = self.unknown.iter().map(|(_, _, mask)| mask.count_ones()).sum();
        if 1_usize << variants.min(20) > VARIANTS_MAX {
            return Err(CompileError::PartOfByte(set.field));
        }
        Ok(())
    }

    /// Writes whole bytes.
    fn write(&mut self, base: EditBase, offset: u8, data: &[u8], fix: (bool, bool)) {
        for (at, byte) in data.iter().enumerate() {
            self.written.insert((base as u8, offset + at as u8), (*byte, 0xff));
        }
        let edit = ByteEdit {
            base,
            offset,
            remove: data.len() as u8,
            data: data.to_vec(),
            fix_ip: fix.0,
            fix_l4: fix.1,
        };
        let ttl = self.ttl_place();
        for earlier in self.primitives.iter_mut().rev() {
            match earlier {
                Primitive::Edit(earlier) => {
                    if earlier.join(&edit) {
                        return;
                    }
                    // Edits before the place at which bytes were inserted or removed do not move.
                    let before = base == EditBase::Frame && usize::from(offset) + data.len() <= TAG_AT.into();
                    let behind = earlier.base == EditBase::Frame && earlier.offset >= TAG_AT;
                    if !(earlier.is_apart(&edit) || before && behind) {
                        break;
                    }
                }
                Primitive::DecTtl if edit.may_write_ttl(ttl) => break,
                Primitive::DecTtl => {}
            }
        }
        self.primitives.push(Primitive::Edit(edit));
    }

    /// Returns the ways in which the entry is executed, in the order of their precedence. All packets that
    /// match the entry satisfy the conditions of one.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let mut made = Vec::new();
        let mut base = Conditions::default();
        let missing = self.needs.flags & !self.conditions.found;
        base.find(missing);
        if self.needs.tag && !self.conditions.tagged {
            base.tag();
        }
        let needs_ip = self.needs.ip && missing == 0;
        let versions: &[u8] = if needs_ip { &[present::IPV4, present::IPV6] } else { &[0] };
        for version in versions {
            for values in self.values() {
                let mut conditions = base.clone();
                conditions.find(*version);
                let mut primitives = self.primitives.clone();
                for (&(place, byte, mask), bits) in self.unknown.iter().zip(values) {
                    let bit = u32::from(byte) * 8;
                    let sure = if self.is_sure(&conditions, place, byte) { byte / 4 * 4 + 4 } else { 0 };
                    let sure = u16::from(sure);
                    conditions.bits(selector(place), bit, 8, bits.into(), mask.into(), sure);
                    patch(&mut primitives, (place, byte), bits);
                }
                made.push(Variant { conditions, words: pack(&primitives, self.ttl_place()) });
            }
        }
        // A packet without a byte that is written is dropped.
        let is_short = self.unknown.iter().any(|&(place, byte, _)| !self.is_sure(&base, place, byte));
        let needs_tag = self.needs.tag && !self.conditions.tagged;
        let splits = missing != 0 || needs_ip || needs_tag || is_short;
        if splits {
            made.push(Variant { conditions: Conditions::default(), words: Vec::new() });
        }
        made
    }

    /// Returns whether packets that satisfy `further` conditions, too, have the whole window with a byte.
    fn is_sure(&self, further: &Conditions, place: EditBase, byte: u8) -> bool {
        let mut all = self.conditions.clone();
        all.join(further);
        all.has_window(selector(place), byte.into())
    }

    /// Returns all values of the unknown bits.
    fn values(&self) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for (_, _, mask) in &self.unknown {
            let values = (0..=u8::MAX).filter(|value| value & !mask == 0);
            all = values
                .flat_map(|value| all.iter().map(move |before: &Vec<u8>| [&before[..], &[value]].concat()))
                .collect();
        }
        all
    }
}
