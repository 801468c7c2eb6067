// SPDX-License-Identifier: Apache-2.0
//! Keys of the express path. A key says in which bits that the tables examine an arriving packet differs from
//! others, and nothing else: not how its headers are arranged, where they begin, or how long it is.
//!
//! A plan ([`ExpressPlan`]) states which bits these are, and where each of them is in the key. The control
//! side makes it from the rules of all tables that a packet can reach. A [`KeyReader`] builds the keys.
//! A record ([`Express`]) says for one key which entries a packet hits, so that the packet needs no lookup in
//! any table. When rules change, records are not touched. A record is compared with the changes at its next
//! hit (`changes.rs`).
//!
//! Begin with `plan.rs`, then read `key.rs`. `layout.rs` decides which bytes of a key several headers share.

mod bypass;

mod cache;

mod changes;

mod conditions;

mod counters;

mod key;

mod layout;

mod learn;

mod look_up;

mod pass;

mod path;

mod plan;

mod previous;

mod recorded;

mod records;

mod row;

mod tags;

mod template;

mod verify;

mod waiting;

#[cfg(test)]
mod tests;

pub use bypass::BypassLimits;
pub use cache::Express;
pub use changes::PathChanges;
pub use counters::{ExpressCounters, ExpressFigures};
pub use key::{ExpressKey, KeyReader};
pub use layout::{ONE_LINE_BYTES, TWO_LINES_BYTES};
pub use plan::{ExpressPlan, KeyFit, PlanVersion};
pub use previous::Predecessor;
pub use records::ExpressSize;
pub use row::Rewritten;
pub(crate) use waiting::WaitingKeys;
