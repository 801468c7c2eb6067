// SPDX-License-Identifier: Apache-2.0
//! Validity checks of a stateless configuration.

use super::{Bank, Gates, Label, StatelessConfig, TagTypes};
use crate::{Limits, PortNo, port_no};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Lowest EtherType. Smaller values are 802.3 lengths.
const ETHERTYPE_MIN: u16 = 0x600;

/// EtherTypes of protocols that the parser handles: ARP, IP, VLAN tags, MPLS shims, PBB.
const TAKEN: [u16; 9] = [0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8848, 0x88e7, 0x9100];

/// Smallest MTU in bytes: every link carries IPv4 packets of this size.
const MTU_BYTES_MIN: usize = 68;

/// Reason why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatelessError {
    /// An EtherType belongs to another protocol, or two are equal.
    #[error("EtherType {0:#06x} {1}; use another, such as 0x88b5 or 0x88b6 for local experiments")]
    Type(u16, &'static str),
    /// A value is not the number of a real port.
    #[error("{0:#x} is not a port number; ports are 1 to {max:#x}", max = port_no::MAX)]
    Port(PortNo),
    /// There are more ports than a datapath may have.
    #[error("{0} names {1} ports; a datapath has at most {most}", most = Limits::PORTS)]
    TooManyPorts(&'static str, usize),
    /// A label is above the limit.
    #[error("label {0} is too large; the maximum is {max}", max = Limits::LABEL_MAX)]
    Label(u32),
    /// A label cannot be a residue of the ID.
    #[error("label {0} is not a residue modulo the ID {1:#x}")]
    LabelBeyondId(u32, u32),
    /// Two ports have the same gate number.
    #[error("ports {0} and {1} both have gate {2}; give each port a different gate")]
    SameGate(PortNo, PortNo, NonZeroU32),
    /// An MTU is below the minimum.
    #[error("an MTU of {1} bytes for port {0} is too small; the minimum is {MTU_BYTES_MIN}")]
    Mtu(PortNo, usize),
}

impl StatelessConfig {
    /// Checks that the configuration is valid.
    ///
    /// # Errors
    /// Returns the first violation found.
    pub fn check(&self) -> Result<(), StatelessError> {
        self.types.check()?;
        ports("trusted", self.trusted.iter())?;
        ports("mtu", self.mtu_bytes.keys())?;
        if let Some((port, mtu)) = self.mtu_bytes.iter().find(|(_, mtu)| **mtu < MTU_BYTES_MIN) {
            return Err(StatelessError::Mtu(*port, *mtu));
        }
        self.banks.iter().flatten().chain(&self.polka).try_for_each(Bank::check)?;
        self.gates.as_ref().map_or(Ok(()), Gates::check)
    }
}

impl TagTypes {
    fn check(&self) -> Result<(), StatelessError> {
        let all = [self.keyflow, self.polka, self.tf, self.tf_wide];
        for (at, one) in all.into_iter().enumerate() {
            if one < ETHERTYPE_MIN {
                return Err(StatelessError::Type(one, "is a length"));
            }
            if TAKEN.contains(&one) {
                return Err(StatelessError::Type(one, "belongs to another protocol"));
            }
            if all[..at].contains(&one) {
                return Err(StatelessError::Type(one, "is given twice"));
            }
        }
        Ok(())
    }
}

impl Bank {
    fn check(&self) -> Result<(), StatelessError> {
        if let Some((label, _)) = self.labels.range(Limits::LABEL_MAX + 1..).next() {
            return Err(StatelessError::Label(*label));
        }
        if let Some((label, _)) = self.labels.range(self.id.residues()..).next() {
            return Err(StatelessError::LabelBeyondId(*label, self.id.modulus()));
        }
        let labelled = self.labels.values().filter_map(|label| match label {
            Label::Port(port) => Some(port),
            Label::Tables => None,
        });
        labelled.chain(self.backups.values()).try_for_each(port)?;
        ports("backups", self.backups.keys())
    }
}

impl Gates {
    fn check(&self) -> Result<(), StatelessError> {
        ports("gates", self.ports.keys())?;
        let mut by_gate: BTreeMap<NonZeroU32, PortNo> = BTreeMap::new();
        for (port, gate) in &self.ports {
            if let Some(other) = by_gate.insert(gate.number, *port) {
                return Err(StatelessError::SameGate(other, *port, gate.number));
            }
        }
        Ok(())
    }
}

fn port(number: &PortNo) -> Result<(), StatelessError> {
    if port_no::is_real(*number) { Ok(()) } else { Err(StatelessError::Port(*number)) }
}

fn ports<'a>(
    what: &'static str,
    numbers: impl ExactSizeIterator<Item = &'a PortNo>,
) -> Result<(), StatelessError> {
    if numbers.len() > Limits::PORTS {
        return Err(StatelessError::TooManyPorts(what, numbers.len()));
    }
    numbers.into_iter().try_for_each(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stateless::{Arithmetic, Gate, GateFlag, NodeId};

    fn bank(id: u32, labels: &[(u32, Label)]) -> StatelessConfig {
        let id = NodeId::new(Arithmetic::Integer, id).unwrap();
        let bank = Bank { id, labels: labels.iter().copied().collect(), backups: BTreeMap::new() };
        StatelessConfig { banks: [None, Some(bank)], ..StatelessConfig::default() }
    }

    #[test]
    fn invalid_configurations_are_refused_with_the_reason() {
        use StatelessError as E;
        let types = |types| StatelessConfig { types, ..StatelessConfig::default() }.check();
        let ours = TagTypes::default();
        assert_eq!(types(ours), Ok(()));
        assert_eq!(types(TagTypes { tf: 0x5ff, ..ours }), Err(E::Type(0x5ff, "is a length")));
        let taken = Err(E::Type(0x86dd, "belongs to another protocol"));
        assert_eq!(types(TagTypes { polka: 0x86dd, ..ours }), taken);
        let twice = Err(E::Type(ours.tf, "is given twice"));
        assert_eq!(types(TagTypes { tf_wide: ours.tf, ..ours }), twice);

        assert_eq!(bank(5, &[(4, Label::Tables), (0, Label::Port(PortNo(1)))]).check(), Ok(()));
        assert_eq!(bank(5, &[(5, Label::Tables)]).check(), Err(E::LabelBeyondId(5, 5)));
        assert_eq!(bank(u32::MAX, &[(65_536, Label::Tables)]).check(), Err(E::Label(65_536)));
        assert_eq!(bank(5, &[(1, Label::Port(PortNo(0)))]).check(), Err(E::Port(PortNo(0))));
        let mut backed = bank(5, &[]);
        backed.banks[1].as_mut().unwrap().backups.insert(PortNo(1), port_no::ALL);
        assert_eq!(backed.check(), Err(E::Port(port_no::ALL)));

        let mtu =
            StatelessConfig { mtu_bytes: BTreeMap::from([(PortNo(3), 67)]), ..StatelessConfig::default() };
        assert_eq!(mtu.check(), Err(E::Mtu(PortNo(3), 67)));
        let many =
            StatelessConfig { trusted: (1..=1_025).map(PortNo).collect(), ..StatelessConfig::default() };
        assert_eq!(many.check(), Err(E::TooManyPorts("trusted", 1_025)));
        let number = NonZeroU32::new(4).unwrap();
        let gate = Gate { number, flag: GateFlag::None };
        let gates =
            Gates { ports: BTreeMap::from([(PortNo(1), gate), (PortNo(2), gate)]), ..Gates::default() };
        let same = StatelessConfig { gates: Some(gates), ..StatelessConfig::default() };
        assert_eq!(same.check(), Err(E::SameGate(PortNo(1), PortNo(2), number)));
    }

    #[test]
    fn residues_are_counted() {
        let residues = |arithmetic, modulus| NodeId::new(arithmetic, modulus).unwrap().residues();
        assert_eq!(residues(Arithmetic::Integer, 5), 5);
        assert_eq!(residues(Arithmetic::Polynomial, 0x1_002d), 0x1_0000);
        assert_eq!(residues(Arithmetic::Polynomial, 3), 2);
    }
}
