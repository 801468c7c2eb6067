// SPDX-License-Identifier: Apache-2.0
//! Meters. Each band is a leaky bucket with a debt in nanoseconds: packets add their cost to the debt, and
//! passing time reduces it.

use crate::packet::ReferencePacket;
use crate::set_field::set_field;
use flow::action::SetField;
use flow::meter::{Band, Meter, MeterBand};
use flow::{DropReason, Field, Nanos};

/// Maximum debt of a band without a burst size: 100 ms.
const USUAL_NS: u128 = 100_000_000;

const SECOND_NS: u128 = 1_000_000_000;

/// Packets and bytes.
type Count = (u64, u64);

/// A meter, with the debts of its bands.
#[derive(Clone, Debug)]
pub struct MeterDebts {
    meter: Meter,
    total: Count,
    /// Debt of each band in nanoseconds, in the meter's order.
    debts_ns: Vec<u128>,
    counts: Vec<Count>,
    /// Time of the last charged packet.
    charged_ns: Nanos,
}

impl MeterDebts {
    /// Creates a meter without debts.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let bands = meter.bands.len();
        Self {
            meter: meter.clone(),
            total: (0, 0),
            debts_ns: vec![0; bands],
            counts: vec![(0, 0); bands],
            charged_ns: Nanos(0),
        }
    }

    /// Charges a packet of `bytes` bytes. Returns the band that applies if the packet exceeds a band.
    pub fn charge(&mut self, bytes: usize, now: Nanos) -> Option<Band> {
        let passed = u128::from(now.saturating_sub(self.charged_ns).0);
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

    /// Returns the numbers of packets and bytes that reached the meter.
    #[must_use]
    pub fn total(&self) -> (u64, u64) {
        self.total
    }

    /// Returns, in the meter's order, the numbers of packets and bytes to which each band was applied.
    #[must_use]
    pub fn bands(&self) -> &[(u64, u64)] {
        &self.counts
    }
}

fn count(sum: &mut Count, bytes: usize) {
    *sum = (sum.0 + 1, sum.1 + bytes as u64);
}

/// Returns the cost of a packet in a band, and the maximum debt of the band, in nanoseconds.
fn cost(meter: &Meter, band: &MeterBand, bytes: usize) -> (u128, u128) {
    let rate = u128::from(band.rate.max(1));
    let unit_ns = SECOND_NS / rate;
    // At 1 kbit/s, 1,000 bits cost one second, so a bit costs 10^6 ns.
    let cost_ns = if meter.packets { unit_ns } else { bytes as u128 * 8 * (SECOND_NS / 1_000) / rate };
    let burst_ns = if band.burst == 0 { USUAL_NS } else { u128::from(band.burst) * unit_ns };
    (cost_ns, burst_ns.max(cost_ns))
}

/// Raises the drop precedence of an assured forwarding class (RFC 2597). Other packets are unchanged.
pub(crate) fn remark(packet: &mut ReferencePacket, steps: u8) -> Result<(), DropReason> {
    let Some(ip) = packet.headers.ip else { return Ok(()) };
    let dscp = ip.tos / 4;
    // The DSCP of AFxy is 8x + 2y, with classes 1 to 4 and drop precedences 1 to 3.
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
