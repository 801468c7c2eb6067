// SPDX-License-Identifier: Apache-2.0
//! Port-mods.

use super::transaction::Transaction;
use crate::error::ModelError;
use crate::port::PortConfig;
use flow::PortNo;

/// A port-mod: a request to change a port's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortMod {
    /// Port number.
    pub number: PortNo,
    /// MAC address in the request. The port-mod is refused if the port has another address.
    pub mac: [u8; 6],
    /// Values to set.
    pub config: PortConfig,
    /// Mask of the settings to change. All other settings are kept.
    pub mask: PortConfig,
    /// Features to advertise: 0, or the features that are already advertised.
    pub advertise: u32,
}

pub(super) fn apply(transaction: &mut Transaction<'_>, m: &PortMod) -> Result<(), ModelError> {
    let port = transaction.rules().ports.get(&m.number).ok_or(ModelError::NoSuchPort(m.number))?;
    if port.desc.mac != m.mac {
        return Err(ModelError::PortMac(m.number));
    }
    if m.advertise != 0 && m.advertise != port.desc.advertised {
        return Err(ModelError::PortAdvertise(m.number));
    }
    let sets_up = m.mask.down && !m.config.down;
    transaction.change_port(m.number, |port| {
        port.config = port.config.with(m.config, m.mask);
        // A port that a storm limit has closed opens early.
        port.is_blocked &= !sets_up;
    });
    Ok(())
}
