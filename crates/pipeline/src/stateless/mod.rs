// SPDX-License-Identifier: Apache-2.0
//! The stateless forwarder: computes the output port of tagged packets, before any table or cache is
//! searched.
//!
//! ```text
//! burst ──► tagged? ──► trusted? ──► residue / gate ──► port ──► MTU ──► leaves
//!              │ no                      │ a label that means the tables
//!              └─────────────────────────┴──► admit, fast-forwarding path, tables
//! ```
//!
//! A packet that it takes never becomes a [`crate::packet::Packet`]: the frame is changed in place and leaves
//! at once. The reference implementation is `reference::stateless`.

pub(crate) mod forwarder;
mod limbs;
pub mod residue;
mod simd;
