// SPDX-License-Identifier: Apache-2.0
//! Port drivers behind one trait, [`Queue`]. They move frames between a worker and its devices.
//!
//! A port has one [`Queue`] for each worker that serves it; a queue belongs to one thread. `receive` and
//! `transmit` must not allocate memory, take locks, write logs or block. All `unsafe` code is in `sys` and in
//! the shim of the DPDK driver.
//!
//! Begin reading with `queue.rs` (the contract of a driver), then `drivers.rs` (the list of drivers). The
//! simplest driver is `mem`.

pub mod af_packet;
pub mod af_xdp;
pub mod dpdk;
pub mod links;
pub mod mem;
pub mod patch;
pub mod pcap;
pub mod wait;

mod device_lock;
mod drivers;
mod error;
mod fault;
mod handover;
mod interface;
mod offload;
mod pools;
mod queue;
mod rings;
mod spec;
mod statistics;
mod sys;
mod watch;

pub use af_packet::Fanout;
pub use af_xdp::XdpRings;
pub use device_lock::DeviceLock;
pub use drivers::{DRIVERS, Driver, check, find, interface_of, is_of_interfaces, open, open_held};
pub use error::PortError;
pub use fault::{Faults, Faulty};
pub use handover::{FanoutGroup, Handover, Inherited, XdpSockets};
pub use interface::interface_index;
pub use offload::finished;
pub use pools::{LARGE_FRAME_BYTES, Pools, SMALL_FRAME_BYTES};
pub use queue::{Capabilities, Link, Outstanding, PortHandle, Queue};
pub use spec::{Queues, Spec};
pub use statistics::{PortDrop, Statistics};

/// Length in bytes of the shortest frame that is handled: an Ethernet header.
pub const MIN_FRAME_BYTES: usize = 14;
