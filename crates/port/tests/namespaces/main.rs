// SPDX-License-Identifier: Apache-2.0
//! Drivers on virtual interfaces in network namespaces.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[cfg(feature = "dpdk")]
mod dpdk;
mod hosts;
mod lab;
mod raw;
mod takeover;
mod xdp;
mod xdp_takeover;
