// SPDX-License-Identifier: Apache-2.0
//! The daemon: configuration, threads, sockets.

pub mod config;
