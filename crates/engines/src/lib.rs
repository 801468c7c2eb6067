// SPDX-License-Identifier: Apache-2.0
//! Compiled lookup structures of a table: engines that are built once and then only read.
//!
//! Engines do not depend on ports or protocols: the key of a packet is a row of 64-bit words, laid out by a
//! [`KeyPlan`]. An engine finds the best rule that matches a key. It is immutable, so all workers share it. A
//! lookup allocates nothing and takes no lock. Only `simd` modules use vector instructions.
//!
//! The crate must not choose an engine, hold the rules of a table, or apply changes: crate `tables` does
//! that. It must not read keys from packets: crate `pipeline` does that.
//!
//! - Engines: [`exact`] (one mask), [`lpm`] (prefixes of one field), [`mask`] (arbitrary rules), [`scan`]
//!   (few rules), [`index`] (rules selected by a number). [`Base`] is the compiled table with any of the
//!   first four.
//! - What they share: [`plan`] (layout of keys), [`hash`], [`tuples`] (rules spread over hash tables),
//!   [`bits`] (sets of slots), [`pages`] and prefetching, [`simd`] (levels of vector instructions).
//! - What the caches of crate `pipeline` share: [`recency`] (which records and values were used).
//!
//! Begin with [`base`], then [`scan`], the simplest engine, and [`exact`]. docs/engines.md compares the
//! engines.

pub mod base;
pub mod bits;
pub mod exact;
pub mod hash;
pub mod index;
pub mod lpm;
pub mod mask;
pub mod pages;
pub mod parallel;
pub mod plan;
mod prefetch;
pub mod recency;
pub mod scan;
pub mod simd;
pub mod tuples;

pub use base::Base;
pub use bits::BitSet;
pub use parallel::RunInParallel;
pub use plan::{KeyPart, KeyPlan};

/// Stands for "no slot".
pub const NONE: u32 = u32::MAX;
