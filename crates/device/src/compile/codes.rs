// SPDX-License-Identifier: Apache-2.0
//! Numbers that the device reports with packets for the controller.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use flow::FlowEntry;

use crate::compile::error::CompileError;

/// Numbers of one table's entries. A packet may arrive after its entry was removed, so the entry is known
/// until its number is used again. The number that has been free for the longest time is used next.
#[derive(Clone, Debug)]
pub struct SenderCodes {
    free: VecDeque<u8>,
    /// Entries with their metadata, by number. An entry with a free number was removed.
    senders: BTreeMap<u8, (Arc<FlowEntry>, u64)>,
}

impl Default for SenderCodes {
    fn default() -> Self {
        Self { free: (1..=u8::MAX).collect(), senders: BTreeMap::new() }
    }
}

impl SenderCodes {
    /// Returns the number for the next entry.
    ///
    /// # Errors
    /// All numbers are in use.
    pub fn next(&self) -> Result<u8, CompileError> {
        let free = self.free.front().copied();
        free.ok_or(CompileError::NumbersUsed("entries that send to the controller"))
    }

    /// Sets the entry of a number, which is in use from now on.
    pub fn set(&mut self, code: u8, entry: &Arc<FlowEntry>, metadata: u64) {
        if self.free.front() == Some(&code) {
            self.free.pop_front();
        }
        self.senders.insert(code, (Arc::clone(entry), metadata));
    }

    /// Frees a number. Its entry remains known until the number is used again.
    pub fn free(&mut self, code: u8) {
        self.free.push_back(code);
    }

    /// Returns the entry of a number, and its metadata.
    #[must_use]
    pub fn sender(&self, code: u8) -> Option<&(Arc<FlowEntry>, u64)> {
        self.senders.get(&code)
    }
}
