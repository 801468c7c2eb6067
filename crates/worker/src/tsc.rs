// SPDX-License-Identifier: Apache-2.0
//! The processor's time stamp counter, for processors on which its rate is constant.
#![allow(unsafe_code)]

/// Returns the value of the time stamp counter.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read() -> u64 {
    // SAFETY: `rdtsc` has no operands and accesses no memory. Every x86-64 processor implements it, and Linux
    // permits it unless the process disables it by `prctl`, which nothing here does.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns whether the counter has a constant rate in all power states (CPUID: invariant TSC). A hypervisor
/// that hides the flag may migrate the machine to a processor with another rate.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn read() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_invariant() -> bool {
    false
}
