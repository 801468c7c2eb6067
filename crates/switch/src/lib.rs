// SPDX-License-Identifier: Apache-2.0
//! The daemon: threads, control socket and connections of controllers.
//!
//! The crate connects the model with the workers, the clients and the controllers. It must not decide how
//! packets are forwarded: `model` turns the controllers' requests into rules, and `pipeline` applies the
//! rules to packets. Worker threads must not do other work.
//!
//! Begin with [`daemon::run`], which starts a switch. Then read [`daemon::Daemon::serve`], the loop of the
//! control thread.

mod access;
mod channels;
pub mod control;
pub mod daemon;
mod hardware;
pub mod listener;
pub mod live_trace;
pub mod log;
pub mod metrics;
mod mirror;
mod plane;
pub mod sandbox;
pub mod top;
pub mod upgrade;
mod waiting_plane;
