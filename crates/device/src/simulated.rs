// SPDX-License-Identifier: Apache-2.0
//! Size of the simulated device. A larger one takes longer to build and to simulate.

/// Number of channels. The ports have the numbers 1 to this one.
pub const CHANNELS: u8 = 4;
/// Number of PPUs.
pub const PPUS: u8 = 5;
/// Entries of each PPU.
pub const ENTRIES: u16 = 32;
