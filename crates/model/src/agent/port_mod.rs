// SPDX-License-Identifier: Apache-2.0
//! Conversion of PORT_MOD messages to changes of the model.

use super::context::Refusal;
use crate::changes::{Change, PortMod};
use crate::port::PortConfig;
use openflow::error;
use openflow::port::{PortModMessage, config};

pub fn change(m: &PortModMessage) -> Result<Change, Refusal> {
    if m.mask & !config::ALL != 0 {
        return Err(Refusal::new(
            error::PORT_MOD_BAD_CONFIG,
            format!("configuration bits {:#x} are not defined in OpenFlow 1.3", m.mask & !config::ALL),
        ));
    }
    Ok(Change::Port(PortMod {
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

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    #[test]
    fn each_bit_sets_its_own_setting() {
        let none = PortConfig::default();
        for (bits, expected) in [
            (0, none),
            (1, PortConfig { down: true, ..none }),
            (1 << 2, PortConfig { no_recv: true, ..none }),
            (1 << 5, PortConfig { no_fwd: true, ..none }),
            (1 << 6, PortConfig { no_packet_in: true, ..none }),
        ] {
            let asked = PortModMessage {
                port: PortNo(7),
                mac: [1; 6],
                config: bits,
                mask: config::ALL,
                advertise: 9,
            };
            let Ok(Change::Port(change)) = change(&asked) else { panic!("{bits:#x} is refused") };
            let all =
                PortConfig { down: true, no_recv: true, no_fwd: true, no_flood: false, no_packet_in: true };
            let (number, mac, advertise) = (PortNo(7), [1; 6], 9);
            assert_eq!(change, PortMod { number, mac, config: expected, mask: all, advertise });
        }
    }

    #[test]
    fn undefined_bits_are_refused_if_the_mask_contains_them() {
        for bit in 0..32 {
            let asked =
                PortModMessage { port: PortNo(7), mac: [1; 6], config: 0, mask: 1 << bit, advertise: 0 };
            assert_eq!(change(&asked).is_ok(), [0, 2, 5, 6].contains(&bit), "bit {bit}");
            let not_asked = PortModMessage { config: 1 << bit, mask: 0, ..asked };
            assert!(change(&not_asked).is_ok(), "bit {bit} is not in the mask");
        }
    }
}
