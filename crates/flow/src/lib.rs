// SPDX-License-Identifier: Apache-2.0
//! Types of the flow model, which every crate that handles flows uses. The crate depends on `wire` only.
//!
//! The crate defines match fields, matches, actions, instructions, entries, groups, meters, limits and drop
//! reasons, the extended header's layout, and the text syntax of flow files. It must not look up packets,
//! keep tables or do I/O. Engines are in `engines`, tables in `tables`, and the semantics in `reference`.
//!
//! Begin with [`entry`] for flow entries and flow-mods. [`field`] and [`matching`] define conditions.
//! [`action`], [`edit`] and [`instruction`] define effects. [`operation`] lists the changes that a data plane
//! receives. [`syntax`] parses and prints flows. [`filter`] compares single packets with a match, for traces.

pub mod action;
pub mod bridge;
pub mod edit;
pub mod entry;
pub mod ext;
pub mod field;
pub mod filter;
pub mod group;
pub mod instruction;
pub mod limits;
pub mod matching;
pub mod meter;
pub mod mirror;
mod nanos;
pub mod number;
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
pub use bridge::{BridgeConfig, BridgePort};
pub use edit::{BitRange, CutOrigin, Edit, EditError};
pub use entry::{EntryFlags, FlowEntry, FlowMod, FlowModCommand};
pub use ext::Ext;
pub use field::{Field, FieldBase, Location};
pub use filter::PacketFilter;
pub use instruction::{Instructions, Next};
pub use limits::Limits;
pub use matching::{FieldMatch, FreeValue, Match, MatchError};
pub use mirror::{MirrorSelection, Passage};
pub use number::{EntryId, GroupId, MeterId, Nanos, PortNo, QueueId, RuleVersion, TableId};
pub use operation::{EntryChange, HeldFlow, Operation, PortState, Settings};
pub use outcome::{DropReason, Outcome, PacketInReason};
pub use packed::Fields;
pub use queue::EgressQueue;
pub use slice::{Slice, SliceBase, SliceError};
pub use stateless::StatelessConfig;
