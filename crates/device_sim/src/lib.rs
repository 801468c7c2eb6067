// SPDX-License-Identifier: Apache-2.0
//! The RTL of the device (`rtl/`), compiled by Verilator and simulated in this process.
//!
//! The feature `datapath` builds the data plane alone ([`RtlDatapath`]), for tests. The feature `device`
//! builds the whole device ([`RtlDevice`]), and [`Simulation`], which connects it with ports and with the
//! daemon. Without a feature, this crate is empty.
#![cfg_attr(not(feature = "device"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(any(feature = "datapath", feature = "device"))]
mod beat;
#[cfg(feature = "datapath")]
mod command;
#[cfg(feature = "datapath")]
mod datapath;
#[cfg(feature = "device")]
mod device;
#[cfg(any(feature = "datapath", feature = "device"))]
mod pins;
#[cfg(feature = "device")]
mod simulation;

#[cfg(any(feature = "datapath", feature = "device"))]
pub use beat::{Beat, beats};
#[cfg(feature = "datapath")]
pub use datapath::{Refused, RtlDatapath, SentFrame};
#[cfg(feature = "device")]
pub use device::{DAEMON, DEVICE, RtlDevice, WireAddresses};
#[cfg(feature = "device")]
pub use simulation::{
    ChannelCounters, ControlCounters, DeviceChannel, Simulation, SimulationCounters, SimulationSettings,
};

#[cfg(any(feature = "datapath", feature = "device"))]
include!(concat!(env!("OUT_DIR"), "/parameters.rs"));
