// SPDX-License-Identifier: Apache-2.0
//! Protocol-oblivious match fields: `{base, bit offset, bit length}`.

use crate::limits::Limits;

/// Position from which a slice's offset is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SliceBase {
    /// First bit of the frame (destination MAC address). Needs no parser.
    Packet,
    /// First bit of the extended header ([`crate::ext`]).
    Metadata,
    /// First bit after the EtherType and all VLAN tags.
    L3,
    /// First bit of the upper-layer header after IP and its extension headers, if the parser supports the
    /// protocol.
    L4,
    /// First bit of the byte at the packet's base: byte 0 of the frame, until an action moves the base
    /// ([`crate::Edit::MoveBase`]). Needs no parser.
    Moving,
}

impl SliceBase {
    /// Returns the base's name in the flow syntax.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Metadata => "metadata",
            Self::L3 => "l3",
            Self::L4 => "l4",
            Self::Moving => "base",
        }
    }

    /// All bases.
    pub const ALL: [Self; 5] = [Self::Packet, Self::Metadata, Self::L3, Self::L4, Self::Moving];

    /// Names of all bases, for messages.
    pub const NAMES: &'static str = "packet, metadata, l3, l4 or base";

    /// Returns the number of the base in OpenFlow messages. Number 4 is taken by the index of linear tables.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Packet => 0,
            Self::Metadata => 1,
            Self::L3 => 2,
            Self::L4 => 3,
            Self::Moving => 5,
        }
    }

    /// Returns the base with this number, or `None` if there is none.
    #[must_use]
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|base| base.number() == number)
    }
}

/// A run of bits in a packet or its extended header. A packet that ends before the slice ends does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice {
    /// Origin of the offset.
    pub base: SliceBase,
    /// First bit, counted from the base. Bit 0 is the most significant bit of the first byte.
    pub offset_bits: u16,
    /// Length in bits, 1 to 128.
    pub length_bits: u16,
}

/// Reason why a slice was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The length is 0 or exceeds the limit.
    #[error("slice length {0} is not 1 to {max} bits; cut a longer field into several slices", max = Limits::SLICE_BITS)]
    Length(u32),
    /// The slice ends beyond the last bit that its base allows.
    #[error("slice ends at bit {0}; it must end by bit {1} of its base")]
    End(u32, u32),
}

impl Slice {
    /// Returns a checked slice.
    ///
    /// # Errors
    /// Returns an error if the length is not 1 to 128 bits, or if the slice ends beyond the last bit that its
    /// base allows.
    pub fn new(base: SliceBase, offset_bits: u32, length_bits: u32) -> Result<Self, SliceError> {
        if length_bits == 0 || length_bits > u32::from(Limits::SLICE_BITS) {
            return Err(SliceError::Length(length_bits));
        }
        let most = match base {
            SliceBase::Metadata => 8 * crate::ext::EXT_BYTES as u32,
            _ => Limits::SLICE_END_BITS,
        };
        let end = offset_bits.saturating_add(length_bits);
        if end > most {
            return Err(SliceError::End(end, most));
        }
        Ok(Self { base, offset_bits: offset_bits as u16, length_bits: length_bits as u16 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_base_is_found_by_its_number() {
        let found: Vec<_> = (0..=255).filter_map(SliceBase::numbered).collect();
        assert_eq!(found, SliceBase::ALL);
        assert_eq!(SliceBase::numbered(4), None);
        assert_eq!(
            SliceBase::NAMES.split([',', ' ']).filter(|name| !matches!(*name, "" | "or")).collect::<Vec<_>>(),
            SliceBase::ALL.map(SliceBase::name)
        );
    }

    #[test]
    fn slices_are_checked() {
        assert!(Slice::new(SliceBase::Packet, 96, 16).is_ok());
        assert_eq!(Slice::new(SliceBase::Packet, 0, 129), Err(SliceError::Length(129)));
        assert_eq!(Slice::new(SliceBase::Packet, 0, 0), Err(SliceError::Length(0)));
        assert_eq!(Slice::new(SliceBase::Metadata, 250, 8), Err(SliceError::End(258, 256)));
        assert!(Slice::new(SliceBase::L4, u32::MAX, 8).is_err());
    }
}
