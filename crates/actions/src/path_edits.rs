// SPDX-License-Identifier: Apache-2.0
//! Edits of a router's path: entries that move the base to the IP header, decrement the TTL as a field,
//! calculate the checksum of the IPv4 header and replace MAC addresses. The base moves by constants, so each
//! place in the packet is a constant, too.

#[cfg(test)]
mod tests;

use crate::field_write::FieldWrite;
use crate::mac_write::MacWrite;
use crate::program::ProgramStep;
use crate::ttl::{IPV4_BYTES, IPV4_CHECKSUM, IPV4_TTL, IPV6_HOP_LIMIT, TtlSpot};
use flow::action::SetField;
use flow::{BitRange, Edit, Field, Slice, SliceBase};

/// What the entries of a path edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEdits {
    /// Offset of the base in bytes.
    base: i32,
    /// Greatest offset of the base so far.
    highest: i32,
    /// Offset of the decremented byte.
    ttl: Option<i32>,
    /// Whether the checksum of the IPv4 header with this TTL is calculated.
    checksum: bool,
    macs: MacWrite,
}

impl PathEdits {
    /// No edits.
    pub const NONE: Self = Self { base: 0, highest: 0, ttl: None, checksum: false, macs: MacWrite::NONE };

    /// Adds a step of the path's next entry. Returns false if the step is no edit of a router's path.
    #[must_use]
    pub fn add(&mut self, step: &ProgramStep) -> bool {
        match step {
            ProgramStep::Edit(Edit::MoveBase(bytes)) => {
                self.base += i32::from(*bytes);
                self.highest = self.highest.max(self.base);
                self.base >= 0
            }
            ProgramStep::Edit(Edit::ModifyField { slice, increment: -1 }) => self.decrement(*slice),
            ProgramStep::Edit(Edit::CalculateChecksum { checksum, covered }) => {
                self.calculate(*checksum, *covered)
            }
            ProgramStep::Write(write) => self.write(write),
            ProgramStep::WriteMacs(macs) => {
                self.macs = self.macs.then(*macs);
                true
            }
            _ => false,
        }
    }

    /// Returns the MAC addresses to write, and the place of the decremented TTL. Returns `None` if no TTL is
    /// decremented.
    ///
    /// The steps succeed on each packet whose TTL is at this place, and change nothing else in it, if no open
    /// checksum covers bytes of an IPv4 header.
    #[must_use]
    pub fn finish(&self) -> Option<(MacWrite, TtlSpot)> {
        let at = self.ttl?;
        let header = at - if self.checksum { IPV4_TTL } else { IPV6_HOP_LIMIT } as i32;
        // The shortest IP header has 20 bytes, so the base is in the packet.
        let is_inside = header >= 0 && self.highest <= header + IPV4_BYTES as i32;
        let spot = TtlSpot::edited(at as usize, !self.checksum)?;
        is_inside.then_some((self.macs, spot))
    }

    fn decrement(&mut self, slice: Slice) -> bool {
        let is_byte = slice.length_bits == 8 && slice.offset_bits.is_multiple_of(8);
        let Some(start) = self.start(slice).filter(|_| is_byte && self.ttl.is_none()) else { return false };
        self.ttl = Some(start / 8);
        true
    }

    fn calculate(&mut self, checksum: BitRange, covered: BitRange) -> bool {
        let [field, header] = [checksum, covered].map(|range| self.base + i32::from(range.offset_bits / 8));
        let is_header = covered.length_bits == 8 * IPV4_BYTES as u16
            && self.ttl == Some(header + IPV4_TTL as i32)
            && (checksum.length_bits, field) == (16, header + IPV4_CHECKSUM as i32);
        let is_first = !self.checksum;
        self.checksum = is_header;
        is_first && is_header
    }

    /// Adds a write of a slice that is a MAC address of the packet, or of metadata, which do not leave.
    fn write(&mut self, write: &FieldWrite) -> bool {
        let Field::Slice(slice) = write.field else { return false };
        if slice.base == SliceBase::Metadata {
            return true;
        }
        let field = match (self.start(slice), slice.length_bits) {
            (Some(0), 48) => Field::EthDst,
            (Some(48), 48) => Field::EthSrc,
            _ => return false,
        };
        let (value, mask) = write.bits();
        let Some(macs) = MacWrite::compile(&SetField { field, value, mask }) else { return false };
        self.macs = self.macs.then(macs);
        true
    }

    /// Returns the offset of a slice in the packet in bits.
    fn start(&self, slice: Slice) -> Option<i32> {
        let base = match slice.base {
            SliceBase::Packet => 0,
            SliceBase::Moving => self.base,
            _ => return None,
        };
        Some(8 * base + i32::from(slice.offset_bits))
    }
}
