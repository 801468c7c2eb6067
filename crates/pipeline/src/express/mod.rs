// SPDX-License-Identifier: Apache-2.0
//! The express path. A path record lists the entries that packets with one key hit, so that these packets
//! need no lookup in any table. Crate [`keys`] plans and builds the keys.
//!
//! When rules change, records are not touched. A record is compared with the changes at its next hit
//! (`changes.rs`).
//!
//! Begin with `cache.rs`, which holds the records of one worker ([`Express`]). `pass.rs` looks up the packets
//! of a burst, and `learn.rs` makes records.

mod budget;

mod bypass;

mod cache;

mod changes;

mod divert;

mod learn;

mod leave;

mod look_up;

mod pass;

mod path;

mod paths;

mod previous;

mod recorded;

mod records;

mod surplus;

mod tags;

mod verify;

mod waiting;

#[cfg(test)]
mod tests;

pub use budget::FrameCache;
pub(crate) use budget::RecordBudget;
pub use bypass::BypassLimits;
pub use cache::Express;
pub use changes::PathChanges;
pub use paths::HitsToCount;
pub use previous::Predecessor;
pub use records::ExpressSize;
pub(crate) use waiting::WaitingKeys;
