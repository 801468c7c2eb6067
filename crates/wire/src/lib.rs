// SPDX-License-Identifier: Apache-2.0
//! Views and builders of packet headers, checksums, captures. Knows nothing of flows.

pub mod layers;

pub use layers::{Depth, Layers, locate};
