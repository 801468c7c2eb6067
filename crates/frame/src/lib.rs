// SPDX-License-Identifier: Apache-2.0
//! Packet buffers: frames with their metadata, pools of frames, and the layout that frames share with DPDK's
//! mbufs.
//!
//! A frame has one owner at a time. A freed frame returns to its device or to the pool from which it was
//! taken; the frame's home number identifies this pool. The crate does no I/O and does not interpret packets.
//! Only `memory.rs` and `prefetch.rs` contain `unsafe` code.
//!
//! Begin reading with [`Frame`] in `frame.rs`, then [`Meta`] and [`Pool`].

mod frame;
mod memory;
mod meta;
mod pool;
pub mod prefetch;

pub use frame::{CacheLine, Frame, FrameDescriptor, HEADROOM_BYTES, TAILROOM_BYTES};
pub use memory::{DEVICE_HOME, FillLevel, HEAD_BYTES, Head, Owner, layout, move_all, take_each};
pub use meta::{Gso, GsoKind, Lane, Meta, PartialChecksum, PerLane, Stamp};
pub use pool::Pool;
