// SPDX-License-Identifier: Apache-2.0
//! Views and builders of packet headers, checksums, captures. Knows nothing of flows.
//!
//! - [`locate`] finds a frame's headers in one walk; [`Layers`] tells where they are.
//! - One module a protocol holds a view: lengths are checked once in `new_checked`, so that accessors cannot fail.
//! - [`builder`] stacks headers into a frame with right lengths and checksums.
//! - [`checksum`] computes and incrementally updates Internet checksums and the CRC of SCTP.
//! - [`segment`] does in software what offloads leave undone.
//! - [`capture`] reads pcap and pcapng and writes pcap.

pub mod builder;
pub mod capture;
pub mod checksum;
pub mod layers;
pub mod segment;

mod view;

pub mod arp;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod keyflow;
pub mod mpls;
pub mod polka;
pub mod sctp;
pub mod tcp;
pub mod tf;
pub mod udp;
pub mod vlan;

pub use builder::PacketBuilder;
pub use layers::{Depth, Layers, deepen, locate};
pub use view::Malformed;
