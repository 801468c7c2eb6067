// SPDX-License-Identifier: Apache-2.0
//! Which PPUs belong to which flow table.

use std::ops::Range;

/// Assignment of PPUs to tables. The entries of a table are in its first PPU, its *head*. Further edits of an
/// entry are executed by the PPUs behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PpuLayout {
    heads: Vec<usize>,
    sizes: Vec<u8>,
    ppus: usize,
    entries: u16,
}

impl PpuLayout {
    /// Returns the layout of a device whose tables have these numbers of PPUs, each at least 1. `None`: the
    /// device has fewer PPUs, or a table has none.
    #[must_use]
    pub fn new(ppus: u8, entries: u16, tables: &[u8]) -> Option<Self> {
        let mut heads = Vec::new();
        let mut next = 0;
        for &count in tables.iter().filter(|count| **count > 0) {
            heads.push(next);
            next += usize::from(count);
        }
        let right = !heads.is_empty() && heads.len() == tables.len() && next <= ppus.into() && entries > 1;
        right.then_some(Self { heads, sizes: tables.to_vec(), ppus: ppus.into(), entries })
    }

    /// Returns the layout with one table per PPU.
    #[must_use]
    pub fn one_each(ppus: u8, entries: u16) -> Option<Self> {
        Self::new(ppus, entries, &vec![1; ppus.into()])
    }

    /// Number of PPUs.
    #[must_use]
    pub fn ppus(&self) -> usize {
        self.ppus
    }

    /// Number of tables.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.heads.len()
    }

    /// Number of entries of a PPU.
    #[must_use]
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// Returns the number of PPUs of each table.
    #[must_use]
    pub fn sizes(&self) -> Vec<u8> {
        self.sizes.clone()
    }

    /// Returns the head of a table.
    #[must_use]
    pub fn head(&self, table: usize) -> Option<usize> {
        self.heads.get(table).copied()
    }

    /// Returns the heads among these PPUs.
    pub fn heads_in(&self, ppus: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        self.heads.iter().copied().filter(move |head| ppus.contains(head))
    }

    /// Returns whether one of these PPUs is a head.
    #[must_use]
    pub fn has_head(&self, ppus: Range<usize>) -> bool {
        self.heads_in(ppus).next().is_some()
    }

    /// Returns the table of a head.
    #[must_use]
    pub fn table(&self, head: usize) -> Option<usize> {
        self.heads.iter().position(|listed| *listed == head)
    }
}
