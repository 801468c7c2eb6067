// SPDX-License-Identifier: Apache-2.0
//! Every engine and every head against a plain list of the same rules.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod files;
mod lag;
mod levels;
mod packet;
mod prefixes;
mod random;
mod rig;
mod sets;
mod swaps;
