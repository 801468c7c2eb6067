// SPDX-License-Identifier: Apache-2.0
//! Levels of vector instructions that engines may use.
//!
//! The level is determined when an engine is compiled. The kernels of each engine are in its `simd` module. A
//! kernel that needs an instruction can only be created if [`Level::found`] reports it.

use std::sync::atomic::{AtomicBool, Ordering};

static PORTABLE: AtomicBool = AtomicBool::new(false);

/// Sets whether engines compiled from now on, in this process, avoid the core's vector instructions.
pub fn set_portable(portable: bool) {
    PORTABLE.store(portable, Ordering::Relaxed);
}

/// Returns the setting of [`set_portable`].
#[must_use]
pub fn is_portable() -> bool {
    PORTABLE.load(Ordering::Relaxed)
}

/// Level of vector instructions. Each level includes the instructions of the levels below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Instructions that every core has.
    Portable,
    /// AVX2, BMI1, BMI2, POPCNT: vectors of 256 bits with gathers.
    Avx2,
    /// [`Level::Avx2`] and AVX-512 F, BW, VL, DQ: vectors of 512 bits with masks.
    Avx512,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Returns the highest level that the core supports and the process may use.
    #[must_use]
    pub fn found() -> Self {
        if is_portable() { Self::Portable } else { Self::of_core() }
    }

    #[cfg(target_arch = "x86_64")]
    fn of_core() -> Self {
        let half = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let whole = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq");
        match (half, whole) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_core() -> Self {
        Self::Portable
    }
}
