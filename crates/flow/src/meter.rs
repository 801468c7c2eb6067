// SPDX-License-Identifier: Apache-2.0
//! Meters: rate bands.

/// What a band does with packets above its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Band {
    /// Drop them.
    Drop,
    /// Raise the drop precedence of their DSCP by this much.
    DscpRemark {
        /// Steps of drop precedence.
        precedence_level: u8,
    },
}

/// One rate of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeterBand {
    /// What it does.
    pub band: Band,
    /// From which rate on, in the meter's unit (kbit/s or packets/s).
    pub rate: u32,
    /// Burst, in kbit or packets.
    pub burst: u32,
}

/// A meter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Its number.
    pub id: u32,
    /// Rates count packets, not kilobits.
    pub packets: bool,
    /// Keep statistics.
    pub stats: bool,
    /// `burst` is given.
    pub burst: bool,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

impl Meter {
    /// Whether a band changes packets, so that packets of one flow may differ behind the meter.
    #[must_use]
    pub fn remarks(&self) -> bool {
        self.bands.iter().any(|band| matches!(band.band, Band::DscpRemark { .. }))
    }
}
