// SPDX-License-Identifier: Apache-2.0
//! The af_packet driver on virtual interfaces in network namespaces.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod hosts;
mod lab;
mod raw;
