// SPDX-License-Identifier: Apache-2.0
//! The pins of the verilated modules, and the C interface to them. All `unsafe` code of the crate is here.

#[cfg(feature = "datapath")]
pub mod datapath;
#[cfg(feature = "device")]
pub mod device;
