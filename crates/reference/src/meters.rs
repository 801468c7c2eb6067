// SPDX-License-Identifier: Apache-2.0
//! Meters: what a band does with a packet, and when a packet exceeds a band. Each band owes the time that its packets cost,
//! and pays it back as time passes.

use crate::packet::Packet;
use crate::set_field::set_field;
use flow::action::SetField;
use flow::meter::{Band, Meter, MeterBand};
use flow::{DropReason, Field, Nanos};

/// What a band owes at most where its burst is not given.
const USUAL_NS: u128 = 100_000_000;

const SECOND_NS: u128 = 1_000_000_000;

/// Packets and bytes.
type Count = (u64, u64);

/// A meter and what its bands owe.
#[derive(Clone, Debug)]
pub struct MeterState {
    meter: Meter,
    total: Count,
    /// By band, in the order in which the meter lists them.
    debts_ns: Vec<u128>,
    counts: Vec<Count>,
    /// When a packet was charged last.
    charged_ns: Nanos,
}

impl MeterState {
    /// A meter that owes nothing.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let bands = meter.bands.len();
        Self {
            meter: meter.clone(),
            total: (0, 0),
            debts_ns: vec![0; bands],
            counts: vec![(0, 0); bands],
            charged_ns: 0,
        }
    }

    /// Charges a packet of so many bytes; returns the band that applies, if the packet exceeds one.
    pub fn charge(&mut self, bytes: usize, now: Nanos) -> Option<Band> {
        let passed = u128::from(now.saturating_sub(self.charged_ns));
        self.charged_ns = self.charged_ns.max(now);
        count(&mut self.total, bytes);
        let mut applies: Option<usize> = None;
        for (at, (band, debt_ns)) in self.meter.bands.iter().zip(&mut self.debts_ns).enumerate() {
            *debt_ns = debt_ns.saturating_sub(passed);
            let (cost_ns, most_ns) = cost(&self.meter, band, bytes);
            if *debt_ns + cost_ns <= most_ns {
                *debt_ns += cost_ns;
            } else if applies.is_none_or(|other| self.meter.bands[other].rate < band.rate) {
                applies = Some(at);
            }
        }
        let at = applies?;
        count(&mut self.counts[at], bytes);
        Some(self.meter.bands[at].band)
    }

    /// Packets and bytes that reached the meter.
    #[must_use]
    pub fn total(&self) -> (u64, u64) {
        self.total
    }

    /// Packets and bytes that each band was applied to, in the order in which the meter lists them.
    #[must_use]
    pub fn bands(&self) -> &[(u64, u64)] {
        &self.counts
    }
}

fn count(sum: &mut Count, bytes: usize) {
    *sum = (sum.0 + 1, sum.1 + bytes as u64);
}

/// What a packet costs in a band, and what the band may owe with it, in ns.
fn cost(meter: &Meter, band: &MeterBand, bytes: usize) -> (u128, u128) {
    let rate = u128::from(band.rate.max(1));
    let unit_ns = SECOND_NS / rate;
    // A kilobit of a second's 1,000,000,000 ns at 1 kbit/s: a bit costs a thousandth of it.
    let cost_ns = if meter.packets { unit_ns } else { bytes as u128 * 8 * (SECOND_NS / 1_000) / rate };
    let burst_ns = if band.burst == 0 { USUAL_NS } else { u128::from(band.burst) * unit_ns };
    (cost_ns, burst_ns.max(cost_ns))
}

/// Raises the drop precedence of an assured forwarding class (RFC 2597). Other packets stay as they are.
pub(crate) fn remark(packet: &mut Packet, steps: u8) -> Result<(), DropReason> {
    let Some(ip) = packet.headers.ip else { return Ok(()) };
    let dscp = ip.tos / 4;
    // AFxy is 8x + 2y, with classes 1 to 4 and drop precedences 1 to 3.
    let (class, precedence) = (dscp / 8, dscp % 8 / 2);
    if dscp % 2 != 0 || !(1..=4).contains(&class) || precedence == 0 {
        return Ok(());
    }
    let raised = 8 * class + 2 * (precedence + steps).min(3);
    set_field(
        packet,
        &SetField { field: Field::IpDscp, value: raised.into(), mask: Field::IpDscp.full_mask() },
    )
}
