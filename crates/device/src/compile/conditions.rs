// SPDX-License-Identifier: Apache-2.0
//! Translates matches to conditions on windows: slices at fixed places, so that the slices of a key do not
//! depend on the order in which entries were added.

use std::collections::BTreeMap;

use flow::{Field, FieldBase, FieldMatch, Match, ext, port_no};
use wire::layers::header as h;

use crate::compile::error::CompileError;
use crate::key::{KeySlice, SLICE_BYTES, SelectorBase};
use crate::layout::RAW_BYTES;

/// Bits of the byte [`PRESENT_BYTE`].
pub mod present {
    /// A valid IPv4 header.
    pub const IPV4: u8 = 1 << 2;
    /// An IPv6 header.
    pub const IPV6: u8 = 1 << 3;
    /// A TCP header.
    pub const TCP: u8 = 1 << 4;
    /// A UDP header.
    pub const UDP: u8 = 1 << 5;
    /// An ICMP or ICMPv6 header.
    pub const ICMP: u8 = 1 << 6;
    /// An SCTP header.
    pub const SCTP: u8 = 1 << 7;
}

/// Byte of the extended header with the flags of found headers.
const PRESENT_BYTE: u16 = 32;
/// Low byte of the metadata register, which entries can match and write.
const METADATA_BYTE: u16 = 15;
/// Byte of the metadata register with the tag for packets between two parts of a program.
const TAG_BYTE: u16 = 14;
/// Bytes by which earlier tables can move or shorten what a packet has.
pub const MOVE_BYTES_MAX: u16 = 16;
/// Last byte at which the parser finds the header behind the EtherType: behind two VLAN tags.
pub const L3_BYTE_MAX: u16 = 22;
/// Last byte at which the parser finds the upper-layer header: behind the longest IPv4 header.
pub const L4_BYTE_MAX: u16 = L3_BYTE_MAX + 60;

/// Place of a slice in the extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyWindow {
    base: u8,
    offset: u8,
    bytes: u8,
}

impl KeyWindow {
    /// Returns the slice of a key that selects the window.
    #[must_use]
    pub fn slice(self) -> KeySlice {
        let base = SelectorBase::ALL.get(usize::from(self.base)).copied().unwrap_or_default();
        KeySlice { base, offset: self.offset, bytes: self.bytes }
    }
}

/// Value and mask of a window's bytes.
type Bytes = ([u8; SLICE_BYTES], [u8; SLICE_BYTES]);

/// Conditions that a packet must satisfy. A window without mask bits requires that the packet contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    windows: BTreeMap<KeyWindow, Bytes>,
    /// Whether no packet can satisfy the conditions.
    pub never: bool,
    /// Flags of found headers that are required, `present::*`.
    pub found: u8,
    /// Whether a VLAN tag is required.
    pub tagged: bool,
    /// EtherType that is required.
    pub eth_type: Option<u16>,
}

/// Value and mask of one byte, as far as it is known.
pub type KnownByte = (u8, u8);

/// Returns where the window with this byte begins.
fn window_start(base: SelectorBase, byte: u16) -> u16 {
    match (base, byte) {
        // `ip_proto` and `present` in one window.
        (SelectorBase::Extended, 29..=32) => 29,
        _ => byte / 4 * 4,
    }
}

/// Adds value and mask. Returns whether no packet can satisfy both.
fn merge(into: &mut Bytes, other: &Bytes) -> bool {
    let mut conflict = false;
    for byte in 0..SLICE_BYTES {
        let both = into.1[byte] & other.1[byte];
        conflict |= (into.0[byte] ^ other.0[byte]) & both != 0;
        into.0[byte] |= other.0[byte];
        into.1[byte] |= other.1[byte];
    }
    conflict
}

