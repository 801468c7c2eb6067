// SPDX-License-Identifier: Apache-2.0
//! Random settings of ports for NORMAL.

use super::Style;
use fastrand::Rng;
use flow::bridge::{BridgeConfig, BridgePort, PortVlans, TrunkVlans};

/// VLAN IDs are below this number, like those of the packets.
const VIDS: u16 = 4;

impl Style {
    /// Returns settings for NORMAL. Some ports, and at times all ports, have none.
    pub fn bridge(&self, rng: &mut Rng) -> BridgeConfig {
        let mut bridge = BridgeConfig::default();
        if rng.u8(0..6) == 0 {
            return bridge;
        }
        for number in self.port_numbers() {
            if rng.u8(0..4) != 0 {
                bridge.ports.insert(number, BridgePort { vlans: vlans(rng), ..BridgePort::default() });
            }
        }
        bridge
    }
}

fn vlans(rng: &mut Rng) -> PortVlans {
    let trunks = if rng.bool() {
        TrunkVlans::All
    } else {
        TrunkVlans::Only((0..VIDS).filter(|_| rng.u8(0..3) != 0).collect())
    };
    let native = rng.u16(0..VIDS);
    match rng.u8(0..4) {
        0 => PortVlans::Access(native),
        1 => PortVlans::Trunk(trunks),
        2 => PortVlans::NativeTagged { native, trunks },
        _ => PortVlans::NativeUntagged { native, trunks },
    }
}
