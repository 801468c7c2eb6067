// SPDX-License-Identifier: Apache-2.0
//! PORT_MOD.

use super::{Context, Refusal};
use crate::data_plane::DataPlane;
use openflow::error;
use openflow::port::{PortMod, config};

pub fn port_mod<D: DataPlane>(context: &mut Context<'_, D>, m: &PortMod) -> Result<(), Refusal> {
    let number = m.port;
    let Some(port) = context.model.port(number) else {
        return Err(Refusal::new(error::PORT_MOD_BAD_PORT, format!("port {number} does not exist")));
    };
    if port.desc.mac != m.mac {
        return Err(Refusal::new(
            error::PORT_MOD_BAD_HW_ADDR,
            format!("port {number} has another MAC address than the one given"),
        ));
    }
    if m.mask & !config::ALL != 0 {
        return Err(Refusal::new(
            error::PORT_MOD_BAD_CONFIG,
            format!("configuration bits {:#x} are not OpenFlow 1.3's", m.mask & !config::ALL),
        ));
    }
    if m.advertise != 0 && m.advertise != port.desc.advertised {
        return Err(Refusal::new(
            error::PORT_MOD_BAD_ADVERTISE,
            format!("what port {number} advertises can not be changed; use 0"),
        ));
    }
    let mut set = port.config;
    let bits = [
        (&mut set.down, config::PORT_DOWN),
        (&mut set.no_recv, config::NO_RECV),
        (&mut set.no_fwd, config::NO_FWD),
        (&mut set.no_packet_in, config::NO_PACKET_IN),
    ];
    for (on, bit) in bits {
        if m.mask & bit != 0 {
            *on = m.config & bit != 0;
        }
    }
    context.model.set_port_config(context.now, number, set)?;
    Ok(())
}
