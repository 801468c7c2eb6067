// SPDX-License-Identifier: Apache-2.0
//! The af_packet and af_xdp drivers on virtual interfaces in network namespaces.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod hosts;
mod lab;
mod raw;
mod xdp;