impl Conditions {
    /// Returns the conditions of a match. In tables behind the first one, earlier edits may have moved bytes.
    ///
    /// # Errors
    /// The device cannot compare a field.
    pub fn of(matching: &Match, is_first: bool) -> Result<Self, CompileError> {
        if matching.index().is_some() {
            return Err(CompileError::Index);
        }
        let mut made = Self::default();
        // The EtherType decides in which IP header a field is.
        let eth_type = matching.get(Field::EthType).filter(FieldMatch::is_exact);
        made.eth_type = eth_type.map(|condition| condition.value as u16);
        for condition in matching.fields() {
            made.require_headers(condition.field)?;
        }
        for condition in matching.fields() {
            // A found IP header implies its EtherType, so that no slice is needed for it.
            let implied = match (condition.field, condition.value) {
                (Field::EthType, 0x0800) => made.found & present::IPV4 != 0,
                (Field::EthType, 0x86dd) => made.found & present::IPV6 != 0,
                _ => false,
            };
            if !implied {
                made.add(&condition, is_first)?;
            }
        }
        Ok(made)
    }

    /// Requires the headers without which a field does not exist.
    fn require_headers(&mut self, field: Field) -> Result<(), CompileError> {
        let location = field.location();
        let needs = location.needs;
        if matches!(field, Field::NdTarget | Field::NdSll | Field::NdTll | Field::Ipv6Exthdr) {
            return Err(CompileError::Match(field));
        }
        let ip = match self.eth_type {
            Some(0x0800) => present::IPV4,
            Some(0x86dd) => present::IPV6,
            _ => 0,
        };
        let flags = match needs {
            h::IP if ip == 0 => return Err(CompileError::Match(field)),
            h::IP => ip,
            h::IPV4 => present::IPV4,
            h::IPV6 => present::IPV6,
            h::TCP => ip | present::TCP,
            h::UDP => ip | present::UDP,
            h::SCTP => ip | present::SCTP,
            h::ICMPV4 => present::IPV4 | present::ICMP,
            h::ICMPV6 => present::IPV6 | present::ICMP,
            _ => 0,
        };
        self.find(flags);
        match needs {
            h::VLAN => self.tag(),
            h::ARP => {
                self.bits(SelectorBase::L3, 0, 48, 0x0001_0800_0604, (1 << 48) - 1, 28);
                // A valid ARP packet has 28 bytes.
                self.window(SelectorBase::L3, 24, 4);
            }
            h::MPLS | h::PBB => _ = self.window(SelectorBase::L3, 0, 4),
            _ => {}
        }
        Ok(())
    }

    /// Requires flags of found headers.
    pub fn find(&mut self, flags: u8) {
        self.found |= flags;
        if flags != 0 {
            self.ext_byte(PRESENT_BYTE, flags, flags);
        }
    }

    /// Requires a VLAN tag.
    pub fn tag(&mut self) {
        self.tagged = true;
        self.bits(SelectorBase::Extended, ext::VLAN_BIT.into(), 16, 0x1000, 0x1000, 40);
    }

    /// Requires the tag of a program's later part.
    pub fn program_tag(&mut self, tag: u8) {
        self.ext_byte(TAG_BYTE, tag, 0xff);
    }

    fn ext_byte(&mut self, byte: u16, value: u8, mask: u8) {
        self.bits(SelectorBase::Extended, u32::from(byte) * 8, 8, value.into(), mask.into(), 40);
    }

