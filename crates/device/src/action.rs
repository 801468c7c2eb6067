// SPDX-License-Identifier: Apache-2.0
//! Action words: what an entry of the device does with a packet.
//!
//! A word has one primitive of each kind. They are executed in this order: *edit* (replace `remove` bytes at
//! an offset by `insert` bytes of data; this modifies, inserts or removes), *TTL*, *metadata*, *output*. A
//! program that needs two primitives of one kind uses two PPUs (programmable processing units).
//!
//! A packet that an action does not fit is dropped, and counted as `bad_edit`:
//!
//! - The edit leaves the copied part of the frame, or makes it longer than its room.
//! - The edit counts from L4, and the parser found no upper-layer header.
//! - The edit removes the first byte of an IP or upper-layer header together with bytes before it.
//! - The action decrements the TTL, and the edit removes the TTL or inserts bytes directly before it.
//! - The action decrements the TTL, and the packet is not IP.
//! - The edit adjusts the upper-layer checksum (`fix_l4`), and the packet has IPv6 extension headers, behind
//!   which the parser finds no upper-layer header.

/// Bytes of an action word.
pub const ACTION_BYTES: usize = 20;
/// Data bytes of an edit.
pub const EDIT_DATA_BYTES: usize = 12;
/// Maximum number of bytes that an edit removes.
pub const REMOVE_BYTES_MAX: u8 = 16;

/// Field of the action word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionField {
    /// Name in the generated files.
    pub name: &'static str,
    /// Number of bits.
    pub width: u8,
    /// Meaning, for the generated files.
    pub meaning: &'static str,
}

const fn field(name: &'static str, width: u8, meaning: &'static str) -> ActionField {
    ActionField { name, width, meaning }
}

/// Fields from the most significant bit on.
pub const ACTION_FIELDS: [ActionField; 15] = [
    field("data", 96, "bytes that the edit writes, the first one most significant"),
    field("base", 2, "EDIT_BASE_*: position from which the edit's offset counts"),
    field("offset", 8, "offset of the edit in bytes"),
    field("insert", 4, "bytes of data that the edit writes, 0 to 12"),
    field("remove", 5, "bytes that the edit removes, 0 to 16"),
    field("fix_ip", 1, "adjust the IPv4 header checksum by the edit's change"),
    field("fix_l4", 1, "adjust the TCP, UDP or ICMPv6 checksum by the edit's change"),
    field("dec_ttl", 1, "decrement TTL or hop limit; drop the packet if it was 0 or 1, or if there is none"),
    field("write_metadata", 1, "write the low 16 bits of the metadata register"),
    field("metadata", 16, "value for the metadata register"),
    field("output_kind", 2, "OUTPUT_*"),
    field("port", 8, "output port of OUTPUT_PORT, or number that OUTPUT_CONTROLLER reports"),
    field("last", 1, "later PPUs do not change the packet"),
    field("to_ingress", 1, "OUTPUT_PORT means the ingress port instead of `port`"),
    field("reserved", 13, "0"),
];

/// Position from which the offset of an edit is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EditBase {
    /// First byte of the frame.
    #[default]
    Frame = 0,
    /// First byte after the EtherType.
    L3 = 1,
    /// First byte of the upper-layer header. Without such a header, the packet is dropped.
    L4 = 2,
}

impl EditBase {
    /// All bases by code.
    pub const ALL: [Self; 3] = [Self::Frame, Self::L3, Self::L4];
}

/// Effect on the packet's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OutputKind {
    /// The output that an earlier PPU set, or the configured miss action.
    #[default]
    Keep = 0,
    /// No output. Later PPUs do not change the packet.
    Discard = 1,
    /// The port of the word. If it is the ingress port, there is no output, unless the word has `to_ingress`.
    Port = 2,
    /// The control plane.
    Controller = 3,
}

impl OutputKind {
    /// All kinds by code.
    pub const ALL: [Self; 4] = [Self::Keep, Self::Discard, Self::Port, Self::Controller];
}

/// An action word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionWord {
    /// Bytes that the edit writes; only the first `insert` are used.
    pub data: [u8; EDIT_DATA_BYTES],
    /// Position from which `offset` counts.
    pub base: EditBase,
    /// Offset of the edit.
    pub offset: u8,
    /// Data bytes that the edit writes, at most [`EDIT_DATA_BYTES`].
    pub insert: u8,
    /// Bytes that the edit removes, at most [`REMOVE_BYTES_MAX`].
    pub remove: u8,
    /// Whether the IPv4 header checksum is adjusted by the edit's change.
    pub fix_ip: bool,
    /// Whether the upper-layer checksum is adjusted by the edit's change.
    pub fix_l4: bool,
    /// Whether TTL or hop limit is decremented. The IPv4 header checksum is adjusted with it.
    pub dec_ttl: bool,
    /// Value for the low 16 bits of the metadata register.
    pub metadata: Option<u16>,
    /// Kind of output.
    pub output: OutputKind,
    /// Port of [`OutputKind::Port`], or a number that [`OutputKind::Controller`] reports.
    pub port: u8,
    /// Whether later PPUs leave the packet as it is.
    pub last: bool,
    /// Whether [`OutputKind::Port`] means the ingress port instead of `port`.
    pub to_ingress: bool,
}

