// SPDX-License-Identifier: Apache-2.0
//! Tables whose rules are added and removed, with every engine and every delta, compared with a linear search
//! over the same rules.

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
