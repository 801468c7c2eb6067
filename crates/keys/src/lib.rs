// SPDX-License-Identifier: Apache-2.0
//! Keys of the express path. A key has the bits of an arriving packet that the tables examine, wherever the
//! packet's headers begin.
//!
//! A plan ([`ExpressPlan`]) states which bits these are, and where each of them is in the key. The control
//! side makes the plan from the rules of all tables that a packet can reach. A [`KeyReader`] builds the keys,
//! and [`Templates`] build those of common packets with a few loads or one byte shuffle. A [`RuleRow`] is a
//! rule in the layout of the keys, and shows whether packets with a key may match the rule. [`RuleChanges`]
//! are the last changes of the rules, and show whether packets with a key may take another path than before.
//!
//! An [`Extractor`] builds the keys of a single table.
//!
//! The crate must not keep tables, records of keys, or packets of a burst. These are in crate `pipeline`.
//! Building a key allocates nothing.
//!
//! Begin with `plan.rs`, then read `key.rs`. `layout.rs` decides which headers share bytes of a key.

mod arrival;
mod bits;
mod changes;
mod conditions;
mod depth;
mod extract;
mod hops;
mod key;
mod layout;
mod plan;
mod row;
mod shuffle;
mod simd;
mod template;
mod views;

#[cfg(test)]
mod tests;

pub use bits::{eight_bytes, read_bits};
pub use changes::{ChangesSince, KindOfRules, RuleChanges};
pub use extract::{Extractor, KeyedPacket};
pub use hops::{
    FirstHops, FoundPath, HOPS_MAX, HopList, Hops, MoreHops, NO_MORE, PathHop, Stations, is_recordable,
};
pub use key::{ExpressKey, KeyReader, ROOM_WORDS};
pub use layout::{KeyFit, LONG_WORDS, ONE_LINE_BYTES, SHORT_WORDS, TWO_LINES_BYTES, VECTOR_WORDS};
pub use plan::{ExpressPlan, Permitted, PlanVersion, port_bytes};
pub use row::{Rewritten, RuleRow};
pub use shuffle::Shuffle;
pub use simd::{Vbmi, VbmiCode};
pub use template::{FAR_WINDOW_BYTES, FlatTemplate, KeyTemplate, SingleLoads, Templates, WINDOW_BYTES};
pub use views::View;
