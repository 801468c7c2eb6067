// SPDX-License-Identifier: Apache-2.0
//! Every engine and every delta, compared with a linear search over the same rules.

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
