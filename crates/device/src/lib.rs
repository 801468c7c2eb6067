// SPDX-License-Identifier: Apache-2.0
//! Definitions that the hardware pipeline (`rtl/`) and the daemon share. The crate does no I/O.
//!
//! The RTL and its test benches use a SystemVerilog package and a Python module that [`generate`] writes. A
//! test compares the committed files with the generator's output.
//!
//! Begin with [`layout`] for the header that a lookup examines, and [`action`] for what an entry does with a
//! packet. [`message`] is the protocol between daemon and device, and [`register`] the register map.

pub mod action;
pub mod command;
pub mod compile;
pub mod emulator;
pub mod generate;
pub mod key;
pub mod layout;
pub mod message;
pub mod plane;
mod reader;
pub mod register;
pub mod session;
pub mod signal;
pub mod simulated;

pub use action::{ActionWord, EditBase, OutputKind};
pub use command::PpuCommand;
pub use key::{KeySlice, SelectorBase, TernaryKey};
pub use message::{Body, CodecError, DeviceMessage};
