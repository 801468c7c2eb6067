// SPDX-License-Identifier: Apache-2.0
//! Tests of the POF channel over TCP, with real workers and packets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod channel;
mod entries;
mod lab;
#[path = "../openflow/log.rs"]
mod log;
mod packets;
mod peer;
