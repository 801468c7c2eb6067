// SPDX-License-Identifier: Apache-2.0
//! Random meters.

use super::Style;
use fastrand::Rng;
use flow::MeterId;
use flow::meter::{Band, Meter, MeterBand};

impl Style {
    /// Returns a meter with this number, whose rates are close to those of the case's flows.
    pub fn meter(&self, rng: &mut Rng, id: MeterId) -> Meter {
        let packets = rng.bool();
        let rates: [u32; 6] = if packets {
            [20, 100, 500, 2_000, 10_000, 100_000]
        } else {
            [100, 400, 2_000, 10_000, 100_000, 1_000_000]
        };
        // After a remarking meter, packets that continue leave the fast-forwarding path.
        let remarks = rng.u8(0..4) == 0;
        let band = |rng: &mut Rng| MeterBand {
            band: if remarks && rng.bool() {
                Band::DscpRemark { precedence_level: rng.u8(1..3) }
            } else {
                Band::Drop
            },
            rate: rates[rng.usize(0..rates.len())],
            burst: if rng.bool() { 0 } else { rng.u32(1..20) },
        };
        Meter {
            id,
            packets,
            stats: rng.bool(),
            burst: rng.bool(),
            bands: (0..rng.usize(0..4)).map(|_| band(rng)).collect(),
        }
    }
}
