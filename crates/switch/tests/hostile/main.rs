// SPDX-License-Identifier: Apache-2.0
//! Tests of malicious and broken peers. Whatever a peer sends, memory stays bounded, the flow table stays
//! unchanged, and every packet is still forwarded. `scripts/tests/test_half_open.sh` tests peers that vanish,
//! which needs a network.
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
