// SPDX-License-Identifier: Apache-2.0
//! Scenario `vehicles`: WAVE short messages by slices, then hosts by destination MAC address.

use std::collections::HashSet;

use fastrand::Rng;

use super::rule::{Condition, Field, Rule};
use super::{DESTINATION, Options, Recipe, WSM_ETHERTYPE, ethernet, routes};

const MAC: usize = 0;
const VERSION: usize = 1;
/// The 32 bits after the version: a PSID of 1 to 4 bytes and the bytes that follow it.
const PSID: usize = 2;
/// Channel number, at its position after a PSID of 4 bytes.
const CHANNEL: usize = 3;

/// WSM version of IEEE 1609.3-2010.
const WSM_VERSION: u128 = 2;
/// First bits of P-encoded PSIDs of 2, 3 and 4 bytes.
const PSID_2: u32 = 0x8000_0000;
const PSID_3: u32 = 0xc000_0000;
const PSID_4: u32 = 0xe000_0000;

pub(super) fn recipe(options: &Options) -> Recipe {
    let fields = vec![
        DESTINATION,
        Field::number("slice(packet,112,8)", 8),
        Field::number("slice(packet,120,32)", 32),
        Field::number("slice(packet,168,8)", 8),
    ];
    Recipe {
        ether_type: (WSM_ETHERTYPE, "slice(packet,96,16)"),
        headers: ["", ""],
        list: list(options),
        fib: routes::by_host(options.rules, MAC, fields[MAC]),
        fields,
        draw,
        build,
    }
}

/// Returns the WSM table. An entry matches one service (a PSID) or a provider (16 consecutive PSIDs). Some
/// entries match only one channel.
fn list(options: &Options) -> Vec<Rule> {
    let mut rng = Rng::with_seed(options.seed ^ 0x3609);
    let mut seen = HashSet::new();
    let mut made: Vec<(u32, Rule)> = Vec::new();
    while made.len() < options.rules {
        let mut conditions = vec![Condition { field: VERSION, value: WSM_VERSION, mask: 0xff }];
        let (value, mask, on_channel) = match rng.u32(..20) {
            0..10 => (PSID_4 | rng.u32(..) >> 4, u32::MAX, true),
            10..14 => (PSID_4 | rng.u32(..) >> 4, u32::MAX, false),
            14..16 => (PSID_4 | rng.u32(..) >> 4, !0xf, true),
            16..19 => (PSID_3 | rng.u32(..) >> 3, 0xffff_ff00, false),
            _ => (PSID_2 | rng.u32(..) >> 2, 0xffff_0000, false),
        };
        conditions.push(Condition { field: PSID, value: (value & mask).into(), mask: mask.into() });
        if on_channel {
            conditions.push(Condition { field: CHANNEL, value: channel(&mut rng), mask: 0xff });
        }
        if seen.insert(conditions.clone()) {
            let depth = conditions.iter().map(|c| c.mask.count_ones()).sum();
            made.push((depth, Rule { conditions, priority: 0, low_latency: true, leaves: None }));
        }
    }
    made.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    made.into_iter().map(|(_, rule)| rule).collect()
}

/// Returns one of the seven channels of 10 MHz.
fn channel(rng: &mut Rng) -> u128 {
    172 + 2 * rng.u128(..7)
}

fn draw(rng: &mut Rng, values: &mut [u128]) {
    values[VERSION] = WSM_VERSION;
    values[PSID] = (PSID_4 | rng.u32(..) >> 4).into();
    values[CHANNEL] = channel(rng);
}

fn build(values: &mut [u128], bytes: usize) -> Option<Vec<u8>> {
    let mut packet = ethernet(values[MAC], WSM_ETHERTYPE);
    packet.push(values[VERSION] as u8);
    let psid = (values[PSID] as u32).to_be_bytes();
    packet.extend(
        &psid[..match psid[0] {
            0..0x80 => 1,
            0x80..0xc0 => 2,
            0xc0..0xe0 => 3,
            _ => 4,
        }],
    );
    // The packet contains the channel number, the data rate in units of 500 kbit/s, and the transmit power in
    // dBm.
    packet.extend([15, 1, values[CHANNEL] as u8, 16, 1, 12, 4, 1, 20]);
    let data = bytes.saturating_sub(packet.len() + 3);
    packet.push(0x80);
    packet.extend((data as u16).to_be_bytes());
    packet.resize(packet.len() + data, 0x5a);
    // After a shorter PSID, these positions contain other data.
    values[PSID] = u32::from_be_bytes([packet[15], packet[16], packet[17], packet[18]]).into();
    values[CHANNEL] = packet[21].into();
    Some(packet)
}
