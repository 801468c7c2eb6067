// SPDX-License-Identifier: Apache-2.0
//! Random settings of ports for NORMAL: VLANs, storm limits and limits of learned addresses.

use super::Style;
use fastrand::Rng;
use flow::Nanos;
use flow::bridge::{BridgeConfig, BridgePort, PortVlans, StormLimit, StormLimits, TrunkVlans};

/// Times for which limits close a port. A case lasts about 20 s.
const SHUT: [Nanos; 3] = [Nanos(100_000_000), Nanos(600_000_000), Nanos(3_000_000_000)];

/// VLAN IDs are below this number, like those of the packets.
const VIDS: u16 = 4;

impl Style {
    /// Returns settings for NORMAL. Some ports, and at times all ports, have none. Storm limits need enough
    /// frames (`has_frames`): the worker does not flood from a group's bucket for which it has no frame.
    pub fn bridge(&self, rng: &mut Rng, has_frames: bool) -> BridgeConfig {
        let mut bridge = BridgeConfig::default();
        if rng.u8(0..6) == 0 {
            return bridge;
        }
        for number in self.port_numbers() {
            if rng.u8(0..4) != 0 {
                let vlans = vlans(rng);
                let storm = if has_frames && rng.u8(0..4) != 0 { storm(rng) } else { StormLimits::default() };
                let mac_limit = (rng.u8(0..4) == 0).then(|| rng.u32(1..4));
                bridge.ports.insert(number, BridgePort { vlans, storm, mac_limit });
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

/// Returns limits close to the rates of a case's flows. Some limits close their port.
fn storm(rng: &mut Rng) -> StormLimits {
    let mut limit = || {
        let rate = [1, 2, 8, 32][rng.usize(0..4)];
        (rng.u8(0..3) != 0).then(|| StormLimit { rate, burst: rng.u32(1..4) })
    };
    let [broadcast, multicast, unknown_unicast] = [limit(), limit(), limit()];
    let shut = rng.bool().then(|| SHUT[rng.usize(0..SHUT.len())]);
    StormLimits { broadcast, multicast, unknown_unicast, shut }
}
