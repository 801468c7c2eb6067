// SPDX-License-Identifier: Apache-2.0
//! Limits of a simulated switch and its traffic.

/// Maximum number of ports of a simulated switch.
pub const PORTS: u32 = 256;

/// Maximum duration of packet arrivals in ns: one hour.
pub const LONGEST_NS: f64 = 3.6e12;

/// Maximum rate of a traffic class and of all traffic, in packets per second.
pub const RATE_PPS: f64 = 1e9;
