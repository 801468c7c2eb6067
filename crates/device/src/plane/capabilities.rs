// SPDX-License-Identifier: Apache-2.0
//! What the tables of a device can do. Fields are those that the compiler accepts.

use dataplane::TableCapabilities;
use flow::action::SetField;
use flow::{Action, Field, FieldMatch, Match};
use wire::layers::header as h;

use crate::compile::PpuLayout;
use crate::compile::conditions::Conditions;
use crate::compile::edits::EditList;

/// Instruction types (OFPIT_*): goto-table, write-metadata, write-actions, apply-actions, clear-actions.
const INSTRUCTIONS: [u16; 5] = [1, 2, 3, 4, 5];
/// Action types (OFPAT_*): output, push and pop VLAN tag, set and decrement TTL, set-field.
const ACTIONS: [u16; 6] = [0, 17, 18, 23, 24, 25];
/// Bits of the metadata register.
const METADATA: u64 = 0xff;

/// Returns the conditions without which a field does not exist in a packet.
fn prerequisites(field: Field) -> Vec<FieldMatch> {
    let eth_type = |value| FieldMatch::exact(Field::EthType, value);
    let protocol = |value| FieldMatch::exact(Field::IpProto, value);
    match field.location().needs {
        _ if field == Field::InPhyPort => vec![FieldMatch::exact(Field::InPort, 1)],
        h::VLAN => vec![FieldMatch { field: Field::VlanVid, value: 0x1000, mask: 0x1000 }],
        h::ARP => vec![eth_type(0x0806)],
        h::MPLS => vec![eth_type(0x8847)],
        h::PBB => vec![eth_type(0x88e7)],
        h::IP | h::IPV4 => vec![eth_type(0x0800)],
        h::IPV6 => vec![eth_type(0x86dd)],
        h::TCP => vec![eth_type(0x0800), protocol(6)],
        h::UDP => vec![eth_type(0x0800), protocol(17)],
        h::SCTP => vec![eth_type(0x0800), protocol(132)],
        h::ICMPV4 => vec![eth_type(0x0800), protocol(1)],
        h::ICMPV6 | h::ND | h::ND_SLL | h::ND_TLL => vec![eth_type(0x86dd), protocol(58)],
        _ => Vec::new(),
    }
}

/// Returns whether entries can match a field. The device has only the low bits of some fields, and no
/// packet can have 1 in the bits of a field that it does not have at all.
fn can_match(field: Field) -> bool {
    let needed = || prerequisites(field).into_iter().filter(|condition| condition.field != field);
    [1, field.full_mask()].into_iter().any(|value| {
        let matching = Match::new(needed().chain([FieldMatch::exact(field, value)]));
        let conditions = matching.ok().and_then(|matching| Conditions::of(&matching, true).ok());
        conditions.is_some_and(|conditions| !conditions.never)
    })
}

/// Returns whether actions can set a field. Some entries must match other bits of the field's bytes.
fn can_set(field: Field) -> bool {
    let mut needed = prerequisites(field);
    match field {
        Field::VlanPcp => needed = vec![FieldMatch::exact(Field::VlanVid, 0x1001)],
        Field::IpEcn => needed.push(FieldMatch::exact(Field::IpDscp, 0)),
        _ => {}
    }
    let Ok(matching) = Match::new(needed) else { return false };
    let Ok(conditions) = Conditions::of(&matching, true) else { return false };
    let set = SetField { field, value: 1, mask: field.full_mask() };
    EditList::new(&conditions).add(&Action::SetField(set)).is_ok()
}

/// Returns the capabilities of a device with these tables.
pub(super) fn capabilities(layout: &PpuLayout) -> TableCapabilities {
    let matched = Field::NAMED.iter().copied().filter(|field| can_match(*field));
    TableCapabilities {
        hardware: "Shunt RTL device",
        tables: layout.tables() as u8,
        // The last row of a table is its table miss.
        entries: u32::from(layout.entries()) - 1,
        metadata: METADATA,
        instructions: INSTRUCTIONS.to_vec(),
        actions: ACTIONS.to_vec(),
        matched: matched.map(|field| (field, field.maskable())).collect(),
        set: Field::NAMED.iter().copied().filter(|field| field.settable() && can_set(*field)).collect(),
        groups_meters_queues: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_the_documentation() {
        let layout = PpuLayout::one_each(4, 512).unwrap();
        let found = capabilities(&layout);
        let names =
            |fields: Vec<Field>| fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(" ");
        let missing: Vec<Field> = Field::NAMED
            .iter()
            .copied()
            .filter(|field| !found.matched.iter().any(|(known, _)| known == field))
            .collect();
        assert_eq!(names(missing), "nd_target nd_sll nd_tll tun_id ipv6_exthdr");
        let set = "dl_dst dl_src vlan_vid vlan_pcp ip_dscp nw_ecn nw_src nw_dst tcp_src tcp_dst udp_src udp_dst \
                   ipv6_src ipv6_dst";
        assert_eq!(names(found.set.clone()), set);
        assert_eq!((found.tables, found.entries), (4, 511));
    }
}
