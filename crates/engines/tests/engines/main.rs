// SPDX-License-Identifier: Apache-2.0
//! Engines for prefixes and masks, at every level of instructions, compared with a linear search.

#![allow(clippy::unwrap_used)]

mod levels;
mod packet;
mod prefixes;
mod sets;
