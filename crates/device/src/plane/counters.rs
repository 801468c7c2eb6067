// SPDX-License-Identifier: Apache-2.0
//! Counters of the device by name, from its last Stats_reply.

use std::collections::BTreeMap;

use dataplane::{DropCounts, PortCounters, Totals};
use flow::{DropReason, PortNo};

use crate::register::{CHANNEL_COUNTERS, CONTROL_COUNTERS, COUNTERS, SHELL_COUNTERS};

/// Number of counters before the counters of the channels.
const COMMON: usize = COUNTERS.len() + SHELL_COUNTERS.len() + CONTROL_COUNTERS.len();

/// Counters in the order of a Stats_reply. Counters that it did not contain are 0.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceCounters {
    last: Vec<u64>,
    /// Counts before the last reset of the device.
    before: Vec<u64>,
}

impl DeviceCounters {
    /// Takes the counters of a Stats_reply. A counter that has fallen counts from 0 since a reset.
    pub fn update(&mut self, counters: Vec<u64>) {
        self.before.resize(self.before.len().max(counters.len()), 0);
        for ((before, last), new) in self.before.iter_mut().zip(&self.last).zip(&counters) {
            if new < last {
                *before += last;
            }
        }
        self.last = counters;
    }

    fn at(&self, index: usize) -> u64 {
        let of = |counters: &[u64]| counters.get(index).copied().unwrap_or(0);
        of(&self.last) + of(&self.before)
    }

    /// Returns the counters of data plane, shell and control path.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = COUNTERS.iter().chain(&SHELL_COUNTERS).chain(&CONTROL_COUNTERS);
        names.enumerate().map(|(index, (name, _))| (*name, self.at(index)))
    }

    fn of(&self, name: &str) -> u64 {
        self.by_name().find(|(counter, _)| *counter == name).map_or(0, |(_, count)| count)
    }

    /// Returns the counters of a port. Port n is channel n - 1.
    pub fn of_port(&self, port: PortNo) -> PortCounters {
        let Some(channel) = (port.0 as usize).checked_sub(1) else { return PortCounters::default() };
        let of = |name: &str| {
            let index = CHANNEL_COUNTERS.iter().position(|(counter, _)| *counter == name);
            index.map_or(0, |index| self.at(COMMON + channel * CHANNEL_COUNTERS.len() + index))
        };
        PortCounters {
            rx_packets: of("rx_frames"),
            rx_bytes: of("rx_bytes"),
            rx_dropped: of("rx_dropped"),
            tx_packets: of("tx_frames"),
            tx_bytes: of("tx_bytes"),
            tx_dropped: of("tx_dropped"),
            by_name: Vec::new(),
        }
    }

    /// Returns the counters of all packets. `lost` are packets of controllers, and packets for them, that the
    /// daemon dropped.
    pub fn totals(&self, lost: &BTreeMap<DropReason, u64>) -> Totals {
        Totals {
            received: self.of("received"),
            forwarded: self.of("to_port"),
            consumed: self.of("to_controller"),
            copies: self.of("to_port"),
            dropped: DropCounts::from_fn(|reason| match reason {
                DropReason::NoOutput => self.of("discarded"),
                DropReason::MissingHeader => self.of("bad_edit"),
                DropReason::TtlExpired => self.of("ttl_expired"),
                DropReason::Runt => self.of("runt"),
                DropReason::OverMtu => self.of("bad_frame"),
                DropReason::NoBuffer => self.of("no_room"),
                _ => 0,
            }),
            copies_dropped: DropCounts::from_fn(|reason| {
                let in_device = match reason {
                    DropReason::NoSuchPort => self.of("no_channel"),
                    DropReason::PacketInFull => self.of("controller_full") + self.of("control_too_long"),
                    _ => 0,
                };
                in_device + lost.get(&reason).copied().unwrap_or(0)
            }),
            ..Totals::default()
        }
    }
}
