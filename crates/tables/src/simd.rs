// SPDX-License-Identifier: Apache-2.0
//! Which wide instructions an engine may use, asked when it is compiled: those of the core, unless the process does
//! without. Each engine's kernels stand in a `simd` module of its own; what needs an instruction can only be made where
//! [`Level::found`] has told of it.

use std::sync::atomic::{AtomicBool, Ordering};

static PORTABLE: AtomicBool = AtomicBool::new(false);

/// Whether what is compiled from now on, in this process, does without the wide instructions that the core has.
pub fn set_portable(portable: bool) {
    PORTABLE.store(portable, Ordering::Relaxed);
}

/// Whether [`set_portable`] said so.
#[must_use]
pub fn is_portable() -> bool {
    PORTABLE.load(Ordering::Relaxed)
}

/// Sets of instructions, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every core has.
    Portable,
    /// AVX2, BMI1, BMI2, POPCNT: vectors of 256 bits with gathers.
    Avx2,
    /// AVX-512 F, BW, VL, DQ: vectors of 512 bits with masks, beside those of [`Level::Avx2`].
    Avx512,
}

impl Level {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The most that this core has and the process may use.
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
