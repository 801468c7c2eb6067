// SPDX-License-Identifier: Apache-2.0
//! Bits that the rules examine. They decide which packets belong to one flow.

use crate::{Reference, ReferencePacket, RuleSource};
use flow::{Action, Field, GroupId, Next, TableId, port_no};
use std::collections::{BTreeMap, BTreeSet};

/// Examined bits of each field, right-aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExaminedBits(pub BTreeMap<Field, u128>);

impl ExaminedBits {
    /// Adds bits of a field.
    pub fn add(&mut self, field: Field, mask: u128) {
        *self.0.entry(field).or_default() |= mask;
    }

    /// Adds all bits of another set.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(field, mask)| self.add(*field, *mask));
    }

    /// Returns whether this set has all bits of the other.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|(field, mask)| self.0.get(field).is_some_and(|own| mask & !own == 0))
    }

    /// Returns the packet's value of each field under its mask, in the order of the fields. It is `None` for
    /// a field that the packet does not have.
    #[must_use]
    pub fn values_of(&self, packet: &ReferencePacket) -> Vec<Option<u128>> {
        self.0.iter().map(|(field, mask)| Some(packet.value(*field)? & mask)).collect()
    }
}

/// Tables and groups that packets can reach.
#[derive(Default)]
struct Reached {
    tables: BTreeSet<TableId>,
    groups: BTreeSet<GroupId>,
    normal: bool,
}

impl Reference {
    /// Returns the bits that are examined in the tables that received packets can reach. NORMAL examines both
    /// MAC addresses and the VLAN ID.
    #[must_use]
    pub fn examined(&self) -> ExaminedBits {
        let mut reached = Reached::default();
        self.reach_table(TableId(0), &mut reached);
        let mut bits = ExaminedBits::default();
        for table in &reached.tables {
            let conditions = self.entries(*table).iter().flat_map(|entry| entry.matching.fields());
            conditions.for_each(|condition| bits.add(condition.field, condition.mask));
        }
        if reached.normal {
            bits.add(Field::EthDst, Field::EthDst.full_mask());
            bits.add(Field::EthSrc, Field::EthSrc.full_mask());
            bits.add(Field::VlanVid, 0xfff);
        }
        bits
    }

    fn reach_table(&self, table: TableId, reached: &mut Reached) {
        if !reached.tables.insert(table) {
            return;
        }
        for entry in self.entries(table) {
            self.reach_by(&entry.instructions.apply, reached);
            self.reach_by(&entry.instructions.write, reached);
            if let Some(next) = entry.instructions.next.map(Next::table) {
                self.reach_table(next, reached);
            }
        }
    }

    fn reach_by(&self, actions: &[Action], reached: &mut Reached) {
        for action in actions {
            match action {
                Action::Output { port: port_no::NORMAL, .. } => reached.normal = true,
                Action::Group(id) if reached.groups.insert(*id) => {
                    let group = self.group(*id);
                    let buckets = group.iter().flat_map(|group| &group.buckets);
                    buckets.for_each(|bucket| self.reach_by(&bucket.actions, reached));
                }
                _ => {}
            }
        }
    }
}