    fn add(&mut self, condition: &FieldMatch, is_first: bool) -> Result<(), CompileError> {
        let FieldMatch { field, mut value, mask } = *condition;
        if matches!(field, Field::InPort | Field::InPhyPort) && condition.is_exact() {
            // Packets of the controller have the ingress port 0 in the device.
            self.never |= value == 0;
            if value == u128::from(port_no::CONTROLLER.0) {
                value = 0;
            }
        }
        let location = field.location();
        let (first, length) = (u32::from(location.offset_bits), u32::from(location.length_bits));
        let base = match location.base {
            FieldBase::Ext => return self.add_ext(field, first, length, value, mask),
            FieldBase::Frame => SelectorBase::Frame,
            FieldBase::L3 => SelectorBase::L3,
            FieldBase::L4 => SelectorBase::L4,
            FieldBase::NdSll | FieldBase::NdTll => return Err(CompileError::Match(field)),
            // Without an action that moves it, the base is the first byte.
            FieldBase::Moving => SelectorBase::Frame,
        };
        let sure = match base {
            SelectorBase::L3 if location.needs == h::ARP => 28,
            SelectorBase::L3 if location.needs != 0 => self.sure_bytes(base).max(4),
            _ => self.sure_bytes(base),
        };
        let end = (first + length).div_ceil(8) as u16;
        let furthest = match base {
            SelectorBase::L3 => L3_BYTE_MAX,
            SelectorBase::L4 => L4_BYTE_MAX,
            _ => 0,
        };
        let copied = RAW_BYTES as u16 - if is_first { 0 } else { MOVE_BYTES_MAX };
        if end + furthest > copied && matches!(field, Field::Slice(_)) {
            return Err(CompileError::Match(field));
        }
        self.bits(base, first, length, value, mask, sure);
        Ok(())
    }

    /// Returns how many bytes from the base on the packet has for sure.
    #[must_use]
    pub fn sure_bytes(&self, base: SelectorBase) -> u16 {
        match base {
            SelectorBase::Frame if self.tagged => 16,
            SelectorBase::Frame => 12,
            SelectorBase::L3 if self.found & present::IPV6 != 0 => 40,
            SelectorBase::L3 if self.found & present::IPV4 != 0 => 20,
            SelectorBase::L4 if self.found & present::TCP != 0 => 20,
            SelectorBase::L4 if self.found & present::SCTP != 0 => 12,
            SelectorBase::L4 if self.found & present::UDP != 0 => 8,
            SelectorBase::L4 if self.found & present::ICMP != 0 => 4,
            _ => 0,
        }
    }

    /// Returns whether the packet has the whole window with a byte, or whether the match requires it.
    #[must_use]
    pub fn has_window(&self, base: SelectorBase, byte: u16) -> bool {
        let start = window_start(base, byte);
        let whole = KeyWindow { base: base as u8, offset: start as u8, bytes: SLICE_BYTES as u8 };
        start + 4 <= self.sure_bytes(base) || self.windows.contains_key(&whole)
    }

    /// Adds a condition on the software's extended header. Bits that the device does not have are 0.
    fn add_ext(
        &mut self,
        field: Field,
        first: u32,
        length: u32,
        value: u128,
        mask: u128,
    ) -> Result<(), CompileError> {
        let spread = |bits: u128| (bits << (128 - length)).to_be_bytes();
        // 17 bytes: the field may begin within a byte.
        let shift = |bits: u128| {
            let mut bytes = [0_u8; 17];
            for (at, byte) in spread(bits).into_iter().enumerate() {
                bytes[at] |= byte >> (first % 8);
                bytes[at + 1] |= byte.checked_shl(8 - first % 8).unwrap_or(0);
            }
            bytes
        };
        for (at, (value, mask)) in shift(value).into_iter().zip(shift(mask)).enumerate() {
            let byte = (first / 8) as u16 + at as u16;
            match byte {
                _ if mask == 0 => {}
                // The ingress port has 8 bits; the physical port is equal to it.
                3 | 7 => self.ext_byte(3, value, mask),
                METADATA_BYTE | 24..=29 => self.ext_byte(byte, value, mask),
                30 | 31 => return Err(CompileError::Match(field)),
                _ => self.never |= value != 0,
            }
        }
        Ok(())
    }

    /// Returns the window for bytes, which is then required to be in the packet.
    fn window(&mut self, base: SelectorBase, offset: u16, bytes: u16) -> &mut Bytes {
        let window = KeyWindow { base: base as u8, offset: offset as u8, bytes: bytes as u8 };
        self.windows.entry(window).or_default()
    }