impl ActionWord {
    /// Returns the word as in messages and in the action memory.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ACTION_BYTES] {
        let mut data = [0; 16];
        data[4..].copy_from_slice(&self.data);
        let values: [u128; ACTION_FIELDS.len()] = [
            u128::from_be_bytes(data),
            self.base as u128,
            self.offset.into(),
            self.insert.into(),
            self.remove.into(),
            self.fix_ip.into(),
            self.fix_l4.into(),
            self.dec_ttl.into(),
            self.metadata.is_some().into(),
            self.metadata.unwrap_or(0).into(),
            self.output as u128,
            self.port.into(),
            self.last.into(),
            self.to_ingress.into(),
            0,
        ];
        let mut bytes = [0; ACTION_BYTES];
        let mut at = 0;
        for (field, value) in ACTION_FIELDS.iter().zip(values) {
            for bit in (0..field.width).rev() {
                bytes[at / 8] |= (u8::from(value >> bit & 1 != 0)) << (7 - at % 8);
                at += 1;
            }
        }
        bytes
    }

    /// Reads a word. Returns `None` if a field has a value that the device does not accept.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; ACTION_BYTES]) -> Option<Self> {
        let mut at = 0;
        let values = ACTION_FIELDS.map(|field| {
            let bits = at..at + usize::from(field.width);
            at = bits.end;
            bits.fold(0_u128, |value, bit| value << 1 | u128::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
        });
        let [
            data,
            base,
            offset,
            insert,
            remove,
            fix_ip,
            fix_l4,
            ttl,
            write,
            metadata,
            output,
            port,
            last,
            to_ingress,
            rest,
        ] = values;
        let byte = |value: u128| value as u8;
        let data: [u8; 16] = data.to_be_bytes();
        let word = Self {
            data: *data.last_chunk()?,
            base: *EditBase::ALL.get(base as usize)?,
            offset: byte(offset),
            insert: byte(insert),
            remove: byte(remove),
            fix_ip: fix_ip != 0,
            fix_l4: fix_l4 != 0,
            dec_ttl: ttl != 0,
            metadata: (write != 0).then_some(metadata as u16),
            output: *OutputKind::ALL.get(output as usize)?,
            port: byte(port),
            last: last != 0,
            to_ingress: to_ingress != 0,
        };
        let in_range = usize::from(word.insert) <= EDIT_DATA_BYTES && word.remove <= REMOVE_BYTES_MAX;
        let unused = if write == 0 { metadata } else { 0 } | rest;
        (in_range && unused == 0).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_the_word() {
        let bits: usize = ACTION_FIELDS.iter().map(|field| usize::from(field.width)).sum();
        assert_eq!(bits, ACTION_BYTES * 8);
    }

    #[test]
    fn a_word_has_the_bits_that_were_assembled_by_hand() {
        let word = ActionWord {
            data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            base: EditBase::L3,
            offset: 0x81,
            insert: 12,
            remove: 16,
            dec_ttl: true,
            metadata: Some(0xabcd),
            output: OutputKind::Port,
            port: 0x42,
            last: true,
            ..ActionWord::default()
        };
        // 01 10000001 1100 10000 | 0 0 1 1 | 1010101111001101 | 10 | 01000010 | 1 | 14 zeros
        // = 0110000001110010 0000011101010111 1001101100100001 0100000000000000
        let tail = [0x60, 0x72, 0x07, 0x57, 0x9b, 0x21, 0x40, 0x00];
        let bytes = word.to_bytes();
        assert_eq!(&bytes[..12], &word.data);
        assert_eq!(bytes[12..], tail, "{:02x?}", &bytes[12..]);
        assert_eq!(ActionWord::from_bytes(&bytes), Some(word));
    }

    #[test]
    fn words_out_of_range_are_refused() {
        let word = |insert, remove| ActionWord { insert, remove, ..ActionWord::default() }.to_bytes();
        assert!(ActionWord::from_bytes(&word(12, 16)).is_some());
        assert_eq!(ActionWord::from_bytes(&word(13, 0)), None);
        assert_eq!(ActionWord::from_bytes(&word(0, 17)), None);
        let mut reserved = word(0, 0);
        reserved[19] = 1;
        assert_eq!(ActionWord::from_bytes(&reserved), None);
    }
}
