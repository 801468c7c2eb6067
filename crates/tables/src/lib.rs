// SPDX-License-Identifier: Apache-2.0
//! Table engines, the choice among them, and their updates.
//!
//! The crate does not depend on ports or protocols: a packet's value is a row of 64-bit words, laid out by a
//! [`KeyPlan`]. A lookup allocates nothing and takes no lock. Vector instructions are used in `simd` modules
//! only.
//!
//! - Control side: a [`RuleTable`] holds a table's rules, compiles [`Base`]s and turns changes into
//!   [`TableUpdate`]s.
//! - Worker side: a [`Table`] is a shared immutable base, a small private delta of additions, and tombstones
//!   for removed rules of the base. Applying an update takes short, bounded time, whatever the table's size,
//!   and frees nothing.
//!
//! Begin reading with [`table`] (lookup), then [`base`] and [`choice`] (engines), and [`rule_table`]
//! (updates).

pub mod additions;
pub mod base;
pub mod bits;
pub mod choice;
pub mod compile;
pub mod delta;
pub mod exact;
pub mod hash;
pub mod index;
pub mod lpm;
pub mod mask;
pub mod pages;
pub mod plan;
mod prefetch;
pub mod rule_table;
pub mod scan;
pub mod shadow_view;
pub mod shape;
pub mod simd;
pub mod table;
pub mod tuples;

pub use base::Base;
pub use bits::BitSet;
pub use plan::{KeyPart, KeyPlan};
pub use rule_table::RuleTable;
pub use table::{RulePlace, Table, TableUpdate};

/// Value that means "no slot" or "no entry".
pub const NONE: u32 = u32::MAX;
