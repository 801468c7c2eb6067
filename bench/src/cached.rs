// SPDX-License-Identifier: Apache-2.0
//! Caches in front of a worker's tables, which the benchmarks of the scenarios measure separately.

use clap::ValueEnum;

/// Number of records of each LUT, enough for all flows of the scenarios.
pub const LUT_ENTRIES: usize = 16_384;

/// Number of path records of a worker, enough for all flows of the scenarios.
pub const EXPRESS_RECORDS: usize = 16_384;

/// Value of the option `--express`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExpressOption {
    /// Measure with path records.
    On,
    /// Measure without path records.
    Off,
}

impl ExpressOption {
    /// Returns the value as it is written on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// Mechanism that finds the entries of low-latency packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// The tables.
    Tables,
    /// The LUTs of the fast-forwarding path alone.
    Ffp,
    /// The records of the express path alone.
    Express,
}

impl Cached {
    /// Returns the caches to measure: the one that the option selects, or both if there is no option.
    #[must_use]
    pub fn selected(option: Option<ExpressOption>) -> &'static [Self] {
        match option {
            None => &[Self::Ffp, Self::Express],
            Some(ExpressOption::Off) => &[Self::Ffp],
            Some(ExpressOption::On) => &[Self::Express],
        }
    }

    /// Returns the words that describe this mechanism in the names of figures.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Tables => "through the tables",
            Self::Ffp => "over the path",
            Self::Express => "by path records",
        }
    }

    /// Returns the number of records of each LUT.
    #[must_use]
    pub fn lut_entries(self) -> usize {
        if self == Self::Ffp { LUT_ENTRIES } else { 0 }
    }

    /// Returns the number of path records.
    #[must_use]
    pub fn express_records(self) -> usize {
        if self == Self::Express { EXPRESS_RECORDS } else { 0 }
    }
}
