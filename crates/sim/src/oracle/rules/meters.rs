// SPDX-License-Identifier: Apache-2.0
//! Random meters.

use super::Style;
use fastrand::Rng;
use flow::meter::{Band, Meter, MeterBand};

/// Whether the judge follows meters. Until it does, no rate is ever exceeded.
const JUDGED: bool = false;

impl Style {
    /// A meter of this number. Its rates are about those of a case's flows.
    pub fn meter(&self, rng: &mut Rng, id: u32) -> Meter {
        let packets = rng.bool() || !JUDGED;
        let rates: [u32; 6] = if packets { [1, 2, 5, 10, 50, 1_000] } else { [1, 4, 10, 40, 100, 10_000] };
        let band = |rng: &mut Rng| MeterBand {
            band: if rng.bool() { Band::Drop } else { Band::DscpRemark { precedence_level: rng.u8(1..3) } },
            rate: if JUDGED { rates[rng.usize(0..rates.len())] } else { u32::MAX },
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
