// SPDX-License-Identifier: Apache-2.0
//! Views and builders of packet headers, checksums, and capture files.
//!
//! The crate must not depend on flows, tables or ports, and views must not allocate memory. Begin with
//! [`locate`] for parsing and with [`builder`] for test frames.
//!
//! - [`locate`] finds a frame's headers in one walk. [`Layers`] holds their offsets.
//! - Each protocol has a module with a view. `new_checked` checks the length once, so accessors cannot fail.
//! - [`builder`] stacks headers into a frame with correct lengths and checksums.
//! - [`checksum`] computes Internet checksums, updates them incrementally, and computes the CRC32c of SCTP.
//! - [`digest`] hashes frames, to compare them.
//! - [`segment`] implements checksum and segmentation offloads in software.
//! - [`capture`] reads pcap and pcapng and writes pcap.

pub mod builder;
pub mod capture;
pub mod checksum;
pub mod digest;
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
pub use layers::{CommonGuard, Depth, Layers, deepen, locate, locate_common};
pub use view::Malformed;
