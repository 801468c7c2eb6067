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
//! Frames that it forwards never become a [`crate::packet::Packet`]: they are changed in place and leave at
//! once. The reference implementation is `reference::stateless`.

pub(crate) mod forwarder;
mod limbs;
pub mod residue;
mod simd;
