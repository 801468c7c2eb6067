// SPDX-License-Identifier: Apache-2.0
//! The switch as a controller sees it: turns messages, clock and worker events into operations and replies.

pub mod data_plane;

pub use data_plane::{DataPlane, EntryCounters, PortCounters, TableCounters, Totals};