    /// Adds a condition on bits. The packet is known to have `sure` bytes from the base on.
    pub fn bits(&mut self, base: SelectorBase, first: u32, length: u32, value: u128, mask: u128, sure: u16) {
        let end_bit = first + length;
        let (begin, end) = ((first / 8) as u16, end_bit.div_ceil(8) as u16);
        let mut at = window_start(base, begin);
        while at < end {
            // Only the last window is cut at the end of the field, unless the packet is longer for sure.
            let is_sure = at + 4 <= sure.max(if base == SelectorBase::Extended { 40 } else { 0 });
            let whole = at + 4 <= end || is_sure;
            let bytes = if whole { 4 } else { end - at };
            let mut changed = Bytes::default();
            for byte in 0..bytes {
                for bit in 0..8 {
                    let place = u32::from(at + byte) * 8 + bit;
                    if (first..end_bit).contains(&place) && mask >> (end_bit - 1 - place) & 1 != 0 {
                        let bit = 0x80 >> bit;
                        changed.1[usize::from(byte)] |= bit;
                        if value >> (end_bit - 1 - place) & 1 != 0 {
                            changed.0[usize::from(byte)] |= bit;
                        }
                    }
                }
            }
            // A packet that contains the last window contains the others.
            if changed.1 != [0; SLICE_BYTES] || !is_sure && at + bytes >= end {
                let conflict = merge(self.window(base, at, bytes), &changed);
                self.never |= conflict;
            }
            at += bytes;
        }
    }

    /// Adds the conditions of `other`.
    pub fn join(&mut self, other: &Self) {
        self.found |= other.found;
        self.tagged |= other.tagged;
        self.never |= other.never;
        for (window, bytes) in &other.windows {
            self.never |= merge(self.windows.entry(*window).or_default(), bytes);
        }
    }

    /// Returns the windows with their values and masks.
    pub fn windows(&self) -> impl Iterator<Item = (KeyWindow, &Bytes)> {
        self.windows.iter().map(|(window, bytes)| (*window, bytes))
    }

    /// Returns what is known of a byte.
    #[must_use]
    pub fn known(&self, base: SelectorBase, byte: u16) -> KnownByte {
        let mut known = self.in_windows(base, byte);
        let mut join = |other: KnownByte| known = (known.0 | other.0, known.1 | other.1);
        match (base, byte) {
            (SelectorBase::Frame, 14) if self.tagged => {
                let (value, mask) = self.in_windows(SelectorBase::Extended, 26);
                // The bit of DEI is that of presence.
                join((value & 0xef, mask & 0xef));
            }
            (SelectorBase::Frame, 15) if self.tagged => join(self.in_windows(SelectorBase::Extended, 27)),
            (SelectorBase::L3, 1) if self.found & present::IPV4 != 0 => {
                join(self.in_windows(SelectorBase::Extended, 28));
            }
            _ => {}
        }
        known
    }

    /// Returns the metadata byte, as far as it is known.
    #[must_use]
    pub fn metadata(&self) -> KnownByte {
        self.in_windows(SelectorBase::Extended, METADATA_BYTE)
    }

    fn in_windows(&self, base: SelectorBase, byte: u16) -> KnownByte {
        let within = |window: &KeyWindow| {
            let at = u16::from(window.offset);
            window.base == base as u8 && (at..at + u16::from(window.bytes)).contains(&byte)
        };
        let of = |(window, bytes): (&KeyWindow, &Bytes)| {
            let at = usize::from(byte) - usize::from(window.offset);
            (bytes.0[at], bytes.1[at])
        };
        let found = self.windows.iter().filter(|(window, _)| within(window)).map(of);
        found.fold((0, 0), |all, one| (all.0 | one.0, all.1 | one.1))
    }
}
