// SPDX-License-Identifier: Apache-2.0
//! A datapath that forwards in a device instead of workers: the link to the device, and its state.
//!
//! Begin with [`DeviceDatapath`].

mod datapath;
mod udp_link;

pub use datapath::DeviceDatapath;
pub use udp_link::UdpLink;
