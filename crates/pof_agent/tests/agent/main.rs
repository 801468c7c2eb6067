// SPDX-License-Identifier: Apache-2.0
//! Tests of the agent over a model with a fake data plane.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod async_messages;
mod choices;
#[path = "../../../model/tests/common/mod.rs"]
mod common;
mod counters;
mod limits;
mod messages;
mod random;
mod resources;
mod rig;
mod storm;
