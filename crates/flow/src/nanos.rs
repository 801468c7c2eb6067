// SPDX-License-Identifier: Apache-2.0
//! Arithmetic with times. Operators overflow like those of `u64`; the saturating functions do not.

use crate::Nanos;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};
use std::time::Duration;

impl Nanos {
    /// The clock's origin, or a span of zero length.
    pub const ZERO: Self = Self(0);
    /// The latest time, or the longest span.
    pub const MAX: Self = Self(u64::MAX);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);
    /// One millisecond.
    pub const MILLISECOND: Self = Self(1_000_000);

    /// Returns the sum, or [`Nanos::MAX`] if it exceeds the range.
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or 0 if `other` is greater.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Nanos {
    #[inline]
    fn from(span: Duration) -> Self {
        Self(span.as_nanos() as u64)
    }
}

impl From<Nanos> for Duration {
    #[inline]
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Add for Nanos {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;

    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Mul<Nanos> for u64 {
    type Output = Nanos;

    #[inline]
    fn mul(self, span: Nanos) -> Nanos {
        span * self
    }
}

impl Div<u64> for Nanos {
    type Output = Self;

    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Div for Nanos {
    type Output = u64;

    #[inline]
    fn div(self, span: Self) -> u64 {
        self.0 / span.0
    }
}

impl Rem for Nanos {
    type Output = Self;

    #[inline]
    fn rem(self, span: Self) -> Self {
        Self(self.0 % span.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Self::add)
    }
}
