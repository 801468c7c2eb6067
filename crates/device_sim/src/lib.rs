// SPDX-License-Identifier: Apache-2.0
//! The RTL of the device (`rtl/`), compiled by Verilator and simulated in this process.
//!
//! The feature `verilator` builds the simulation. Without it, this crate is empty.

#[cfg(feature = "verilator")]
mod command;
#[cfg(feature = "verilator")]
mod datapath;
#[cfg(feature = "verilator")]
mod pins;

#[cfg(feature = "verilator")]
pub use datapath::{Beat, Refused, RtlDatapath, SentFrame, beats};

#[cfg(feature = "verilator")]
include!(concat!(env!("OUT_DIR"), "/parameters.rs"));
