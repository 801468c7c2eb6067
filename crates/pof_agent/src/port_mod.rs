// SPDX-License-Identifier: Apache-2.0
//! PORT_MOD. As in public switches, only `of_enable` has an effect.

use crate::refusal::PofRefusal;
use crate::slot;
use crate::work::{Asked, Then};
use dataplane::DataPlane;
use flow::PortNo;
use model::agent::Context;
use model::{Change, ModelError, PortConfig, PortMod};
use pof::PofDialect;
use pof::message::port::{PofForwarding, PofPortStatus};

/// Checks a PORT_MOD and returns its changes.
pub fn port_mod<D: DataPlane>(
    m: &PofPortStatus,
    dialect: PofDialect,
    context: &mut Context<'_, D>,
) -> Result<Asked, PofRefusal> {
    if dialect != PofDialect::V1_2 {
        slot::check(m.port.slot)?;
    }
    let number = PortNo(m.port.number);
    let port = context.model.port(number).ok_or(ModelError::NoSuchPort(number))?;
    let disabled = m.port.forwarding == PofForwarding::Disabled;
    let both = |on| PortConfig { no_recv: on, no_fwd: on, ..PortConfig::default() };
    let (config, mask) = (both(disabled), both(true));
    let change = PortMod { number, mac: port.desc.mac, config, mask, advertise: 0 };
    Ok((vec![Change::Port(change)], Then::Nothing))
}
