// SPDX-License-Identifier: Apache-2.0
//! Packet filter for traces, which examines a packet as received. It need not be fast.

use crate::ext::EXT_BYTES;
use crate::{Ext, Field, FieldBase, FieldMatch, Location, Match, PortNo};
use wire::layers::header;
use wire::{Depth, Layers};

/// Headers with a valid L4 offset. A slice relative to L4 needs one of them.
const UPPER: u32 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;

#[derive(Clone, Copy, Debug)]
struct Condition {
    location: Location,
    is_slice: bool,
    value: u128,
    mask: u128,
}

/// A compiled match.
#[derive(Clone, Debug, Default)]
pub struct PacketFilter {
    conditions: Box<[Condition]>,
    /// Whether the filter accepts no packet, because the match has an index of a linear table.
    nothing: bool,
}

impl PacketFilter {
    /// Compiles a match.
    #[must_use]
    pub fn compile(matching: &Match) -> Self {
        let condition = |c: FieldMatch| Condition {
            location: c.field.location(),
            is_slice: matches!(c.field, Field::Slice(_)),
            value: c.value,
            mask: c.mask,
        };
        Self { conditions: matching.fields().map(condition).collect(), nothing: matching.index().is_some() }
    }

    /// Returns whether a frame received at `in_port` matches.
    #[must_use]
    pub fn accepts(&self, in_port: PortNo, frame: &[u8]) -> bool {
        if self.nothing {
            return false;
        }
        if self.conditions.is_empty() {
            return true;
        }
        let layers = wire::locate(frame, Depth::L4);
        let mut ext = Ext::arriving(in_port);
        ext.set_layers(&layers);
        self.conditions.iter().all(|condition| condition.holds(&layers, &ext, frame))
    }
}

impl Condition {
    fn holds(&self, layers: &Layers, ext: &Ext, frame: &[u8]) -> bool {
        let Location { base, offset_bits, length_bits, needs } = self.location;
        if layers.present & needs != needs {
            return false;
        }
        let (bytes, start) = match base {
            FieldBase::Ext => (&ext.bytes()[..EXT_BYTES], 0),
            // A packet arrives with its base at byte 0.
            FieldBase::Frame | FieldBase::Moving => (frame, 0),
            FieldBase::L3 => (frame, layers.l3),
            FieldBase::L4 if self.is_slice && layers.present & UPPER == 0 => return false,
            FieldBase::L4 => (frame, layers.l4),
            FieldBase::NdSll => (frame, layers.nd_sll),
            FieldBase::NdTll => (frame, layers.nd_tll),
        };
        let first = 8 * usize::from(start) + usize::from(offset_bits);
        let mut value: u128 = 0;
        for bit in first..first + usize::from(length_bits) {
            let Some(byte) = bytes.get(bit / 8) else { return false };
            value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
        }
        value & self.mask == self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{ParseOptions, parse_match};
    use wire::PacketBuilder;

    #[test]
    fn a_filter_picks_what_matches_as_it_came_in() {
        let frame = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .vlan(0x8100, 5)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .udp(4_000, 53)
            .build();
        for (text, wanted) in [
            ("", true),
            ("in_port=7", true),
            ("in_port=8", false),
            ("udp,tp_dst=53,dl_vlan=5", true),
            ("tcp", false),
            ("ip,nw_dst=10.0.0.0/24", true),
            ("ip,nw_dst=10.0.1.0/24", false),
            ("slice(l4,16,16)=53", true),
            ("slice(packet,800,8)=0", false),
            ("metadata=0", true),
            ("metadata=1", false),
            ("index=3", false),
        ] {
            let filter = PacketFilter::compile(&parse_match(text, ParseOptions::default()).unwrap());
            assert_eq!(filter.accepts(PortNo(7), &frame), wanted, "{text}");
        }
        let any = PacketFilter::compile(&Match::any());
        assert!(any.accepts(PortNo(1), &[]));
        let filter =
            PacketFilter::compile(&parse_match("slice(l4,0,16)=0", ParseOptions::default()).unwrap());
        assert!(!filter.accepts(PortNo(1), &[0; 5]) && !filter.accepts(PortNo(1), &[0; 60]));
    }
}
