// SPDX-License-Identifier: Apache-2.0
//! Random stateless configurations.

use super::Style;
use fastrand::Rng;
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessConfig};

impl Style {
    /// Returns a stateless configuration, or `None` for a case without one.
    pub fn stateless(&self, rng: &mut Rng) -> Option<StatelessConfig> {
        if self.calm || rng.bool() {
            return None;
        }
        let port = |rng: &mut Rng| self.any_port(rng);
        let bank = |rng: &mut Rng| {
            let arithmetic = if rng.bool() { Arithmetic::Integer } else { Arithmetic::Polynomial };
            let id = NodeId::new(arithmetic, rng.u32(2..8)).filter(|_| rng.u8(0..4) != 0)?;
            let label = |rng: &mut Rng| match rng.u8(0..8) {
                0 | 1 => Some(Label::Tables),
                2 => None,
                _ => Some(Label::Port(port(rng))),
            };
            let labels = (0..id.residues()).filter_map(|number| Some((number, label(rng)?))).collect();
            let backups = (0..rng.usize(0..3)).map(|_| (port(rng), port(rng))).collect();
            Some(Bank { id, labels, backups })
        };
        let (banks, polka) = ([bank(rng), bank(rng)], bank(rng));
        let flags = [GateFlag::None, GateFlag::Server, GateFlag::External, GateFlag::Assists];
        let gates = self.port_numbers().zip((1..).filter_map(std::num::NonZeroU32::new));
        let ports =
            gates.map(|(port, number)| (port, Gate { number, flag: flags[rng.usize(0..4)] })).collect();
        let [down_d, up_d, external_d, server_gate_max] = std::array::from_fn(|_| rng.u32(0..4));
        let gates = Gates { down_d, up_d, external_d, server_gate_max, ports };
        Some(StatelessConfig {
            trusted: self.port_numbers().filter(|_| rng.u8(0..4) != 0).collect(),
            mtu_bytes: (0..rng.usize(0..2)).map(|_| (port(rng), rng.usize(68..160))).collect(),
            banks,
            polka,
            gates: (rng.u8(0..4) != 0).then_some(gates),
            ..StatelessConfig::default()
        })
    }
}
