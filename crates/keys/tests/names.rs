// SPDX-License-Identifier: Apache-2.0
//! The key of the name router in `controller/examples/pof/ndn.py`, whose limits `docs/pof.md` states.

use flow::{Field, PortNo, Slice, SliceBase};
use keys::{ExpressPlan, KeyFit, PlanVersion};

/// Returns the key for names of this length in bytes at both positions.
fn plan(name_bytes: u16) -> ExpressPlan {
    let mut bits = Vec::new();
    let mut add = |byte: u16, bytes: u16| {
        let (offset_bits, length_bits) = (8 * byte, 8 * bytes);
        let slice = Slice { base: SliceBase::Packet, offset_bits, length_bits };
        bits.push((Field::Slice(slice), u128::MAX >> (128 - length_bits)));
    };
    // EtherType, and type and length of the packet.
    add(12, 2);
    add(14, 1);
    add(15, 1);
    // The length of the packet has one byte or three.
    for name in [16, 18] {
        add(name, 1);
        add(name + 1, 1);
        for at in (0..name_bytes).step_by(16) {
            add(name + 2 + at, 16.min(name_bytes - at));
        }
    }
    ExpressPlan::new(PlanVersion(1), bits, PortNo(6))
}

#[test]
fn the_keys_of_names_of_up_to_97_bytes_fit() {
    for name_bytes in 1..=128 {
        let plan = plan(name_bytes);
        let fits = plan.fit() != KeyFit::TooLong;
        assert_eq!(
            fits,
            name_bytes <= 97,
            "{name_bytes}: {} bytes, {}",
            plan.length_bytes(),
            plan.fit().name()
        );
    }
}
