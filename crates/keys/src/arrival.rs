// SPDX-License-Identifier: Apache-2.0
//! Where the bits that tables examine are in an arriving packet.

use flow::{Field, Slice, SliceBase};

/// Returns the field with the same bits in an arriving packet, whose base is byte 0 of the frame. For tables
/// behind entries that move the base, see [`crate::View`].
pub(crate) fn on_arrival(field: Field) -> Field {
    match field {
        Field::Slice(slice) if slice.base == SliceBase::Moving => {
            Field::Slice(Slice { base: SliceBase::Packet, ..slice })
        }
        other => other,
    }
}
