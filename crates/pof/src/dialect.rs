// SPDX-License-Identifier: Apache-2.0
//! Dialects of POF. Headers and message numbers are equal, but sizes and offsets differ.

use std::fmt;
use std::str::FromStr;

/// A dialect of POF, named after the version of the public switch that speaks it. A channel's dialect is
/// configured, because nothing in the messages names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PofDialect {
    /// "1.2" of the first public switch: one slot, values of at most 64 bits.
    V1_2,
    /// "1.4.0.015": several slots, values of 128 bits, more instructions.
    V1_4,
}

impl PofDialect {
    /// All dialects. The order is that of the columns in the layout tables.
    pub const ALL: [Self; 2] = [Self::V1_2, Self::V1_4];

    /// Returns the column of the dialect in the layout tables.
    pub(crate) const fn column(self) -> usize {
        self as usize
    }

    /// Returns the name, as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_4 => "1.4.0.015",
        }
    }
}

impl fmt::Display for PofDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no dialect of POF; the dialects are 1.2 and 1.4.0.015")]
pub struct UnknownDialect(pub String);

impl FromStr for PofDialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| UnknownDialect(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for (column, dialect) in PofDialect::ALL.into_iter().enumerate() {
            assert_eq!(dialect.column(), column);
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        let error = "1.5".parse::<PofDialect>().unwrap_err();
        assert_eq!(error.to_string(), "`1.5` is no dialect of POF; the dialects are 1.2 and 1.4.0.015");
    }
}
