// SPDX-License-Identifier: Apache-2.0
//! Meters: rate limits of flows, consisting of bands.

use crate::MeterId;
/// Treatment of packets above a band's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Band {
    /// Drop the packets.
    Drop,
    /// Raise the drop precedence in the packets' DSCP.
    DscpRemark {
        /// Number of levels by which the drop precedence is raised.
        precedence_level: u8,
    },
}

/// Band of a meter: a rate, and what happens to packets above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeterBand {
    /// Treatment of packets above the rate.
    pub band: Band,
    /// Lowest rate at which the band applies, in the meter's unit: kbit/s or packets/s.
    pub rate: u32,
    /// Burst size in kbit or packets.
    pub burst: u32,
}

/// Meter with its bands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Meter number.
    pub id: MeterId,
    /// Unit of the rates: packets/s if true, else kbit/s.
    pub packets: bool,
    /// Whether statistics are kept.
    pub stats: bool,
    /// Whether the bands' `burst` fields are valid.
    pub burst: bool,
    /// Rate bands of the meter.
    pub bands: Vec<MeterBand>,
}

impl Meter {
    /// Returns whether any band remarks packets.
    #[must_use]
    pub fn remarks(&self) -> bool {
        self.bands.iter().any(|band| matches!(band.band, Band::DscpRemark { .. }))
    }
}
