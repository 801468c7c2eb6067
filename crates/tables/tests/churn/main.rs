// SPDX-License-Identifier: Apache-2.0
//! Adds rules to tables and removes them, with every engine and every kind of delta. Compares lookups with a
//! linear search.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod files;
mod lag;
#[path = "../../../engines/tests/engines/packet.rs"]
mod packet;
mod random;
mod rig;
#[path = "../../../engines/tests/engines/sets.rs"]
mod sets;
mod swaps;
