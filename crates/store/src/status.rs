// SPDX-License-Identifier: Apache-2.0
//! State that the control thread and the thread that writes the store share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters that both threads use.
#[derive(Debug, Default)]
pub struct StoreCounters {
    /// Number of items in the queue.
    pub queued: AtomicUsize,
    /// Number of the last transaction that the mode `durable` regards as kept.
    pub kept: AtomicU64,
    /// Number of the last transaction that the control thread has recorded.
    pub recorded: AtomicU64,
    /// Number of the request for the whole state, or 0 if there is none.
    pub requested: AtomicU64,
    /// Bytes of the logs since the last snapshot.
    pub log_bytes: AtomicU64,
    /// Bytes of the last snapshot.
    pub snapshot_bytes: AtomicU64,
    /// Number of snapshots completed.
    pub snapshots: AtomicU64,
    /// Number of transactions that were not kept because the queue was full or the disk failed. Later
    /// snapshots include them.
    pub skipped: AtomicU64,
    /// Number of items that the format cannot represent.
    pub left_out: AtomicU64,
    /// Whether a snapshot is being written.
    pub is_snapshot_pending: AtomicBool,
    /// Why the store cannot be written at present, if it cannot.
    trouble: Mutex<Option<String>>,
}

impl StoreCounters {
    /// Returns why the store is not complete at present, if it is not.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets or clears the reason why the store is not complete.
    pub fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Returns a report for users.
    pub fn status(&self) -> StoreStatus {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        // Read `kept` first, so that it does not exceed `recorded`.
        let kept = load(&self.kept);
        StoreStatus {
            recorded: load(&self.recorded),
            kept,
            queued: self.queued.load(Ordering::Relaxed),
            log_bytes: load(&self.log_bytes),
            snapshot_bytes: load(&self.snapshot_bytes),
            snapshots: load(&self.snapshots),
            skipped: load(&self.skipped),
            left_out: load(&self.left_out),
            is_snapshot_pending: self.is_snapshot_pending.load(Ordering::Acquire),
            trouble: self.trouble(),
        }
    }
}

/// Condition of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Number of the last change of the datapath.
    pub recorded: u64,
    /// Number of the last change that a restart would restore.
    pub kept: u64,
    /// Number of values that wait to be written.
    pub queued: usize,
    /// Bytes of the logs since the last snapshot.
    pub log_bytes: u64,
    /// Bytes of the last snapshot.
    pub snapshot_bytes: u64,
    /// Number of snapshots completed since the start.
    pub snapshots: u64,
    /// Number of changes that only a later snapshot can include.
    pub skipped: u64,
    /// Number of values that the format cannot represent, and that a restart loses.
    pub left_out: u64,
    /// Whether a snapshot is being written.
    pub is_snapshot_pending: bool,
    /// Why the store is not complete at present, if it is not.
    pub trouble: Option<String>,
}
