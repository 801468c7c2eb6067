// SPDX-License-Identifier: Apache-2.0
//! Random stateless configurations that cover the wire format.

use super::some;
use flow::stateless::{
    Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessChange, StatelessConfig,
    StatelessSection, TagTypes,
};
use flow::{PortNo, port_no};
use openflow::stateless::StatelessReply;
use std::num::NonZeroU32;

type Rng = fastrand::Rng;

/// Returns a port number, usually that of a real port.
fn port(rng: &mut Rng) -> PortNo {
    PortNo(if rng.u8(..8) == 0 { rng.u32(..port_no::TABLE.0) } else { rng.u32(1..=1_024) })
}

fn bank(rng: &mut Rng) -> Option<Bank> {
    let arithmetic = if rng.bool() { Arithmetic::Integer } else { Arithmetic::Polynomial };
    let modulus = rng.u32(2..) >> rng.u32(..30);
    let label = |rng: &mut Rng| {
        let target = if rng.u8(..4) == 0 { Label::Tables } else { Label::Port(port(rng)) };
        (rng.u32(..) >> rng.u32(..32), target)
    };
    let present = rng.u8(..4) != 0;
    present.then(|| Bank {
        id: NodeId::new(arithmetic, modulus.max(2)).unwrap(),
        labels: some(rng, label).into_iter().collect(),
        backups: some(rng, |rng| (port(rng), port(rng))).into_iter().collect(),
    })
}

fn gates(rng: &mut Rng) -> Option<Gates> {
    use GateFlag as F;
    let gate = |rng: &mut Rng| {
        let flag = [F::None, F::Server, F::External, F::Assists][rng.usize(..4)];
        (port(rng), Gate { number: NonZeroU32::new(rng.u32(1..)).unwrap(), flag })
    };
    let present = rng.u8(..4) != 0;
    present.then(|| Gates {
        down_d: rng.u32(..),
        up_d: rng.u32(..),
        external_d: rng.u32(..),
        server_gate_max: rng.u32(..),
        ports: some(rng, gate).into_iter().collect(),
    })
}

fn sections(rng: &mut Rng) -> Vec<StatelessSection> {
    let types = TagTypes { keyflow: rng.u16(..), polka: rng.u16(..), tf: rng.u16(..), tf_wide: rng.u16(..) };
    let stateless_config = StatelessConfig {
        types: if rng.bool() { TagTypes::default() } else { types },
        trusted: some(rng, port).into_iter().collect(),
        mtu_bytes: some(rng, |rng| (port(rng), rng.u32(..) as usize)).into_iter().collect(),
        banks: [bank(rng), bank(rng)],
        polka: bank(rng),
        gates: gates(rng),
    };
    let mut sections = stateless_config.sections();
    rng.shuffle(&mut sections);
    sections.truncate(rng.usize(..=7));
    sections
}

pub fn stateless_change(rng: &mut Rng) -> StatelessChange {
    if rng.u8(..8) == 0 { StatelessChange::Off } else { StatelessChange::Set(sections(rng)) }
}

pub fn stateless_reply(rng: &mut Rng) -> StatelessReply {
    let sections = (rng.u8(..8) != 0).then(|| sections(rng));
    StatelessReply { more: rng.bool(), sections }
}
