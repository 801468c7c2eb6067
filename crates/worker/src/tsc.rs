// SPDX-License-Identifier: Apache-2.0
//! The processor's time stamp counter, where it counts at one rate in all states of the core.
#![allow(unsafe_code)]

/// The counter.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86-64 core has the instruction. Linux lets programs use it unless they forbid it themselves (prctl).
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Whether the counter runs at one rate whatever the core does (CPUID: invariant TSC). Where a hypervisor hides that, it
/// may move the machine to another with another rate.
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
