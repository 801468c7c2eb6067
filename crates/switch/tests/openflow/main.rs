// SPDX-License-Identifier: Apache-2.0
//! Tests of the OpenFlow channel with real clients (ovs-ofctl, ovs-testcontroller) and with a misbehaving
//! controller.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod controller;
mod device;
mod ipv6;
mod lab;
mod log;
mod marks;
mod ofctl;
mod ofctl_effects;
mod peer;
mod rogue;
mod round_trip;
mod session;
mod stateless;
mod tls;
mod tls_files;
mod unix;
