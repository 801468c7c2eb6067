// SPDX-License-Identifier: Apache-2.0
//! Changes of a stateless configuration, by whole sections.

use super::{Bank, Gates, StatelessConfig, TagTypes};
use crate::PortNo;
use std::collections::{BTreeMap, BTreeSet};

/// A section of a stateless configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatelessSection {
    /// EtherTypes.
    Types(TagTypes),
    /// All trusted ports.
    Trusted(BTreeSet<PortNo>),
    /// MTUs in bytes. Ports without an entry have no limit.
    MtuBytes(BTreeMap<PortNo, usize>),
    /// KeyFlow's bank of an epoch (0 or 1). `None` removes the bank.
    Bank(u8, Option<Bank>),
    /// freeRtr's PolKA. `None` removes it.
    Polka(Option<Bank>),
    /// Gates. `None` removes them.
    Gates(Option<Gates>),
}

/// A change of a stateless configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatelessChange {
    /// Disables stateless forwarding.
    Off,
    /// Replaces these sections, and enables stateless forwarding.
    Set(Vec<StatelessSection>),
}

impl StatelessSection {
    /// Returns the number of labels, ports and backup ports in the section.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Types(_) => 0,
            Self::Trusted(ports) => ports.len(),
            Self::MtuBytes(mtu_bytes) => mtu_bytes.len(),
            Self::Bank(_, bank) | Self::Polka(bank) => bank.as_ref().map_or(0, Bank::size),
            Self::Gates(gates) => gates.as_ref().map_or(0, |gates| gates.ports.len()),
        }
    }
}

impl Bank {
    fn size(&self) -> usize {
        self.labels.len() + self.backups.len()
    }
}

impl StatelessChange {
    /// Returns the number of labels, ports and backup ports in all its sections.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Off => 0,
            Self::Set(sections) => sections.iter().map(StatelessSection::size).sum(),
        }
    }
}

impl StatelessConfig {
    /// Returns the number of labels, ports and backup ports in the configuration.
    #[must_use]
    pub fn size(&self) -> usize {
        let banks = self.banks.iter().chain([&self.polka]).flatten().map(Bank::size);
        let gates = self.gates.as_ref().map_or(0, |gates| gates.ports.len());
        banks.sum::<usize>() + self.trusted.len() + self.mtu_bytes.len() + gates
    }

    /// Returns every section of the configuration.
    #[must_use]
    pub fn sections(&self) -> Vec<StatelessSection> {
        let [first, second] = self.banks.clone();
        vec![
            StatelessSection::Types(self.types),
            StatelessSection::Trusted(self.trusted.clone()),
            StatelessSection::MtuBytes(self.mtu_bytes.clone()),
            StatelessSection::Bank(0, first),
            StatelessSection::Bank(1, second),
            StatelessSection::Polka(self.polka.clone()),
            StatelessSection::Gates(self.gates.clone()),
        ]
    }

    /// Replaces one section.
    pub fn set(&mut self, section: StatelessSection) {
        match section {
            StatelessSection::Types(types) => self.types = types,
            StatelessSection::Trusted(ports) => self.trusted = ports,
            StatelessSection::MtuBytes(mtu_bytes) => self.mtu_bytes = mtu_bytes,
            StatelessSection::Bank(epoch, bank) => self.banks[usize::from(epoch & 1)] = bank,
            StatelessSection::Polka(bank) => self.polka = bank,
            StatelessSection::Gates(gates) => self.gates = gates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arithmetic, Label, NodeId};
    use super::*;

    #[test]
    fn a_configuration_is_as_large_as_its_sections() {
        let id = NodeId::new(Arithmetic::Integer, 7).unwrap();
        let labels = (0..5).map(|label| (label, Label::Tables)).collect();
        let bank = Bank { id, labels, backups: BTreeMap::from([(PortNo(1), PortNo(2))]) };
        let stateless_config = StatelessConfig {
            trusted: [1, 2, 3].map(PortNo).into(),
            mtu_bytes: BTreeMap::from([(PortNo(1), 1_500)]),
            banks: [Some(bank.clone()), None],
            polka: Some(bank),
            ..StatelessConfig::default()
        };
        assert_eq!(stateless_config.size(), 16);
        assert_eq!(
            (StatelessChange::Set(stateless_config.sections()).size(), StatelessChange::Off.size()),
            (16, 0)
        );
    }
}
