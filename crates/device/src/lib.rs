// SPDX-License-Identifier: Apache-2.0
//! Definitions that the hardware pipeline (`rtl/`) and the daemon share. The crate does no I/O.
//!
//! Begin with [`layout`] for the header that a lookup examines, [`key`] for the bits that a table compares,
//! and [`action`] for what an entry does with a packet. [`message`] is the protocol
//! between daemon and device.

pub mod action;
pub mod command;
pub mod key;
pub mod layout;
pub mod message;
mod reader;

pub use action::{ActionWord, EditBase, OutputKind};
pub use command::PpuCommand;
pub use key::{KeySlice, SelectorBase, TernaryKey};
pub use message::{Body, CodecError, DeviceMessage};
