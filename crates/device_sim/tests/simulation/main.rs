// SPDX-License-Identifier: Apache-2.0
//! The running device: frames at its ports, and the daemon's messages over a socket.
#![cfg(feature = "device")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod command;
mod compiled;
mod control;
mod forwarding;
mod idle;
mod measure;
mod queues;
mod rig;
