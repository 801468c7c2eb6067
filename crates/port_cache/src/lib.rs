// SPDX-License-Identifier: Apache-2.0
//! Queues of packets whose flows have no path record yet. This is the non-blocking part of a per-port cache.
//!
//! The first packet of an unknown flow starts a search. Later packets of the flow wait behind it and start no
//! search of their own. When the searcher has answered, the packets are released in order of arrival. Packets
//! of other flows are not held up.
//!
//! The crate must not know of packets, headers or tables: keys and packets are type parameters. It does no
//! I/O, starts no thread and reads no clock. All memory is allocated at the start.
//!
//! Begin with `cache.rs` ([`PortCache`]), then read `queues/mod.rs` ([`MissQueues`]). `limits.rs` has the
//! budgets, `searcher.rs` a searcher that answers after a given time, and `requests.rs` the searches for a
//! searcher on another core.

mod active;
mod cache;
mod counters;
mod index;
mod limits;
mod quench;
mod queues;
mod requests;
mod searcher;
mod slots;
mod waiting;

pub use active::Victim;
pub use cache::{MissMode, PortCache, PortCacheConfig, SearcherKind};
pub use counters::{MissCounters, MissFigures, MissUsage};
pub use limits::{LimitError, MissLimits, WhenFull};
pub use quench::{Asked, QuenchConfig, QuenchedTables};
pub use queues::{AskResult, Due, FlowKey, MissQueues, OfferResult, Ticket};
pub use requests::SendResult;
pub use searcher::{Searcher, SearcherFaults};
