// SPDX-License-Identifier: Apache-2.0
//! Packet buffers: frames with their metadata, pools of frames, and the layout that frames share with DPDK's
//! mbufs.
//!
//! A frame has one owner at a time. A freed frame returns to the pool it was taken from, identified by its
//! home number, or to its device. The crate does no I/O and does not interpret packets; it only keeps offsets
//! in the metadata valid when headers are inserted or removed. `unsafe` code is in `memory.rs` and
//! `prefetch.rs` only.
//!
//! Begin reading with [`Frame`] in `frame.rs`, then [`Meta`] and [`Pool`].

mod frame;
mod memory;
mod meta;
mod pool;
pub mod prefetch;

pub use frame::{CacheLine, Frame, FrameDescriptor, HEADROOM_BYTES, TAILROOM_BYTES};
pub use memory::{DEVICE_HOME, FillLevel, HEAD_BYTES, Head, Owner, layout};
pub use meta::{Gso, GsoKind, Lane, Meta, PartialChecksum, PerLane, Stamp};
pub use pool::Pool;
