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
//! The crate must not look up flows or send frames. The stage `pass_stateless` of `pipeline` carries out the
//! decisions: it sends or drops frames, counts them, and passes all other frames to the tables. The reference
//! implementation is `reference::stateless`.
//!
//! Begin with `forwarder.rs`: [`StatelessForwarder::facts`] parses tags, and
//! [`StatelessForwarder::forward_by_tag`] decides what happens to a tagged frame. [`residue`] has the
//! arithmetic.

mod forwarder;
mod limbs;
pub mod residue;
mod simd;

pub use forwarder::{HeaderFacts, StatelessForwarder, TOGETHER, TagEdit, TagVerdict};
