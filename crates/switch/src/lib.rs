// SPDX-License-Identifier: Apache-2.0
//! The daemon: configuration, threads, sockets. The model forwards nothing and the workers' threads do nothing else;
//! between them stands the control thread.

pub mod config;
pub mod control;
pub mod daemon;
pub mod flow_file;
pub mod lane_form;
pub mod listener;
pub mod log;
mod openflow;
pub mod scenario;
pub mod top;
pub mod trace;
