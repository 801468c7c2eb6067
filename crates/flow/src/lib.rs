// SPDX-License-Identifier: Apache-2.0
//! The flow model's types: match fields and slices, matches, actions, instructions, entries, groups, meters, limits,
//! the extended header's layout, and the text syntax. Knows nothing of how a lookup is done.

pub mod action;
pub mod entry;
pub mod ext;
pub mod field;
pub mod group;
pub mod instruction;
pub mod limits;
pub mod matching;
pub mod meter;
pub mod operation;
pub mod outcome;
pub mod packed;
pub mod port_no;
pub mod queue;
pub mod slice;
pub mod stateless;
pub mod syntax;
pub mod validate;

pub use action::Action;
pub use entry::{Command, EntryFlags, EntryId, FlowEntry, FlowMod};
pub use ext::Ext;
pub use field::{Base, Field, Location};
pub use instruction::{Instructions, Next};
pub use limits::Limits;
pub use matching::{FieldMatch, Match, MatchError};
pub use operation::{EntryChange, Operation, PortState, Settings};
pub use outcome::{DropReason, Outcome, PacketInReason};
pub use packed::Fields;
pub use port_no::PortNo;
pub use queue::EgressQueue;
pub use slice::{Slice, SliceBase};
pub use stateless::Stateless;

/// Nanoseconds of the clock that the caller drives (real or virtual).
pub type Nanos = u64;
