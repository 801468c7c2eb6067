// SPDX-License-Identifier: Apache-2.0
//! Peers that mean harm or are broken. Whatever they do, memory stays within bounds, the flow table is as it was, and
//! packets are forwarded meanwhile, each of them. Peers that vanish need a network: `scripts/tests/test_half_open.sh`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../openflow/lab.rs"]
#[allow(dead_code)]
mod lab;
mod length_fields;
mod lengths;
#[path = "../openflow/log.rs"]
mod log;
mod many;
#[path = "../openflow/peer.rs"]
#[allow(dead_code)]
mod peer;
mod resetting;
mod scene;
mod stubborn;
