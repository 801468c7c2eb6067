// SPDX-License-Identifier: Apache-2.0
//! Tests of the POF channel over TCP and TLS, with real workers and packets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod channel;
mod entries;
mod equivalence;
mod lab;
#[path = "../openflow/log.rs"]
mod log;
mod lost;
#[path = "../openflow/peer.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod openflow_peer;
mod packets;
mod peer;
mod program;
mod several;
mod storm;
mod tls;
#[path = "../openflow/tls_files.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod tls_files;
