// SPDX-License-Identifier: Apache-2.0
//! The depth to which a packet's headers must be parsed for a field.

use flow::{Field, FieldBase, SliceBase, ext};
use wire::Depth;

/// Returns the depth to which headers must be parsed for a field.
#[must_use]
pub fn depth_of(field: Field) -> Depth {
    let location = field.location();
    match (field, location.base) {
        (Field::Slice(s), FieldBase::Ext) => {
            let end = s.offset_bits + s.length_bits;
            if end <= ext::ETH_TYPE_BIT {
                Depth::None
            } else if end <= ext::IP_TOS_BIT {
                Depth::L2
            } else {
                Depth::L3
            }
        }
        (Field::Slice(s), _) => match s.base {
            SliceBase::Packet | SliceBase::Metadata | SliceBase::Moving => Depth::None,
            SliceBase::L3 => Depth::L2,
            SliceBase::L4 => Depth::L4,
        },
        (Field::EthType | Field::VlanVid | Field::VlanPcp, _) => Depth::L2,
        (_, FieldBase::Frame | FieldBase::Moving) => Depth::None,
        (_, FieldBase::Ext) if location.needs == 0 => Depth::None,
        (_, FieldBase::Ext | FieldBase::L3) => Depth::L3,
        (_, FieldBase::L4 | FieldBase::NdSll | FieldBase::NdTll) => Depth::L4,
    }
}
