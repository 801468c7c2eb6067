// SPDX-License-Identifier: Apache-2.0
//! Tables that change while workers look up packets in them.
//!
//! A table consists of an immutable compiled base (crate `engines`), a small delta of rules added since, and
//! tombstones for removed rules of the base. A lookup allocates nothing and takes no lock.
//!
//! - Control side: a [`RuleTable`] holds a table's rules, chooses the engine, compiles bases (also in the
//!   background), and turns changes into [`TableUpdate`]s.
//! - Worker side: a [`Table`] is a shared base with a private delta and private tombstones. Applying an
//!   update takes a short, bounded time for tables of any size, and frees nothing.
//!
//! The crate must not know about ports or protocols. It must not start the thread that compiles in the
//! background: the data plane decides where a [`compile::Job`] runs.
//!
//! Begin with [`table`] and [`delta`] for lookups, and with [`rule_table`] and [`choice`] for updates.

pub mod additions;
pub mod choice;
pub mod compile;
pub mod delta;
mod id_map;
mod row_encoder;
pub mod rule_table;
pub mod shadow_view;
pub mod shape;
pub mod table;

pub use engines::RunInParallel;
pub use engines::parallel::PARALLEL_MIN;
pub use rule_table::RuleTable;
pub use table::{RulePlace, Table, TableUpdate};
