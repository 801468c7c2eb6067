// SPDX-License-Identifier: Apache-2.0
//! Compiles flow tables to programs of the device, entry by entry.

pub mod action_set;
pub mod conditions;
pub mod edits;
pub mod error;
pub mod layout;
pub mod plan;
pub mod positions;
pub mod primitives;
pub mod space;
