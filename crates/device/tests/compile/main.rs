// SPDX-License-Identifier: Apache-2.0
//! Compiled programs in the software device against the reference.
#![allow(clippy::unwrap_used, clippy::panic)]

mod borders;
mod check;
mod frames;
mod pair;
mod places;
mod programs;
mod random;
mod rules;
mod use_cases;

use device::compile::PpuLayout;
use pair::Pair;

fn device(tables: &[u8]) -> Pair {
    let ppus = tables.iter().sum();
    Pair::new(PpuLayout::new(ppus, 64, tables).unwrap())
}
