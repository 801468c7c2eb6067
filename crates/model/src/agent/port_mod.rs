// SPDX-License-Identifier: Apache-2.0
//! PORT_MOD.

use super::Refusal;
use crate::change::Change;
use crate::ports::{self, PortConfig};
use openflow::error;
use openflow::port::{PortMod, config};

pub fn change(m: &PortMod) -> Result<Change, Refusal> {
    if m.mask & !config::ALL != 0 {
        return Err(Refusal::new(
            error::PORT_MOD_BAD_CONFIG,
            format!("configuration bits {:#x} are not OpenFlow 1.3's", m.mask & !config::ALL),
        ));
    }
    Ok(Change::Port(ports::PortMod {
        number: m.port,
        mac: m.mac,
        config: settings(m.config),
        mask: settings(m.mask),
        advertise: m.advertise,
    }))
}

fn settings(bits: u32) -> PortConfig {
    PortConfig {
        down: bits & config::PORT_DOWN != 0,
        no_recv: bits & config::NO_RECV != 0,
        no_fwd: bits & config::NO_FWD != 0,
        no_flood: false,
        no_packet_in: bits & config::NO_PACKET_IN != 0,
    }
}
