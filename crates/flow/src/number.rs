// SPDX-License-Identifier: Apache-2.0
//! Numbers with distinct types, so that a port cannot be passed where a queue is expected.
//!
//! Each type wraps one integer and prints as that integer.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Declares types that wrap an integer.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }

        impl From<$inner> for $name {
            #[inline]
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }

        impl From<$name> for $inner {
            #[inline]
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )*};
}

numbers! {
    /// Identifier of a flow entry. It is reused only when no references to the entry are left.
    EntryId(u32);
    /// Port number. Real ports have the numbers 1 to [`port_no::MAX`](crate::port_no::MAX). Higher numbers
    /// are reserved.
    PortNo(u32);
    /// Number of an egress queue at its port, at most [`EgressQueue::ID_MAX`](crate::EgressQueue::ID_MAX).
    QueueId(u32);
    /// Group number, at most [`GROUP_MAX`](crate::validate::GROUP_MAX).
    GroupId(u32);
    /// Meter number, 1 to [`METER_MAX`](crate::validate::METER_MAX).
    MeterId(u32);
    /// A point in time or a span, in ns. The caller's clock is real or virtual.
    Nanos(u64);
    /// Version of the rules. Version `n` includes the first `n` operations that a data plane received.
    RuleVersion(u64);
    /// Table number: 0 to 254, or [`MAC_TABLE`](crate::operation::MAC_TABLE).
    TableId(u8);
}

impl TableId {
    /// Highest number of a table that controllers can use.
    pub const LAST: Self = Self(254);

    /// Returns the numbers of all tables in order, [`MAC_TABLE`](crate::operation::MAC_TABLE) included.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// Returns the numbers of the controller's tables in order.
    pub fn of_controllers() -> impl Iterator<Item = Self> {
        (0..=Self::LAST.0).map(Self)
    }

    /// Returns the index of the table in an array of all tables.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl EntryId {
    /// Stands for "no entry".
    pub const NONE: Self = Self(u32::MAX);
}
