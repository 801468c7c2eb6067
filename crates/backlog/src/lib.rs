// SPDX-License-Identifier: Apache-2.0
//! Backlog of a worker: which packets may wait in it, and their positions.
//!
//! The crate counts packets and must not know of packets themselves. The packets are in `pipeline`.

mod limits;
mod shares;
mod window;

pub use limits::LaneLimits;
pub use shares::{BacklogShare, Shares};
pub use window::Window;
