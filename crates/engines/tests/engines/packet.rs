// SPDX-License-Identifier: Apache-2.0
//! Packets as field values, and their keys.

use engines::KeyPlan;
use fastrand::Rng;
use flow::{Field, Match};
use std::collections::BTreeMap;

/// Properties of a packet that a lookup can examine.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// Headers that are present (`wire::layers::header`).
    pub headers: u32,
    /// Values of fields. A field is present if its headers are.
    pub values: BTreeMap<Field, u128>,
}

impl Packet {
    /// Returns a packet that matches, with random bits where the match leaves them open.
    pub fn matching(rng: &mut Rng, of: &Match) -> Self {
        let mut made = Self::default();
        for c in of.fields() {
            made.headers |= c.field.location().needs;
            let open = rng.u128(..) & c.field.full_mask() & !c.mask;
            made.values.insert(c.field, c.value | open);
        }
        made
    }

    /// Returns the value of a field, if the packet has it.
    pub fn value(&self, field: Field) -> Option<u128> {
        let needs = field.location().needs;
        let value = self.values.get(&field).copied();
        match field {
            Field::Slice(_) => value,
            _ => (self.headers & needs == needs).then(|| value.unwrap_or(0)),
        }
    }

    /// Returns the packet's key.
    pub fn key(&self, plan: &KeyPlan) -> Vec<u64> {
        let mut key = vec![0; plan.words()];
        if plan.has_presence() {
            key[0] |= u64::from(self.headers & plan.needs());
            for (at, slice) in plan.slices().iter().enumerate() {
                key[0] |= u64::from(self.value(*slice).is_some()) << (32 + at);
            }
        }
        for part in plan.parts() {
            let Some(value) = self.value(part.field) else { continue };
            let down = part.field.location().length_bits - part.from_bit - u16::from(part.bits);
            let bits = (value >> down) as u64 & u64::MAX >> (64 - part.bits);
            key[usize::from(part.word)] |= bits << part.shift;
        }
        key
    }
}
