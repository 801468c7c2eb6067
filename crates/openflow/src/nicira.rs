// SPDX-License-Identifier: Apache-2.0
//! Nicira's `reg_load`, which ovs-ofctl sends for a masked set-field in OpenFlow 1.3. Its content is the
//! number of the first bit (10 bits), the number of bits minus 1 (6 bits), the field header (32 bits), and
//! the value (64 bits). Bits are counted from the least significant one.

use crate::bytes::Reader;
use crate::error::{self, DecodeError};
use crate::oxm;
use flow::action::SetField;
use flow::{Action, Field};

/// Fields of NXM class 0 (the fields of OpenFlow 1.0).
const NXM_OF: &[(u8, Field)] = &[
    (1, Field::EthDst),
    (2, Field::EthSrc),
    (7, Field::Ipv4Src),
    (8, Field::Ipv4Dst),
    (9, Field::TcpSrc),
    (10, Field::TcpDst),
    (11, Field::UdpSrc),
    (12, Field::UdpDst),
    (13, Field::Icmpv4Type),
    (14, Field::Icmpv4Code),
    (15, Field::ArpOp),
    (16, Field::ArpSpa),
    (17, Field::ArpTpa),
];
/// Fields of NXM class 1 (Nicira's).
const NXM_NX: &[(u8, Field)] = &[
    (16, Field::TunnelId),
    (17, Field::ArpSha),
    (18, Field::ArpTha),
    (19, Field::Ipv6Src),
    (20, Field::Ipv6Dst),
    (21, Field::Icmpv6Type),
    (22, Field::Icmpv6Code),
    (23, Field::NdTarget),
    (24, Field::NdSll),
    (25, Field::NdTll),
    (27, Field::Ipv6Flabel),
    (28, Field::IpEcn),
];

/// Decodes a `reg_load` after its subtype, as a masked set-field.
pub(crate) fn reg_load(r: &mut Reader<'_>) -> Result<Action, DecodeError> {
    let bits = r.u16()?;
    let (offset, count) = (u32::from(bits >> 6), u32::from(bits & 0x3f) + 1);
    let (class, number) = (r.u16()?, r.u16()? >> 9);
    let value = u128::from(r.u64()?);
    let in_list = |list: &[(u8, Field)]| list.iter().find(|(n, _)| u16::from(*n) == number).map(|(_, f)| *f);
    let field = match class {
        0 => in_list(NXM_OF),
        1 => in_list(NXM_NX),
        oxm::BASIC => Field::NAMED.get(usize::from(number)).copied(),
        _ => None,
    };
    let Some(field) = field else {
        return error::ACTION_BAD_SET_TYPE
            .says(format!("reg_load cannot write the field with NXM class {class:#x}, number {number}"));
    };
    if offset + count > u32::from(field.location().length_bits) || value >> count != 0 {
        return error::ACTION_BAD_SET_ARGUMENT.says(format!(
            "reg_load of {value:#x} into {count} bits of {field} from bit {offset}; these must fit the field, the \
             value the bits"
        ));
    }
    let mask = (u128::MAX >> (128 - count)) << offset;
    Ok(Action::SetField(SetField { field, value: value << offset, mask }))
}
