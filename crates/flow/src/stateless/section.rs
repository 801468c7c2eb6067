// SPDX-License-Identifier: Apache-2.0
//! Changes of a lane: its parts, each replaced as a whole.

use super::{Bank, Gates, Stateless, TagTypes};
use crate::PortNo;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a lane's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// EtherTypes.
    Types(TagTypes),
    /// Trusted ports, all of them.
    Trusted(BTreeSet<PortNo>),
    /// MTUs, bytes; other ports carry anything.
    MtuBytes(BTreeMap<PortNo, usize>),
    /// KeyFlow's bank of an epoch (0 or 1), or none.
    Bank(u8, Option<Bank>),
    /// freeRtr's PolKA, or none.
    Polka(Option<Bank>),
    /// Gates, or none.
    Gates(Option<Gates>),
}

/// A change of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneChange {
    /// There is no lane any more.
    Off,
    /// These parts become what they are here; the others stay. Without a lane there is one then.
    Set(Vec<Section>),
}

impl Stateless {
    /// All parts.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let [first, second] = self.banks.clone();
        vec![
            Section::Types(self.types),
            Section::Trusted(self.trusted.clone()),
            Section::MtuBytes(self.mtu_bytes.clone()),
            Section::Bank(0, first),
            Section::Bank(1, second),
            Section::Polka(self.polka.clone()),
            Section::Gates(self.gates.clone()),
        ]
    }

    /// Replaces a part.
    pub fn set(&mut self, section: Section) {
        match section {
            Section::Types(types) => self.types = types,
            Section::Trusted(ports) => self.trusted = ports,
            Section::MtuBytes(mtu_bytes) => self.mtu_bytes = mtu_bytes,
            Section::Bank(epoch, bank) => self.banks[usize::from(epoch & 1)] = bank,
            Section::Polka(bank) => self.polka = bank,
            Section::Gates(gates) => self.gates = gates,
        }
    }
}
